//! The names that steps define and reference: each must be defined once, before it is referenced, and for the right
//! kind of object.

use std::{collections::BTreeMap, fmt};

use crate::value::did_you_mean;

use super::{
    diagnostic::{Diagnostic, SourceSpan},
    step::{Answers, Choose, Expect, Keep, Pay, Request, Step, Until},
    typed::At,
    value::Name,
};

/// The kind of a named object.
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
    /// A value saved from a response.
    Saved,
}

impl Kind {
    /// Returns the letter of numbered names: c1, c2, …
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

    /// Returns `true` if such objects appear without a step that defines their names. They are numbered, so that steps
    /// can reference t1 or d2.
    const fn has_numbered_names(self) -> bool {
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

/// Returns the names that the steps define, sorted. Numbering skips them.
pub(crate) fn defined_names(steps: &[At<Step>]) -> Vec<&str> {
    let mut names = Vec::new();
    for step in steps {
        visit(step, &mut |name_use| {
            if let NameUse::Definition(_, name, _) = name_use {
                names.push(name);
            }
        });
    }
    names.sort_unstable();
    names
}

/// Returns the names that one step defines.
pub(crate) fn names_defined_by(step: &At<Step>) -> Vec<&str> {
    let mut names = Vec::new();
    visit(step, &mut |name_use| {
        if let NameUse::Definition(_, name, _) = name_use {
            names.push(name);
        }
    });
    names
}

/// Removes the steps with an invalid use of names: a reference to a name that no earlier step defines, a
/// second definition of a name, or another error that [`check`] would report.
pub(crate) fn without_unknown_names(steps: Vec<At<Step>>) -> Vec<At<Step>> {
    let mut kept: Vec<At<Step>> = Vec::with_capacity(steps.len());
    let mut known: BTreeMap<String, Kind> = BTreeMap::new();
    for step in steps {
        let (mut defined, mut is_valid) = (Vec::new(), true);
        visit(&step, &mut |name_use| match name_use {
            NameUse::Definition(kind, name, _) => {
                is_valid &= !known.contains_key(name);
                defined.push((name.to_owned(), kind));
            }
            NameUse::Reference(kinds, name, _) => {
                let is_builtin = ["live", "test", "none"].contains(&name);
                let has_numbered_name =
                    kinds.iter().any(|kind| kind.has_numbered_names() && is_numbered(*kind, name));
                is_valid &= is_builtin
                    || has_numbered_name
                    || known.get(name).is_some_and(|kind| is_one_of(*kind, kinds));
            }
            NameUse::Error(..) => is_valid = false,
        });
        if let Step::Merchant(merchants) = &step.value {
            is_valid &= merchants.keys().all(|host| known.get(host) == Some(&Kind::Endpoint));
        }
        if is_valid {
            known.extend(defined);
            kept.push(step);
        }
    }
    kept
}

/// A use of a name in a step, with its kind or allowed kinds.
enum NameUse<'a> {
    Definition(Kind, &'a str, SourceSpan),
    Reference(&'static [Kind], &'a str, SourceSpan),
    /// An error of the step itself: title, label and position.
    Error(&'static str, String, SourceSpan),
}

/// Checks the names of the steps.
///
/// # Errors
///
/// The first error.
pub(super) fn check(steps: &[At<Step>]) -> Result<(), Diagnostic> {
    const BUILTIN_KEYS: [(&str, Kind); 3] = [("live", Kind::Key), ("test", Kind::Key), ("none", Kind::Key)];
    let mut known: BTreeMap<&str, Kind> = BTreeMap::from(BUILTIN_KEYS);
    for step in steps {
        if let Step::Merchant(merchants) = &step.value {
            check_merchants(steps, merchants)?;
        }
        let mut first_error = None;
        visit(step, &mut |name_use| {
            let diagnostic = match name_use {
                NameUse::Definition(kind, name, span) => known.insert(name, kind).map(|before| Diagnostic {
                    title: "this name is already defined".to_owned(),
                    span,
                    label: format!("`{name}` is a {before} already; choose another name"),
                }),
                NameUse::Reference(kinds, name, span) => check_reference(&known, kinds, name, span),
                NameUse::Error(title, label, span) => {
                    Some(Diagnostic { title: title.to_owned(), span, label })
                }
            };
            if first_error.is_none() {
                first_error = diagnostic;
            }
        });
        if let Some(diagnostic) = first_error {
            return Err(diagnostic);
        }
    }
    Ok(())
}

/// Checks that each merchant is the host of an endpoint; otherwise its name is probably a typo.
fn check_merchants(steps: &[At<Step>], merchants: &BTreeMap<String, At<Answers>>) -> Result<(), Diagnostic> {
    let hosts: Vec<&str> = steps
        .iter()
        .filter_map(|step| match &step.value {
            Step::Endpoint(endpoint) => {
                Some(endpoint.0.url.as_deref().map_or(&*endpoint.0.name.value.0, host))
            }
            _ => None,
        })
        .collect();
    for (name, responses) in merchants {
        if !hosts.contains(&name.as_str()) {
            let label = did_you_mean(name, hosts.iter().copied())
                .unwrap_or_else(|| format!("add one with `- endpoint: {name}`"));
            return Err(Diagnostic {
                title: format!("no endpoint is at `{name}`"),
                span: responses.span,
                label,
            });
        }
    }
    Ok(())
}

/// Returns `shop` of `https://shop.sim/webhooks`.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', ':']).next().unwrap_or_default();
    host.strip_suffix(".sim").unwrap_or(host)
}

/// Returns `true` if a kind is one of the allowed kinds. The kind of a saved value is unknown, so it is accepted.
fn is_one_of(kind: Kind, kinds: &[Kind]) -> bool {
    kind == Kind::Saved || kinds.contains(&kind)
}

fn check_reference(
    known: &BTreeMap<&str, Kind>,
    kinds: &[Kind],
    name: &str,
    span: SourceSpan,
) -> Option<Diagnostic> {
    match known.get(name) {
        Some(kind) if is_one_of(*kind, kinds) => return None,
        None if kinds.iter().any(|kind| kind.has_numbered_names() && is_numbered(*kind, name)) => {
            return None;
        }
        _ => {}
    }
    let expected = match kinds {
        [] | [_, _, _, ..] => "object".to_owned(),
        one_or_two => one_or_two.iter().map(Kind::to_string).collect::<Vec<_>>().join(" or "),
    };
    let candidates = known.iter().filter(|(_, kind)| kinds.contains(kind)).map(|(name, _)| *name);
    let label = did_you_mean(name, candidates.clone()).unwrap_or_else(|| {
        let names: Vec<_> = candidates.map(|name| format!("`{name}`")).collect();
        match names.is_empty() {
            true => "no step above defines one".to_owned(),
            false => format!("the steps above define {}", names.join(", ")),
        }
    });
    Some(Diagnostic { title: format!("no {expected} is called `{name}`"), span, label })
}

/// Returns `true` if a name is the letter of a kind and a number, such as `d2`.
pub(crate) fn is_numbered(kind: Kind, name: &str) -> bool {
    name.strip_prefix(kind.letter())
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Calls `on` for each use of a name in one step, references before definitions.
fn visit<'a>(step: &'a At<Step>, on: &mut dyn FnMut(NameUse<'a>)) {
    const ACCOUNT: &[Kind] = &[Kind::Account];
    const CHARGE: &[Kind] = &[Kind::Charge];
    const ENDPOINT: &[Kind] = &[Kind::Endpoint];
    const INVOICE: &[Kind] = &[Kind::Invoice];
    const TRANSACTION: &[Kind] = &[Kind::Transaction];
    let step_span = step.span;
    let mut names = NameVisitor { on };
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
        Step::OpenAccount(step) => names.define(Kind::Account, &step.0.account),
        Step::Key(step) => names.define_for(ACCOUNT, step.0.account.as_ref(), Kind::Key, &step.0.name),
        Step::Revoke(key) => names.reference(&[Kind::Key], key),
        Step::Endpoint(step) => {
            names.define_for(ACCOUNT, step.0.account.as_ref(), Kind::Endpoint, &step.0.name)
        }
        Step::Enable(name)
        | Step::Disable(name)
        | Step::Remove(name)
        | Step::Rotate(name)
        | Step::Test(name) => names.reference(ENDPOINT, name),
        Step::Resend(step) => names.reference(&[Kind::Delivery, Kind::Endpoint], &step.0.delivery),
        Step::Open(step) => {
            names.may_reference(ACCOUNT, step.account.as_ref());
            names.define_for(&[Kind::Link], step.link.as_ref(), Kind::Charge, &step.charge);
        }
        Step::Repeat(step) => names.reference(CHARGE, &step.0.charge),
        Step::Link(step) => names.define_for(ACCOUNT, step.0.account.as_ref(), Kind::Link, &step.0.link),
        Step::Invoice(step) => names.define_for(ACCOUNT, step.account.as_ref(), Kind::Invoice, &step.invoice),
        Step::Send(step) => names.reference(INVOICE, &step.0.invoice),
        Step::View(page) => names.reference(&[Kind::Invoice, Kind::Link], page),
        Step::Choose(choose) => choose_names(choose, step_span, &mut names),
        Step::Cancel(step) => names.reference(CHARGE, &step.0.charge),
        Step::Refund(step) => names.reference(CHARGE, &step.charge),
        Step::Accept(step) => {
            names.reference(CHARGE, &step.0.charge);
            names.may_reference(TRANSACTION, step.0.tx.as_ref());
        }
        Step::Void(step) => names.reference(INVOICE, &step.0.invoice),
        Step::Pay(pay) => pay_names(&pay.0, step_span, &mut names),
        Step::Reorg(step) => {
            if let Keep::Only(kept) = &step.keep {
                kept.iter().for_each(|tx| names.reference(TRANSACTION, tx));
            }
        }
        Step::DoubleSpend(step) => names.reference(TRANSACTION, &step.0.tx),
        Step::Replace(step) => {
            names.reference(TRANSACTION, &step.tx);
            names.may_define(Kind::Transaction, step.named.as_ref());
        }
        Step::Drop(step) => names.reference(TRANSACTION, &step.0.tx),
        Step::Rebroadcast(step) => names.reference(TRANSACTION, &step.0.tx),
        Step::Until(until) => until_names(until, step_span, &mut names),
        Step::Request(request) => request_names(request, step_span, &mut names),
        Step::Walk(step) => names.may_reference(&[Kind::Key], step.key.as_ref()),
        Step::Expect(expect) => expect_names(expect, &mut names),
    }
}

fn choose_names<'a>(choose: &'a Choose, step_span: SourceSpan, names: &mut NameVisitor<'a, '_>) {
    let pages = [choose.invoice.as_ref(), choose.link.as_ref()];
    names.require_exactly_one(
        "`choose` needs exactly one page",
        "give `invoice` or `link`",
        pages.map(span_of),
        step_span,
    );
    names.may_reference(&[Kind::Invoice], choose.invoice.as_ref());
    names.define_for(&[Kind::Link], choose.link.as_ref(), Kind::Charge, &choose.charge);
}

fn until_names<'a>(until: &'a Until, step_span: SourceSpan, names: &mut NameVisitor<'a, '_>) {
    let event = until.event.as_ref().map(|event| event.span);
    let at = until.at.as_ref().map(|at| at.span);
    let times = [at, span_of(until.expiry.as_ref()), span_of(until.attempt.as_ref()), event];
    names.require_exactly_one(
        "`until` needs exactly one time",
        "give `at`, `expiry`, `attempt` or `event`",
        times,
        step_span,
    );
    names.may_reference(&[Kind::Charge], until.expiry.as_ref());
    names.may_reference(&[Kind::Delivery, Kind::Endpoint], until.attempt.as_ref());
    names.may_reference(&[Kind::Charge, Kind::Invoice], until.of.as_ref());
}

