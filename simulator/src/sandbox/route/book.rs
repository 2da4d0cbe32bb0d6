//! A book (one account in one mode) in the dashboard: the operations of the API without a key, and the views of the
//! account owner. They do not count towards a rate limit.

use std::collections::BTreeSet;

use reference_core::{
    book::Book,
    call::List,
    charge::{Charge, ChargeStatus, Standing, Transfer},
    command::{Command, CommandResult},
    endpoint::EndpointStatus,
    error::ApiError,
    event::{EventType, Subject},
    id::{AccountNo, EventNo},
    invoice::InvoiceStatus,
    mode::Mode,
};
use reference_wire::{Response, fields::Fields};

use super::{
    HandlerResponse, Outcome,
    call::{SandboxCall, parse_code},
    json_response, records,
};
use crate::{
    api::{
        BookCounts, ChargeCounts, EndpointCounts, InvoiceCounts, LateList, LatePayment, TransferList,
        TransferRecord,
    },
    sandbox::{Sandbox, observe::AccountBook},
};

/// The maximum number of late-payment events, newest first, whose charges are searched for unresolved late payments.
const LATE_SCANNED_MAX: usize = 1_000;

/// Returns the book that the path names.
pub(super) fn book_from_path(call: &SandboxCall<'_>) -> Result<AccountBook, ApiError> {
    let [account, mode, ..] = call.parameters() else { unreachable!("the route has both parameters") };
    call.sandbox.find_book(account, Mode::parse(mode).ok_or(ApiError::NotFound)?)
}

/// Returns the API path that the rest of the path stands for, such as `/v1/charges`.
fn api_path(call: &SandboxCall<'_>) -> String {
    // `/sandbox/books/{account}/{mode}/…`
    let rest = call.request.path.split('/').skip(5);
    format!("/v1/{}", rest.collect::<Vec<_>>().join("/"))
}

/// Returns the body that a key of the book gets from `/v1/` with the rest of the path.
pub(super) fn owner_reads(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let book_id = book_from_path(call)?;
    let path = api_path(call);
    let target = (path.as_str(), call.request.query);
    let body =
        reference_wire::owner_read(call.service(), call.world().now, book_id, target, call.request.base)?;
    Ok(HandlerResponse::Raw(Response { status: 200, headers: Vec::new(), body }))
}

/// Creates or changes an object, like the same request to `/v1/` with a key of the book.
pub(super) fn owner_writes(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let book_id = book_from_path(call)?;
    f.finish()?;
    let request = call.request;
    let (command, status) = reference_wire::parse_call(
        call.book(book_id),
        (request.method, &api_path(call), request.query),
        request.body,
    )?;
    match call.execute(book_id, Command::Call(command))? {
        CommandResult::Call(result) => {
            let body = reference_wire::response_body(
                call.service(),
                call.world().now,
                book_id,
                request.base,
                &result,
            );
            Ok(HandlerResponse::Raw(Response { status, headers: Vec::new(), body }))
        }
        other => unreachable!("an API call has an API response, not {other:?}"),
    }
}

pub(super) fn counts(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    json_response(call.sandbox.counts(book_from_path(call)?))
}

pub(super) fn late_payments(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    json_response(LateList { late: call.sandbox.late_payments(book_from_path(call)?) })
}

impl Sandbox {
    /// Finds the book of an account by its id.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if there is no such account.
    pub fn find_book(&self, account: &str, mode: Mode) -> Result<(AccountNo, Mode), ApiError> {
        Ok((self.service().find_account(account).ok_or(ApiError::NotFound)?, mode))
    }

    /// Returns the book of an account and a mode.
    pub fn book(&self, (account, mode): (AccountNo, Mode)) -> &Book {
        self.service().account(account).book(mode)
    }

