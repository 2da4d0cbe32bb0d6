//! Charges, payment links and invoices with every field, and the actions on them.

use reference_core::{
    asset::Asset,
    mode::Mode,
    rng::RngStream,
    time::{Span, Timestamp},
};
use serde_json::{Value, json};

use super::{
    super::{DAY, HOUR, LOCK, MINUTE, Plan, charge::OpenedCharge, values},
    drop_fields, find_operation, request_in,
};
use crate::{model::money, script::step::Step};

impl Plan {
    /// Plans a charge that a request opens, with every field.
    pub(super) fn plan_request_charge(&mut self, n: u64) {
        let mut draw = self.stream(&format!("made-charge/{n}"));
        let (mode, at, name) = (self.draw_mode(&mut draw), self.draw_time(&mut draw), format!("q{n}"));
        let mut body = self.draw_body("POST", "/v1/charges", at, &mut draw);
        if draw.chance(9, 10) {
            drop_fields(&mut body, &["payment_link", "custom_fields"]);
            if !body["amount"].is_string() {
                body["amount"] = values::fiat(draw.between(1, 60_000), &mut draw);
            }
        }
        let mut request = request_in("POST", "/v1/charges", mode);
        request.save.insert(name.clone(), "/data/id".to_owned());
        self.plan_write_of(at, request, body.clone(), &mut draw);
        self.plan_charge_actions(&name, mode, at, &body, &mut draw);
    }

    /// Plans payments, refunds and a cancellation of a charge.
    fn plan_charge_actions(&mut self, name: &str, mode: Mode, at: u64, body: &Value, draw: &mut RngStream) {
        let asset = body["asset"].as_str().and_then(Asset::parse).unwrap_or(self.coins[0]);
        let cents = crate::model::cents(&body["amount"]);
        let is_euro = matches!(body["currency"].as_str(), None | Some("EUR"));
        let rate = self.market.rate(asset, at).filter(|_| is_euro);
        let due = cents
            .filter(|cents| *cents > 0)
            .zip(rate)
            .map(|(cents, rate)| money::amount_due(cents, rate, asset));
        let opened = OpenedCharge { name: name.to_owned(), mode, asset, at, due, bounds: self.bounds };
        if draw.chance(2, 3) {
            self.plan_payments(&opened, draw);
        }
        for _ in 0..draw.below(3) {
            let later = at + draw.below(2 * LOCK);
            let mut refund = self.draw_body("POST", "/v1/charges/{id}/refunds", later, draw);
            match (draw.below(4), due) {
                (0, _) => {}
                (1, _) => refund["amount"] = json!(money::format_units(1, asset)),
                // All or half of the amount due.
                (n, Some(due)) => {
                    let units = (due / u128::from(n - 1)).max(1);
                    refund["amount"] = json!(money::format_units(units, asset));
                }
                _ => {}
            }
            if draw.chance(1, 3) {
                refund["txid"] = json!("ab".repeat(32));
            }
            let path = format!("/v1/charges/${{{name}}}/refunds");
            self.plan_write_of(later, request_in("POST", &path, mode), refund, draw);
        }
        if draw.chance(1, 3) {
            let path = format!("/v1/charges/${{{name}}}/cancel");
            self.plan_write_of(at + draw.below(LOCK), request_in("POST", &path, mode), json!({}), draw);
        }
    }

