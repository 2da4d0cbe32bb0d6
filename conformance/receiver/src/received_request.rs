//! [`ReceivedRequest`]: a recorded request with its raw bytes, so that it can be judged again from a file.

use std::borrow::Cow;

use conformance_model::raw_bytes::RawBytes;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

/// A request that the receiver recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedRequest {
    /// The time at which its last byte was read.
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    pub at: OffsetDateTime,
    /// The method, verbatim.
    pub method: String,
    /// The path and the query, verbatim.
    pub path: String,
    /// The headers in their order, names verbatim.
    pub headers: Vec<(String, RawBytes)>,
    /// The raw body.
    pub body: RawBytes,
}

/// The configurable prefix of the webhook headers, and the sender's user agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookNames {
    /// The prefix of the webhook headers: `X-Service` in `X-Service-Signature`.
    pub header_prefix: String,
    /// The `User-Agent` of deliveries.
    pub user_agent: String,
}

impl Default for WebhookNames {
    fn default() -> WebhookNames {
        WebhookNames { header_prefix: "X-Service".to_owned(), user_agent: "Service-Webhooks/1.0".to_owned() }
    }
}

impl WebhookNames {
    /// Returns the name of a webhook header: `X-Service-Signature` for the ending `Signature`.
    pub fn header(&self, ending: &str) -> String {
        format!("{}-{ending}", self.header_prefix)
    }
}

impl ReceivedRequest {
    /// Returns all values of a header, in order.
    pub fn header_values(&self, name: &str) -> Vec<&[u8]> {
        self.headers
            .iter()
            .filter(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.0.as_slice())
            .collect()
    }

    /// Returns the first value of a header, if it is UTF-8.
    pub fn header_text(&self, name: &str) -> Option<&str> {
        self.header_values(name).first().and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Returns the time of arrival in Unix seconds.
    pub fn unix_secs(&self) -> i64 {
        self.at.unix_timestamp()
    }

    /// Returns a summary of a delivery, with the values that can be parsed.
    pub fn summary(&self, names: &WebhookNames) -> DeliverySummary {
        let body: Value = serde_json::from_slice(&self.body.0).unwrap_or_default();
        let field = |name: &str| body[name].as_str().map(str::to_owned);
        let header = |ending: &str| self.header_text(&names.header(ending)).map(str::to_owned);
        let data = &body["data"];
        let subject = ["charge", "invoice"].iter().find_map(|kind| data[kind]["code"].as_str());
        DeliverySummary {
            delivery: field("id").or_else(|| header("Delivery")),
            event: field("event").or_else(|| header("Event")),
            mode: field("mode"),
            subject: subject.map(str::to_owned),
        }
    }
}

/// The fields of a delivery for a line of a report. They are not verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeliverySummary {
    /// The delivery id.
    pub delivery: Option<String>,
    /// The event type.
    pub event: Option<String>,
    /// `live` or `test`.
    pub mode: Option<String>,
    /// The code of the charge or the invoice.
    pub subject: Option<String>,
}

const TIME_FORMAT: &[time::format_description::BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

fn write_time<S: Serializer>(time: &OffsetDateTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&timestamp(*time))
}

fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OffsetDateTime, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    PrimitiveDateTime::parse(&text, TIME_FORMAT)
        .map(PrimitiveDateTime::assume_utc)
        .map_err(|_| D::Error::custom(format!("`{text}` is not a time such as 2026-01-05T09:00:00.000000Z")))
}

/// Formats a time in UTC with microseconds, such as `2026-01-05T09:00:00.000000Z`.
pub fn timestamp(time: OffsetDateTime) -> String {
    // Only years with more than four digits cannot be formatted.
    time.to_offset(::time::UtcOffset::UTC)
        .format(TIME_FORMAT)
        .unwrap_or_else(|_| time.unix_timestamp().to_string())
}

impl ReceivedRequest {
    /// Returns the time of arrival, formatted by [`timestamp`].
    pub fn timestamp(&self) -> String {
        timestamp(self.at)
    }
}
