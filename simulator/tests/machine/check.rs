//! Whether what can be seen is what must be.

use reference_core::{book::Post, call::List, event::EventType, id::ChargeNo, outbox::DeliveryState};
use serde_json::Value;
use simulator::model::Status;

use crate::{
    deed::{Place, Read},
    facts,
    stage::{Stage, Verdict},
    world::{Desire, Paper, Reading, Standing, Subject, World},
};

/// Records on a page when all are read.
const ALL: usize = 100;

/// The first line that differs, and of it what differs.
fn same(what: &str, expected: &str, shown: &str) -> Verdict {
    if expected == shown {
        return Ok(());
    }
    let differ = |(expected, shown): &(&str, &str)| expected != shown;
    let Some((expected, shown)) = expected.lines().zip(shown.lines()).find(differ) else {
        let (expected, shown) = (expected.lines().count(), shown.lines().count());
        return Err(format!("{what}: there are {shown} records, not {expected}"));
    };
    let id = expected.split(", ").next().unwrap_or_default();
    let mut why = format!("{what}: {id}");
    for (expected, shown) in expected.split(", ").zip(shown.split(", ")).filter(differ) {
        why.push_str(&format!("\n  must be  {expected}\n  is       {shown}"));
    }
    Err(why)
}

impl Stage {
    /// Learns the ids of what is new.
    pub(crate) fn learn(&mut self) -> Verdict {
        for place in Place::ALL {
            let book = self.service.account(self.account(place)).book(place.mode());
            let ids = &mut self.ids[place.0];
            let lists = [
                (&mut ids.charges, List::Charges { status: None, link: None }),
                (&mut ids.invoices, List::Invoices { status: None }),
                (&mut ids.links, List::Links),
                (&mut ids.events, List::Events { kind: None, charge: None, invoice: None }),
            ];
            for (known, list) in lists {
                let length = book.listing(&list).newest().map_or(0, |newest| newest + 1);
                for member in u32::try_from(known.len()).expect("few")..length {
                    known.push(book.public_id(&list, member));
                }
            }
            for no in ids.addresses.len()..ids.charges.len() {
                let no = ChargeNo(u32::try_from(no).expect("few"));
                ids.addresses.push(book.charge(no).terms.deposit_address.clone());
            }
            ids.deliveries
                .extend(book.outbox().iter().skip(ids.deliveries.len()).map(|delivery| delivery.id));
        }
        Ok(())
    }

    /// Everything that can be seen, after each deed.
    pub(crate) fn check(&mut self, world: &World) -> Verdict {
        for place in Place::ALL {
            for list in Read::ALL {
                self.check_list(place, list, world)
                    .map_err(|why| format!("{place:?} {}: {why}", list.path()))?;
            }
            self.check_deliveries(place, world).map_err(|why| format!("deliveries of {place:?}: {why}"))?;
            self.check_filter(place, self.deeds, world)?;
            self.check_single(place, world)?;
        }
        self.check_addresses()?;
        let (expected, shown) = (world.next_wake(), self.service.next_tick());
        if expected != shown {
            return Err(format!("the service wants to be woken at {shown:?}, not at {expected:?}"));
        }
        Ok(())
    }

    /// All that takes too long after each deed.
    pub(crate) fn check_at_the_end(&mut self, world: &World) -> Verdict {
        for place in Place::ALL {
            for nth in 0..FILTERS {
                self.check_filter(place, nth, world)?;
            }
        }
        Ok(())
    }

    fn check_list(&mut self, place: Place, list: Read, world: &World) -> Verdict {
        let expected = facts::list(world, &self.ids[place.0], place, list);
        let first = self.read(place, &format!("{}?per_page={ALL}", list.path()));
        if self.read.get(&(place, list)).is_some_and(|(body, said)| *body == first.body && *said == expected)
        {
            return Ok(());
        }
        let mut shown = String::new();
        let mut page: Value = serde_json::from_slice(&first.body).map_err(|error| error.to_string())?;
        let total = world.books[place.0].length(list);
        loop {
            if page["meta"]["total"] != total {
                return Err(format!("the total is {}, not {total}", page["meta"]["total"]));
            }
            for record in page["data"].as_array().ok_or("a page has no data")? {
                shown.push_str(&facts::shown(list, record));
            }
            let Some(next) =
                page["links"]["next"].as_str().map(|next| next.replacen(crate::stage::BASE, "", 1))
            else {
                break;
            };
            page = self.get(place, &next).1;
        }
        same("a record", &expected, &shown)?;
        self.read.insert((place, list), (first.body.into(), expected));
        Ok(())
    }