    /// Returns the number of objects of each kind and status.
    pub fn counts(&self, book_id: (AccountNo, Mode)) -> BookCounts {
        let owner = self.service().account(book_id.0);
        let book = self.book(book_id);
        let count = |list: &List| {
            // The rank of the newest member is the number of members.
            let listing = book.listing(list);
            listing.newest().map_or(0, |newest| listing.rank(newest)) as u64
        };
        let charges = |status| count(&List::Charges { status, link: None });
        let invoices = |status| count(&List::Invoices { status });
        let endpoints =
            |status| book.endpoints().iter().filter(|endpoint| endpoint.status == status).count() as u64;
        BookCounts {
            account: owner.id.to_string(),
            mode: book_id.1,
            members: owner.settings.members.clone(),
            charges: ChargeCounts {
                all: charges(None),
                pending: charges(Some(ChargeStatus::Pending)),
                underpaid: charges(Some(ChargeStatus::Underpaid)),
                paid: charges(Some(ChargeStatus::Paid)),
                expired: charges(Some(ChargeStatus::Expired)),
                canceled: charges(Some(ChargeStatus::Canceled)),
            },
            invoices: InvoiceCounts {
                all: invoices(None),
                open: invoices(Some(InvoiceStatus::Open)),
                paid: invoices(Some(InvoiceStatus::Paid)),
                void: invoices(Some(InvoiceStatus::Void)),
            },
            links: count(&List::Links),
            events: book.events().count() as u64,
            late: unresolved_late_payments(book).len() as u64,
            endpoints: EndpointCounts {
                enabled: endpoints(EndpointStatus::Enabled),
                disabled: endpoints(EndpointStatus::Disabled),
            },
        }
    }

    /// Returns the late payments that the owner has neither accepted nor refunded, by charge: the one with
    /// the newest late payment first.
    pub fn late_payments(&self, book_id: (AccountNo, Mode)) -> Vec<LatePayment> {
        let book = self.book(book_id);
        let late_payments =
            unresolved_late_payments(book).into_iter().map(|(charge, transfer)| LatePayment {
                charge: charge.code,
                status: charge.status().as_str().into(),
                asset: charge.terms.asset,
                asset_amount: charge.terms.asset_amount.to_string(),
                received_amount: charge.received_amount().to_string(),
                transfer: records::transfer_record(self.service(), book, charge, transfer),
            });
        late_payments.collect()
    }

    /// Returns the transfers to a charge of a book, in order of sighting.
    pub fn transfers(&self, book_id: (AccountNo, Mode), charge: &Charge) -> Vec<TransferRecord> {
        let (service, book) = (self.service(), self.book(book_id));
        charge
            .transfers()
            .iter()
            .map(|transfer| records::transfer_record(service, book, charge, transfer))
            .collect()
    }
}

/// Returns the late payments that are neither accepted nor refunded, by charge: the one with the newest
/// late-payment event first.
fn unresolved_late_payments(book: &Book) -> Vec<(&Charge, &Transfer)> {
    let late_events =
        book.listing(&List::Events { kind: Some(EventType::ChargeLatePayment), charge: None, invoice: None });
    let count = late_events.newest().map_or(0, |newest| late_events.rank(newest));
    let mut scanned_charges = BTreeSet::new();
    let mut unresolved = Vec::new();
    for nth in (count.saturating_sub(LATE_SCANNED_MAX)..count).rev() {
        let event = late_events.select(nth).expect("every position below the rank has a member");
        let Subject::Charge(no) = book.events().get(EventNo(event)).subject else {
            continue;
        };
        if scanned_charges.insert(no) {
            let charge = book.charge(no);
            let is_unresolved = |transfer: &&Transfer| {
                transfer.standing == Standing::Late
                    && transfer.is_present()
                    && !records::is_sent_back(charge, transfer)
            };
            let transfers = charge.transfers().iter().filter(is_unresolved);
            unresolved.extend(transfers.map(|transfer| (charge, transfer)));
        }
    }
    unresolved
}

/// Returns the transfers to a charge, with details for its owner.
pub(super) fn transfers(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let book_id = book_from_path(call)?;
    let book = call.book(book_id);
    let charge = book.charge(book.find_charge(parse_code(call.parameters()[2])?)?);
    let transfers = call.sandbox.transfers(book_id, charge);
    json_response(TransferList { transfers, reorganised: charge.is_reorganised() })
}
