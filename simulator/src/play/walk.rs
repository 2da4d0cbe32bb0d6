//! The step `walk`: reads a list page by page, adds records after each page, and checks that each record that
//! the list had at the start appears exactly once.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;

use super::{
    Player, StageRequest, StageResponse, error_message, failure::StepError, requests::path_and_query,
};
use crate::script::step::{Walk, WalkBy};

/// The maximum number of pages of a walk.
const WALK_PAGES_MAX: u32 = 1_000;

/// A page of a list.
#[derive(Deserialize)]
struct WalkPage {
    data: Vec<ListedRecord>,
    #[serde(default)]
    meta: Meta,
    #[serde(default)]
    links: PageLinks,
}

#[derive(Deserialize)]
struct ListedRecord {
    id: String,
}

#[derive(Default, Deserialize)]
struct Meta {
    total: Option<u64>,
    last_page: Option<u64>,
}

#[derive(Default, Deserialize)]
struct PageLinks {
    next: Option<String>,
}

/// Returns the error for a page that cannot be read.
fn page_error(walk: &Walk, response: &StageResponse) -> StepError {
    let actual = format!("{} {}", response.status, error_message(response));
    let title = format!("a page of {} cannot be read", walk.path.value);
    if response.status == 429 {
        // The key exceeds its rate limit, so the list cannot be checked. This is not a failure of the list.
        return StepError::stage_failure(walk.path.span, format!("{title}: {actual}"));
    }
    StepError::unmet_expectation(walk.path.span, title, "is refused", "200".to_owned(), actual)
}

/// Returns the error for a record that a page repeats.
fn repetition_error(walk: &Walk, name: &str, page: u32) -> StepError {
    let title = format!("{} repeats a record", walk.path.value);
    let actual = format!("{name} again on page {page}");
    StepError::unmet_expectation(walk.path.span, title, "repeats", "each record once".to_owned(), actual)
}

impl Player<'_> {
    pub(super) fn walk(&mut self, walk: &Walk) -> Result<(), StepError> {
        let at = self.now;
        let bearer = self.bearer(walk.key.as_ref())?;
        let list = self.fill_placeholders(&walk.path.value, walk.path.span)?;
        let separator = if list.contains('?') { '&' } else { '?' };
        let first_path = format!("{list}{separator}per_page={}", walk.per_page);
        let summary =
            format!("{} by {}, {} new after each page", walk.path.value, walk.per_page, walk.insert);
        let (mut path, mut pages, mut total, mut records_read) = (first_path.clone(), 0_u32, None, 0_u64);
        let mut ids = BTreeSet::new();
        loop {
            let call = StageRequest {
                method: "GET",
                path: &path,
                bearer: bearer.as_deref(),
                headers: &[],
                body: None,
            };
            let response = self.send_request(&call)?;
            if response.status != 200 {
                return Err(page_error(walk, &response));
            }
            let WalkPage { data, meta, links } = serde_json::from_slice(&response.body).map_err(|error| {
                StepError::stage_failure(self.step_span, format!("GET {path} is not a page: {error}"))
            })?;
            pages += 1;
            total = total.or(meta.total);
            for ListedRecord { id } in data {
                records_read += 1;
                if !ids.insert(id.clone()) {
                    return Err(repetition_error(walk, self.aliases.name_of(&id).unwrap_or(&id), pages));
                }
            }
            for _ in 0..walk.insert {
                self.insert_record(&list, bearer.as_deref())?;
            }
            let last_page = meta.last_page.unwrap_or(0);
            path = match (walk.by, links.next) {
                (WalkBy::Links, Some(next)) => path_and_query(&next).to_owned(),
                (WalkBy::Numbers, _) if u64::from(pages) < last_page => {
                    format!("{first_path}&page={}", pages + 1)
                }
                _ => break,
            };
            if pages == WALK_PAGES_MAX {
                return Err(StepError::stage_failure(
                    walk.path.span,
                    format!("no last page within {pages} pages"),
                ));
            }
        }
        if total != Some(records_read) {
            let title = format!("{} is not read completely", walk.path.value);
            let expected = total.map_or_else(|| "a total".to_owned(), |total| format!("{total} records"));
            return Err(StepError::unmet_expectation(
                walk.path.span,
                title,
                "omits records",
                expected,
                format!("{records_read} records"),
            ));
        }
        self.write_line(at, "walk", &summary, Some(&format!("{records_read} records, pages: {pages}")));
        Ok(())
    }

    /// Adds an invoice or a charge to a list, with the key that reads it.
    fn insert_record(&mut self, list: &str, bearer: Option<&str>) -> Result<(), StepError> {
        let (path, body) = if list.starts_with("/v1/invoices") {
            ("/v1/invoices", json!({ "amount": "1.00", "currency": "EUR", "customer_name": "Ann" }))
        } else {
            ("/v1/charges", json!({ "asset": "BTC", "amount": "1.00", "currency": "EUR" }))
        };
        let call = StageRequest { method: "POST", path, bearer, headers: &[], body: Some(&body) };
        let response = self.send_request(&call)?;
        match response.status {
            201 => Ok(()),
            status => Err(StepError::stage_failure(
                self.step_span,
                format!("POST {path} responded with {status} {}", error_message(&response)),
            )),
        }
    }
}
