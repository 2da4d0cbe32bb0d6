//! The paths of the dashboard: account, mode, page and query.

use reference_core::mode::Mode;
use url::form_urlencoded;

/// The maximum length of an id, longer than any real one.
const ID_MAX: usize = 64;
/// The maximum length of a search string in bytes.
pub(super) const SEARCH_MAX: usize = 255;
/// The maximum number of query fields, more than any page has.
const QUERY_FIELDS_MAX: usize = 20;

/// The account and mode whose objects the dashboard shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BookId {
    pub(super) account: String,
    pub(super) mode: Mode,
}

/// A page of the dashboard. Ids contain only characters that are safe in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Overview,
    Charges,
    NewCharge,
    Charge(String),
    Invoices,
    NewInvoice,
    Invoice(String),
    Links,
    NewLink,
    Link(String),
    Search,
    Events,
    Event(String),
    Late,
    Deliveries,
    Delivery(String),
    Endpoints,
    Endpoint(String),
    Keys,
    Requests,
    /// A request, by its number.
    Request(u64),
    Wallets,
    Wallet(String),
    Outbox,
    World,
    History,
    Settings,
}

impl Page {
    /// Parses the segments of a path.
    pub(super) fn parse(segments: &[&str]) -> Option<Page> {
        let id = |text: &str| is_id(text).then(|| text.to_owned());
        Some(match segments {
            [] => Page::Overview,
            ["charges"] => Page::Charges,
            ["charges", "new"] => Page::NewCharge,
            ["charges", code] => Page::Charge(id(code)?),
            ["invoices"] => Page::Invoices,
            ["invoices", "new"] => Page::NewInvoice,
            ["invoices", code] => Page::Invoice(id(code)?),
            ["links"] => Page::Links,
            ["links", "new"] => Page::NewLink,
            ["links", code] => Page::Link(id(code)?),
            ["search"] => Page::Search,
            ["events"] => Page::Events,
            ["events", event] => Page::Event(id(event)?),
            ["late"] => Page::Late,
            ["deliveries"] => Page::Deliveries,
            ["deliveries", delivery] => Page::Delivery(id(delivery)?),
            ["endpoints"] => Page::Endpoints,
            ["endpoints", endpoint] => Page::Endpoint(id(endpoint)?),
            ["keys"] => Page::Keys,
            ["requests"] => Page::Requests,
            ["requests", n] => Page::Request(n.parse().ok().filter(|_| is_id(n))?),
            ["wallets"] => Page::Wallets,
            ["wallets", asset] => Page::Wallet(id(asset)?),
            ["outbox"] => Page::Outbox,
            ["world"] => Page::World,
            ["history"] => Page::History,
            ["settings"] => Page::Settings,
            _ => return None,
        })
    }

    /// Returns the path below account and mode, with a leading slash; empty for the overview.
    pub(super) fn path(&self) -> String {
        match self {
            Page::Overview => String::new(),
            Page::NewCharge | Page::NewInvoice | Page::NewLink => format!("/{}/new", self.section()),
            Page::Charge(id) => format!("/charges/{id}"),
            Page::Invoice(id) => format!("/invoices/{id}"),
            Page::Link(id) => format!("/links/{id}"),
            Page::Event(id) => format!("/events/{id}"),
            Page::Delivery(id) => format!("/deliveries/{id}"),
            Page::Endpoint(id) => format!("/endpoints/{id}"),
            Page::Request(n) => format!("/requests/{n}"),
            Page::Wallet(asset) => format!("/wallets/{asset}"),
            list => format!("/{}", list.section()),
        }
    }

