//! Objects of the core for pages: a copy of each object, with the codes of related objects.

use std::ops::Deref;

use reference_core::{
    account::{Account, AccountKind, Settings},
    asset::Asset,
    book::Book,
    charge::{self, ChargeStatus, Customer, Metadata, MetadataValue},
    event::{self, Subject},
    id::{ChargeNo, Code, EventNo, InvoiceNo, LinkNo},
    invoice::{self, InvoiceStatus},
    link::{LinkTerms, Pricing, Question},
    mode::Mode,
    money::{Coin, Fiat},
    time::Timestamp,
};
use simulator::api::CustomFieldValue;

use super::formats;

/// A charge.
pub(crate) struct Charge {
    charge: charge::Charge,
    pub(crate) payment_link: Option<Code>,
    pub(crate) invoice: Option<Code>,
}

impl Deref for Charge {
    type Target = charge::Charge;

    fn deref(&self) -> &charge::Charge {
        &self.charge
    }
}

impl Charge {
    pub(crate) fn from_book(book: &Book, no: ChargeNo) -> Charge {
        let charge = book.charge(no).clone();
        Charge {
            payment_link: charge.terms.link.map(|no| book.link(no).code),
            invoice: charge.terms.invoice.map(|no| book.invoice(no).code),
            charge,
        }
    }

    /// Returns `true` if the charge can still be paid.
    pub(crate) fn is_open(&self) -> bool {
        self.status().is_open()
    }

    pub(crate) fn is_paid(&self) -> bool {
        self.status() == ChargeStatus::Paid
    }

    /// Returns the price with its currency.
    pub(crate) fn price(&self) -> String {
        formats::price(self.terms.fiat_amount, self.terms.fiat_currency)
    }

    /// Returns `true` if money was credited.
    pub(crate) fn has_received_money(&self) -> bool {
        self.received_amount() != Coin::ZERO
    }

    pub(crate) fn was_refunded(&self) -> bool {
        self.refunded_amount() != Coin::ZERO
    }

    /// Returns the known fields of the customer with their labels, followed by the customer's metadata.
    pub(crate) fn customer_fields(&self) -> Vec<(&str, &str)> {
        let Customer { email, name, ip_address, user_agent, reference, phone, country, metadata } =
            self.terms.customer();
        let fields = [
            ("Name", name),
            ("E-mail", email),
            ("Reference", reference),
            ("Phone", phone),
            ("Country", country),
            ("IP address", ip_address),
            ("Browser", user_agent),
        ];
        let known = fields.into_iter().filter_map(|(label, value)| Some((label, value.as_deref()?)));
        known.chain(pairs(metadata)).collect()
    }

    /// Returns the merchant's key/value pairs.
    pub(crate) fn metadata(&self) -> Vec<(&str, &str)> {
        pairs(&self.terms.metadata).collect()
    }
}

/// Returns the pairs in their order, with values as strings.
fn pairs(metadata: &Metadata) -> impl Iterator<Item = (&str, &str)> {
    metadata.iter().map(|(key, value)| {
        let text = match value {
            MetadataValue::Text(text) | MetadataValue::Number(text) => text,
            MetadataValue::Bool(true) => "true",
            MetadataValue::Bool(false) => "false",
            MetadataValue::Null => "null",
        };
        (key.as_str(), text)
    })
}

/// An invoice.
pub(crate) struct Invoice {
    invoice: invoice::Invoice,
    pub(crate) charges: Vec<InvoiceCharge>,
}

/// A charge of an invoice.
pub(crate) struct InvoiceCharge {
    pub(crate) code: Code,
    pub(crate) status: ChargeStatus,
    pub(crate) asset: Asset,
}

impl Deref for Invoice {
    type Target = invoice::Invoice;

    fn deref(&self) -> &invoice::Invoice {
        &self.invoice
    }
}

impl Invoice {
    pub(crate) fn from_book(book: &Book, no: InvoiceNo) -> Invoice {
        let invoice = book.invoice(no).clone();
        let charges = invoice.charges.iter().map(|no| {
            let charge = book.charge(*no);
            InvoiceCharge { code: charge.code, status: charge.status(), asset: charge.terms.asset }
        });
        Invoice { charges: charges.collect(), invoice }
    }

    /// Returns the amount with its currency.
    pub(crate) fn price(&self) -> String {
        formats::price(self.terms.amount, self.terms.currency)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.status() == InvoiceStatus::Open
    }

    pub(crate) fn is_paid(&self) -> bool {
        self.status() == InvoiceStatus::Paid
    }

    pub(crate) fn is_void(&self) -> bool {
        self.status() == InvoiceStatus::Void
    }
}

