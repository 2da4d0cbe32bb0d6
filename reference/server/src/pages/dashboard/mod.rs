//! The dashboard: what the account owner sees and does.

use super::{Asset, Call};
use crate::{answer::Answer, refusal::Refusal};

/// The files that only the dashboard needs.
pub(super) static ASSETS: &[&Asset] = &[];

/// Answers a request under `/dashboard`.
pub(crate) async fn answer(call: &Call<'_>) -> Result<Answer, Refusal> {
    call.admit()?;
    Err(Refusal::NotFound)
}
