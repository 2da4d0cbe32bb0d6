//! The pages that customers see: checkout and receipt, payment link, invoice and its document.

use super::{Asset, Call};
use crate::{answer::Answer, refusal::Refusal};

/// The files that only hosted pages need.
pub(super) static ASSETS: &[&Asset] = &[];

/// Answers a request under `/c`, `/pay` or `/i`.
pub(crate) async fn answer(_call: &Call<'_>) -> Result<Answer, Refusal> {
    Err(Refusal::NotFound)
}
