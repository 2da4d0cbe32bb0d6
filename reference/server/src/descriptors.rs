//! The division of file descriptors between client connections and deliveries.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of descriptors for the rest of the process: files, pipes, the runtime.
const OTHER_DESCRIPTORS: usize = 64;

/// Returns the number of client connections to allow, at most `wanted`, so that `delivery_descriptors` remain for
/// deliveries. Raises the soft limit of the process as needed.
pub(crate) fn connection_limit(wanted: usize, delivery_descriptors: usize) -> usize {
    let reserve = delivery_descriptors.saturating_add(OTHER_DESCRIPTORS);
    let limits = getrlimit(Resource::Nofile);
    let Some(soft) = limits.current else { return wanted };
    let needed = u64::try_from(wanted.saturating_add(reserve)).unwrap_or(u64::MAX);
    let raised = needed.min(limits.maximum.unwrap_or(u64::MAX));
    let is_raised = raised > soft
        && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limits.maximum }).is_ok();
    let limit = if is_raised { raised } else { soft };
    divide(wanted, reserve, usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Returns the number of descriptors for connections, at least 1. If `limit` is too low for both, the reserve is at
/// most half of it.
fn divide(wanted: usize, reserve: usize, limit: usize) -> usize {
    wanted.min(limit - reserve.min(limit / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: usize, reserve: usize, limit: usize, expected: usize) {
        assert_eq!(divide(wanted, reserve, limit), expected, "{wanted} {reserve} {limit}");
    }

    #[test]
    fn deliveries_keep_their_reserve() {
        check(1_024, 448, 65_536, 1_024);
        check(1_024, 448, 1_472, 1_024);
        check(1_024, 448, 1_024, 576);
        check(1_024, 448, 256, 128);
        check(1_024, 448, 0, 1);
        check(2, 448, 1_024, 2);
    }

    #[test]
    fn the_system_limit_allows_at_least_one_connection() {
        assert!((1..=16).contains(&connection_limit(16, 16)));
    }
}