/// A payment link.
pub(crate) struct Link {
    pub(crate) code: Code,
    pub(crate) terms: LinkTerms,
    pub(crate) is_archived: bool,
    pub(crate) accepts_payments: bool,
    pub(crate) views: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl Link {
    pub(crate) fn from_book(book: &Book, no: LinkNo, now: Timestamp) -> Link {
        let link = book.link(no);
        Link {
            code: link.code,
            terms: link.terms.clone(),
            is_archived: link.archived,
            accepts_payments: link.accepts_payments(now),
            views: link.views,
            created_at: link.created_at,
            updated_at: link.updated_at,
        }
    }

    pub(crate) fn status(&self) -> &'static str {
        if self.is_archived { "archived" } else { "active" }
    }

    /// Returns `true` if the link accepts no payments although it is not archived.
    pub(crate) fn is_closed(&self) -> bool {
        !self.is_archived && !self.accepts_payments
    }

    /// Returns the price; `None` if the customer chooses it.
    pub(crate) fn amount(&self) -> Option<Fiat> {
        match self.terms.pricing {
            Pricing::Fixed(amount) => Some(amount),
            Pricing::Open { .. } => None,
        }
    }

    /// Returns the minimum and maximum of a price that the customer chooses.
    pub(crate) fn price_limits(&self) -> (Option<Fiat>, Option<Fiat>) {
        match self.terms.pricing {
            Pricing::Fixed(_) => (None, None),
            Pricing::Open { min, max, .. } => (min, max),
        }
    }

    /// Returns the suggested amounts for a price that the customer chooses.
    pub(crate) fn suggested(&self) -> &[Fiat] {
        match &self.terms.pricing {
            Pricing::Fixed(_) => &[],
            Pricing::Open { suggested, .. } => suggested,
        }
    }

    /// Returns the price with its currency; `None` if the customer chooses it.
    pub(crate) fn price(&self) -> Option<String> {
        self.amount().map(|amount| formats::price(amount, self.terms.currency))
    }

    /// Returns the range of the customer's price: `Between 5.00 and 100.00`.
    pub(crate) fn price_range(&self) -> Option<String> {
        match self.price_limits() {
            (Some(min), Some(max)) => {
                Some(format!("Between {} and {}", formats::fiat(min), formats::fiat(max)))
            }
            (Some(min), None) => Some(format!("At least {}", formats::fiat(min))),
            (None, Some(max)) => Some(format!("At most {}", formats::fiat(max))),
            (None, None) => None,
        }
    }

    /// Returns an amount for a simulated customer, if the customer chooses the price: the first suggested one, the
    /// minimum, or 10.00, but not more than the maximum.
    pub(crate) fn sample_amount(&self) -> Option<String> {
        if self.amount().is_some() {
            return None;
        }
        let (min, max) = self.price_limits();
        let amount = self.suggested().first().copied().or(min).or_else(|| Fiat::from_minor(1_000))?;
        Some(max.map_or(amount, |max| amount.min(max)).to_string())
    }

    /// Returns the e-mail address of a simulated customer, if the link requires one.
    pub(crate) fn sample_email(&self) -> Option<&'static str> {
        self.terms.require_email.then_some("customer@shop.example")
    }

    /// Returns a simulated customer's answers to the required questions.
    pub(crate) fn sample_answers(&self) -> Vec<CustomFieldValue> {
        let required = self.terms.custom_fields.iter().filter(|question| question.required);
        let answer = |Question { label, .. }: &Question| CustomFieldValue {
            label: label.clone(),
            value: "simulated".to_owned(),
        };
        required.map(answer).collect()
    }
}

/// An event.
pub(crate) struct Event {
    event: event::Event,
    pub(crate) charge: Option<Code>,
    /// The code and number of the invoice.
    pub(crate) invoice: Option<(Code, String)>,
}

impl Deref for Event {
    type Target = event::Event;

    fn deref(&self) -> &event::Event {
        &self.event
    }
}

impl Event {
    pub(crate) fn from_book(book: &Book, no: EventNo) -> Event {
        let event = book.events().get(no).clone();
        let (charge, invoice) = match event.subject {
            Subject::Charge(no) => (Some(book.charge(no).code), None),
            Subject::Invoice(no) => {
                let invoice = book.invoice(no);
                (None, Some((invoice.code, invoice.number.clone())))
            }
        };
        Event { event, charge, invoice }
    }
}

/// An account, and the coins that it accepts in a mode.
pub(crate) struct AccountView {
    pub(crate) id: String,
    pub(crate) kind: AccountKind,
    pub(crate) settings: Settings,
    pub(crate) accepted_assets: Vec<Asset>,
}

impl AccountView {
    pub(crate) fn new(account: &Account, mode: Mode) -> AccountView {
        AccountView {
            id: account.id.to_string(),
            kind: account.kind,
            settings: account.settings.clone(),
            accepted_assets: account.book(mode).wallets().accepted_assets().collect(),
        }
    }
}