    /// One page of a list that somebody began to read some time ago.
    pub(crate) fn check_page(
        &self,
        (who, list, per_page): Desire,
        reading: Reading,
        page: &Value,
    ) -> Verdict {
        let ids = &self.ids[who.0];
        let ids = match list {
            Read::Charges => &ids.charges,
            Read::Invoices => &ids.invoices,
            Read::Links => &ids.links,
            Read::Events => &ids.events,
        };
        let Reading { total, page: number } = reading;
        let newest_first = ids[..total].iter().rev();
        let expected: Vec<&str> =
            newest_first.skip((number - 1) * per_page).take(per_page).map(String::as_str).collect();
        let data = page["data"].as_array().ok_or("a page has no data")?;
        let shown: Vec<&str> = data.iter().filter_map(|record| record["id"].as_str()).collect();
        let last = total.div_ceil(per_page).max(1);
        let meta = |key: &str| page["meta"][key].as_u64();
        let numbers = [meta("total"), meta("current_page"), meta("last_page"), meta("per_page")];
        let wanted = [total, number, last, per_page].map(|n| u64::try_from(n).ok());
        let has = |key: &str| page["links"][key].is_string();
        if expected != shown
            || numbers != wanted
            || has("next") != (number < last)
            || has("prev") != (number > 1)
        {
            return Err(format!(
                "page {number} of {last} shows {shown:?} of {numbers:?}, not {expected:?} of {wanted:?}"
            ));
        }
        Ok(())
    }

    fn check_deliveries(&self, place: Place, world: &World) -> Verdict {
        let must = &world.books[place.0].deliveries;
        let book = self.book(place);
        let is: Vec<_> = book.outbox().iter().collect();
        if is.len() != must.len() {
            return Err(format!("there are {}, not {}", is.len(), must.len()));
        }
        for (no, (is, must)) in is.iter().zip(must).enumerate() {
            let state = match is.state {
                DeliveryState::Waiting(at) => Standing::Waiting(at),
                DeliveryState::InFlight(_) => Standing::Flying,
                DeliveryState::Delivered => Standing::Delivered,
                DeliveryState::Failed => Standing::Failed,
                DeliveryState::Canceled => Standing::Canceled,
            };
            let event = must.event.map(|event| self.ids[place.0].events[event].clone());
            let shown = is.parcel.event.map(|(_, id)| id.to_string());
            let is = (is.endpoint.index(), state, is.attempts.len() as u32, shown, is.parcel.created_at);
            let must = (must.hook, must.standing, must.attempts, event, must.opened);
            if is != must {
                return Err(format!(
                    "d{no} (endpoint, standing, attempts, event, opened) is {is:?}, not {must:?}"
                ));
            }
        }
        if !self.ids[place.0].deliveries.is_sorted_by(|a, b| a < b) {
            return Err("ids do not rise".to_owned());
        }
        Ok(())
    }

    /// What leaves the service.
    pub(crate) fn check_post(
        &self,
        post: &Post,
        (of, delivery): (Place, usize),
        attempt: u32,
        world: &World,
    ) -> Verdict {
        let (book, ids) = (&world.books[of.0], &self.ids[of.0]);
        let it = &book.deliveries[delivery];
        let expected = facts::post(book, ids, delivery, attempt);
        let body: Value = serde_json::from_slice(&post.body).map_err(|error| error.to_string())?;
        let kind = post.kind.as_str();
        let head = (post.id, post.endpoint.index(), post.attempt);
        let must = (ids.deliveries[delivery], it.hook, attempt);
        if head != must {
            return Err(format!("a post (delivery, endpoint, attempt) is {head:?}, not {must:?}"));
        }
        if post.secret.reveal() != ids.secrets[book.hooks[it.hook].secret] {
            return Err(format!("d{delivery} is signed with another secret than the newest"));
        }
        let shown = facts::shown_post(&body, kind, attempt);
        same(&format!("post of d{delivery} of {of:?}"), &expected, &shown)
    }

    /// One way to filter, by turns.
    fn check_filter(&mut self, place: Place, nth: usize, world: &World) -> Verdict {
        let (target, expected) = self.filter(place, nth % FILTERS, world);
        let (status, page) = self.get(place, &target);
        let shown: Option<Vec<String>> = page["data"].as_array().map(|data| {
            data.iter().map(|record| record["id"].as_str().unwrap_or_default().to_owned()).collect()
        });
        if status != 200 || shown.as_ref() != Some(&expected) {
            return Err(format!("{place:?} {target} is answered {status} {shown:?}, not {expected:?}"));
        }
        Ok(())
    }

