//! When a delivery is tried again, and when that ends. The service has its own copy: whoever judges it must not read
//! the schedule from what is judged.

use reference_core::time::Span;

/// From the end of a failed attempt to the next; the last repeats.
pub const DELAYS: [Span; 8] = [
    Span::mins(1),
    Span::mins(5),
    Span::mins(30),
    Span::hours(1),
    Span::hours(2),
    Span::hours(4),
    Span::hours(8),
    Span::hours(10),
];
/// Attempts of a delivery before it has failed.
pub const TRIES: usize = 14;
/// So many failed deliveries in a row switch an endpoint off.
pub const FAILED_IN_A_ROW: u32 = 15;