    /// Returns the first segment of the path, which is the same for a list and its objects; empty for the overview.
    pub(super) fn section(&self) -> &'static str {
        match self {
            Page::Overview => "",
            Page::Charges | Page::NewCharge | Page::Charge(_) => "charges",
            Page::Invoices | Page::NewInvoice | Page::Invoice(_) => "invoices",
            Page::Links | Page::NewLink | Page::Link(_) => "links",
            Page::Search => "search",
            Page::Events | Page::Event(_) => "events",
            Page::Late => "late",
            Page::Deliveries | Page::Delivery(_) => "deliveries",
            Page::Endpoints | Page::Endpoint(_) => "endpoints",
            Page::Keys => "keys",
            Page::Requests | Page::Request(_) => "requests",
            Page::Wallets | Page::Wallet(_) => "wallets",
            Page::Outbox => "outbox",
            Page::World => "world",
            Page::History => "history",
            Page::Settings => "settings",
        }
    }

    /// Returns the path of the corresponding page in another account or mode: a list instead of an object, which does
    /// not exist there.
    pub(super) fn in_other_book(&self) -> String {
        match self.section() {
            "" => String::new(),
            section => format!("/{section}"),
        }
    }
}

/// Returns `true` if a string has the length and characters of an id.
pub(super) fn is_id(id: &str) -> bool {
    (1..=ID_MAX).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

impl BookId {
    /// Parses an account and a mode.
    pub(super) fn parse(account: &str, mode: &str) -> Option<BookId> {
        let mode = Mode::parse(mode)?;
        is_id(account).then(|| BookId { account: account.to_owned(), mode })
    }

    /// Returns a path in this account and mode, without the public prefix. `rest` starts with a slash or is empty.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/dashboard/{}/{}{rest}", self.account, self.mode)
    }
}

/// The query of a page's URL.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: Option<&str>) -> Query {
        let fields = form_urlencoded::parse(text.unwrap_or_default().as_bytes()).take(QUERY_FIELDS_MAX);
        Query(fields.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Returns the first value of a field, unless it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(field, _)| field == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Returns a query string of the fields that have a value, with its question mark; empty if there are none.
pub(super) fn query_string(fields: &[(&str, Option<&str>)]) -> String {
    let mut writer = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        if let Some(value) = value {
            writer.append_pair(name, value);
        }
    }
    match writer.finish() {
        empty if empty.is_empty() => empty,
        pairs => format!("?{pairs}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Option<Page> {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        Page::parse(&segments)
    }

    #[test]
    fn a_page_is_found_by_its_own_path() {
        for path in [
            "/charges",
            "/charges/new",
            "/charges/abc123",
            "/invoices/new",
            "/links/new",
            "/search",
            "/invoices/abc",
            "/links/abc",
            "/events/0197a0be-42aa-7000-8000-000000000000",
            "/late",
            "/deliveries/0197",
            "/endpoints/abc",
            "/keys",
            "/requests",
            "/requests/7",
            "/wallets/USDT_TRON",
            "/outbox",
            "/world",
            "/history",
            "/settings",
        ] {
            assert_eq!(parse(path).map(|page| page.path()).as_deref(), Some(path));
        }
        assert_eq!(Page::parse(&[]), Some(Page::Overview));
    }

    #[test]
    fn invalid_ids_have_no_page() {
        for path in [
            "/charges/",
            "/charges/a%2Fb",
            "/charges/..",
            "/charges/a?b",
            "/nowhere",
            "/charges/a/b",
            "/requests/x",
            "/requests/+1",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
        assert_eq!(Page::parse(&["charges", &"a".repeat(ID_MAX + 1)]), None);
        assert_eq!(BookId::parse("acme", "both"), None);
        assert_eq!(BookId::parse("../x", "live"), None);
    }

    #[test]
    fn absent_and_empty_query_fields_are_omitted() {
        assert_eq!(query_string(&[("a", None)]), "");
        assert_eq!(
            query_string(&[("status", Some("paid")), ("page", None), ("x", Some("a b&c"))]),
            "?status=paid&x=a+b%26c"
        );
        assert_eq!(Query::parse(Some("a=&b=1&b=2")).get("a"), None);
        assert_eq!(Query::parse(Some("a=&b=1&b=2")).get("b"), Some("1"));
    }
}