    /// What to ask, and the ids that must come: newest first, at most a page.
    fn filter(&self, place: Place, nth: usize, world: &World) -> (String, Vec<String>) {
        let (book, ids) = (&world.books[place.0], &self.ids[place.0]);
        let pick = |ids: &[String], which: &dyn Fn(usize) -> bool| -> Vec<String> {
            (0..ids.len()).rev().filter(|no| which(*no)).take(ALL).map(|no| ids[no].clone()).collect()
        };
        let newest = |ids: &[String]| ids.last().cloned().unwrap_or_else(|| "aaaaaaaaaaaa".to_owned());
        // Somebody else's objects select nothing.
        let foreign = &self.ids[(place.0 + 1 + self.deeds % 3) % 4];
        let statuses = [Status::Pending, Status::Underpaid, Status::Paid, Status::Expired, Status::Canceled];
        let size = format!("per_page={ALL}");
        match nth {
            0..5 => {
                let status = statuses[nth];
                let of = |no: usize| book.charges[no].it.status == status;
                (format!("/v1/charges?status={}&{size}", status.as_str()), pick(&ids.charges, &of))
            }
            5..8 => {
                let status = Paper::ALL[nth - 5];
                let of = |no: usize| book.invoices[no].status == status;
                (format!("/v1/invoices?{size}&status={}", status.as_str()), pick(&ids.invoices, &of))
            }
            8 => {
                let link = ids.links.len().checked_sub(1);
                let of = |no: usize| link.is_some() && book.charges[no].link == link;
                (format!("/v1/charges?payment_link={}&{size}", newest(&ids.links)), pick(&ids.charges, &of))
            }
            9 => {
                let link = ids.links.len().checked_sub(1);
                let of = |no: usize| {
                    link.is_some()
                        && book.charges[no].link == link
                        && book.charges[no].it.status == Status::Pending
                };
                let target = format!("/v1/charges?payment_link={}&status=pending&{size}", newest(&ids.links));
                (target, pick(&ids.charges, &of))
            }
            10 => {
                let charge = ids.charges.len().wrapping_sub(1);
                let of = |no: usize| book.events[no].subject == Subject::Charge(charge);
                (format!("/v1/events?charge={}&{size}", newest(&ids.charges)), pick(&ids.events, &of))
            }
            11 => {
                let invoice = ids.invoices.len().wrapping_sub(1);
                let of = |no: usize| book.events[no].subject == Subject::Invoice(invoice);
                (format!("/v1/events?invoice={}&{size}", newest(&ids.invoices)), pick(&ids.events, &of))
            }
            12 => {
                let charge = self.deeds % ids.charges.len().max(1);
                let kind = EventType::ALL[self.deeds % 8].as_str();
                let id = ids.charges.get(charge).cloned().unwrap_or_else(|| "aaaaaaaaaaaa".to_owned());
                let of = |no: usize| {
                    book.events[no].subject == Subject::Charge(charge) && book.events[no].kind == kind
                };
                (format!("/v1/events?charge={id}&type={kind}&{size}"), pick(&ids.events, &of))
            }
            13 => (format!("/v1/events?charge={}&{size}", newest(&foreign.charges)), Vec::new()),
            14 => (format!("/v1/events?invoice={}&{size}", newest(&foreign.invoices)), Vec::new()),
            15 => (format!("/v1/charges?payment_link={}&{size}", newest(&foreign.links)), Vec::new()),
            _ => {
                let kind = EventType::ALL[nth - 16].as_str();
                let of = |no: usize| book.events[no].kind == kind;
                (format!("/v1/events?type={kind}&{size}"), pick(&ids.events, &of))
            }
        }
    }

    /// A single object with its timeline, by turns; with another key there is none.
    fn check_single(&mut self, place: Place, world: &World) -> Verdict {
        let (book, ids) = (&world.books[place.0], &self.ids[place.0]);
        let mut all: Vec<(String, Option<Subject>)> = Vec::new();
        let numbered = |ids: &[String]| ids.iter().cloned().enumerate().collect::<Vec<_>>();
        all.extend(
            numbered(&ids.charges)
                .into_iter()
                .map(|(no, id)| (format!("charges/{id}"), Some(Subject::Charge(no)))),
        );
        all.extend(
            numbered(&ids.invoices)
                .into_iter()
                .map(|(no, id)| (format!("invoices/{id}"), Some(Subject::Invoice(no)))),
        );
        all.extend(ids.links.iter().map(|id| (format!("payment-links/{id}"), None)));
        all.extend(ids.events.last().map(|id| (format!("events/{id}"), None)));
        if all.is_empty() {
            return Ok(());
        }
        let (path, subject) = all.swap_remove(self.deeds % all.len());
        let expected = subject.map(|subject| facts::timeline(book, subject));
        let target = format!("/v1/{path}");
        let (status, shown) = self.get(place, &target);
        if status != 200 || path.rsplit('/').next() != shown["data"]["id"].as_str() {
            return Err(format!("{place:?} {target} is answered {status} {shown}"));
        }
        if let Some(expected) = expected {
            let shown = facts::shown_timeline(&shown["data"]);
            same(&format!("{place:?} {path}"), &expected, &shown)?;
        }
        let stranger = Place((place.0 + 1 + self.deeds % 3) % 4);
        let foreign = self.read(stranger, &target);
        let (kind, _) = path.split_once('/').expect("a kind and an id");
        let absent = match kind {
            "events" => "00000000-0000-7000-8000-000000000000",
            _ => "aaaaaaaaaaaa",
        };
        let absent = self.read(stranger, &format!("/v1/{kind}/{absent}"));
        if foreign.status != 404 || foreign != absent {
            return Err(format!("{stranger:?} learns of {target} of {place:?}: {foreign:?}"));
        }
        Ok(())
    }

    fn check_addresses(&self) -> Verdict {
        let mut all: Vec<&String> = self.ids.iter().flat_map(|ids| &ids.addresses).collect();
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("two charges share the address {}", pair[0])),
            None => Ok(()),
        }
    }
}

/// Ways to filter.
const FILTERS: usize = 16 + EventType::ALL.len();
