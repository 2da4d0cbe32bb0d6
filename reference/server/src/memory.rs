//! [`MemoryBudget`]: the memory limit of all worlds of a server, in estimated bytes. At the limit, requests that open or
//! change a world are refused.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

const MIB: u64 = 1_024 * 1_024;

/// The used and the maximum memory of all worlds of a server. The atomics order no other access.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    max_bytes: u64,
    used_bytes: AtomicU64,
}

/// The part of the budget that one owner, such as a world, uses. Returned on drop.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    used_bytes: AtomicU64,
    /// `true` if the owner must not exceed the limit.
    is_bounded: bool,
}

impl MemoryBudget {
    pub(crate) fn new(max_bytes: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget { max_bytes: max_bytes as u64, used_bytes: AtomicU64::new(0) })
    }

    /// Returns an empty share whose owner may exceed the limit.
    pub(crate) fn unbounded_share(self: &Arc<MemoryBudget>) -> MemoryShare {
        MemoryShare { budget: Arc::clone(self), used_bytes: AtomicU64::new(0), is_bounded: false }
    }

    /// Returns a bounded share of a number of bytes.
    ///
    /// # Errors
    ///
    /// The message, without a final period, if the limit would be exceeded.
    pub(crate) fn reserve(self: &Arc<MemoryBudget>, bytes: u64) -> Result<MemoryShare, String> {
        let add = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.max_bytes);
        match self.used_bytes.fetch_update(Relaxed, Relaxed, add) {
            Ok(_) => Ok(MemoryShare {
                budget: Arc::clone(self),
                used_bytes: AtomicU64::new(bytes),
                is_bounded: true,
            }),
            Err(_) => Err(self.limit_message()),
        }
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    fn limit_message(&self) -> String {
        let mib = |bytes: u64| format!("{}.{}", bytes / MIB, bytes % MIB * 10 / MIB);
        format!(
            "The worlds of this server use {} MiB of memory, at most {} MiB is allowed (serve --worlds-memory)",
            mib(self.used_bytes()),
            mib(self.max_bytes)
        )
    }
}

impl MemoryShare {
    /// Updates the number of bytes in use.
    pub(crate) fn set(&self, bytes: u64) {
        let before = self.used_bytes.swap(bytes, Relaxed);
        if bytes >= before {
            self.budget.used_bytes.fetch_add(bytes - before, Relaxed);
        } else {
            self.budget.used_bytes.fetch_sub(before - bytes, Relaxed);
        }
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// Returns an empty, unbounded share of the same budget, for data that has its own limit.
    pub(crate) fn unbounded_share(&self) -> MemoryShare {
        self.budget.unbounded_share()
    }

    /// Returns the error message, without a final period, if the owner may not use more memory; `None` if it may.
    pub(crate) fn limit_error(&self) -> Option<String> {
        (self.is_bounded && self.budget.used_bytes() >= self.budget.max_bytes)
            .then(|| self.budget.limit_message())
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_memory_is_the_sum_of_all_worlds() {
        let budget = MemoryBudget::new(10 << 20);
        let first = budget.unbounded_share();
        let second = budget.reserve(4 << 20).expect("memory is available");
        assert_eq!(
            budget.reserve((6 << 20) + 1).expect_err("the limit is exceeded"),
            "The worlds of this server use 4.0 MiB of memory, at most 10.0 MiB is allowed (serve --worlds-memory)"
        );
        first.set(6 << 20);
        assert!(
            second.limit_error().is_some() && first.limit_error().is_none(),
            "the first share is not bounded"
        );
        first.set(1 << 20);
        second.set(2 << 20);
        assert_eq!((budget.used_bytes(), second.limit_error()), (3 << 20, None));
        drop(second);
        assert_eq!(budget.used_bytes(), 1 << 20);
    }
}
