//! Requests of any kind, lists read while they grow, and moments to wait for.

use std::collections::BTreeSet;

use reference_core::{
    mode::Mode,
    time::{Span, Timestamp},
};
use serde_json::{Value, json};

use super::{Answer, Call, Player, alias::Thing, failure::Stop, message};
use crate::script::{
    At, Kind, Spot,
    step::{Holds, Request, Until, Walk, WalkBy},
    value::{EventType, Name, Offset},
};

/// How long `until` looks for an event that it is not told otherwise.
const EVENT_WITHIN: Span = Span::hours(2);
/// A list that has more pages than this will not end.
const WALK_PAGES_MAX: u32 = 1_000;

impl Player<'_> {
    pub(super) fn until(&mut self, until: &Until) -> Result<(), Stop> {
        let offset = until.offset.as_ref().map_or(Offset::After(Span(0)), |offset| offset.value);
        if let Some(event) = &until.event {
            let moment = self.until_event(event, until)?;
            return self.move_to(offset.from(moment), event.spot);
        }
        let (moment, spot) = if let Some(at) = &until.at {
            (at.value.0, at.spot)
        } else if let Some(name) = &until.expiry {
            let charge = self.thing(name)?;
            let charge = self.look(charge.mode, &format!("/v1/charges/{}", charge.id))?;
            (self.moment(&self.text(&charge, "/expires_at")?)?, name.spot)
        } else if let Some(name) = &until.attempt {
            let delivery = self.thing(name)?;
            let next = self.seen.next_at.get(&delivery.id).cloned().flatten();
            let next =
                next.ok_or_else(|| Stop::misled(name.spot, "nothing is left to try", "has no next attempt"))?;
            (self.moment(&next)?, name.spot)
        } else {
            return Err(Stop::misled(self.here, "`until` waits for a moment", "say `at` or `expiry`"));
        };
        self.move_to(offset.from(moment), spot)
    }

    fn move_to(&mut self, moment: Timestamp, spot: Spot) -> Result<(), Stop> {
        if moment < self.now {
            let label = format!("it was {moment}, and the clock shows {}", self.now);
            return Err(Stop::misled(spot, "this moment has passed", label));
        }
        self.advance_to(moment)
    }

    /// The event is looked for second by second: nobody can ask a world what will happen.
    fn until_event(&mut self, event: &At<EventType>, until: &Until) -> Result<Timestamp, Stop> {
        let of = match &until.of {
            Some(name) => Some(self.thing(name)?.id),
            None => None,
        };
        let within = until.within.map_or(EVENT_WITHIN, |within| within.0);
        let last = self.now.plus(within);
        let before = self.events_of(of.as_deref(), event.0);
        while self.events_of(of.as_deref(), event.0) == before {
            if self.now >= last {
                let title = format!("no {} came", event.0);
                let never = format!("none within {within}");
                return Err(Stop::unmet(event.spot, title, "did not come", event.0.to_owned(), never));
            }
            self.advance_to(self.now.plus(Span::secs(1)).min(last))?;
        }
        Ok(self.now)
    }

    fn events_of(&self, subject: Option<&str>, kind: &str) -> usize {
        let of = |types: &Vec<String>| types.iter().filter(|known| *known == kind).count();
        match subject {
            Some(code) => self.seen.events.get(code).map_or(0, of),
            None => self.seen.events.values().map(of).sum(),
        }
    }

    fn moment(&self, text: &str) -> Result<Timestamp, Stop> {
        Timestamp::parse(text).ok_or_else(|| Stop::broken(self.here, format!("`{text}` is no moment")))
    }

    pub(super) fn request(&mut self, request: &Request) -> Result<(), Stop> {
        let at = self.now;
        let method = request.method.as_deref().unwrap_or("GET");
        let path = local(&self.filled(&request.path.value, request.path.spot)?).to_owned();
        let body = match &request.body {
            Some(body) => Some(self.filled_json(body)?),
            None => None,
        };
        let mut headers = Vec::new();
        for (name, value) in &request.headers {
            headers.push((name.to_ascii_lowercase(), self.filled(value, self.here)?));
        }
        let own = headers.iter().any(|(name, _)| name == "authorization");
        let bearer =
            if own || path.starts_with("/sandbox") { None } else { self.bearer(request.key.as_ref())? };
        let times = request.times.unwrap_or(1);
        let mut about = format!("{method} {}", request.path.value);
        if let Some(key) = &request.key {
            about.push_str(&format!(" as {}", key.value));
        }
        if times > 1 {
            about.push_str(&format!(" {times} times"));
        }
        let mut status = 0;
        for _ in 0..times {
            let call = Call {
                method,
                path: &path,
                bearer: bearer.as_deref(),
                headers: &headers,
                body: body.as_ref(),
            };
            let answer = self.ask(&call)?;
            status = answer.status;
            if let Err(stop) = self.holds(&request.expect, &answer, &about) {
                self.wrote(at, "request", &about, Some(&status.to_string()));
                return Err(stop);
            }
            self.save(request, &answer)?;
        }
        self.wrote(at, "request", &about, Some(&status.to_string()));
        Ok(())
    }

    fn holds(&self, expect: &Holds, answer: &Answer, about: &str) -> Result<(), Stop> {
        let title = || format!("{about} is answered otherwise");
        match &expect.status {
            Some(status) if status.value != answer.status => {
                let actual = format!("{} {}", answer.status, message(answer));
                return Err(Stop::unmet(
                    status.spot,
                    title(),
                    "is not the status",
                    status.value.to_string(),
                    actual,
                ));
            }
            None if !(200..300).contains(&answer.status) => {
                let actual = format!("{} {}", answer.status, message(answer));
                return Err(Stop::unmet(self.here, title(), "is refused", "any 2xx".to_owned(), actual));
            }
            _ => {}
        }
        let body = answer.json();
        for (pointer, expected) in &expect.body {
            let wanted = self.filled_json(&expected.value)?;
            let actual = body.pointer(pointer).cloned();
            if actual.as_ref() != Some(&wanted) {
                let actual = actual.map_or_else(|| "nothing".to_owned(), |actual| actual.to_string());
                let label = format!("is not at {pointer}");
                return Err(Stop::unmet(expected.spot, title(), &label, wanted.to_string(), actual));
            }
        }
        for (name, expected) in &expect.headers {
            let actual = answer.header(name).unwrap_or("nothing");
            if actual != expected.value {
                let label = format!("is not in {name}");
                return Err(Stop::unmet(
                    expected.spot,
                    title(),
                    &label,
                    expected.value.clone(),
                    actual.to_owned(),
                ));
            }
        }
        for pointer in &expect.absent {
            if let Some(actual) = body.pointer(pointer) {
                let nothing = "nothing".to_owned();
                return Err(Stop::unmet(pointer.spot, title(), "is there", nothing, actual.to_string()));
            }
        }
        Ok(())
    }

    fn save(&mut self, request: &Request, answer: &Answer) -> Result<(), Stop> {
        let body = answer.json();
        let mode = match request.key.as_ref().map(|key| key.value.0.as_str()) {
            Some("test") => Mode::Test,
            Some("live") => Mode::Live,
            _ => self.script.mode,
        };
        for (name, pointer) in &request.save {
            let value = match body.pointer(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => {
                    let label = format!("the answer has nothing at {pointer}");
                    return Err(Stop::misled(self.here, format!("`{name}` cannot be saved"), label));
                }
            };
            self.aliases.give(name, Thing { kind: Kind::Saved, mode, id: value });
        }
        Ok(())
    }

    pub(super) fn walk(&mut self, walk: &Walk) -> Result<(), Stop> {
        let at = self.now;
        let bearer = self.bearer(walk.key.as_ref())?;
        let filled = self.filled(&walk.path.value, walk.path.spot)?;
        let mark = if filled.contains('?') { '&' } else { '?' };
        let first = format!("{filled}{mark}per_page={}", walk.per_page);
        let about = format!("{} by {}, {} new after each page", walk.path.value, walk.per_page, walk.insert);
        let (mut path, mut pages, mut total, mut read) = (first.clone(), 0_u32, None, 0_u64);
        let mut ids = BTreeSet::new();
        loop {
            let call =
                Call { method: "GET", path: &path, bearer: bearer.as_deref(), headers: &[], body: None };
            let answer = self.ask(&call)?;
            if answer.status != 200 {
                let actual = format!("{} {}", answer.status, message(&answer));
                let title = format!("a page of {} is not given", walk.path.value);
                return Err(Stop::unmet(walk.path.spot, title, "is refused", "200".to_owned(), actual));
            }
            let page = answer.json();
            pages += 1;
            total = total.or_else(|| page.pointer("/meta/total").and_then(Value::as_u64));
            for record in page.get("data").and_then(Value::as_array).into_iter().flatten() {
                let id = self.text(record, "/id")?;
                read += 1;
                if !ids.insert(id.clone()) {
                    let again = self.aliases.known(&id).unwrap_or(&id).to_owned();
                    let title = format!("{} repeats a record", walk.path.value);
                    let actual = format!("{again} again on page {pages}");
                    return Err(Stop::unmet(
                        walk.path.spot,
                        title,
                        "repeats",
                        "each record once".to_owned(),
                        actual,
                    ));
                }
            }
            for _ in 0..walk.insert {
                self.insert(&filled, bearer.as_deref())?;
            }
            let last = page.pointer("/meta/last_page").and_then(Value::as_u64).unwrap_or(0);
            path = match (walk.by, page.pointer("/links/next").and_then(Value::as_str)) {
                (WalkBy::Links, Some(next)) => local(next).to_owned(),
                (WalkBy::Numbers, _) if u64::from(pages) < last => format!("{first}&page={}", pages + 1),
                _ => break,
            };
            if pages == WALK_PAGES_MAX {
                return Err(Stop::broken(walk.path.spot, format!("still no last page after {pages}")));
            }
        }
        if total != Some(read) {
            let title = format!("{} is not read whole", walk.path.value);
            let expected = total.map_or_else(|| "a total".to_owned(), |total| format!("{total} records"));
            return Err(Stop::unmet(
                walk.path.spot,
                title,
                "hides some",
                expected,
                format!("{read} records"),
            ));
        }
        self.wrote(at, "walk", &about, Some(&format!("{read} on {pages} pages")));
        Ok(())
    }

    /// One record more at the head of the list, by the key that reads it.
    fn insert(&mut self, list: &str, bearer: Option<&str>) -> Result<(), Stop> {
        let (path, body) = if list.starts_with("/v1/invoices") {
            ("/v1/invoices", json!({ "amount": "1.00", "currency": "EUR", "customer_name": "Ann" }))
        } else {
            ("/v1/charges", json!({ "asset": "BTC", "amount": "1.00", "currency": "EUR" }))
        };
        let call = Call { method: "POST", path, bearer, headers: &[], body: Some(&body) };
        let answer = self.ask(&call)?;
        match answer.status {
            201 => Ok(()),
            status => {
                Err(Stop::broken(self.here, format!("POST {path} answered {status} {}", message(&answer))))
            }
        }
    }

    fn bearer(&self, key: Option<&At<Name>>) -> Result<Option<String>, Stop> {
        let (name, spot) = match key {
            Some(key) if key.value.0 == "none" => return Ok(None),
            Some(key) => (key.value.0.as_str(), key.spot),
            None => (self.script.mode.as_str(), self.here),
        };
        match self.keys.get(name) {
            Some(secret) => Ok(Some(secret.clone())),
            None => self.find(name, spot).map(|saved| Some(saved.id)),
        }
    }

    /// The text with `${c1}` replaced by what c1 stands for.
    fn filled(&self, text: &str, spot: Spot) -> Result<String, Stop> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) = after
                .split_once('}')
                .ok_or_else(|| Stop::misled(spot, "a name is not closed", "`${` needs a `}`, as in ${c1}"))?;
            filled.push_str(before);
            match self.keys.get(name) {
                Some(secret) => filled.push_str(secret),
                None => filled.push_str(&self.find(name, spot)?.id),
            }
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn filled_json(&self, value: &Value) -> Result<Value, Stop> {
        Ok(match value {
            Value::String(text) => Value::String(self.filled(text, self.here)?),
            Value::Array(list) => {
                Value::Array(list.iter().map(|item| self.filled_json(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let filled = map.iter().map(|(key, value)| Ok((key.clone(), self.filled_json(value)?)));
                Value::Object(filled.collect::<Result<_, Stop>>()?)
            }
            plain => plain.clone(),
        })
    }
}

/// A link as the service wrote it, without the address that it was called on.
fn local(link: &str) -> &str {
    let Some((_, rest)) =
        link.split_once("://").filter(|(scheme, _)| *scheme == "https" || *scheme == "http")
    else {
        return link;
    };
    rest.find('/').map_or("/", |start| &rest[start..])
}
