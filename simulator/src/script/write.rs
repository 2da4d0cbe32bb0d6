//! A script back into the file that it could have been read from: one step a line.

use reference_core::time::Span;
use serde_json::{Map, Value, json};

use super::{
    START, Script,
    step::{
        Answers, By, Endpoint, Expected, Fee, Holds, Keep, Notices, Pay, Request, Settings, Step, Until,
        WalkBy,
    },
    value::Offset,
    yaml::At,
};

/// The fields that are said.
#[derive(Default)]
struct Said(Map<String, Value>);

impl Said {
    fn with(mut self, key: &str, value: impl Into<Value>) -> Said {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    fn may(self, key: &str, value: Option<impl Into<Value>>) -> Said {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn flag(self, key: &str, truth: bool) -> Said {
        if truth { self.with(key, true) } else { self }
    }

    /// One word, where only the first field is said.
    fn brief(self) -> Value {
        match self.0.len() {
            1 => self.0.into_iter().next().map(|(_, value)| value).unwrap_or_default(),
            _ => Value::Object(self.0),
        }
    }

    fn full(self) -> Value {
        Value::Object(self.0)
    }
}

impl Script {
    /// The text of a file that reads as this script.
    pub fn to_yaml(&self) -> String {
        let mut text = format!("title: {}\n", plain(&Value::from(self.title.clone())));
        if self.seed != 1 {
            text.push_str(&format!("seed: {}\n", self.seed));
        }
        if self.start != START {
            text.push_str(&format!("start: {}\n", plain(&Value::from(self.start.to_string()))));
        }
        if self.pace != Span::secs(1) {
            text.push_str(&format!("pace: {}\n", self.pace));
        }
        if self.mode != reference_core::mode::Mode::Live {
            text.push_str(&format!("mode: {}\n", self.mode));
        }
        let account = settings(&self.account).full();
        if account != json!({}) {
            text.push_str(&format!("account: {}\n", plain(&account)));
        }
        text.push_str("steps:\n");
        for step in &self.steps {
            let (verb, value) = step_value(step);
            match value {
                Value::Null => text.push_str(&format!("  - {verb}\n")),
                value => text.push_str(&format!("  - {verb}: {}\n", plain(&value))),
            }
        }
        text
    }
}

/// A value in one line of YAML.
fn plain(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries: Vec<_> =
                map.iter().map(|(key, value)| format!("{}: {}", scalar(key), plain(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(", ")),
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// A text, in quotes unless it can only be read as that text.
fn scalar(text: &str) -> String {
    let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'/' || b == b'+');
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./+ ".contains(&b));
    let means_more = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .contains(&text.to_ascii_lowercase().as_str());
    // `49.90 EUR` and `30s` are no numbers either.
    let unit = text.bytes().next().is_some_and(|b| b.is_ascii_digit())
        && text.bytes().last().is_some_and(|b| b.is_ascii_alphabetic())
        && !text.starts_with("0x")
        && !text.contains('T');
    if is_plain && (starts_well || unit) && !means_more && !text.ends_with(' ') {
        return text.to_owned();
    }
    Value::from(text).to_string()
}

fn name(name: &At<super::value::Name>) -> Value {
    Value::from(name.value.0.clone())
}

fn names<'a>(names: impl IntoIterator<Item = &'a At<super::value::Name>>) -> Value {
    names.into_iter().map(name).collect()
}

fn settings(settings: &Settings) -> Said {
    Said::default()
        .may("underpayment_tolerance", settings.underpayment_tolerance.clone())
        .may("overpayment_threshold", settings.overpayment_threshold.clone())
        .may("default_currency", settings.default_currency.map(|currency| currency.0.code()))
        .may("name", settings.name.clone())
        .may("display_name", settings.display_name.clone())
        .may("members", settings.members.clone())
}

fn mode(mode: Option<super::value::InMode>) -> Option<&'static str> {
    mode.map(|mode| mode.0.as_str())
}

/// Prices, amounts and the like keep the digits that they were written with.
fn step_value(step: &Step) -> (&'static str, Value) {
    let by = |by: By| (by == By::Dashboard).then_some("dashboard");
    let fee = |fee: Option<Fee>| fee.map(Fee::as_str);
    match step {
        Step::Account(it) => ("account", settings(it).full()),
        Step::OpenAccount(it) => {
            let it = &it.0;
            let said = Said::default()
                .with("account", name(&it.account))
                .may("underpayment_tolerance", it.underpayment_tolerance.clone())
                .may("overpayment_threshold", it.overpayment_threshold.clone());
            ("open_account", said.brief())
        }
        Step::Repeat(it) => {
            let it = &it.0;
            let said = Said::default().with("charge", name(&it.charge));
            ("repeat", said.may("description", it.description.clone()).may("refused", it.refused).brief())
        }
        Step::Wallet(it) => (
            "wallet",
            Said::default()
                .with("asset", it.asset.0.code())
                .may("mode", mode(it.mode))
                .may("key", it.key.clone())
                .may("addresses", it.addresses.clone())
                .flag("remove", it.remove)
                .may("refused", it.refused)
                .full(),
        ),
        Step::Rate(it) => (
            "rate",
            Said::default()
                .with("asset", it.asset.0.code())
                .with("currency", it.currency.0.code())
                .with("rate", it.rate.0.clone().unwrap_or_else(|| "off".to_owned()))
                .full(),
        ),
        Step::Key(it) => {
            let said = Said::default().with("name", name(&it.0.name)).may("mode", mode(it.0.mode));
            ("key", said.may("account", it.0.account.as_ref().map(name)).brief())
        }
        Step::Revoke(it) => ("revoke", name(it)),
        Step::Endpoint(it) => ("endpoint", endpoint(&it.0)),
        Step::Enable(it) => ("enable", name(it)),
        Step::Disable(it) => ("disable", name(it)),
        Step::Remove(it) => ("remove", name(it)),
        Step::Rotate(it) => ("rotate", name(it)),
        Step::Test(it) => ("test", name(it)),
        Step::Resend(it) => ("resend", name(it)),
        Step::Merchant(it) => {
            let all = it.iter().map(|(host, answers)| (host.clone(), merchant(&answers.value)));
            ("merchant", Value::Object(all.collect()))
        }
        Step::Open(it) => (
            "open",
            Said::default()
                .with("charge", name(&it.charge))
                .with("asset", it.asset.0.code())
                .may("amount", it.amount.as_ref().map(ToString::to_string))
                .may("link", it.link.as_ref().map(name))
                .may("customer_email", it.customer_email.clone())
                .may("description", it.description.clone())
                .may("metadata", it.metadata.as_ref().map(|map| json!(map)))
                .may("idempotency_key", it.idempotency_key.clone())
                .may("account", it.account.as_ref().map(name))
                .may("mode", mode(it.mode))
                .may("refused", it.refused)
                .full(),
        ),
        Step::Link(it) => {
            let it = &it.0;
            let assets: Option<Vec<&str>> =
                it.accepted_assets.as_ref().map(|all| all.iter().map(|asset| asset.0.code()).collect());
            let said = Said::default()
                .with("link", name(&it.link))
                .may("title", it.title.clone())
                .may("amount", it.amount.as_ref().map(ToString::to_string))
                .may("currency", it.currency.map(|currency| currency.0.code()))
                .may("accepted_assets", assets)
                .may("max_payments", it.max_payments)
                .may("account", it.account.as_ref().map(name))
                .may("mode", mode(it.mode))
                .may("refused", it.refused);
            ("link", said.brief())
        }
        Step::Invoice(it) => {
            let items: Option<Vec<Value>> = it.items.as_ref().map(|items| {
                let item = |item: &super::step::Item| {
                    json!({ "description": item.description, "quantity": item.quantity.0, "unit_amount": item.unit_amount.0 })
                };
                items.iter().map(item).collect()
            });
            let said = Said::default()
                .with("invoice", name(&it.invoice))
                .may("amount", it.amount.as_ref().map(ToString::to_string))
                .may("items", items)
                .may("currency", it.currency.map(|currency| currency.0.code()))
                .may("customer_email", it.customer_email.clone())
                .may("customer_name", it.customer_name.clone())
                .may("memo", it.memo.clone())
                .may("due_at", it.due_at.clone())
                .flag("send", it.send)
                .may("account", it.account.as_ref().map(name))
                .may("mode", mode(it.mode))
                .may("refused", it.refused);
            ("invoice", said.full())
        }
        Step::Send(it) => ("send", object("invoice", &it.0.invoice, by(it.0.by), it.0.refused)),
        Step::View(it) => ("view", name(it)),
        Step::Choose(it) => (
            "choose",
            Said::default()
                .may("invoice", it.invoice.as_ref().map(name))
                .may("link", it.link.as_ref().map(name))
                .with("asset", it.asset.0.code())
                .with("charge", name(&it.charge))
                .may("amount", it.amount.as_ref().map(|amount| amount.0.clone()))
                .may("customer_email", it.customer_email.clone())
                .may("refused", it.refused)
                .full(),
        ),
        Step::Cancel(it) => ("cancel", object("charge", &it.0.charge, by(it.0.by), it.0.refused)),
        Step::Refund(it) => (
            "refund",
            Said::default()
                .with("charge", name(&it.charge))
                .with("amount", it.amount.0.clone())
                .may("reason", it.reason.clone())
                .may("txid", it.txid.clone())
                .may("refused", it.refused)
                .full(),
        ),
        Step::Accept(it) => {
            let said =
                Said::default().with("charge", name(&it.0.charge)).may("tx", it.0.tx.as_ref().map(name));
            ("accept", said.may("refused", it.0.refused).brief())
        }
        Step::Void(it) => ("void", object("invoice", &it.0.invoice, by(it.0.by), it.0.refused)),
        Step::Pay(it) => ("pay", pay(&it.0)),
        Step::Mine(it) => (
            "mine",
            Said::default()
                .with("asset", it.0.asset.value.0.code())
                .may("mode", mode(it.0.mode))
                .may("blocks", it.0.blocks)
                .flag("at_once", it.0.at_once)
                .brief(),
        ),
        Step::Reorg(it) => {
            let keep = match &it.keep {
                Keep::All => Some(Value::from("all")),
                Keep::None => None,
                Keep::Only(kept) => Some(names(kept)),
            };
            let said = Said::default()
                .with("asset", it.asset.0.code())
                .may("mode", mode(it.mode))
                .with("depth", it.depth)
                .may("keep", keep);
            ("reorg", said.may("refused", it.refused).full())
        }
        Step::DoubleSpend(it) => ("double_spend", object("tx", &it.0.tx, None, it.0.refused)),
        Step::Replace(it) => (
            "replace",
            Said::default()
                .with("tx", name(&it.tx))
                .may("as", it.named.as_ref().map(name))
                .may("amount", it.amount.as_ref().map(|amount| amount.value.0.clone()))
                .flag("elsewhere", it.elsewhere)
                .may("fee", fee(it.fee))
                .may("refused", it.refused)
                .full(),
        ),
        Step::Drop(it) => ("drop", object("tx", &it.0.tx, None, it.0.refused)),
        Step::Rebroadcast(it) => ("rebroadcast", object("tx", &it.0.tx, None, it.0.refused)),
        Step::Stall(it) => (
            "stall",
            Said::default()
                .with("asset", it.asset.0.code())
                .may("mode", mode(it.mode))
                .with("for", it.lasting.0.to_string())
                .full(),
        ),
        Step::Congest(it) => (
            "congest",
            Said::default()
                .with("asset", it.asset.0.code())
                .may("mode", mode(it.mode))
                .may("empty", (it.empty > 0).then_some(it.empty))
                .may("full", (it.full > 0).then_some(it.full))
                .may("refused", it.refused)
                .full(),
        ),
        Step::Watcher(it) => (
            "watcher",
            Said::default()
                .with("asset", it.asset.0.code())
                .may("mode", mode(it.mode))
                .with("notices", Notices::as_str(it.notices))
                .full(),
        ),
        Step::Restart => ("restart", Value::Null),
        Step::Wait(it) => ("wait", Value::from(it.value.0.to_string())),
        Step::Until(it) => ("until", until(it)),
        Step::Request(it) => ("request", request(it)),
        Step::Walk(it) => (
            "walk",
            Said::default()
                .with("path", it.path.value.clone())
                .with("per_page", it.per_page)
                .may("insert", (it.insert > 0).then_some(it.insert))
                .may("by", (it.by == WalkBy::Numbers).then_some("numbers"))
                .may("key", it.key.as_ref().map(name))
                .full(),
        ),
        Step::Expect(it) => {
            let all = it.iter().map(|(name, expected)| (name.clone(), expected_value(&expected.value)));
            ("expect", Value::Object(all.collect()))
        }
    }
}

fn object(key: &str, of: &At<super::value::Name>, by: Option<&str>, refused: Option<u16>) -> Value {
    Said::default().with(key, name(of)).may("by", by).may("refused", refused).brief()
}

fn endpoint(it: &Endpoint) -> Value {
    let events: Option<Vec<&str>> =
        it.events.as_ref().map(|events| events.iter().map(|kind| kind.0).collect());
    Said::default()
        .with("name", name(&it.name))
        .may("mode", mode(it.mode))
        .may("events", events)
        .may("url", it.url.clone())
        .may("account", it.account.as_ref().map(name))
        .may("refused", it.refused)
        .brief()
}

fn merchant(answers: &Answers) -> Value {
    match (answers.first.as_slice(), answers.then.0.as_str()) {
        ([], then) => then.into(),
        (first, "up") => first.to_vec().into(),
        (first, then) => json!({ "answers": first, "then": then }),
    }
}

fn pay(it: &Pay) -> Value {
    let amount =
        |amount: &Option<At<super::value::Amount>>| amount.as_ref().map(|amount| amount.value.0.clone());
    Said::default()
        .may("charge", it.charge.as_ref().map(name))
        .may("address_of", it.address_of.as_ref().map(name))
        .may("share", it.share.as_ref().map(|share| share.value.0.clone()))
        .may("amount", amount(&it.amount))
        .may("over", amount(&it.over))
        .may("short", amount(&it.short))
        .may("asset", it.asset.map(|asset| asset.0.code()))
        .may("mode", mode(it.mode))
        .may("fee", it.fee.map(Fee::as_str))
        .may("outputs", it.outputs)
        .flag("unseen", it.unseen)
        .may("tx", it.tx.as_ref().map(name))
        .may("refused", it.refused)
        .full()
}

fn until(it: &Until) -> Value {
    let offset = it.offset.as_ref().map(|offset| match offset.value {
        Offset::Before(span) => format!("-{span}"),
        Offset::After(span) => format!("+{span}"),
    });
    Said::default()
        .may("at", it.at.as_ref().map(|at| at.value.0.to_string()))
        .may("expiry", it.expiry.as_ref().map(name))
        .may("attempt", it.attempt.as_ref().map(name))
        .may("event", it.event.as_ref().map(|event| event.value.0))
        .may("of", it.of.as_ref().map(name))
        .may("within", it.within.map(|within| within.0.to_string()))
        .may("offset", offset)
        .full()
}

fn request(it: &Request) -> Value {
    let filled = |map: Map<String, Value>| (!map.is_empty()).then_some(map);
    let texts = |map: &std::collections::BTreeMap<String, String>| {
        filled(map.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect())
    };
    Said::default()
        .may("method", it.method.clone())
        .with("path", it.path.value.clone())
        .may("key", it.key.as_ref().map(name))
        .may("body", it.body.clone())
        .may("headers", texts(&it.headers))
        .may("times", it.times)
        .may("save", texts(&it.save))
        .may("expect", filled(holds(&it.expect).0))
        .full()
}

fn holds(it: &Holds) -> Said {
    let filled = |map: Map<String, Value>| (!map.is_empty()).then_some(map);
    let absent: Vec<String> = it.absent.iter().map(|pointer| pointer.value.clone()).collect();
    Said::default()
        .may("status", it.status.as_ref().map(|status| status.value))
        .may("body", filled(it.body.iter().map(|(key, value)| (key.clone(), value.value.clone())).collect()))
        .may(
            "headers",
            filled(
                it.headers
                    .iter()
                    .map(|(key, value)| (key.clone(), Value::from(value.value.clone())))
                    .collect(),
            ),
        )
        .may("absent", (!absent.is_empty()).then_some(absent))
}

fn expected_value(it: &Expected) -> Value {
    let types = |list: &Option<Vec<super::value::EventType>>| {
        list.as_ref().map(|list| list.iter().map(|kind| kind.0).collect::<Vec<_>>())
    };
    let fields = Map::from_iter(it.fields.clone());
    let said = Said::default()
        .may("status", it.status.clone())
        .may("received", it.received.clone())
        .may("events", types(&it.events))
        .may("fields", (!fields.is_empty()).then_some(fields))
        .may("answers", it.answers.clone())
        .may("acknowledged", types(&it.acknowledged));
    match it.status {
        Some(_) => said.brief(),
        None => said.full(),
    }
}
