//! The content of hosted pages, and the texts that they show for objects of the world.

use reference_core::{error::ApiError, id::Code};
use simulator::{
    api::{
        self, CoinOffer, CoinRecord, PageAccount, TransferDisappearance, TransferRecord, TransferStanding,
    },
    sandbox::Sandbox,
};

use super::coin;
use crate::pages::{
    formats::TimeFormats as _,
    objects::{Charge, Invoice, Link},
};

/// The maximum number of decimal places of an approximate amount.
const PLACES_SHOWN_MAX: usize = 8;

/// A charge with its transfers.
pub(super) type Payment = api::PaymentDetails<Charge>;
pub(super) type ChargePage = api::ChargePage<Charge>;
pub(super) type InvoicePage = api::InvoicePage<Invoice, Charge>;
pub(super) type LinkPage = api::LinkPage<Link>;

/// The content of the page of an object.
pub(super) trait HostedPage: Sized {
    fn read(sandbox: &Sandbox, code: Code) -> Result<Self, ApiError>;
}

impl HostedPage for ChargePage {
    fn read(sandbox: &Sandbox, code: Code) -> Result<ChargePage, ApiError> {
        sandbox
            .charge_page(code, |account_and_mode, no| Charge::from_book(sandbox.book(account_and_mode), no))
    }
}

impl HostedPage for InvoicePage {
    fn read(sandbox: &Sandbox, code: Code) -> Result<InvoicePage, ApiError> {
        let invoice = |account_and_mode, no| Invoice::from_book(sandbox.book(account_and_mode), no);
        let charge = |account_and_mode, no| Charge::from_book(sandbox.book(account_and_mode), no);
        sandbox.invoice_page(code, invoice, charge)
    }
}

impl HostedPage for LinkPage {
    fn read(sandbox: &Sandbox, code: Code) -> Result<LinkPage, ApiError> {
        sandbox.link_page(code, |account_and_mode, no| {
            Link::from_book(sandbox.book(account_and_mode), no, sandbox.now())
        })
    }
}

pub(super) trait AccountDisplay {
    /// Returns the first letter of the name, which replaces a missing logo.
    fn initial(&self) -> String;

    /// Returns the file name of the style sheet with the account's colour.
    fn brand_css(&self) -> String;
}

impl AccountDisplay for PageAccount {
    fn initial(&self) -> String {
        self.display_name
            .chars()
            .find(|c| c.is_alphanumeric())
            .map_or_else(String::new, |c| c.to_uppercase().collect())
    }

    fn brand_css(&self) -> String {
        format!("brand-{}.css", self.brand_color.trim_start_matches('#').to_ascii_lowercase())
    }
}

pub(super) trait CoinDisplay {
    /// Returns the common name: `Tether USD`.
    fn name(&self) -> &str;

    /// Returns the unit of amounts: `USDT`.
    fn unit(&self) -> &str;

    /// Returns the symbol that is shown beside the name.
    fn symbol(&self) -> &str;

    /// Returns the common name of the network.
    fn network_name(&self) -> &str;

    /// Returns `true` if the coin exists on several networks.
    fn is_token(&self) -> bool;
}

impl CoinDisplay for CoinRecord {
    fn name(&self) -> &str {
        coin::name(self.asset.code())
    }

    fn unit(&self) -> &str {
        coin::unit(self.asset.code())
    }

    fn symbol(&self) -> &str {
        coin::symbol(self.asset.code())
    }

    fn network_name(&self) -> &str {
        coin::network_name(&self.network)
    }

    fn is_token(&self) -> bool {
        coin::is_token(self.asset.code())
    }
}

pub(super) trait OfferDisplay {
    /// Returns the price in the coin, approximate if it has many decimal places: `≈ 0.42189214 ETH`; `None` if the
    /// customer chooses the price.
    fn approximate_amount(&self) -> Option<String>;
}

impl OfferDisplay for CoinOffer {
    fn approximate_amount(&self) -> Option<String> {
        let amount = self.amount.as_deref()?;
        let end = amount.find('.').map_or(amount.len(), |point| point + 1 + PLACES_SHOWN_MAX);
        let unit = self.coin.unit();
        Some(match amount.get(..end) {
            Some(short) if short != amount => format!("≈\u{a0}{short}\u{a0}{unit}"),
            _ => format!("{amount}\u{a0}{unit}"),
        })
    }
}

pub(super) trait TransferDisplay {
    /// Returns the shortened id of the transaction.
    fn short_txid(&self) -> String;

    fn seen_at_text(&self) -> String;

    fn state_text(&self) -> String;

    /// Returns the CSS class for the colour of the state.
    fn tone(&self) -> &'static str;

    /// Returns `true` if the transfer is gathering confirmations.
    fn is_confirming(&self) -> bool;

    /// Returns `true` if the transfer is in the mempool, where it can be replaced.
    fn is_unconfirmed(&self) -> bool;
}

impl TransferDisplay for TransferRecord {
    fn short_txid(&self) -> String {
        let letters: Vec<char> = self.txid.chars().collect();
        match letters.as_slice() {
            [first @ .., _, _, _, _, _, _] if first.len() > 12 => {
                let (head, tail) = (&letters[..10], &letters[letters.len() - 6..]);
                format!("{}…{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
            }
            _ => self.txid.clone(),
        }
    }

    fn seen_at_text(&self) -> String {
        self.seen_at.customer_time()
    }

    fn state_text(&self) -> String {
        let n = self.confirmations.min(self.required_confirmations);
        match (self.gone, self.standing) {
            (Some(TransferDisappearance::DoubleSpent), _) => "removed: double-spent".to_owned(),
            (Some(TransferDisappearance::Replaced), _) => "removed: replaced by its sender".to_owned(),
            (Some(TransferDisappearance::Dropped), _) => "removed: dropped by the network".to_owned(),
            (None, TransferStanding::Late) if self.sent_back => "late, and refunded".to_owned(),
            (None, TransferStanding::Late) => "late".to_owned(),
            (None, TransferStanding::Accepted) => "late, and accepted".to_owned(),
            (None, _) if self.confirmed => "confirmed".to_owned(),
            (None, _) if self.confirmations == 0 && self.confirmed_at.is_some() => {
                "no longer confirmed: a reorganisation removed its block".to_owned()
            }
            (None, _) if self.confirmations == 0 => "seen, not in a block yet".to_owned(),
            (None, _) => format!("{n} of {} confirmations", self.required_confirmations),
        }
    }

    fn tone(&self) -> &'static str {
        match (self.gone, self.standing) {
            (Some(_), _) => "bad",
            (None, TransferStanding::Late) if self.sent_back => "",
            (None, TransferStanding::Late) => "warn",
            (None, _) if self.confirmed => "good",
            (None, _) if self.confirmed_at.is_some() => "warn",
            (None, _) => "info",
        }
    }

    fn is_confirming(&self) -> bool {
        self.gone.is_none() && !self.confirmed
    }

    fn is_unconfirmed(&self) -> bool {
        self.gone.is_none() && self.confirmations == 0
    }
}
