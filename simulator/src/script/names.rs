//! Which names a step gives and which it needs: a name must be given before it is used, once, and for the right
//! kind of thing.

use std::{collections::BTreeMap, fmt};

use super::{
    flaw::{Flaw, did_you_mean},
    step::{Answers, Keep, Step},
    value::Name,
    yaml::{At, Spot},
};

/// What a name can stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A charge.
    Charge,
    /// An invoice.
    Invoice,
    /// A payment link.
    Link,
    /// A webhook endpoint.
    Endpoint,
    /// An API key.
    Key,
    /// An account.
    Account,
    /// A transaction.
    Transaction,
    /// A delivery.
    Delivery,
    /// An event.
    Event,
    /// A value taken from an answer.
    Saved,
}

impl Kind {
    /// The letter of names that nobody gave: c1, c2, …
    pub const fn letter(self) -> char {
        match self {
            Kind::Charge => 'c',
            Kind::Invoice => 'i',
            Kind::Link => 'l',
            Kind::Endpoint => 'w',
            Kind::Key => 'k',
            Kind::Account => 'a',
            Kind::Transaction => 't',
            Kind::Delivery => 'd',
            Kind::Event => 'e',
            Kind::Saved => 's',
        }
    }

    /// Whether such things appear without a step that names them, so that t1 or d2 may simply be used.
    const fn appears_by_itself(self) -> bool {
        matches!(self, Kind::Transaction | Kind::Delivery | Kind::Event)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Charge => "charge",
            Kind::Invoice => "invoice",
            Kind::Link => "payment link",
            Kind::Endpoint => "endpoint",
            Kind::Key => "key",
            Kind::Account => "account",
            Kind::Transaction => "transaction",
            Kind::Delivery => "delivery",
            Kind::Event => "event",
            Kind::Saved => "saved value",
        })
    }
}

/// The names that the steps give, in a fixed order: numbering goes around them.
pub(crate) fn given(steps: &[At<Step>]) -> Vec<&str> {
    let mut names = Vec::new();
    for step in steps {
        visit(step, &mut |mention| {
            if let Mention::Gives(_, name, _) = mention {
                names.push(name);
            }
        });
    }
    names.sort_unstable();
    names
}

/// The names that one step gives.
pub(crate) fn given_by(step: &At<Step>) -> Vec<&str> {
    let mut names = Vec::new();
    visit(step, &mut |mention| {
        if let Mention::Gives(_, name, _) = mention {
            names.push(name);
        }
    });
    names
}

/// The steps without those that name what no step before them gives.
pub(crate) fn without_strangers(steps: Vec<At<Step>>) -> Vec<At<Step>> {
    let mut kept: Vec<At<Step>> = Vec::with_capacity(steps.len());
    let mut known: BTreeMap<String, Kind> = BTreeMap::new();
    for step in steps {
        let (mut gives, mut is_sound) = (Vec::new(), true);
        visit(&step, &mut |mention| match mention {
            Mention::Gives(kind, name, _) => {
                is_sound &= !known.contains_key(name);
                gives.push((name.to_owned(), kind));
            }
            Mention::Needs(kinds, name, _) => {
                let worlds_own = ["live", "test", "none"].contains(&name);
                let by_itself = kinds.iter().any(|kind| kind.appears_by_itself() && is_numbered(*kind, name));
                is_sound &=
                    worlds_own || by_itself || known.get(name).is_some_and(|kind| kinds.contains(kind));
            }
            Mention::Breaks(..) => is_sound = false,
        });
        if let Step::Merchant(merchants) = &step.value {
            is_sound &= merchants.keys().all(|host| known.get(host) == Some(&Kind::Endpoint));
        }
        if is_sound {
            known.extend(gives);
            kept.push(step);
        }
    }
    kept
}

/// One name in a step.
enum Mention<'a> {
    Gives(Kind, &'a str, Spot),
    Needs(&'static [Kind], &'a str, Spot),
    /// A rule of the step itself that is broken.
    Breaks(&'static str, String, Spot),
}

/// The first thing wrong with the names of these steps, if any.
pub(super) fn check(steps: &[At<Step>]) -> Result<(), Flaw> {
    const WORLDS_OWN: [(&str, Kind); 3] = [("live", Kind::Key), ("test", Kind::Key), ("none", Kind::Key)];
    let mut known: BTreeMap<&str, Kind> = BTreeMap::from(WORLDS_OWN);
    for step in steps {
        if let Step::Merchant(merchants) = &step.value {
            strangers(steps, merchants)?;
        }
        let mut first = None;
        visit(step, &mut |mention| {
            let flaw = match mention {
                Mention::Gives(kind, name, spot) => known.insert(name, kind).map(|before| Flaw {
                    title: "this name is taken".to_owned(),
                    spot,
                    label: format!("`{name}` is a {before} already; choose another name"),
                }),
                Mention::Needs(kinds, name, spot) => unknown(&known, kinds, name, spot),
                Mention::Breaks(title, label, spot) => Some(Flaw { title: title.to_owned(), spot, label }),
            };
            if first.is_none() {
                first = flaw;
            }
        });
        if let Some(flaw) = first {
            return Err(flaw);
        }
    }
    Ok(())
}

/// A merchant answers at the host of some endpoint; one that nothing is posted to is a slip of the pen.
fn strangers(steps: &[At<Step>], merchants: &BTreeMap<String, At<Answers>>) -> Result<(), Flaw> {
    let hosts: Vec<&str> = steps
        .iter()
        .filter_map(|step| match &step.value {
            Step::Endpoint(endpoint) => {
                Some(endpoint.0.url.as_deref().map_or(&*endpoint.0.name.value.0, host))
            }
            _ => None,
        })
        .collect();
    for (name, answers) in merchants {
        if !hosts.contains(&name.as_str()) {
            let label = did_you_mean(name, hosts.iter().copied())
                .unwrap_or_else(|| format!("add one with `- endpoint: {name}`"));
            return Err(Flaw { title: format!("no endpoint is at `{name}`"), spot: answers.spot, label });
        }
    }
    Ok(())
}

/// `shop` of `https://shop.sim/webhooks`.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', ':']).next().unwrap_or_default();
    host.strip_suffix(".sim").unwrap_or(host)
}

