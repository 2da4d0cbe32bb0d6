//! The business behind an account. The service stores it without checks.

use serde::{Deserialize, Serialize};

/// The business behind an account, as its owner describes it. Every part may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Business {
    /// The legal form, such as `company`.
    pub kind: Option<String>,
    /// The name in the register.
    pub legal_name: Option<String>,
    /// The number in the register.
    pub registration_number: Option<String>,
    /// The tax identification number.
    pub tax_id: Option<String>,
    /// The postal address.
    pub address: Option<PostalAddress>,
    /// The industry.
    pub industry: Option<String>,
    /// The products it sells.
    pub product_description: Option<String>,
    /// The expected monthly turnover, as the owner wrote it.
    pub monthly_volume: Option<String>,
    /// The telephone number.
    pub phone: Option<String>,
}

/// The postal address of a business. Every part may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostalAddress {
    /// Street and number.
    pub line1: Option<String>,
    /// Floor, apartment, PO box.
    pub line2: Option<String>,
    /// The city.
    pub city: Option<String>,
    /// State, province or county.
    pub state: Option<String>,
    /// The postal code.
    pub postal_code: Option<String>,
    /// The country in two capitals (ISO 3166-1).
    pub country: Option<String>,
}
