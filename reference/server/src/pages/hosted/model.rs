//! What the world says about a page, as `/sandbox/pages/…` answers it. Nothing here is worked out.

use serde::Deserialize;

use super::coin;
use crate::pages::words;

/// Decimal places of an amount that only helps to choose.
const PLACES_SHOWN_MAX: usize = 8;

/// Whose page it is.
#[derive(Debug, Deserialize)]
pub(super) struct Account {
    pub(super) id: String,
    pub(super) display_name: String,
    pub(super) brand_color: String,
    pub(super) website_url: Option<String>,
    pub(super) support_email: Option<String>,
}

impl Account {
    /// The first letter, for where a picture would be.
    pub(super) fn initial(&self) -> String {
        self.display_name
            .chars()
            .find(|c| c.is_alphanumeric())
            .map_or_else(String::new, |c| c.to_uppercase().collect())
    }

    /// The style sheet that holds the account's colour.
    pub(super) fn brand_css(&self) -> String {
        format!("brand-{}.css", self.brand_color.trim_start_matches('#').to_ascii_lowercase())
    }
}

/// What the customer should know about a charge first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    Waiting,
    Confirming,
    Underpaid,
    Paid,
    /// Money came after the end, and the merchant has yet to take it.
    Late,
    /// Late money was taken, and was not enough.
    Short,
    Expired,
    Canceled,
}

/// A coin on its network.
#[derive(Debug, Deserialize)]
pub(super) struct Coin {
    pub(super) asset: String,
    pub(super) network: String,
    pub(super) decimals: usize,
    pub(super) required_confirmations: u32,
    /// What a price comes to in it, where there is a price.
    #[serde(default)]
    pub(super) amount: Option<String>,
}

impl Coin {
    /// What people call it: `Tether`.
    pub(super) fn name(&self) -> &str {
        coin::name(&self.asset)
    }

    /// What stands behind an amount: `USDT`.
    pub(super) fn unit(&self) -> &str {
        coin::unit(&self.asset)
    }

    /// What people call its network.
    pub(super) fn network_name(&self) -> &str {
        coin::network_name(&self.network)
    }

    /// The price in it, in as many places as people care for: `≈ 0.42189214 ETH`.
    pub(super) fn about(&self) -> Option<String> {
        let amount = self.amount.as_deref()?;
        let end = amount.find('.').map_or(amount.len(), |point| point + 1 + PLACES_SHOWN_MAX);
        let unit = self.unit();
        Some(match amount.get(..end) {
            Some(short) if short != amount => format!("≈\u{a0}{short}\u{a0}{unit}"),
            _ => format!("{amount}\u{a0}{unit}"),
        })
    }

