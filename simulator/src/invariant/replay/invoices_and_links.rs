//! The replay of requests about invoices and payment links.

use reference_core::{asset::Asset, time::Timestamp};

use super::{
    ModelReplay, Object, ObjectRef,
    charges::{ChargePrice, ChosenChargeResponse, CreatedResponse},
    request_fields::{RequestFields, read},
};
use crate::{
    invariant::Invariant,
    model::{InvoiceDraft, InvoiceTexts, LinkModel},
    record::{BookId, RecordedCall},
};

impl ModelReplay<'_> {
    /// Replays `POST /v1/invoices`.
    pub(super) fn replay_issue_invoice(
        &mut self,
        now: Timestamp,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(id) = self.calling_book(call) else { return };
        let (texts, sum_of_items) = InvoiceTexts::read(&read(&call.body).unwrap_or_default());
        let draft = InvoiceDraft {
            cents: fields.cents().unwrap_or(sum_of_items),
            currency: self.requested_currency(id, fields),
            recipient: fields.customer_email.clone().filter(|email| !email.is_empty()),
            texts,
        };
        let (account, book) = self.model.account_and_book_mut(id);
        let issued = match draft.is_valid(now, fields.cents()) {
            true => book.issue(now, account, draft, fields.send_email == Some(true)),
            false => Err(422),
        };
        self.check_status(
            Invariant::Edges,
            now,
            ("issue an invoice", ""),
            issued.err().unwrap_or(201),
            call.status,
        );
        self.check_mail_retry(now, (id, None), call);
        let created = read::<CreatedResponse>(&call.response_body).filter(|_| call.status == 201);
        if let Some((CreatedResponse { data }, number)) = created.zip(issued.ok()) {
            self.ids.get_mut(&id).expect("every book has ids").invoices.push(data.id.clone());
            self.objects.insert(data.id, (id, Object::Invoice(number)));
        }
    }

    /// Replays an action on an invoice: `send`, `void`, `view` or `choose`.
    pub(super) fn replay_invoice_action(
        &mut self,
        now: Timestamp,
        invoice: ObjectRef<'_>,
        action: &str,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let ObjectRef { book: id, number, code } = invoice;
        let (account, book) = self.model.account_and_book_mut(id);
        let result = match action {
            "send" => book.send(now, account, number),
            "void" => book.void(now, number),
            "view" => {
                book.record_view(now, number);
                Ok(())
            }
            "choose" => return self.choose(now, invoice, call, fields),
            _ => return,
        };
        self.check_status(Invariant::Edges, now, (action, code), result.err().unwrap_or(200), call.status);
        self.check_mail_retry(now, (id, Some(number)), call);
    }

    /// Checks `Retry-After` of a response with 429 to a request that e-mails `invoice`, or a new invoice if
    /// it is `None`.
    fn check_mail_retry(
        &mut self,
        now: Timestamp,
        (id, invoice): (BookId, Option<usize>),
        call: &RecordedCall,
    ) {
        if call.status != 429 {
            return;
        }
        let expected = self.model.book(id).mail_retry_secs(now, invoice);
        self.findings.check(Invariant::Limit, Some(now), || {
            (call.retry_after() != Some(expected)).then(|| {
                let shape = "Retry-After is not the time until an e-mail may be sent";
                let about = format!("{} {} at {now}", call.method, call.path);
                (shape.to_owned(), format!("{about}: expected {expected}, got {:?}", call.retry_after()))
            })
        });
    }

    /// Replays the choice of a coin on the page of an invoice.
    fn choose(
        &mut self,
        now: Timestamp,
        ObjectRef { book: id, number, code }: ObjectRef<'_>,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(asset) = fields.asset.as_deref().and_then(Asset::parse) else { return };
        let pending = match self.model.book(id).open_charge_in(number, asset) {
            Ok(pending) => pending,
            Err(refusal) => {
                return self.check_status(Invariant::Edges, now, ("choose", code), refusal, call.status);
            }
        };
        let Some(chosen) = read::<ChosenChargeResponse>(&call.response_body).filter(|_| call.status == 200)
        else {
            // Without a wallet or a rate the service may refuse, which changes nothing.
            let may_refuse = matches!(call.status, 422 | 503) && pending.is_none();
            let expected = if may_refuse { call.status } else { 200 };
            return self.check_status(Invariant::Edges, now, ("choose", code), expected, call.status);
        };
        match pending {
            None => {
                let invoice = &self.model.book(id).invoices[number];
                let (cents, currency) = (invoice.cents, invoice.currency);
                let price = ChargePrice { cents, currency, link: None, invoice: Some(number) };
                self.add_charge(now, &chosen.charge, id, call, price);
            }
            Some(pending) => {
                let is_same = self.ids[&id].charges[pending] == chosen.charge;
                self.findings.check(Invariant::Edges, Some(now), || {
                    let shape = "choosing the coin of the pending charge returns another charge";
                    (!is_same).then(|| (shape.to_owned(), code.to_owned()))
                });
            }
        }
    }

    /// Replays `POST /v1/payment-links`.
    pub(super) fn replay_create_link(&mut self, now: Timestamp, call: &RecordedCall) {
        let Some(id) = self.calling_book(call) else { return };
        let body = read(&call.body).unwrap_or_default();
        let expected = if LinkModel::is_valid_request(None, now, &body) { 201 } else { 422 };
        self.check_status(Invariant::Edges, now, ("create a link", ""), expected, call.status);
        let Some(CreatedResponse { data }) = read(&call.response_body).filter(|_| call.status == 201) else {
            return;
        };
        let (account, book) = self.model.account_and_book_mut(id);
        book.links.push(LinkModel::new(now, account.default_currency, &body));
        let number = book.links.len() - 1;
        self.ids.get_mut(&id).expect("every book has ids").links.push(data.id.clone());
        self.objects.insert(data.id, (id, Object::Link(number)));
    }

    /// Replays a request that archives, restores or changes a link.
    pub(super) fn replay_change_link(
        &mut self,
        now: Timestamp,
        code: &str,
        rest: &[&str],
        call: &RecordedCall,
    ) {
        let Some((id, Object::Link(number))) = self.objects.get(code).copied() else { return };
        let body = read(&call.body).unwrap_or_default();
        let link = &mut self.model.account_and_book_mut(id).1.links[number];
        let expected = match (call.method.as_str(), rest) {
            ("POST" | "DELETE", ["archive"]) => {
                link.archive(now, call.method == "POST");
                200
            }
            ("PATCH", []) if LinkModel::is_valid_request(Some(link), now, &body) => {
                link.change(now, &body);
                200
            }
            ("PATCH", []) => 422,
            _ => return,
        };
        self.check_status(Invariant::Edges, now, ("change a link", code), expected, call.status);
    }
}
