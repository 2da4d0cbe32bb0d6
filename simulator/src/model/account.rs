//! The settings of an account by the contract, and the response of `GET /v1/account`.

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Timestamp,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::non_empty_string;

/// The settings of an account.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct Account {
    pub id: String,
    object: &'static str,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    pub display_name: String,
    logo_url: Option<String>,
    website_url: Option<String>,
    support_email: Option<String>,
    support_phone: Option<String>,
    brand_color: String,
    business: Option<Map<String, Value>>,
    /// The currency of prices without one.
    #[serde(serialize_with = "code")]
    pub default_currency: Currency,
    /// The tolerated underpayment, in hundredths of a percent.
    #[serde(rename = "underpayment_tolerance", serialize_with = "percent")]
    pub tolerance: u32,
    /// The threshold of an overpayment, in hundredths of a percent.
    #[serde(rename = "overpayment_threshold", serialize_with = "percent")]
    pub threshold: u32,
    pub created_at: String,
    /// The members, who may receive mail in test mode.
    #[serde(skip)]
    pub members: Vec<String>,
}

/// Writes a currency as its code.
fn code<S: serde::Serializer>(currency: &Currency, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(currency.code())
}

/// Writes 250 hundredths as `2.5`.
fn percent<S: serde::Serializer>(hundredths: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    serializer.serialize_str(text.trim_end_matches('0').trim_end_matches('.'))
}

#[derive(Serialize)]
struct AccountResponse<'a> {
    data: &'a Account,
    meta: AccountMeta,
}

#[derive(Serialize)]
struct AccountMeta {
    mode: &'static str,
    accepted_assets: Vec<&'static str>,
}

/// The fields of a business, in order: strings, except `address`.
const BUSINESS: [&str; 9] = [
    "type",
    "legal_name",
    "registration_number",
    "tax_id",
    "address",
    "industry",
    "product_description",
    "monthly_volume",
    "phone",
];
/// The fields of `address`, in order.
const ADDRESS: [&str; 6] = ["line1", "line2", "city", "state", "postal_code", "country"];

/// Returns the strings of these fields, null if missing; `None` if the object has none of them.
fn texts(body: &Value, names: &[&str]) -> Option<Map<String, Value>> {
    let value = |name: &&str| match *name {
        "address" => texts(&body["address"], &ADDRESS).map_or(Value::Null, Value::Object),
        name => non_empty_string(body, name).map_or(Value::Null, Value::String),
    };
    let map: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), value(name))).collect();
    map.values().any(|value| !value.is_null()).then_some(map)
}

impl Account {
    /// Creates an account with default settings.
    pub fn new(id: &str, name: &str, now: Timestamp) -> Account {
        Account {
            id: id.to_owned(),
            object: "account",
            kind: "organization".to_owned(),
            name: name.to_owned(),
            display_name: name.to_owned(),
            logo_url: None,
            website_url: None,
            support_email: None,
            support_phone: None,
            brand_color: "#1f6feb".to_owned(),
            business: None,
            default_currency: Currency::Eur,
            tolerance: 100,
            threshold: 300,
            created_at: now.to_string(),
            members: Vec::new(),
        }
    }

    /// Applies the settings in a request.
    pub fn change(&mut self, body: &Value) {
        let is_present = |name: &str| body.get(name).is_some();
        let percent = |name: &str, current| {
            let hundredths = super::operation::parse_units_strictly(&body[name], 2);
            hundredths.and_then(|n| u32::try_from(n).ok()).unwrap_or(current)
        };
        self.tolerance = percent("underpayment_tolerance", self.tolerance);
        self.threshold = percent("overpayment_threshold", self.threshold);
        self.kind = non_empty_string(body, "type").unwrap_or_else(|| std::mem::take(&mut self.kind));
        let currency = body["default_currency"].as_str().and_then(Currency::parse);
        self.default_currency = currency.unwrap_or(self.default_currency);
        for (name, field) in [
            ("name", &mut self.name),
            ("display_name", &mut self.display_name),
            ("brand_color", &mut self.brand_color),
        ] {
            *field = non_empty_string(body, name).unwrap_or_else(|| std::mem::take(field));
        }
        for (name, field) in [
            ("logo_url", &mut self.logo_url),
            ("website_url", &mut self.website_url),
            ("support_email", &mut self.support_email),
            ("support_phone", &mut self.support_phone),
        ] {
            if is_present(name) {
                *field = non_empty_string(body, name);
            }
        }
        if is_present("business") {
            self.business = texts(&body["business"], &BUSINESS);
        }
        if let Some(members) = body["members"].as_array() {
            self.members = members.iter().filter_map(|member| member.as_str().map(str::to_owned)).collect();
        }
    }

    /// Returns the underpayment tolerance and the overpayment threshold.
    pub(super) fn bounds(&self) -> (u32, u32) {
        (self.tolerance, self.threshold)
    }

    /// Returns the response of `GET /v1/account` in a mode that accepts these coins.
    pub fn response_json(&self, mode: Mode, accepts: impl Fn(Asset) -> bool) -> String {
        let accepted = Asset::ALL.into_iter().filter(|asset| accepts(*asset));
        let meta = AccountMeta { mode: mode.as_str(), accepted_assets: accepted.map(Asset::code).collect() };
        serde_json::to_string(&AccountResponse { data: self, meta })
            .expect("strings and numbers are valid JSON")
    }
}
