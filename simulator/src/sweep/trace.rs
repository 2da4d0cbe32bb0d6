//! Fingerprints (hashes) of a record: one of the whole, and intermediate ones, to find the first difference between two
//! runs quickly. The main type is [`Trace`].

use sha2::{Digest as _, Sha256};

use crate::record::{Entry, Observation, Record, Signature};

/// The number of entries between two fingerprints.
const STRIDE: usize = 64;

/// The fingerprints of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    fingerprints: Vec<[u8; 32]>,
}

impl Trace {
    /// Computes the fingerprints of a record.
    pub fn from_record(record: &Record) -> Trace {
        Trace::from_index(record, 0)
    }

    /// Computes the fingerprints of a record from an index on.
    pub(crate) fn from_index(record: &Record, start: usize) -> Trace {
        let mut hash = Sha256::new();
        let mut fingerprints = Vec::new();
        for chunk in record.entries.get(start..).unwrap_or_default().chunks(STRIDE) {
            chunk.iter().for_each(|entry| hash_entry(&mut hash, entry));
            fingerprints.push(hash.clone().finalize().into());
        }
        if fingerprints.is_empty() {
            fingerprints.push(hash.finalize().into());
        }
        Trace { fingerprints }
    }

    /// Returns the fingerprint of the whole record: 16 hexadecimal digits, enough to distinguish worlds.
    pub fn digest(&self) -> String {
        hex::encode(&self.fingerprints.last().expect("a trace has at least one fingerprint")[..8])
    }
}

/// Describes the first entry in which two records differ; returns `None` if they are equal.
pub fn first_difference(one: &Record, two: &Record) -> Option<String> {
    let (fingerprints, other_fingerprints) =
        (Trace::from_record(one).fingerprints, Trace::from_record(two).fingerprints);
    if fingerprints == other_fingerprints {
        return None;
    }
    let equal_chunks =
        fingerprints.iter().zip(&other_fingerprints).take_while(|(one, two)| one == two).count();
    for index in equal_chunks * STRIDE..one.entries.len().max(two.entries.len()) {
        let fingerprint = |entry: Option<&Entry>| {
            let mut hash = Sha256::new();
            entry.inspect(|entry| hash_entry(&mut hash, entry));
            hash.finalize()
        };
        let (first, second) = (one.entries.get(index), two.entries.get(index));
        if first.is_some() != second.is_some() || fingerprint(first) != fingerprint(second) {
            let describe = |entry: Option<&Entry>| entry.map_or_else(|| "the end".to_owned(), describe_entry);
            return Some(format!("entry {}: {} / {}", index + 1, describe(first), describe(second)));
        }
    }
    None
}

/// Adds an entry to a hash. Each part is preceded by its length.
fn hash_entry(hash: &mut Sha256, entry: &Entry) {
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(&entry.at.0.to_be_bytes());
    match &entry.observation {
        Observation::Call(call) => {
            part(call.method.as_bytes());
            part(call.path.as_bytes());
            part(call.query.as_deref().unwrap_or_default().as_bytes());
            part(&call.body);
            part(&call.status.to_be_bytes());
            part(&call.response_body);
        }
        Observation::Sightings(sightings) => sightings.iter().for_each(|sighting| {
            part(sighting.mode.as_str().as_bytes());
            part(sighting.asset.code().as_bytes());
            part(sighting.address.as_bytes());
            part(sighting.txid.as_bytes());
            part(&sighting.amount.atto().to_be_bytes());
            part(format!("{:?}", sighting.depth).as_bytes());
        }),
        Observation::Heights(heights) => heights.iter().for_each(|((mode, asset), height)| {
            part(mode.as_str().as_bytes());
            part(asset.code().as_bytes());
            part(&height.to_be_bytes());
        }),
        Observation::AttemptStart(attempt) => {
            part(attempt.host.as_bytes());
            part(attempt.delivery.as_bytes());
            part(match &attempt.signature {
                Signature::Header(header) => header.as_bytes(),
                Signature::Secret(secret) => secret.reveal().as_bytes(),
            });
            part(&attempt.body);
        }
        Observation::AttemptEnd { delivery, outcome } => {
            part(delivery.as_bytes());
            part(format!("{outcome:?}").as_bytes());
        }
        Observation::Restart => part(b"restart"),
    }
}

/// Describes an entry in one line.
pub fn describe_entry(entry: &Entry) -> String {
    let at = entry.at;
    match &entry.observation {
        Observation::Call(call) => format!("{at} {} {} -> {}", call.method, call.path, call.status),
        Observation::Sightings(sightings) => {
            let first = sightings.first().map(|sighting| format!("{} {:?}", sighting.txid, sighting.depth));
            format!("{at} {} sightings, first {}", sightings.len(), first.unwrap_or_default())
        }
        Observation::Heights(heights) => format!("{at} {heights:?}"),
        Observation::AttemptStart(attempt) => {
            format!("{at} POST {} {} {}", attempt.host, attempt.kind, attempt.delivery)
        }
        Observation::AttemptEnd { delivery, outcome } => format!("{at} {delivery} {outcome:?}"),
        Observation::Restart => format!("{at} restart"),
    }
}

#[cfg(test)]
mod tests {
    use reference_core::time::Timestamp;

    use super::*;

    /// Returns a record in which the entry at index `different`, if any, has another time.
    fn record(entries: u64, different: Option<u64>) -> Record {
        let at = |n: u64| Timestamp(if different == Some(n) { 7_000_000 } else { n });
        Record::from_entries(
            (0..entries).map(|n| Entry { at: at(n), observation: Observation::Restart }).collect(),
        )
    }

    #[test]
    fn the_first_difference_is_found() {
        let base = record(1_000, None);
        assert_eq!(first_difference(&base, &record(1_000, None)), None);
        for index in [0, 63, 64, 700, 999] {
            let difference =
                first_difference(&base, &record(1_000, Some(index))).expect("the records differ");
            assert!(difference.starts_with(&format!("entry {}:", index + 1)), "{difference}");
        }
        let short = first_difference(&base, &record(999, None)).expect("one record is shorter");
        assert!(short.contains("the end"), "{short}");
    }
}