    /// The coin has to be told from others by its network.
    pub(super) fn is_token(&self) -> bool {
        coin::is_token(&self.asset)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Charge {
    pub(super) code: String,
    pub(super) description: Option<String>,
    pub(super) fiat_amount: String,
    pub(super) fiat_currency: String,
    pub(super) asset: String,
    pub(super) asset_amount: String,
    pub(super) received_amount: String,
    pub(super) remaining_amount: String,
    pub(super) overpaid: bool,
    pub(super) refunded_amount: String,
    pub(super) exchange_rate: String,
    pub(super) deposit_address: String,
    pub(super) customer_email: Option<String>,
    pub(super) customer_name: Option<String>,
    pub(super) custom_fields: Vec<CustomField>,
    pub(super) expires_at: String,
    pub(super) paid_at: Option<String>,
    pub(super) created_at: String,
}

impl Charge {
    pub(super) fn price(&self) -> String {
        format!("{}\u{a0}{}", words::fiat(&self.fiat_amount), self.fiat_currency)
    }

    pub(super) fn expires(&self) -> String {
        words::moment(&self.expires_at)
    }

    pub(super) fn created(&self) -> String {
        words::moment(&self.created_at)
    }

    pub(super) fn paid(&self) -> Option<String> {
        self.paid_at.as_deref().map(words::moment)
    }

    /// Something was credited.
    pub(super) fn was_begun(&self) -> bool {
        self.received_amount != "0"
    }

    pub(super) fn was_refunded(&self) -> bool {
        self.refunded_amount != "0"
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct CustomField {
    pub(super) label: String,
    pub(super) value: String,
}

/// Money on its way, or arrived, or gone.
#[derive(Debug, Deserialize)]
pub(super) struct Transfer {
    pub(super) txid: String,
    pub(super) amount: String,
    pub(super) confirmations: u32,
    pub(super) required_confirmations: u32,
    pub(super) confirmed: bool,
    pub(super) credited: bool,
    pub(super) standing: Standing,
    pub(super) gone: Option<Gone>,
    pub(super) seen_at: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    OnTime,
    Late,
    Accepted,
    Extra,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Gone {
    DoubleSpent,
    Replaced,
    Dropped,
}

impl Transfer {
    /// The transaction's name, short enough for a line.
    pub(super) fn short_txid(&self) -> String {
        let letters: Vec<char> = self.txid.chars().collect();
        match letters.as_slice() {
            [first @ .., _, _, _, _, _, _] if first.len() > 12 => {
                let (head, tail) = (&letters[..10], &letters[letters.len() - 6..]);
                format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
            }
            _ => self.txid.clone(),
        }
    }

    pub(super) fn seen(&self) -> String {
        words::moment(&self.seen_at)
    }

    /// Where it stands, in words.
    pub(super) fn says(&self) -> String {
        let n = self.confirmations.min(self.required_confirmations);
        match (self.gone, self.standing) {
            (Some(Gone::DoubleSpent), _) => "gone: the same money was spent elsewhere".to_owned(),
            (Some(Gone::Replaced), _) => "gone: its sender replaced it".to_owned(),
            (Some(Gone::Dropped), _) => "gone: the network dropped it".to_owned(),
            (None, Standing::Late) => "came too late".to_owned(),
            (None, Standing::Accepted) => "came late, and was accepted".to_owned(),
            (None, _) if self.confirmed => "confirmed".to_owned(),
            (None, _) if self.confirmations == 0 => "seen, not in a block yet".to_owned(),
            (None, _) => format!("{n} of {} confirmations", self.required_confirmations),
        }
    }

    /// The look of the word.
    pub(super) fn tone(&self) -> &'static str {
        match (self.gone, self.standing) {
            (Some(_), _) => "bad",
            (None, Standing::Late) => "warn",
            (None, _) if self.confirmed => "good",
            (None, _) => "info",
        }
    }

    /// Worth a bar that fills.
    pub(super) fn is_confirming(&self) -> bool {
        self.gone.is_none() && !self.confirmed
    }

    /// In the mempool, where it can still be replaced.
    pub(super) fn is_unconfirmed(&self) -> bool {
        self.gone.is_none() && self.confirmations == 0
    }
}

/// The invoice that a charge is for.
#[derive(Debug, Deserialize)]
pub(super) struct OfInvoice {
    pub(super) code: String,
    pub(super) number: String,
    pub(super) status: String,
}

/// The payment link that a charge came from.
#[derive(Debug, Deserialize)]
pub(super) struct OfLink {
    pub(super) code: String,
    pub(super) title: String,
    pub(super) success_url: Option<String>,
    pub(super) cancel_url: Option<String>,
    pub(super) success_message: Option<String>,
    pub(super) accepting_payments: bool,
}

/// A charge and all that belongs to it.
#[derive(Debug, Deserialize)]
pub(super) struct Payment {
    pub(super) charge: Charge,
    pub(super) stage: Stage,
    /// What arrived and what is on its way are enough.
    pub(super) covered: bool,
    /// What is neither here nor on its way.
    pub(super) missing: String,
    pub(super) coin: Coin,
    pub(super) transfers: Vec<Transfer>,
    pub(super) invoice: Option<OfInvoice>,
    pub(super) link: Option<OfLink>,
}

/// `/sandbox/pages/c/{code}`.
#[derive(Debug, Deserialize)]
pub(super) struct ChargePage {
    pub(super) account: Account,
    pub(super) mode: String,
    #[serde(flatten)]
    pub(super) payment: Payment,
}

#[derive(Debug, Deserialize)]
pub(super) struct Item {
    pub(super) description: String,
    pub(super) quantity: String,
    unit_amount: String,
    total: String,
}

impl Item {
    pub(super) fn unit_price(&self) -> String {
        words::fiat(&self.unit_amount)
    }

    pub(super) fn sum(&self) -> String {
        words::fiat(&self.total)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Invoice {
    pub(super) code: String,
    pub(super) number: String,
    pub(super) status: String,
    pub(super) overdue: bool,
    pub(super) customer_name: Option<String>,
    pub(super) customer_email: Option<String>,
    pub(super) memo: Option<String>,
    amount: String,
    pub(super) currency: String,
    pub(super) items: Vec<Item>,
    due_at: Option<String>,
    paid_at: Option<String>,
    voided_at: Option<String>,
    created_at: String,
}

impl Invoice {
    pub(super) fn price(&self) -> String {
        format!("{}\u{a0}{}", words::fiat(&self.amount), self.currency)
    }

    pub(super) fn due(&self) -> Option<String> {
        self.due_at.as_deref().map(words::moment)
    }

    pub(super) fn paid(&self) -> Option<String> {
        self.paid_at.as_deref().map(words::moment)
    }

    pub(super) fn voided(&self) -> Option<String> {
        self.voided_at.as_deref().map(words::moment)
    }

    pub(super) fn issued(&self) -> String {
        words::moment(&self.created_at)
    }

    pub(super) fn is_open(&self) -> bool {
        self.status == "open"
    }
}

/// `/sandbox/pages/i/{code}`.
#[derive(Debug, Deserialize)]
pub(super) struct InvoicePage {
    pub(super) account: Account,
    pub(super) mode: String,
    pub(super) invoice: Invoice,
    pub(super) payment: Option<Payment>,
    pub(super) may_choose: bool,
    pub(super) coins: Vec<Coin>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) label: String,
    pub(super) required: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Link {
    pub(super) code: String,
    pub(super) title: String,
    pub(super) description: Option<String>,
    amount: Option<String>,
    pub(super) suggested_amounts: Vec<String>,
    pub(super) min_amount: Option<String>,
    pub(super) max_amount: Option<String>,
    pub(super) currency: String,
    pub(super) cancel_url: Option<String>,
    pub(super) collect_name: bool,
    pub(super) require_email: bool,
    pub(super) custom_fields: Vec<Question>,
}

impl Link {
    /// Nothing if the customer says how much.
    pub(super) fn price(&self) -> Option<String> {
        self.amount.as_deref().map(|amount| format!("{}\u{a0}{}", words::fiat(amount), self.currency))
    }

    /// What the customer may say: `between 5.00 and 100.00`.
    pub(super) fn bounds(&self) -> Option<String> {
        let said = |amount: &String| words::fiat(amount);
        match (&self.min_amount, &self.max_amount) {
            (Some(min), Some(max)) => Some(format!("Between {} and {}", said(min), said(max))),
            (Some(min), None) => Some(format!("At least {}", said(min))),
            (None, Some(max)) => Some(format!("At most {}", said(max))),
            (None, None) => None,
        }
    }
}

/// Why a link takes no payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Closed {
    Archived,
    Expired,
    Exhausted,
}

/// `/sandbox/pages/pay/{code}`.
#[derive(Debug, Deserialize)]
pub(super) struct LinkPage {
    pub(super) account: Account,
    pub(super) mode: String,
    pub(super) link: Link,
    pub(super) closed: Option<Closed>,
    pub(super) coins: Vec<Coin>,
}