fn unknown(known: &BTreeMap<&str, Kind>, kinds: &[Kind], name: &str, spot: Spot) -> Option<Flaw> {
    match known.get(name) {
        Some(kind) if kinds.contains(kind) || *kind == Kind::Saved => return None,
        None if kinds.iter().any(|kind| kind.appears_by_itself() && is_numbered(*kind, name)) => return None,
        _ => {}
    }
    let wanted = match kinds {
        [] | [_, _, _, ..] => "thing".to_owned(),
        few => few.iter().map(Kind::to_string).collect::<Vec<_>>().join(" or "),
    };
    let such = known.iter().filter(|(_, kind)| kinds.contains(kind)).map(|(name, _)| *name);
    let label = did_you_mean(name, such.clone()).unwrap_or_else(|| {
        let such: Vec<_> = such.map(|name| format!("`{name}`")).collect();
        match such.is_empty() {
            true => "no step above names one".to_owned(),
            false => format!("the steps above name {}", such.join(", ")),
        }
    });
    Some(Flaw { title: format!("no {wanted} is called `{name}`"), spot, label })
}

fn is_numbered(kind: Kind, name: &str) -> bool {
    name.strip_prefix(kind.letter())
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Walks through the names of one step, in the order in which they matter.
fn visit<'a>(step: &'a At<Step>, on: &mut dyn FnMut(Mention<'a>)) {
    let here = step.spot;
    let mut names = Names { on };
    match &step.value {
        Step::Account(_)
        | Step::Wallet(_)
        | Step::Rate(_)
        | Step::Merchant(_)
        | Step::Mine(_)
        | Step::Stall(_)
        | Step::Congest(_)
        | Step::Watcher(_)
        | Step::Restart
        | Step::Wait(_) => {}
        Step::OpenAccount(account) => names.gives(Kind::Account, &account.0.account),
        Step::Key(key) => {
            names.may_need(&[Kind::Account], key.0.account.as_ref());
            names.gives(Kind::Key, &key.0.name);
        }
        Step::Revoke(key) => names.needs(&[Kind::Key], key),
        Step::Endpoint(endpoint) => {
            names.may_need(&[Kind::Account], endpoint.0.account.as_ref());
            names.gives(Kind::Endpoint, &endpoint.0.name);
        }
        Step::Enable(name)
        | Step::Disable(name)
        | Step::Remove(name)
        | Step::Rotate(name)
        | Step::Test(name) => {
            names.needs(&[Kind::Endpoint], name);
        }
        Step::Resend(name) => names.needs(&[Kind::Delivery], name),
        Step::Open(open) => {
            names.may_need(&[Kind::Account], open.account.as_ref());
            names.may_need(&[Kind::Link], open.link.as_ref());
            names.gives(Kind::Charge, &open.charge);
        }
        Step::Repeat(repeat) => names.needs(&[Kind::Charge], &repeat.0.charge),
        Step::Link(link) => {
            names.may_need(&[Kind::Account], link.0.account.as_ref());
            names.gives(Kind::Link, &link.0.link);
        }
        Step::Invoice(invoice) => {
            names.may_need(&[Kind::Account], invoice.account.as_ref());
            names.gives(Kind::Invoice, &invoice.invoice);
        }
        Step::Send(send) => names.needs(&[Kind::Invoice], &send.0.invoice),
        Step::View(page) => names.needs(&[Kind::Invoice, Kind::Link], page),
        Step::Choose(choose) => {
            let pages = [choose.invoice.as_ref(), choose.link.as_ref()];
            names.one_of("`choose` happens on one page", "say `invoice` or `link`", pages.map(spot_of), here);
            names.may_need(&[Kind::Invoice], choose.invoice.as_ref());
            names.may_need(&[Kind::Link], choose.link.as_ref());
            names.gives(Kind::Charge, &choose.charge);
        }
        Step::Cancel(cancel) => names.needs(&[Kind::Charge], &cancel.0.charge),
        Step::Refund(refund) => names.needs(&[Kind::Charge], &refund.charge),
        Step::Accept(accept) => {
            names.needs(&[Kind::Charge], &accept.0.charge);
            names.may_need(&[Kind::Transaction], accept.0.tx.as_ref());
        }
        Step::Void(void) => names.needs(&[Kind::Invoice], &void.0.invoice),
        Step::Pay(pay) => pay_names(&pay.0, here, &mut names),
        Step::Reorg(reorg) => {
            if let Keep::Only(kept) = &reorg.keep {
                kept.iter().for_each(|tx| names.needs(&[Kind::Transaction], tx));
            }
        }
        Step::DoubleSpend(step) => names.needs(&[Kind::Transaction], &step.0.tx),
        Step::Replace(step) => {
            names.needs(&[Kind::Transaction], &step.tx);
            names.may_give(Kind::Transaction, step.named.as_ref());
        }
        Step::Drop(step) => names.needs(&[Kind::Transaction], &step.0.tx),
        Step::Rebroadcast(step) => names.needs(&[Kind::Transaction], &step.0.tx),
        Step::Until(until) => {
            let event = until.event.as_ref().map(|event| event.spot);
            let at = until.at.as_ref().map(|at| at.spot);
            let moments = [at, spot_of(until.expiry.as_ref()), spot_of(until.attempt.as_ref()), event];
            names.one_of(
                "`until` waits for one moment",
                "say `at`, `expiry`, `attempt` or `event`",
                moments,
                here,
            );
            names.may_need(&[Kind::Charge], until.expiry.as_ref());
            names.may_need(&[Kind::Delivery, Kind::Endpoint], until.attempt.as_ref());
            names.may_need(&[Kind::Charge, Kind::Invoice], until.of.as_ref());
        }
        Step::Request(request) => {
            if let Some(key) = request.key.as_ref().filter(|key| key.0 != "none") {
                names.needs(&[Kind::Key], key);
            }
            for name in request.save.keys() {
                (names.on)(Mention::Gives(Kind::Saved, name, here));
            }
        }
        Step::Walk(walk) => {
            if let Some(key) = &walk.key {
                names.needs(&[Kind::Key], key);
            }
        }
        Step::Expect(expect) => {
            const SEEN: &[Kind] =
                &[Kind::Charge, Kind::Invoice, Kind::Link, Kind::Endpoint, Kind::Transaction, Kind::Delivery];
            for (name, expected) in expect {
                (names.on)(Mention::Needs(SEEN, name, expected.spot));
            }
        }
    }
}

fn pay_names<'a>(pay: &'a super::step::Pay, here: Spot, names: &mut Names<'a, '_>) {
    let targets = [pay.charge.as_ref(), pay.address_of.as_ref()];
    names.one_of("`pay` pays one charge", "say `charge` or `address_of`", targets.map(spot_of), here);
    let sizes = [
        pay.share.as_ref().map(|share| share.spot),
        pay.amount.as_ref().map(|amount| amount.spot),
        pay.over.as_ref().map(|over| over.spot),
        pay.short.as_ref().map(|short| short.spot),
    ];
    if sizes.iter().flatten().count() > 1 || pay.address_of.is_some() {
        let way_on = "say one of `share`, `amount`, `over` and `short`; with `address_of` say `amount`";
        names.one_of("`pay` pays one amount", way_on, sizes, here);
    }
    names.may_need(&[Kind::Charge], pay.charge.as_ref());
    names.may_need(&[Kind::Charge], pay.address_of.as_ref());
    names.may_give(Kind::Transaction, pay.tx.as_ref());
}

