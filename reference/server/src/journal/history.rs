//! The records that lead to a position. After a rewind, the abandoned records are not part of the later history.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::tip::Tip;

/// A moment of a world that somebody wants to come back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Its number among those of its world, from 1 on.
    pub(crate) n: u64,
    pub(crate) name: String,
    /// The number of records written, of whatever branch.
    pub(crate) position: u64,
    pub(crate) tip: Tip,
}

/// The world went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Return {
    /// Before this record.
    pub(crate) at: u64,
    /// To where so many had been written.
    pub(crate) to: u64,
}

/// The records that lead to where `position` records had been written, in order.
///
/// `returns` rise in `at`, and each goes back to what was before it.
pub(crate) fn path(returns: &[Return], position: u64) -> Vec<Range<u64>> {
    let (mut path, mut end) = (Vec::new(), position);
    for it in returns.iter().rev() {
        if it.at < end {
            path.push(it.at..end);
            end = it.to.min(it.at);
        }
    }
    path.push(0..end);
    path.reverse();
    path.retain(|range| !range.is_empty());
    path
}

/// Returns the position at which so many records of such a path had been written.
pub(crate) fn position_of(count: u64, path: &[Range<u64>]) -> u64 {
    let mut left = count;
    for range in path {
        let length = range.end - range.start;
        if left == 0 {
            break;
        }
        // The end of a part and not the beginning of the next, which is on another branch.
        if left <= length {
            return range.start + left;
        }
        left -= length;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `returns`: pairs of `at` and `to`.
    #[track_caller]
    fn check(returns: &[(u64, u64)], position: u64, leads: &str) {
        let returns: Vec<Return> = returns.iter().map(|(at, to)| Return { at: *at, to: *to }).collect();
        let path: Vec<String> = path(&returns, position).iter().map(|it| format!("{it:?}")).collect();
        assert_eq!(path.join(" "), leads);
    }

    #[test]
    fn a_world_that_never_went_back_is_all_its_records() {
        check(&[], 0, "");
        check(&[], 7, "0..7");
    }

    #[test]
    fn what_a_world_went_back_behind_is_left_out() {
        check(&[(7, 3)], 9, "0..3 7..9");
        check(&[(7, 0)], 9, "7..9");
        check(&[(7, 7)], 9, "0..7 7..9");
    }

    #[test]
    fn a_moment_of_a_branch_that_was_left_is_still_reached() {
        check(&[(7, 3)], 5, "0..5");
        check(&[(7, 3)], 7, "0..7");
        check(&[(7, 3), (9, 5)], 12, "0..5 9..12");
        check(&[(7, 3), (12, 9)], 14, "0..3 7..9 12..14");
        check(&[(7, 3), (12, 5), (20, 15)], 22, "0..5 12..15 20..22");
    }

    #[test]
    fn every_moment_on_the_way_is_reached() {
        for (returns, position) in
            [(vec![], 7), (vec![(7, 3)], 9), (vec![(7, 0)], 9), (vec![(7, 3), (12, 5), (20, 15)], 22)]
        {
            let returns: Vec<Return> = returns.into_iter().map(|(at, to)| Return { at, to }).collect();
            let all: Vec<u64> = path(&returns, position).into_iter().flatten().collect();
            for count in 0..=all.len() {
                let at = position_of(count as u64, &path(&returns, position));
                let leads: Vec<u64> = path(&returns, at).into_iter().flatten().collect();
                assert_eq!(leads, all[..count], "{count} of {all:?}");
            }
        }
    }
}
