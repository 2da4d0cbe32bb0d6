//! The records that lead to a position. After a rewind, the abandoned records are not part of the later history.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::world_position::WorldPosition;

/// A named moment of a world, to restore it or to branch from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// The number among the snapshots of its world, from 1 on.
    pub(crate) n: u64,
    pub(crate) name: String,
    /// The number of records up to the snapshot, abandoned ones included.
    pub(crate) position: u64,
    /// The position of the world at the snapshot.
    #[serde(rename = "tip")]
    pub(crate) end: WorldPosition,
}

/// The restoring of an earlier position: the records from `to` up to `at` are abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rewind {
    /// The number of records before the rewind.
    pub(crate) at: u64,
    /// The position that the world continues from.
    pub(crate) to: u64,
}

/// Returns the ranges of records that lead to a position, in order.
///
/// `rewinds` are sorted by `at`.
pub(crate) fn record_ranges(rewinds: &[Rewind], position: u64) -> Vec<Range<u64>> {
    let (mut ranges, mut end) = (Vec::new(), position);
    for rewind in rewinds.iter().rev() {
        if rewind.at < end {
            ranges.push(rewind.at..end);
            end = rewind.to.min(rewind.at);
        }
    }
    ranges.push(0..end);
    ranges.reverse();
    ranges.retain(|range| !range.is_empty());
    ranges
}

/// Returns the position at which the first `count` records of these ranges had been written.
pub(crate) fn position_of(count: u64, ranges: &[Range<u64>]) -> u64 {
    let mut remaining = count;
    for range in ranges {
        let length = range.end - range.start;
        if remaining == 0 {
            break;
        }
        // The end of this range, not the start of the next one: abandoned records are between the two.
        if remaining <= length {
            return range.start + remaining;
        }
        remaining -= length;
    }
    // `count` is 0: it does not exceed the number of records in the ranges.
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the ranges of records that lead to a position. `rewinds`: pairs of `at` and `to`.
    #[track_caller]
    fn check_ranges(rewinds: &[(u64, u64)], position: u64, expected: &str) {
        let rewinds: Vec<Rewind> = rewinds.iter().map(|(at, to)| Rewind { at: *at, to: *to }).collect();
        let ranges: Vec<String> =
            record_ranges(&rewinds, position).iter().map(|range| format!("{range:?}")).collect();
        assert_eq!(ranges.join(" "), expected);
    }

    #[test]
    fn without_a_rewind_all_records_lead_to_a_position() {
        check_ranges(&[], 0, "");
        check_ranges(&[], 7, "0..7");
    }

    #[test]
    fn abandoned_records_are_left_out() {
        check_ranges(&[(7, 3)], 9, "0..3 7..9");
        check_ranges(&[(7, 0)], 9, "7..9");
        check_ranges(&[(7, 7)], 9, "0..7 7..9");
    }

    #[test]
    fn a_position_among_abandoned_records_is_reached() {
        check_ranges(&[(7, 3)], 5, "0..5");
        check_ranges(&[(7, 3)], 7, "0..7");
        check_ranges(&[(7, 3), (9, 5)], 12, "0..5 9..12");
        check_ranges(&[(7, 3), (12, 9)], 14, "0..3 7..9 12..14");
        check_ranges(&[(7, 3), (12, 5), (20, 15)], 22, "0..5 12..15 20..22");
    }

    #[test]
    fn every_number_of_records_has_a_position() {
        for (rewinds, position) in
            [(vec![], 7), (vec![(7, 3)], 9), (vec![(7, 0)], 9), (vec![(7, 3), (12, 5), (20, 15)], 22)]
        {
            let rewinds: Vec<Rewind> = rewinds.into_iter().map(|(at, to)| Rewind { at, to }).collect();
            let all: Vec<u64> = record_ranges(&rewinds, position).into_iter().flatten().collect();
            for count in 0..=all.len() {
                let reached_position = position_of(count as u64, &record_ranges(&rewinds, position));
                let reached: Vec<u64> =
                    record_ranges(&rewinds, reached_position).into_iter().flatten().collect();
                assert_eq!(reached, all[..count], "{count} of {all:?}");
            }
        }
    }
}
