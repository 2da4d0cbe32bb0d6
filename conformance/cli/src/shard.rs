//! [`Shard`]: the part of a sweep's seeds that this machine runs. No I/O: the caller provides the
//! environment variables.

use std::str::FromStr;

/// The maximum number of seeds of the next shard that a shard may also run, to compare machines.
const OVERLAP: u64 = 64;

/// One of several equal parts of a sweep, with an index from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shard {
    pub(crate) index: u64,
    pub(crate) count: u64,
}

/// The value of `--shard`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardChoice {
    /// `3/8`
    Explicit(Shard),
    /// `auto`: the shard is read from variables of the CI system.
    Auto,
}

impl FromStr for ShardChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<ShardChoice, String> {
        if text == "auto" {
            return Ok(ShardChoice::Auto);
        }
        let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let shard = numbers.and_then(|(index, count)| Shard::new(index, count));
        shard.map(ShardChoice::Explicit).ok_or_else(|| {
            "allowed: `auto`, or the number of the shard and of all shards, such as 3/8".to_owned()
        })
    }
}

/// The environment variables of a CI system or scheduler with the index and the number of shards.
struct IndexVariables {
    index: &'static str,
    /// The index of the first shard.
    first: FirstIndex,
    count: &'static str,
}

enum FirstIndex {
    Zero,
    One,
    /// The value of the variable with this name.
    Variable(&'static str),
}

/// The variables of the supported systems. Those of this program come first and override the others.
const CI_SYSTEMS: [IndexVariables; 8] = [
    IndexVariables { index: "CHARGEPROOF_SHARD", first: FirstIndex::One, count: "CHARGEPROOF_SHARDS" },
    IndexVariables {
        index: "SLURM_ARRAY_TASK_ID",
        first: FirstIndex::Variable("SLURM_ARRAY_TASK_MIN"),
        count: "SLURM_ARRAY_TASK_COUNT",
    },
    // A Kubernetes Indexed Job does not pass the number of its tasks to them.
    IndexVariables { index: "JOB_COMPLETION_INDEX", first: FirstIndex::Zero, count: "CHARGEPROOF_SHARDS" },
    IndexVariables { index: "CI_NODE_INDEX", first: FirstIndex::One, count: "CI_NODE_TOTAL" },
    IndexVariables { index: "CIRCLE_NODE_INDEX", first: FirstIndex::Zero, count: "CIRCLE_NODE_TOTAL" },
    IndexVariables {
        index: "BUILDKITE_PARALLEL_JOB",
        first: FirstIndex::Zero,
        count: "BUILDKITE_PARALLEL_JOB_COUNT",
    },
    IndexVariables { index: "SEMAPHORE_JOB_INDEX", first: FirstIndex::One, count: "SEMAPHORE_JOB_COUNT" },
    IndexVariables {
        index: "SYSTEM_JOBPOSITIONINPHASE",
        first: FirstIndex::One,
        count: "SYSTEM_TOTALJOBSINPHASE",
    },
];

impl Shard {
    /// The only shard of a sweep that is not divided.
    pub(crate) const SINGLE: Shard = Shard { index: 1, count: 1 };

    fn new(index: u64, count: u64) -> Option<Shard> {
        (1..=count).contains(&index).then_some(Shard { index, count })
    }

    /// Returns the shard named by the variables of a CI system.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Shard, String> {
        let system = CI_SYSTEMS.iter().find(|system| variable(system.index).is_some()).ok_or_else(|| {
            let names: Vec<&str> = CI_SYSTEMS.iter().map(|system| system.index).collect();
            format!("the shard is unknown: none of {} is set; name it, such as --shard 3/8", names.join(", "))
        })?;
        let number = |name: &str| {
            let text =
                variable(name).ok_or_else(|| format!("`{}` is set, but not `{name}`", system.index))?;
            text.parse::<u64>().map_err(|_| format!("`{name}` is `{text}`; allowed: a whole number"))
        };
        let (index, count) = (number(system.index)?, number(system.count)?);
        let first = match system.first {
            FirstIndex::Zero => 0,
            FirstIndex::One => 1,
            FirstIndex::Variable(name) => number(name)?,
        };
        let index = index.checked_sub(first).map(|index| index + 1);
        index.and_then(|index| Shard::new(index, count)).ok_or_else(|| {
            format!(
                "`{}` and `{}` do not name a shard: the first index is {first}, and there are {count} shards",
                system.index, system.count
            )
        })
    }

