//! [`Mix`]: the requests of a run as bytes. Most are written before the run and sent in rotation.

use serde_json::{Value, json};

use crate::{
    delivery::DeliveryWriter,
    plan::{StartError, Work},
    target::Target,
};

/// The requests of a run.
pub(crate) enum Mix {
    /// A fixed list, sent in rotation.
    Rotation(Vec<Vec<u8>>),
    /// Deliveries, each with its own ids.
    Deliveries(DeliveryWriter),
}

impl Mix {
    /// Sends requests to check that the target responds, and writes the requests of the run. Those of [`Work::Read`]
    /// request objects that the target lists. Also returns notes for the report.
    pub(crate) async fn prepare(target: &Target, work: &Work) -> Result<(Mix, Vec<String>), StartError> {
        let mut notes = Vec::new();
        let key = match work {
            Work::Read { key } | Work::Write { key, .. } => Some(key),
            Work::Paths { key, .. } => key.as_ref(),
            Work::Webhook { .. } => None,
        };
        if key.is_some_and(|key| key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic())) {
            return Err(StartError::Usage(
                "the key is empty or contains a space or a character that is not printable ASCII".into(),
            ));
        }
        let mix = match work {
            Work::Paths { key, paths } => {
                let requests: Vec<_> = paths.iter().map(|path| target.get(path, key.as_deref())).collect();
                let Some(first) = requests.first() else {
                    return Err(StartError::Usage("no path is given; give one such as /v1/account".into()));
                };
                if let Some(path) = paths.iter().find(|path| !is_valid_path(path)) {
                    return Err(StartError::Usage(format!(
                        "`{path}` is not a path; give one such as /v1/events?per_page=25"
                    )));
                }
                let (response, _) = target.send(first).await?;
                if response.status >= 400 && response.status != 429 {
                    notes.push(format!("{} responds with {}", paths[0], response.status));
                }
                Mix::Rotation(requests)
            }
            Work::Read { key } => Mix::Rotation(read_mix(target, key, &mut notes).await?),
            Work::Write { key, asset } => {
                Mix::Rotation(vec![prepare_create_request(target, key, asset.as_deref(), &mut notes).await?])
            }
            Work::Webhook { secret, header_prefix, user_agent } => {
                let writer = DeliveryWriter::new(target, secret, header_prefix, user_agent);
                let mut request = Vec::new();
                // A number that no delivery of the run has.
                writer.write(u64::MAX, &mut request);
                let (response, _) = target.send(&request).await?;
                if response.status >= 300 {
                    notes.push(format!("the handler responds with {} to a signed delivery", response.status));
                }
                Mix::Deliveries(writer)
            }
        };
        Ok((mix, notes))
    }

    /// Returns the `nth` request. Requests that are written on demand are stored in `buffer`.
    pub(crate) fn request<'a>(&'a self, nth: u64, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Mix::Rotation(requests) => &requests[(nth % requests.len() as u64) as usize],
            Mix::Deliveries(writer) => {
                writer.write(nth, buffer);
                buffer
            }
        }
    }
}

/// Returns `true` if a path has only characters that are valid in a request line.
fn is_valid_path(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|b| (b'!'..=b'~').contains(&b))
}

