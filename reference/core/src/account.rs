//! An account: settings, and one book per mode.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    asset::Currency, book::Book, business::Business, command::SettingsDraft, mode::Mode, money::Percent,
    time::Timestamp,
};

/// The type of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountKind {
    /// An account of one person.
    Personal,
    /// An account of an organization.
    Organization,
}

impl AccountKind {
    /// Returns the value of `type` in responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            AccountKind::Personal => "personal",
            AccountKind::Organization => "organization",
        }
    }
}

/// The settings of an account, the same in both modes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The account's name.
    pub name: String,
    /// The name that customers see.
    pub display_name: String,
    /// The URL of the logo.
    pub logo_url: Option<String>,
    /// The URL of the merchant's web site.
    pub website_url: Option<String>,
    /// The e-mail address of customer support.
    pub support_email: Option<String>,
    /// The telephone number of customer support.
    pub support_phone: Option<String>,
    /// The brand colour, as `#rrggbb`.
    pub brand_color: String,
    /// The business behind the account, if the owner described one.
    pub business: Option<Business>,
    /// The currency of charges and invoices that are created without one.
    pub default_currency: Currency,
    /// The percentage of the amount due that may be missing from a payment.
    pub underpayment_tolerance: Percent,
    /// The percentage by which a payment may exceed the amount due before it counts as overpaid.
    pub overpayment_threshold: Percent,
    /// E-mail addresses of the account's members: in test mode, the only recipients of invoices.
    pub members: Vec<String>,
}

impl Settings {
    /// Returns the settings of a new account.
    pub fn new(name: &str) -> Settings {
        Settings {
            name: name.to_owned(),
            display_name: name.to_owned(),
            logo_url: None,
            website_url: None,
            support_email: None,
            support_phone: None,
            brand_color: "#1f6feb".to_owned(),
            business: None,
            default_currency: Currency::Eur,
            underpayment_tolerance: Percent::hundredths(100), // 1 %
            overpayment_threshold: Percent::hundredths(300),  // 3 %
            members: Vec::new(),
        }
    }

    /// Applies the settings that the draft contains.
    pub fn apply(&mut self, draft: SettingsDraft) {
        fn set<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        set(&mut self.name, draft.name);
        set(&mut self.display_name, draft.display_name);
        set(&mut self.logo_url, draft.logo_url);
        set(&mut self.website_url, draft.website_url);
        set(&mut self.support_email, draft.support_email);
        set(&mut self.support_phone, draft.support_phone);
        set(&mut self.brand_color, draft.brand_color);
        set(&mut self.business, draft.business);
        set(&mut self.default_currency, draft.default_currency);
        set(&mut self.underpayment_tolerance, draft.underpayment_tolerance);
        set(&mut self.overpayment_threshold, draft.overpayment_threshold);
        set(&mut self.members, draft.members);
    }
}

/// An account.
#[derive(Serialize, Deserialize)]
pub struct Account {
    /// The id in the API, a slug.
    #[serde(with = "crate::shared::text")]
    pub id: Arc<str>,
    /// The type: personal or organization.
    pub kind: AccountKind,
    /// The owner's settings.
    pub settings: Settings,
    /// The time at which the account was created.
    pub created_at: Timestamp,
    /// The number of changes to the settings.
    changes: u64,
    /// The books by mode: `Mode as usize` is the index.
    books: [Book; 2],
}

impl Account {
    pub(crate) fn new(
        now: Timestamp,
        id: String,
        kind: AccountKind,
        settings: Settings,
        books: [Book; 2],
    ) -> Account {
        Account { id: id.into(), kind, settings, created_at: now, changes: 0, books }
    }

    /// Returns the book of a mode. Objects are looked up in one book only, so no look-up sees both modes.
    pub fn book(&self, mode: Mode) -> &Book {
        &self.books[mode as usize]
    }

    /// Rebuilds the indexes of books that were restored from their objects.
    pub(crate) fn rebuild_indexes(&mut self) {
        self.books.iter_mut().for_each(Book::rebuild_indexes);
    }

    /// Returns the version of the account's JSON in one mode: a number that changes with the settings and with the
    /// wallets of this mode.
    pub fn version(&self, mode: Mode) -> u64 {
        // Both counts only grow, so their sum changes with each of them.
        self.changes + self.book(mode).wallets().changes()
    }

    /// Applies the settings that the draft contains.
    pub(crate) fn change_settings(&mut self, draft: SettingsDraft) {
        self.settings.apply(draft);
        self.changes += 1;
    }

    /// Returns a book to change, with the settings that the change depends on.
    pub(crate) fn book_mut(&mut self, mode: Mode) -> (&mut Book, &Settings) {
        (&mut self.books[mode as usize], &self.settings)
    }
}
