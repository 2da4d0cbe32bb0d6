//! The page of a payment link: description, amount, coin, and the merchant's questions.

use std::collections::BTreeMap;

use askama::Template;
use http::StatusCode;
use reference_core::mode::Mode;
use simulator::api::{
    ChargeResponse, CoinOffer, CustomFieldValue, EmptyResponse, LinkClosedReason as Closed,
    PageAccount as Account,
};

use super::{
    load,
    model::{AccountDisplay as _, CoinDisplay as _, LinkPage, OfferDisplay as _},
    page_not_found, panel,
};
use crate::{
    pages::{
        ErrorResponse, PageRequest, Part, Site,
        form::{CustomerChoice, Form},
        formats, html, json,
        objects::Link,
        see_other,
    },
    refusal::Refusal,
    response::HttpResponse,
};

/// The form field of a merchant's question, with the customer's answer.
struct QuestionField {
    /// The field's name in the form.
    name: String,
    label: String,
    required: bool,
    value: String,
    error: Option<String>,
}

/// The customer's input, and its errors.
#[derive(Default)]
struct LinkInput {
    asset: String,
    amount: String,
    /// The selected suggested amount.
    suggested: String,
    email: String,
    name: String,
    answers: Vec<String>,
    /// The message of the error response.
    message: Option<String>,
    errors: BTreeMap<String, Vec<String>>,
}

impl LinkInput {
    fn from_form(form: &Form, link: &Link) -> LinkInput {
        let text = |name: &str| form.text(name).unwrap_or_default().to_owned();
        LinkInput {
            asset: text("asset"),
            amount: text("amount"),
            suggested: text("suggested"),
            email: text("customer_email"),
            name: text("customer_name"),
            answers: (0..link.terms.custom_fields.len()).map(|n| text(&format!("answer.{n}"))).collect(),
            ..LinkInput::default()
        }
    }

    /// Returns the first error of any of these fields.
    fn error(&self, fields: &[&str]) -> Option<String> {
        let first_error = |name: &&str| self.errors.get(*name)?.first();
        fields.iter().find_map(first_error).map(|message| with_customer_labels(message))
    }
}

/// Replaces the API's field names in an error message by labels that customers know.
fn with_customer_labels(message: &str) -> String {
    message
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
    input: LinkInput,
    questions: Vec<QuestionField>,
    panel: Option<Part>,
}

impl LinkTemplate {
    /// Returns the suggested amounts, each as a form value and as text.
    fn suggestions(&self) -> impl Iterator<Item = (String, String)> {
        self.link.suggested().iter().map(|amount| (amount.to_string(), formats::fiat(amount)))
    }
}

/// Handles `GET /pay/{code}`.
pub(super) async fn page(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    if request.is_view() {
        let path = format!("/sandbox/links/{code}/view");
        if request.client().send::<EmptyResponse>("POST", &path, "").await?.is_err() {
            return page_not_found(request);
        }
    }
    let Some(content) = load::<LinkPage>(&request.client(), &format!("/pay/{code}")).await? else {
        return page_not_found(request);
    };
    render(request, content, StatusCode::OK, LinkInput::default())
}

fn render(
    request: &PageRequest<'_>,
    content: LinkPage,
    status: StatusCode,
    input: LinkInput,
) -> Result<HttpResponse, Refusal> {
    let site = request.site()?;
    let subject = panel::link_subject(&content).filter(|_| request.admit_owner().is_ok());
    let owner = (&content.account, content.mode);
    let path = format!("/pay/{}", content.link.code);
    let panel = subject.map(|subject| panel::part(&site, &path, owner, &subject)).transpose()?;
    let LinkPage { account, mode, link, closed, coins } = content;
    let questions = (0..)
        .zip(&link.terms.custom_fields)
        .map(|(n, question)| QuestionField {
            name: format!("answer.{n}"),
            label: question.label.clone(),
            required: question.required,
            value: input.answers.get(n).cloned().unwrap_or_default(),
            error: input
                .error(&[&format!("custom_fields.{n}.value")])
                // The API's message names the question if its answer is missing.
                .or_else(|| missing_answer(&input, &question.label)),
        })
        .collect();
    html(status, &LinkTemplate { site, account, mode, link, closed, coins, input, questions, panel })
}

/// Returns the error for a required question without an answer.
fn missing_answer(input: &LinkInput, label: &str) -> Option<String> {
    let is_missing = input.errors.get("custom_fields")?.iter().any(|message| message.contains(label));
    is_missing.then(|| "Please answer this.".to_owned())
}

/// Handles `POST /pay/{code}`: opens a charge and shows its checkout.
pub(super) async fn open_charge(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    request.admit_form()?;
    let Some(content) = load::<LinkPage>(&request.client(), &format!("/pay/{code}")).await? else {
        return page_not_found(request);
    };
    let form = request.form().await?;
    let mut input = LinkInput::from_form(&form, &content.link);
    let (path, body) =
        (format!("/sandbox/links/{code}/choose"), json(&customer_choice(&input, &content.link)));
    match request.client().send("POST", &path, &body).await? {
        Ok(ChargeResponse { charge }) => see_other(&request.site()?, &format!("/c/{charge}")),
        Err(ErrorResponse { status, message, errors }) => {
            input.message = Some(with_customer_labels(&message));
            input.errors = errors;
            render(request, content, status, input)
        }
    }
}

/// Converts the input to the choice of a customer, which the world validates.
fn customer_choice<'f>(input: &'f LinkInput, link: &Link) -> CustomerChoice<'f> {
    let answers = link.terms.custom_fields.iter().zip(&input.answers);
    let answers = answers
        .filter(|(_, answer)| !answer.is_empty())
        .map(|(question, answer)| CustomFieldValue { label: question.label.clone(), value: answer.clone() });
    CustomerChoice {
        asset: &input.asset,
        // A typed amount overrides a selected one.
        amount: if input.amount.is_empty() { &input.suggested } else { &input.amount },
        customer_email: &input.email,
        customer_name: &input.name,
        custom_fields: answers.collect(),
    }
}