    /// Returns the first seed of the shard, counted from the first seed of the sweep, and the number of seeds.
    pub(crate) fn range(self, seeds: u64) -> (u64, u64) {
        let boundary = |n: u64| {
            u64::try_from(u128::from(seeds) * u128::from(n) / u128::from(self.count)).unwrap_or(u64::MAX)
        };
        let begin = boundary(self.index - 1);
        (begin, boundary(self.index) - begin)
    }

    /// Returns the seeds of the next shard that this one may also run, in the form of `range`. The next
    /// shard of the last one is the first. A single shard has no overlap.
    pub(crate) fn overlap(self, seeds: u64) -> (u64, u64) {
        if self.count == 1 {
            return (0, 0);
        }
        let next = Shard { index: self.index % self.count + 1, count: self.count };
        let (begin, count) = next.range(seeds);
        (begin, count.min(OVERLAP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_every_seed_once() {
        for (seeds, count) in [(10, 3), (3, 8), (1_000, 7), (u64::MAX, 5), (0, 2)] {
            let mut next = 0;
            for index in 1..=count {
                let (begin, length) = Shard { index, count }.range(seeds);
                assert_eq!(begin, next, "{index}/{count} of {seeds}");
                next = begin + length;
            }
            assert_eq!(next, seeds);
        }
    }

    #[test]
    fn each_shard_overlaps_the_next() {
        let overlap = |index| Shard { index, count: 3 }.overlap(3_000);
        assert_eq!([overlap(1), overlap(2), overlap(3)], [(1_000, 64), (2_000, 64), (0, 64)]);
        assert_eq!(Shard { index: 1, count: 2 }.overlap(10), (5, 5));
        assert_eq!(Shard::SINGLE.overlap(1_000), (0, 0));
    }

    #[track_caller]
    fn check_shard(variables: &[(&str, &str)], expected: Result<(u64, u64), &str>) {
        let get = |name: &str| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        };
        match (Shard::from_environment(get), expected) {
            (Ok(shard), expected) => assert_eq!(Ok((shard.index, shard.count)), expected),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (Err(why), Ok(_)) => panic!("{why}"),
        }
    }

    #[test]
    fn ci_variables_select_the_shard() {
        check_shard(
            &[("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_MIN", "5"), ("SLURM_ARRAY_TASK_COUNT", "4")],
            Ok((3, 4)),
        );
        check_shard(&[("JOB_COMPLETION_INDEX", "0"), ("CHARGEPROOF_SHARDS", "12")], Ok((1, 12)));
        check_shard(&[("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "2")], Ok((2, 2)));
        check_shard(&[("CIRCLE_NODE_INDEX", "1"), ("CIRCLE_NODE_TOTAL", "2")], Ok((2, 2)));
        check_shard(
            &[("CHARGEPROOF_SHARD", "3"), ("CHARGEPROOF_SHARDS", "3"), ("CI_NODE_INDEX", "1")],
            Ok((3, 3)),
        );
        check_shard(&[], Err("none of CHARGEPROOF_SHARD, "));
        check_shard(&[("JOB_COMPLETION_INDEX", "0")], Err("not `CHARGEPROOF_SHARDS`"));
        check_shard(&[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "2")], Err("do not name a shard"));
        check_shard(&[("CI_NODE_INDEX", "x"), ("CI_NODE_TOTAL", "2")], Err("is `x`"));
    }

    #[test]
    fn shard_choices_are_parsed() {
        assert_eq!("3/8".parse(), Ok(ShardChoice::Explicit(Shard { index: 3, count: 8 })));
        assert_eq!("auto".parse(), Ok(ShardChoice::Auto));
        for invalid in ["0/8", "9/8", "3", "3/0", "/", "-1/2", ""] {
            assert!(invalid.parse::<ShardChoice>().is_err(), "{invalid}");
        }
    }
}