    /// Plans a payment link with every field, its changes, and its charges, some around its expiry.
    pub(super) fn plan_request_link(&mut self, n: u64) {
        let mut draw = self.stream(&format!("made-link/{n}"));
        let (mode, at, name) = (self.draw_mode(&mut draw), self.draw_time(&mut draw), format!("m{n}"));
        let mut body = self.draw_body("POST", "/v1/payment-links", at, &mut draw);
        self.make_link_consistent(&mut body, &mut draw);
        let end = body["expires_at"].as_str().and_then(Timestamp::parse);
        let mut request = request_in("POST", "/v1/payment-links", mode);
        request.save.insert(name.clone(), "/data/id".to_owned());
        self.plan_write_of(at, request, body.clone(), &mut draw);
        let mut later = at;
        for customer in 1..=draw.below(4) {
            later += draw.between(1, HOUR);
            let end_offset = end.map(|end| end.since(self.start).0);
            let opened_at = match end_offset.filter(|end| *end < DAY && draw.chance(1, 2)) {
                Some(end) => end - 1 + draw.below(3),
                None => later,
            };
            self.plan_link_charge(
                &name,
                (mode, opened_at),
                &body,
                &format!("q{}-{customer}", n + 10),
                &mut draw,
            );
        }
        for _ in 0..draw.below(4) {
            let changed_at = at + draw.between(1, 4 * HOUR);
            let path = format!("/v1/payment-links/${{{name}}}");
            if draw.chance(1, 3) {
                let method = if draw.chance(1, 2) { "POST" } else { "DELETE" };
                let archive = request_in(method, &format!("{path}/archive"), mode);
                self.plan_write(changed_at, archive, &mut draw);
                continue;
            }
            let mut change = self.draw_body("PATCH", "/v1/payment-links/{id}", changed_at, &mut draw);
            if draw.chance(2, 3) {
                // Clients usually change a few fields, or set them to null.
                let names: Vec<String> =
                    change.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
                let index = draw.below(names.len().max(1) as u64) as usize;
                change = names.get(index).map_or(json!({}), |name| json!({ name: change[name] }));
                for nullable in ["max_payments", "expires_at", "accepted_assets", "custom_fields"] {
                    if draw.chance(1, 4) {
                        change[nullable] = Value::Null;
                    }
                }
            } else {
                self.make_link_consistent(&mut change, &mut draw);
            }
            self.plan_write_of(changed_at, request_in("PATCH", &path, mode), change, &mut draw);
        }
    }

    /// Makes the title and the price fields of a link valid in seven of eight cases.
    fn make_link_consistent(&self, body: &mut Value, draw: &mut RngStream) {
        if draw.chance(1, 8) {
            return;
        }
        if !body["title"].is_string() {
            body["title"] = json!("Tea");
        }
        if body["pricing_type"] == "open" {
            drop_fields(body, &["amount"]);
            let (min, max) = (draw.between(1, 20_000), draw.between(20_000, 60_000));
            for (name, cents) in [("min_amount", min), ("max_amount", max)] {
                if !body[name].is_null() {
                    body[name] = values::fiat(cents, draw);
                }
            }
            if !body["suggested_amounts"].is_null() {
                let edge = [min, max][draw.below(2) as usize] - 1 + draw.below(3);
                body["suggested_amounts"] = json!([values::fiat(edge, draw), "200.00"]);
            }
        } else {
            drop_fields(body, &["min_amount", "max_amount", "suggested_amounts"]);
            if body["amount"].is_null() {
                body["amount"] = values::fiat(draw.between(1, 60_000), draw);
            }
        }
    }