/// Sends a request that creates a charge in test mode, and returns it for repetition.
async fn prepare_create_request(
    target: &Target,
    key: &str,
    asset: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, StartError> {
    let account = get_json(target, "/v1/account", key).await?;
    let mode = account["meta"]["mode"].as_str().unwrap_or("unknown");
    if mode != "test" {
        return Err(StartError::Usage(format!(
            "the key is a {mode} key; charges are created with a test key only"
        )));
    }
    let asset = match asset {
        Some(asset) => asset.to_owned(),
        None => account["meta"]["accepted_assets"][0]
            .as_str()
            .ok_or_else(|| StartError::Usage("the account accepts no asset in test mode".into()))?
            .to_owned(),
    };
    let body = json!({ "asset": asset, "amount": "49.90", "description": "load" }).to_string();
    let request = target.post("/v1/charges", Some(key), &body);
    let (response, body) = target.send(&request).await?;
    if response.status >= 400 {
        return Err(StartError::Usage(format!(
            "creating a charge in {asset} fails with {}: {}",
            response.status,
            excerpt(&body)
        )));
    }
    notes.push(format!("creates charges in {asset}, in test mode"));
    Ok(request)
}

/// Returns the requests of [`Work::Read`], for the objects on the first page of each list.
async fn read_mix(target: &Target, key: &str, notes: &mut Vec<String>) -> Result<Vec<Vec<u8>>, StartError> {
    let ids = |page: &Value| -> Vec<String> {
        let rows = page["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        rows.iter().filter_map(|row| row["id"].as_str()).map(str::to_owned).collect()
    };
    let events = ids(&get_json(target, "/v1/events?per_page=25", key).await?);
    let charges = ids(&get_json(target, "/v1/charges?per_page=25", key).await?);
    for (kind, is_missing) in [("event", events.is_empty()), ("charge", charges.is_empty())] {
        if is_missing {
            notes.push(format!("there is no {kind}: pages are empty, and no single {kind} is requested"));
        }
    }
    Ok(read_paths(&events, &charges).iter().map(|path| target.get(path, Some(key))).collect())
}

/// Returns the paths of [`Work::Read`] for these ids: of 20 requests, 8 list events, 5 get an event, 3 get a charge,
/// 2 list charges, and 2 get the account.
fn read_paths(events: &[String], charges: &[String]) -> Vec<String> {
    let mut next_events = events.iter().cycle();
    let mut next_charges = charges.iter().cycle();
    let mut paths = Vec::new();
    // In twenty rounds, 100 requests for an event and 60 for a charge reach every object of a page of 25.
    for _round in 0..20 {
        for position in 0..20 {
            paths.extend(match position {
                0 | 2 | 5 | 7 | 10 | 12 | 15 | 17 => Some("/v1/events?per_page=25".to_owned()),
                1 | 4 | 8 | 11 | 14 => next_events.next().map(|id| format!("/v1/events/{id}")),
                3 | 9 | 16 => next_charges.next().map(|id| format!("/v1/charges/{id}")),
                6 | 13 => Some("/v1/charges?per_page=25".to_owned()),
                _ => Some("/v1/account".to_owned()),
            });
        }
    }
    paths
}

/// Sends a `GET`, and returns the body of a response with status 200.
async fn get_json(target: &Target, path: &str, key: &str) -> Result<Value, StartError> {
    let (response, body) = target.send(&target.get(path, Some(key))).await?;
    match response.status {
        200 => serde_json::from_slice(&body)
            .map_err(|_| StartError::Usage(format!("GET {path} returns a body that is not JSON"))),
        429 => Err(StartError::Usage(format!(
            "GET {path} returns 429; wait {} s, or measure a server without a rate limit",
            response.retry_after.unwrap_or(60)
        ))),
        status => Err(StartError::Usage(format!("GET {path} returns {status}: {}", excerpt(&body)))),
    }
}

/// Returns at most 200 characters of a body for an error message, without control characters.
fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().filter(|character| !character.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_object_is_requested() {
        let ids = |kind: &str| (0..25).map(|n| format!("{kind}{n}")).collect::<Vec<_>>();
        let (events, charges) = (ids("event"), ids("charge"));
        let paths = read_paths(&events, &charges);
        assert_eq!(paths.len(), 400);
        for path in events.iter().map(|id| format!("/v1/events/{id}")) {
            assert!(paths.contains(&path), "{path}");
        }
        for path in charges.iter().map(|id| format!("/v1/charges/{id}")) {
            assert!(paths.contains(&path), "{path}");
        }
        assert_eq!(read_paths(&[], &charges).len(), 300, "no single event is requested");
    }
}