fn request_names<'a>(request: &'a Request, step_span: SourceSpan, names: &mut NameVisitor<'a, '_>) {
    names.may_reference(&[Kind::Key], request.key.as_ref().filter(|key| key.0 != "none"));
    for name in request.save.keys() {
        (names.on)(NameUse::Definition(Kind::Saved, name, step_span));
    }
}

fn expect_names<'a>(expect: &'a Expect, names: &mut NameVisitor<'a, '_>) {
    const WITH_STATE: &[Kind] =
        &[Kind::Charge, Kind::Invoice, Kind::Link, Kind::Endpoint, Kind::Transaction, Kind::Delivery];
    for (name, expected) in expect {
        (names.on)(NameUse::Reference(WITH_STATE, name, expected.span));
    }
}

fn pay_names<'a>(pay: &'a Pay, step_span: SourceSpan, names: &mut NameVisitor<'a, '_>) {
    let targets = [pay.charge.as_ref(), pay.address_of.as_ref()];
    names.require_exactly_one(
        "`pay` needs exactly one charge",
        "give `charge` or `address_of`",
        targets.map(span_of),
        step_span,
    );
    let sizes = [
        pay.share.as_ref().map(|share| share.span),
        pay.amount.as_ref().map(|amount| amount.span),
        pay.over.as_ref().map(|over| over.span),
        pay.short.as_ref().map(|short| short.span),
    ];
    if sizes.iter().flatten().count() > 1 || pay.address_of.is_some() {
        let hint = "give one of `share`, `amount`, `over` and `short`; with `address_of`, give `amount`";
        names.require_exactly_one("`pay` pays exactly one amount", hint, sizes, step_span);
    }
    names.may_reference(&[Kind::Charge], pay.charge.as_ref());
    names.may_reference(&[Kind::Charge], pay.address_of.as_ref());
    names.may_define(Kind::Transaction, pay.tx.as_ref());
}