fn spot_of(name: Option<&At<Name>>) -> Option<Spot> {
    name.map(|name| name.spot)
}

struct Names<'a, 'on> {
    on: &'on mut dyn FnMut(Mention<'a>),
}

impl<'a> Names<'a, '_> {
    fn gives(&mut self, kind: Kind, name: &'a At<Name>) {
        (self.on)(Mention::Gives(kind, &name.value.0, name.spot));
    }

    fn may_give(&mut self, kind: Kind, name: Option<&'a At<Name>>) {
        if let Some(name) = name {
            self.gives(kind, name);
        }
    }

    fn needs(&mut self, kinds: &'static [Kind], name: &'a At<Name>) {
        (self.on)(Mention::Needs(kinds, &name.value.0, name.spot));
    }

    fn may_need(&mut self, kinds: &'static [Kind], name: Option<&'a At<Name>>) {
        if let Some(name) = name {
            self.needs(kinds, name);
        }
    }

    /// Exactly one of the keys must be said; the second one said is the one to blame.
    fn one_of<const N: usize>(
        &mut self,
        title: &'static str,
        way_on: &str,
        spots: [Option<Spot>; N],
        here: Spot,
    ) {
        let said: Vec<Spot> = spots.into_iter().flatten().collect();
        if said.len() != 1 {
            let spot = said.get(1).copied().unwrap_or(here);
            (self.on)(Mention::Breaks(title, way_on.to_owned(), spot));
        }
    }
}
