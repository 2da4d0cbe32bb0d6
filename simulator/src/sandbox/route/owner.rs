//! The account owner's operations on endpoints, charges and invoices.

use reference_core::{
    command::{BookCommand, CommandResult},
    endpoint::EndpointStatus,
    error::ApiError,
    event::EventType,
    id::{AccountNo, EndpointNo},
    mail::Mail,
    mode::Mode,
};
use reference_wire::fields::{Fields, TEXT_MAX};

use super::{
    Outcome,
    call::{SandboxCall, read_mode},
    empty_response, json_response, records,
};
use crate::{
    api::{
        AcceptRequest, Body, EndpointChangeRequest, EndpointList, EndpointRecord, EndpointRequest,
        EndpointResponse, MailList, MailRecord, TestDeliveryResponse,
    },
    sandbox::{Sandbox, observe::AccountBook},
};

pub(super) fn endpoints(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let endpoints = call.books().flat_map(|(book_id, _)| call.sandbox.endpoints(book_id));
    json_response(EndpointList { endpoints: endpoints.collect() })
}

impl Sandbox {
    /// Returns the webhook endpoints of a book in order of creation, including removed ones.
    pub fn endpoints(&self, book_id: (AccountNo, Mode)) -> Vec<EndpointRecord> {
        let endpoints = self.book(book_id).endpoints().iter();
        endpoints.map(|endpoint| records::endpoint_record(self.service(), book_id, endpoint)).collect()
    }

    /// Returns the newest e-mails of a book, oldest first.
    pub fn mails(&self, (account, mode): (AccountNo, Mode), limit: usize) -> Vec<MailRecord> {
        let book = self.book((account, mode));
        let record = |mail: &Mail| MailRecord {
            account: self.service().account(account).id.to_string(),
            mode,
            to: mail.to.clone(),
            kind: mail.kind.as_str().into(),
            invoice: book.invoice(mail.invoice).code,
            at: mail.sent_at,
        };
        book.mails().newest(limit).map(record).collect()
    }
}

pub(super) fn add_endpoint(call: &mut SandboxCall<'_>, mut body: Body<'_, EndpointRequest>) -> Outcome {
    let book_id = call.own_book(body.account.clone(), body.mode, &mut body.fields);
    let EndpointRequest { url, events, .. } = body.finish()?;
    let events = events.unwrap_or_else(|| EventType::ALL.into()).into_iter().collect();
    call.world().check_endpoint_url(&url)?;
    let result = call.execute(book_id, BookCommand::AddEndpoint { url, events })?;
    let endpoint = changed_endpoint(call, book_id, &result, SecretVisibility::Visible);
    json_response(EndpointResponse { endpoint })
}

/// The visibility of an endpoint's secret: only the response that creates the secret shows it.
#[derive(Clone, Copy)]
enum SecretVisibility {
    Visible,
    Hidden,
}

/// Returns the record of an endpoint that was added or changed. Passes its secret to the simulated merchant.
fn changed_endpoint(
    call: &mut SandboxCall<'_>,
    book_id: AccountBook,
    result: &CommandResult,
    visibility: SecretVisibility,
) -> EndpointRecord {
    let no = endpoint_of(result);
    let endpoint = call.book(book_id).endpoint(no);
    let mut record = records::endpoint_record(call.service(), book_id, endpoint);
    let (host, secret) = (endpoint.url.host().to_string(), endpoint.secret.clone());
    record.secret = matches!(visibility, SecretVisibility::Visible).then(|| secret.reveal().to_owned());
    call.world_mut().network.set_secret(&host, (book_id.0, book_id.1, no), secret);
    record
}

fn endpoint_of(result: &CommandResult) -> EndpointNo {
    match result {
        CommandResult::Endpoint(no) => *no,
        other => unreachable!("a command on an endpoint returns it, not {other:?}"),
    }
}

