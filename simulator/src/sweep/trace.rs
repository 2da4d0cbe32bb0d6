//! Fingerprints of a world: one of the whole record, and intermediate ones, to find the first difference between two
//! runs quickly.

use sha2::{Digest as _, Sha256};

use crate::record::{Entry, Observation, Record, Signature};

/// The number of entries between two fingerprints.
const STRIDE: usize = 64;

/// The fingerprints of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    marks: Vec<[u8; 32]>,
}

impl Trace {
    /// Computes the fingerprints of a record.
    pub fn from_record(record: &Record) -> Trace {
        Trace::from_index(record, 0)
    }

    /// Computes the fingerprints of a record from an index on.
    pub(crate) fn from_index(record: &Record, start: usize) -> Trace {
        let mut hash = Sha256::new();
        let mut marks = Vec::new();
        for stretch in record.seen.get(start..).unwrap_or_default().chunks(STRIDE) {
            stretch.iter().for_each(|seen| add(&mut hash, seen));
            marks.push(hash.clone().finalize().into());
        }
        if marks.is_empty() {
            marks.push(hash.finalize().into());
        }
        Trace { marks }
    }

    /// Returns the fingerprint of the whole record: 16 hexadecimal digits, enough to distinguish worlds.
    pub fn digest(&self) -> String {
        hex::encode(&self.marks.last().expect("a trace has at least one mark")[..8])
    }
}

/// Returns the first different entry of two runs as a string; `None` if they are equal.
pub fn first_difference(one: &Record, two: &Record) -> Option<String> {
    let (marks, others) = (Trace::from_record(one).marks, Trace::from_record(two).marks);
    if marks == others {
        return None;
    }
    let stretch = marks.iter().zip(&others).take_while(|(one, two)| one == two).count();
    for index in stretch * STRIDE..one.seen.len().max(two.seen.len()) {
        let print = |seen: Option<&Entry>| {
            let mut hash = Sha256::new();
            seen.inspect(|seen| add(&mut hash, seen));
            hash.finalize()
        };
        let (first, second) = (one.seen.get(index), two.seen.get(index));
        if first.is_some() != second.is_some() || print(first) != print(second) {
            let word = |seen: Option<&Entry>| seen.map_or_else(|| "the end".to_owned(), in_words);
            return Some(format!("entry {}: {} / {}", index + 1, word(first), word(second)));
        }
    }
    None
}

fn add(hash: &mut Sha256, seen: &Entry) {
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(&seen.at.0.to_be_bytes());
    match &seen.observation {
        Observation::Call(call) => {
            part(call.method.as_bytes());
            part(call.path.as_bytes());
            part(call.query.as_deref().unwrap_or_default().as_bytes());
            part(&call.body);
            part(&call.status.to_be_bytes());
            part(&call.answer);
        }
        Observation::Sightings(notices) => notices.iter().for_each(|notice| {
            part(notice.mode.as_str().as_bytes());
            part(notice.asset.code().as_bytes());
            part(notice.address.as_bytes());
            part(notice.txid.as_bytes());
            part(&notice.amount.atto().to_be_bytes());
            part(format!("{:?}", notice.depth).as_bytes());
        }),
        Observation::Heights(heights) => heights.iter().for_each(|((mode, asset), height)| {
            part(mode.as_str().as_bytes());
            part(asset.code().as_bytes());
            part(&height.to_be_bytes());
        }),
        Observation::Post(posted) => {
            part(posted.host.as_bytes());
            part(posted.delivery.as_bytes());
            part(match &posted.signature {
                Signature::Header(header) => header.as_bytes(),
                Signature::Secret(secret) => secret.reveal().as_bytes(),
            });
            part(&posted.body);
        }
        Observation::PostResult { delivery, outcome } => {
            part(delivery.as_bytes());
            part(format!("{outcome:?}").as_bytes());
        }
        Observation::Restart => part(b"restart"),
    }
}

/// Returns an entry as one line.
pub fn in_words(seen: &Entry) -> String {
    let at = seen.at;
    match &seen.observation {
        Observation::Call(call) => format!("{at} {} {} -> {}", call.method, call.path, call.status),
        Observation::Sightings(notices) => {
            let first = notices.first().map(|notice| format!("{} {:?}", notice.txid, notice.depth));
            format!("{at} {} notices, first {}", notices.len(), first.unwrap_or_default())
        }
        Observation::Heights(heights) => format!("{at} {heights:?}"),
        Observation::Post(posted) => format!("{at} POST {} {} {}", posted.host, posted.kind, posted.delivery),
        Observation::PostResult { delivery, outcome } => format!("{at} {delivery} {outcome:?}"),
        Observation::Restart => format!("{at} restart"),
    }
}

#[cfg(test)]
mod tests {
    use reference_core::time::Timestamp;

    use super::*;

    fn record(entries: u64, odd: Option<u64>) -> Record {
        let at = |n: u64| Timestamp(if odd == Some(n) { 7_000_000 } else { n });
        Record::from_entries(
            (0..entries).map(|n| Entry { at: at(n), observation: Observation::Restart }).collect(),
        )
    }

    #[test]
    fn the_first_difference_is_named() {
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
