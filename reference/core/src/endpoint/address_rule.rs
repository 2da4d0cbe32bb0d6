//! The rule that a webhook address is reachable from the open internet.
