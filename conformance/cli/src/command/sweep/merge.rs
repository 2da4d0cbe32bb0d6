//! Merges the results of shards. The order of the files and duplicates do not matter, and missing shards are listed.

use std::collections::BTreeMap;

use super::{
    SweepTotals,
    shard_result::{ShardResult, ShardResults, SweepSettings},
};
use crate::signals::INTERRUPTED;

/// A sweep that was merged from the results of its shards.
pub(super) struct MergedSweep {
    pub(super) sweep: SweepSettings,
    /// The results by shard.
    pub(super) results: BTreeMap<u64, ShardResult>,
    /// The shards without a complete result.
    pub(super) missing_shards: Vec<u64>,
    /// Messages about results that differ between machines.
    pub(super) conflicts: Vec<String>,
    /// The number of simulations whose digests from two machines are equal.
    pub(super) compared: usize,
    pub(super) totals: SweepTotals,
}

impl MergedSweep {
    /// Returns the exit code: 130 interrupted · 5 results of machines differ, so one machine is
    /// faulty · 1 an invariant was violated · 3 shards are missing · 0 success.
    pub(super) fn exit_code(&self) -> u8 {
        match (self.conflicts.is_empty(), self.totals.exit_code(), self.missing_shards.is_empty()) {
            _ if self.totals.interrupted => INTERRUPTED,
            (false, ..) => 5,
            (true, 0, false) => 3,
            (true, code, _) => code,
        }
    }

    /// Returns the merged results as a file, which can be merged with others.
    pub(super) fn file(&self) -> ShardResults {
        ShardResults::new(self.sweep.clone(), self.results.values().cloned().collect())
    }
}

/// Merges files, each with its name. Returns an error if a file is of another sweep or contains
/// names that this program does not know.
pub(super) fn merge(files: Vec<(String, ShardResults)>) -> Result<MergedSweep, String> {
    let mut files = files.into_iter();
    let (first_name, first) = files.next().ok_or("there is nothing to merge")?;
    let sweep = first.sweep.clone();
    let mut results: BTreeMap<u64, ShardResult> = BTreeMap::new();
    let mut conflicts = Vec::new();
    for (name, file) in std::iter::once((first_name.clone(), first)).chain(files) {
        if file.sweep != sweep {
            return Err(format!(
                "`{name}` is of another sweep than `{first_name}`: {:?} instead of {:?}",
                file.sweep, sweep
            ));
        }
        for result in file.results {
            match results.get_mut(&result.shard) {
                None => drop(results.insert(result.shard, result)),
                // Any result replaces one of an interrupted run, which never replaces a complete result.
                Some(existing) if !existing.is_complete(&sweep) => *existing = result,
                Some(_) if !result.is_complete(&sweep) => {}
                Some(existing) if !existing.has_same_results(&result) => {
                    conflicts.push(format!("shard {} has two results that differ", result.shard));
                }
                Some(existing) if result.speed_rank() < existing.speed_rank() => *existing = result,
                Some(_) => {}
            }
        }
    }
    let digests: BTreeMap<u64, &String> =
        results.values().flat_map(|result| &result.digests).map(|(seed, digest)| (*seed, digest)).collect();
    let mut compared = 0;
    for result in results.values() {
        for (seed, digest) in &result.overlap {
            match digests.get(seed) {
                Some(other) if *other != digest => {
                    conflicts.push(format!(
                        "seed {seed} had a different result on the machine of shard {}",
                        result.shard
                    ));
                }
                Some(_) => compared += 1,
                None => {}
            }
        }
    }
    conflicts.sort();
    conflicts.dedup();
    let missing_shards = (1..=sweep.shards)
        .filter(|shard| !results.get(shard).is_some_and(|result| result.is_complete(&sweep)))
        .collect();
    let mut totals = SweepTotals { start_seed: sweep.from, ..SweepTotals::default() };
    for result in results.values() {
        result.add_to(&mut totals)?;
    }
    Ok(MergedSweep { sweep, results, missing_shards, conflicts, compared, totals })
}

#[cfg(test)]
mod tests {
    use simulator::sweep::Verdict;

    use super::*;
    use crate::shard::Shard;

    const SHARDS: u64 = 3;

