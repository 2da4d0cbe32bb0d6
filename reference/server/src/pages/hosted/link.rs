//! The page of a payment link: what it is for, how much, in which coin, and what the merchant asks.

use askama::Template;
use http::StatusCode;
use reference_core::mode::Mode;
use serde_json::{Map, Value, json};
use simulator::api::{CoinOffer, LinkClosed as Closed, PageAccount as Account};

use super::{
    load,
    model::{AccountWords as _, CoinWords as _, LinkPage, OfferWords as _},
    nowhere, panel,
};
use crate::{
    answer::Answer,
    pages::{Call, Part, Reply, Site, form::Form, html, objects::Link, see_other, words},
    refusal::Refusal,
};

/// A question with what was answered.
struct LinkForm {
    /// The field's name in the form.
    name: String,
    label: String,
    required: bool,
    value: String,
    error: Option<String>,
}

/// The customer's input, and its errors.
#[derive(Default)]
struct Filled {
    asset: String,
    amount: String,
    suggested: String,
    email: String,
    name: String,
    answers: Vec<String>,
    message: Option<String>,
    errors: Map<String, Value>,
}

impl Filled {
    fn of(form: &Form, link: &Link) -> Filled {
        let text = |name: &str| form.text(name).unwrap_or_default().to_owned();
        Filled {
            asset: text("asset"),
            amount: text("amount"),
            suggested: text("suggested"),
            email: text("customer_email"),
            name: text("customer_name"),
            answers: (0..link.custom_fields.len()).map(|n| text(&format!("answer.{n}"))).collect(),
            ..Filled::default()
        }
    }

    /// The first complaint about any of these fields.
    fn error(&self, fields: &[&str]) -> Option<String> {
        let first = |name: &&str| self.errors.get(*name).and_then(|all| all[0].as_str());
        fields.iter().find_map(first).map(in_plain_words)
    }
}

/// The API names fields as programs do.
fn in_plain_words(sentence: &str) -> String {
    sentence
        .replace("customer.email field", "e-mail address")
        .replace("customer_email field", "e-mail address")
        .replace("customer_name field", "name")
        .replace("amount field", "amount")
        .replace("asset field", "coin")
}

#[derive(Template)]
#[template(path = "hosted/link.html")]
struct LinkTemplate {
    site: Site,
    account: Account,
    mode: Mode,
    link: Link,
    closed: Option<Closed>,
    coins: Vec<CoinOffer>,
    filled: Filled,
    asked: Vec<LinkForm>,
    panel: Option<Part>,
}

impl LinkTemplate {
    fn suggestions(&self) -> impl Iterator<Item = (&str, String)> {
        self.link.suggested_amounts.iter().map(|amount| (amount.as_str(), words::fiat(amount)))
    }
}

/// `GET /pay/{code}`.
pub(super) async fn page(call: &Call<'_>, code: &str) -> Result<Answer, Refusal> {
    if call.head.method == http::Method::GET {
        let seen = call.ask("POST", &format!("/sandbox/links/{code}/view"), None).await?;
        if !seen.is_good() {
            return nowhere(call);
        }
    }
    let Some(shown) = load::<LinkPage>(&call.asker(), &format!("/pay/{code}")).await? else {
        return nowhere(call);
    };
    draw(call, shown, StatusCode::OK, Filled::default())
}

fn draw(call: &Call<'_>, shown: LinkPage, status: StatusCode, filled: Filled) -> Result<Answer, Refusal> {
    let site = call.site()?;
    let subject = panel::of_link_page(&shown).filter(|_| call.admit_owner().is_ok());
    let owner = (&shown.account, shown.mode);
    let path = format!("/pay/{}", shown.link.code);
    let panel = subject.map(|subject| panel::part(&site, &path, owner, &subject)).transpose()?;
    let LinkPage { account, mode, link, closed, coins } = shown;
    let asked = (0..)
        .zip(&link.custom_fields)
        .map(|(n, question)| LinkForm {
            name: format!("answer.{n}"),
            label: question.label.clone(),
            required: question.required,
            value: filled.answers.get(n).cloned().unwrap_or_default(),
            error: filled
                .error(&[&format!("custom_fields.{n}.value")])
                // Of what is missing altogether the API says the question itself.
                .or_else(|| missing_answer(&filled, &question.label)),
        })
        .collect();
    html(status, &LinkTemplate { site, account, mode, link, closed, coins, filled, asked, panel })
}

fn missing_answer(filled: &Filled, label: &str) -> Option<String> {
    let all = filled.errors.get("custom_fields")?.as_array()?;
    let meant = all.iter().filter_map(Value::as_str).any(|sentence| sentence.contains(label));
    meant.then(|| "Please answer this.".to_owned())
}

/// `POST /pay/{code}`: opens a charge and shows its checkout.
pub(super) async fn choose(call: &Call<'_>, code: &str) -> Result<Answer, Refusal> {
    call.admit_form()?;
    let Some(shown) = load::<LinkPage>(&call.asker(), &format!("/pay/{code}")).await? else {
        return nowhere(call);
    };
    let form = call.form().await?;
    let mut filled = Filled::of(&form, &shown.link);
    let Reply { status, mut json } = call
        .ask("POST", &format!("/sandbox/links/{code}/choose"), Some(&choice(&filled, &shown.link)))
        .await?;
    if let Some(charge) = json["charge"].as_str().filter(|_| status.is_success()) {
        return see_other(&call.site()?, &format!("/c/{charge}"));
    }
    filled.message = json["message"].as_str().map(in_plain_words);
    if let Value::Object(errors) = json["errors"].take() {
        filled.errors = errors;
    }
    draw(call, shown, status, filled)
}

/// The call that the form stands for. What was left empty is left out.
fn choice(filled: &Filled, link: &Link) -> Value {
    // What somebody typed counts more than what they picked.
    let amount = if filled.amount.is_empty() { &filled.suggested } else { &filled.amount };
    let mut choice = Map::new();
    for (name, value) in [
        ("asset", &filled.asset),
        ("amount", amount),
        ("customer_email", &filled.email),
        ("customer_name", &filled.name),
    ] {
        if !value.is_empty() {
            choice.insert(name.to_owned(), json!(value));
        }
    }
    let answers = link.custom_fields.iter().zip(&filled.answers).filter(|(_, answer)| !answer.is_empty());
    let answers: Vec<Value> =
        answers.map(|(question, answer)| json!({ "label": question.label, "value": answer })).collect();
    if !answers.is_empty() {
        choice.insert("custom_fields".to_owned(), Value::Array(answers));
    }
    Value::Object(choice)
}