fn span_of(name: Option<&At<Name>>) -> Option<SourceSpan> {
    name.map(|name| name.span)
}

/// Reports the uses of names in a step to `on`.
struct NameVisitor<'a, 'on> {
    on: &'on mut dyn FnMut(NameUse<'a>),
}

impl<'a> NameVisitor<'a, '_> {
    fn define(&mut self, kind: Kind, name: &'a At<Name>) {
        (self.on)(NameUse::Definition(kind, &name.value.0, name.span));
    }

    fn may_define(&mut self, kind: Kind, name: Option<&'a At<Name>>) {
        if let Some(name) = name {
            self.define(kind, name);
        }
    }

    fn reference(&mut self, kinds: &'static [Kind], name: &'a At<Name>) {
        (self.on)(NameUse::Reference(kinds, &name.value.0, name.span));
    }

    fn may_reference(&mut self, kinds: &'static [Kind], name: Option<&'a At<Name>>) {
        if let Some(name) = name {
            self.reference(kinds, name);
        }
    }

    /// Reports a reference to the owner of a new object, if any, and the definition of the object's name.
    fn define_for(
        &mut self,
        owners: &'static [Kind],
        owner: Option<&'a At<Name>>,
        kind: Kind,
        name: &'a At<Name>,
    ) {
        self.may_reference(owners, owner);
        self.define(kind, name);
    }

    /// Reports an error unless exactly one of the keys is given; its position is the second key, if there is one.
    fn require_exactly_one<const N: usize>(
        &mut self,
        title: &'static str,
        hint: &str,
        spans: [Option<SourceSpan>; N],
        step_span: SourceSpan,
    ) {
        let spans_found: Vec<SourceSpan> = spans.into_iter().flatten().collect();
        if spans_found.len() != 1 {
            let span = spans_found.get(1).copied().unwrap_or(step_span);
            (self.on)(NameUse::Error(title, hint.to_owned(), span));
        }
    }
}