/// Returns the book of the endpoint that the path names.
fn endpoint_book(call: &SandboxCall<'_>) -> Result<AccountBook, ApiError> {
    let id = call.id()?;
    call.find_book(|book| book.find_endpoint(id).is_ok())
}

pub(super) fn change_endpoint(call: &mut SandboxCall<'_>, body: Body<'_, EndpointChangeRequest>) -> Outcome {
    let book_id = endpoint_book(call)?;
    let EndpointChangeRequest { url, events, status } = body.finish()?;
    if let Some(url) = &url {
        call.world().check_endpoint_url(url)?;
    }
    let events = events.map(|events| events.into_iter().collect());
    let enabled = status.map(|status| status == EndpointStatus::Enabled);
    let result =
        call.execute(book_id, BookCommand::ChangeEndpoint { id: call.id()?, url, events, enabled })?;
    let endpoint = changed_endpoint(call, book_id, &result, SecretVisibility::Hidden);
    json_response(EndpointResponse { endpoint })
}

pub(super) fn remove_endpoint(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let book_id = endpoint_book(call)?;
    f.finish()?;
    call.execute(book_id, BookCommand::RemoveEndpoint(call.id()?))?;
    empty_response()
}

pub(super) fn rotate(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let book_id = endpoint_book(call)?;
    f.finish()?;
    let result = call.execute(book_id, BookCommand::RotateSecret(call.id()?))?;
    let endpoint = changed_endpoint(call, book_id, &result, SecretVisibility::Visible);
    json_response(EndpointResponse { endpoint })
}

pub(super) fn test(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let book_id = endpoint_book(call)?;
    f.finish()?;
    match call.execute(book_id, BookCommand::SendTest(call.id()?))? {
        CommandResult::Delivery(delivery) => json_response(TestDeliveryResponse { delivery }),
        other => unreachable!("`SendTest` returns a delivery, not {other:?}"),
    }
}

pub(super) fn accept(call: &mut SandboxCall<'_>, body: Body<'_, AcceptRequest>) -> Outcome {
    let charge = call.id()?;
    execute_on_charge(call, BookCommand::AcceptLate { charge, txid: body.finish()?.txid })
}

pub(super) fn cancel(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let charge = call.id()?;
    f.finish()?;
    execute_on_charge(call, BookCommand::CancelCharge(charge))
}

fn execute_on_charge(call: &mut SandboxCall<'_>, command: BookCommand) -> Outcome {
    let charge = call.id()?;
    let book_id = call.find_book(|book| book.find_charge(charge).is_ok())?;
    call.execute(book_id, command)?;
    empty_response()
}

pub(super) fn void(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let invoice = call.id()?;
    execute_on_invoice(call, f, BookCommand::VoidInvoice(invoice))
}

pub(super) fn send(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let invoice = call.id()?;
    execute_on_invoice(call, f, BookCommand::SendInvoice(invoice))
}

fn execute_on_invoice(call: &mut SandboxCall<'_>, f: Fields<'_>, command: BookCommand) -> Outcome {
    f.finish()?;
    let invoice = call.id()?;
    let book_id = call.find_book(|book| book.find_invoice(invoice).is_ok())?;
    call.execute(book_id, command)?;
    empty_response()
}

pub(super) fn mails(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let (account_filter, mode_filter) = (f.text("account", TEXT_MAX), read_mode(&mut f));
    let limit =
        f.whole_number("limit").map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    f.finish()?;
    let service = call.service();
    let matches = |id: &str, mode: Mode| {
        account_filter.as_deref().is_none_or(|account| account == id)
            && mode_filter.is_none_or(|filter| filter == mode)
    };
    let books = call.books().filter(|((account, mode), _)| matches(&service.account(*account).id, *mode));
    let mails = books.flat_map(|(book_id, _)| call.sandbox.mails(book_id, limit));
    let mut mails: Vec<MailRecord> = mails.collect();
    mails.sort_by_key(|mail| std::cmp::Reverse(mail.at));
    mails.truncate(limit);
    json_response(MailList { mails })
}
