//! Faults that teams make with frameworks, ORMs, serializers, databases, caches and limiters.

pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod filters;
pub(crate) mod pages;

/// Returns `true` for the name of a query parameter that is a filter.
fn is_filter(name: &str) -> bool {
    matches!(name, "type" | "charge" | "invoice" | "status" | "payment_link")
}