    /// Plans a charge by a link, through the API or on its page.
    fn plan_link_charge(
        &mut self,
        link: &str,
        (mode, at): (Mode, u64),
        terms: &Value,
        name: &str,
        draw: &mut RngStream,
    ) {
        let mut body = self.draw_body("POST", "/v1/charges", at, draw);
        body["asset"] = json!(self.draw_coin(draw).code());
        drop_fields(&mut body, &["custom_fields"]);
        let amounts = ["min_amount", "max_amount", "amount"].map(|field| terms[field].clone());
        match (terms["pricing_type"] == "open", draw.below(6)) {
            (true, n @ 0..=1) if !amounts[n as usize].is_null() => {
                body["amount"] = amounts[n as usize].clone()
            }
            (true, _) => body["amount"] = values::fiat(draw.between(1, 60_000), draw),
            (false, 0) => body["amount"] = amounts[2].clone(),
            (false, _) => drop_fields(&mut body, &["amount"]),
        }
        if draw.chance(2, 3) {
            drop_fields(&mut body, &["currency"]);
        }
        if let Some(fields) = terms["custom_fields"].as_array() {
            let field_value = |field: &Value| {
                let value = if draw.chance(1, 4) { "" } else { "M" };
                draw.chance(5, 6).then(|| json!({ "label": field["label"], "value": value }))
            };
            body["custom_fields"] = fields.iter().filter_map(field_value).collect();
        }
        // The page validates its form, so it never sends invalid values.
        let is_valid = find_operation("POST", "/v1/charges").invalid_fields(&body).is_empty();
        if draw.chance(1, 2) || !is_valid {
            body["payment_link"] = json!(format!("${{{link}}}"));
            let mut request = request_in("POST", "/v1/charges", mode);
            request.save.insert(name.to_owned(), "/data/id".to_owned());
            self.plan_write_of(at, request, body.clone(), draw);
        } else {
            let email = body["customer_email"].clone();
            let mut choice =
                json!({ "asset": body["asset"], "amount": body["amount"], "customer_email": email });
            choice["custom_fields"] = body["custom_fields"].clone();
            if draw.chance(1, 2) {
                choice["customer_name"] = json!("Ann");
            }
            let mut request = request_in("POST", &format!("/sandbox/links/${{{link}}}/choose"), mode);
            request.save.insert(name.to_owned(), "/charge".to_owned());
            request.body = Some(choice);
            self.add(at, Step::Request(request));
        }
        if body["amount"].is_null() {
            body["amount"] = amounts[2].clone();
        }
        if draw.chance(1, 2) {
            self.plan_charge_actions(name, mode, at, &body, draw);
        }
    }

    /// Plans an invoice with every field, its e-mails and views, and voiding it.
    pub(super) fn plan_request_invoice(&mut self, n: u64) {
        let mut draw = self.stream(&format!("made-invoice/{n}"));
        let (mode, at, name) = (self.draw_mode(&mut draw), self.draw_time(&mut draw), format!("j{n}"));
        let mut body = self.draw_body("POST", "/v1/invoices", at, &mut draw);
        if draw.chance(7, 8) {
            drop_fields(&mut body, if draw.chance(1, 2) { &["amount"] } else { &["items"] });
            if body["amount"].is_null() && body["items"].is_null() {
                body["amount"] = values::fiat(draw.between(1, 60_000), &mut draw);
            }
        }
        if draw.chance(1, 6) {
            // Due today, or yesterday.
            body["due_at"] =
                json!(values::format_date(self.time_at(at).minus(Span::hours(12 * draw.below(3)))));
        }
        let mut request = request_in("POST", "/v1/invoices", mode);
        request.save.insert(name.clone(), "/data/id".to_owned());
        self.plan_write_of(at, request, body, &mut draw);
        let path = format!("/v1/invoices/${{{name}}}");
        let mut sent_at = at;
        for _ in 0..draw.below(4) {
            sent_at += match draw.below(3) {
                // An invoice is e-mailed at most every ten minutes.
                0 => 10 * MINUTE - 1 + draw.below(3),
                _ => draw.between(1, 12 * MINUTE),
            };
            self.plan_write_of(
                sent_at,
                request_in("POST", &format!("{path}/send"), mode),
                json!({}),
                &mut draw,
            );
        }
        for _ in 0..draw.below(3) {
            let mut view = request_in("POST", &format!("/sandbox/invoices/${{{name}}}/view"), mode);
            view.body = Some(json!({}));
            self.add(at + draw.below(2 * HOUR), Step::Request(view));
        }
        if draw.chance(1, 3) {
            let void = request_in("POST", &format!("{path}/void"), mode);
            self.plan_write_of(at + draw.between(1, 3 * HOUR), void, json!({}), &mut draw);
        }
    }
}
