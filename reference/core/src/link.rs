//! Payment links: a fixed or open price that any number of customers may pay.

use serde::{Deserialize, Serialize};

use crate::{
    asset::{Asset, Currency},
    charge::ChargeStatus,
    id::Code,
    money::Fiat,
    status_index::StatusIndex,
    time::Timestamp,
};

/// The price of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pricing {
    /// The same amount for every customer.
    Fixed(Fiat),
    /// An amount that the customer chooses.
    Open {
        /// Suggested amounts.
        suggested: Vec<Fiat>,
        /// The smallest amount.
        min: Option<Fiat>,
        /// The largest amount.
        max: Option<Fiat>,
    },
}

/// A question on the checkout page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The text of the question.
    pub label: String,
    /// `true` if an answer is required.
    pub required: bool,
}

/// The settings of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTerms {
    /// The title of the offer.
    pub title: String,
    /// The description of the offer.
    pub description: Option<String>,
    /// Fixed or open.
    pub pricing: Pricing,
    /// The price's currency.
    pub currency: Currency,
    /// The accepted coins; `None` for all that the account accepts.
    pub accepted_assets: Option<Vec<Asset>>,
    /// The URL that customers are sent to after payment.
    pub success_url: Option<String>,
    /// The URL that customers are sent to when they cancel.
    pub cancel_url: Option<String>,
    /// `true` if the checkout page asks for a name.
    pub collect_name: bool,
    /// `true` if the checkout page requires an e-mail address.
    pub require_email: bool,
    /// Further questions on the checkout page.
    pub custom_fields: Vec<Question>,
    /// The message after payment.
    pub success_message: Option<String>,
    /// The time after which no charge is opened.
    pub expires_at: Option<Timestamp>,
    /// The number of paid charges after which no charge is opened.
    pub max_payments: Option<u32>,
}

/// A payment link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Link {
    /// The public code, its id in the API.
    pub code: Code,
    /// The terms set by the merchant.
    pub terms: LinkTerms,
    /// `true` if the link is archived and opens no charges.
    pub archived: bool,
    /// The number of times that its page was opened.
    pub views: u64,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the merchant's latest change.
    pub updated_at: Timestamp,
    /// The charges of the link, by status.
    #[serde(skip)]
    pub charges: StatusIndex<{ ChargeStatus::ALL.len() }>,
}

impl Link {
    /// Returns `true` if a charge may be opened from it now.
    pub fn accepts_payments(&self, now: Timestamp) -> bool {
        !self.archived && self.terms.expires_at.is_none_or(|end| now < end) && !self.is_used_up()
    }

    /// Returns `true` if the number of paid charges has reached `max_payments`.
    pub(crate) fn is_used_up(&self) -> bool {
        let paid = self.charges.count(Some(ChargeStatus::Paid as usize));
        self.terms.max_payments.is_some_and(|max| paid >= max as usize)
    }
}
