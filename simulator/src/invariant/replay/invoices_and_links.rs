//! The replay of calls about invoices and payment links.

use reference_core::{asset::Asset, time::Timestamp};

use super::{
    ModelReplay, Object,
    charges::{ChargePrice, ChosenCharge, CreatedAnswer},
    request_fields::{RequestFields, read},
};
use crate::{
    invariant::Invariant,
    model::{InvoiceDraft, InvoiceTexts, LinkModel},
    record::{BookId, RecordedCall},
};

impl ModelReplay<'_> {
    pub(super) fn issue(&mut self, at: Timestamp, call: &RecordedCall, fields: &RequestFields) {
        let Some(id) = self.calling_book(call) else { return };
        let (texts, sum) = InvoiceTexts::read(&read(&call.body).unwrap_or_default());
        let draft = InvoiceDraft {
            cents: fields.cents().unwrap_or(sum),
            currency: self.currency(id, fields),
            reader: fields.customer_email.clone().filter(|email| !email.is_empty()),
            texts,
        };
        let (account, book) = self.model.account_and_book_mut(id);
        let issued = match draft.may_be(at, fields.cents()) {
            true => book.issue(at, account, draft, fields.send_email == Some(true)),
            false => Err(422),
        };
        self.check_status(Invariant::Edges, at, ("issue", ""), issued.err().unwrap_or(201), call.status);
        self.check_mail_retry(at, (id, None), call);
        let made = read::<CreatedAnswer>(&call.answer).filter(|_| call.status == 201);
        if let Some((CreatedAnswer { data }, no)) = made.zip(issued.ok()) {
            self.ids.get_mut(&id).expect("every book has ids").invoices.push(data.id.clone());
            self.objects.insert(data.id, (id, Object::Invoice(no)));
        }
    }

    pub(super) fn act_on_invoice(
        &mut self,
        at: Timestamp,
        (id, no, code): (BookId, usize, &str),
        act: &str,
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let (account, book) = self.model.account_and_book_mut(id);
        let done = match act {
            "send" => book.send(at, account, no),
            "void" => book.void(at, no),
            "view" => {
                book.view(at, no);
                Ok(())
            }
            "choose" => return self.choose(at, (id, no, code), call, fields),
            _ => return,
        };
        self.check_status(Invariant::Edges, at, (act, code), done.err().unwrap_or(200), call.status);
        self.check_mail_retry(at, (id, Some(no)), call);
    }

    /// Checks when a refused e-mail may be sent.
    fn check_mail_retry(
        &mut self,
        at: Timestamp,
        (id, invoice): (BookId, Option<usize>),
        call: &RecordedCall,
    ) {
        if call.status != 429 {
            return;
        }
        let expected = self.model.book(id).mail_retry_secs(at, invoice);
        self.findings.check(Invariant::Limit, Some(at), || {
            (call.retry_after() != Some(expected)).then(|| {
                let shape = "Retry-After is not the time until an e-mail may be sent";
                let about = format!("{} {} at {at}", call.method, call.path);
                (shape.to_owned(), format!("{about}: expected {expected}, got {:?}", call.retry_after()))
            })
        });
    }

    fn choose(
        &mut self,
        at: Timestamp,
        (id, no, code): (BookId, usize, &str),
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let Some(asset) = fields.asset.as_deref().and_then(Asset::parse) else { return };
        let same = match self.model.book(id).choose(no, asset) {
            Ok(same) => same,
            Err(refusal) => {
                return self.check_status(Invariant::Edges, at, ("choose", code), refusal, call.status);
            }
        };
        let Some(chosen) = read::<ChosenCharge>(&call.answer).filter(|_| call.status == 200) else {
            // Without a wallet or a rate the world may refuse, which changes nothing.
            let may = matches!(call.status, 422 | 503) && same.is_none();
            let expected = if may { call.status } else { 200 };
            return self.check_status(Invariant::Edges, at, ("choose", code), expected, call.status);
        };
        match same {
            None => {
                let invoice = &self.model.book(id).invoices[no];
                let (cents, currency) = (invoice.cents, invoice.currency);
                let price = ChargePrice { cents, currency, link: None, invoice: Some(no) };
                self.create_charge(at, &chosen.charge, id, call, price);
            }
            Some(open) => {
                let is_it = self.ids[&id].charges[open] == chosen.charge;
                self.findings.check(Invariant::Edges, Some(at), || {
                    let shape = "choosing the coin of the pending charge gives another charge";
                    (!is_it).then(|| (shape.to_owned(), code.to_owned()))
                });
            }
        }
    }

    pub(super) fn make_link(&mut self, at: Timestamp, call: &RecordedCall) {
        let Some(id) = self.calling_book(call) else { return };
        let body = read(&call.body).unwrap_or_default();
        let expected = if LinkModel::may_be(None, at, &body) { 201 } else { 422 };
        self.check_status(Invariant::Edges, at, ("make a link", ""), expected, call.status);
        let Some(CreatedAnswer { data }) = read(&call.answer).filter(|_| call.status == 201) else { return };
        let (account, book) = self.model.account_and_book_mut(id);
        book.links.push(LinkModel::new(at, account.default_currency, &body));
        let no = book.links.len() - 1;
        self.ids.get_mut(&id).expect("every book has ids").links.push(data.id.clone());
        self.objects.insert(data.id, (id, Object::Link(no)));
    }

    /// Archives, restores or changes a link.
    pub(super) fn change_link(&mut self, at: Timestamp, code: &str, rest: &[&str], call: &RecordedCall) {
        let Some((id, Object::Link(no))) = self.objects.get(code).copied() else { return };
        let body = read(&call.body).unwrap_or_default();
        let link = &mut self.model.account_and_book_mut(id).1.links[no];
        let expected = match (call.method.as_str(), rest) {
            ("POST" | "DELETE", ["archive"]) => {
                link.archive(at, call.method == "POST");
                200
            }
            ("PATCH", []) if LinkModel::may_be(Some(link), at, &body) => {
                link.change(at, &body);
                200
            }
            ("PATCH", []) => 422,
            _ => return,
        };
        self.check_status(Invariant::Edges, at, ("change a link", code), expected, call.status);
    }
}