    /// Returns the name and the result file of a shard of a sweep with 30 simulations. `change` may
    /// alter its totals and the digests of the overlap.
    fn shard_file(
        index: u64,
        change: impl FnOnce(&mut SweepTotals, &mut BTreeMap<u64, String>),
    ) -> (String, ShardResults) {
        let shard = Shard { index, count: SHARDS };
        let seeds_with_digests =
            |(begin, count): (u64, u64)| (begin..begin + count).map(|seed| (seed, format!("d{seed}")));
        let mut totals = SweepTotals::default();
        for (seed, digest) in seeds_with_digests(shard.range(30)) {
            totals.add(seed, Verdict { digest: Some(digest), events: 2, ..Verdict::default() });
        }
        let mut overlap = seeds_with_digests(shard.overlap(30)).collect();
        change(&mut totals, &mut overlap);
        let sweep = SweepSettings { program_version: "1".to_owned(), from: 0, seeds: 30, shards: SHARDS };
        (
            format!("{index}.json"),
            ShardResults::new(sweep, vec![ShardResult::from_totals(shard, &totals, overlap)]),
        )
    }

    fn unchanged_shard(index: u64) -> (String, ShardResults) {
        shard_file(index, |_, _| {})
    }

    #[track_caller]
    fn check_merge(
        files: Vec<(String, ShardResults)>,
        code: u8,
        missing_shards: &[u64],
        conflicts: &[&str],
    ) -> MergedSweep {
        let merged = merge(files).expect("the files are of one sweep");
        assert_eq!((merged.exit_code(), merged.missing_shards.as_slice()), (code, missing_shards));
        assert_eq!(merged.conflicts, conflicts);
        merged
    }

    #[test]
    fn order_and_duplicates_do_not_matter() {
        let once = check_merge(vec![unchanged_shard(1), unchanged_shard(2), unchanged_shard(3)], 0, &[], &[]);
        let with_duplicates = check_merge(
            vec![
                unchanged_shard(3),
                unchanged_shard(1),
                unchanged_shard(3),
                unchanged_shard(2),
                unchanged_shard(1),
            ],
            0,
            &[],
            &[],
        );
        assert_eq!(once.file(), with_duplicates.file());
        assert_eq!((once.totals.simulations, once.totals.events, once.compared), (30, 60, 30));
        let merged_in_steps = merge(vec![
            ("a".to_owned(), merge(vec![unchanged_shard(2), unchanged_shard(3)]).unwrap().file()),
            unchanged_shard(1),
        ]);
        assert_eq!(merged_in_steps.unwrap().file(), once.file());
        let text = once.file().to_text();
        assert_eq!(ShardResults::parse(&text), Ok(once.file()));
    }

    #[test]
    fn missing_shards_are_named() {
        check_merge(vec![unchanged_shard(2)], 3, &[1, 3], &[]);
    }

    #[test]
    fn an_interrupted_shard_counts_as_missing() {
        let interrupted = || shard_file(2, |totals, _| totals.simulations -= 1);
        check_merge(vec![unchanged_shard(1), interrupted(), unchanged_shard(3)], 3, &[2], &[]);
        let complete =
            check_merge(vec![unchanged_shard(1), unchanged_shard(2), unchanged_shard(3)], 0, &[], &[]);
        for files in [
            vec![unchanged_shard(1), interrupted(), unchanged_shard(2), unchanged_shard(3)],
            vec![unchanged_shard(1), unchanged_shard(2), interrupted(), unchanged_shard(3)],
        ] {
            assert_eq!(check_merge(files, 0, &[], &[]).file(), complete.file());
        }
    }

    #[test]
    fn the_faster_of_two_equal_results_is_kept() {
        let slow = || shard_file(1, |totals, _| totals.elapsed = std::time::Duration::from_secs(9));
        let merged = check_merge(vec![unchanged_shard(1), slow()], 3, &[2, 3], &[]);
        assert_eq!(merged.file(), check_merge(vec![slow(), unchanged_shard(1)], 3, &[2, 3], &[]).file());
        assert_eq!(merged.totals.elapsed, std::time::Duration::ZERO);
    }

    #[test]
    fn different_results_of_two_machines_are_reported() {
        let other = shard_file(2, |totals, _| totals.events += 1);
        check_merge(
            vec![unchanged_shard(1), unchanged_shard(2), unchanged_shard(3), other],
            5,
            &[],
            &["shard 2 has two results that differ"],
        );
        let different_overlap = shard_file(1, |_, overlap| drop(overlap.insert(10, "other".to_owned())));
        let conflict = "seed 10 had a different result on the machine of shard 1";
        check_merge(vec![different_overlap, unchanged_shard(2), unchanged_shard(3)], 5, &[], &[conflict]);
    }

    #[test]
    fn results_of_another_sweep_are_refused() {
        let (name, mut other) = unchanged_shard(2);
        other.sweep.from = 7;
        assert!(
            merge(vec![unchanged_shard(1), (name, other)]).is_err_and(|why| why.contains("another sweep"))
        );
        assert!(ShardResults::parse("{}").is_err());
        assert!(
            ShardResults::parse(&unchanged_shard(1).1.to_text().replace("\"format\": 1", "\"format\": 2"))
                .is_err()
        );
    }
}
