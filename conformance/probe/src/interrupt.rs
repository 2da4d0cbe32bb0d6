//! The operator's interrupt, which ends a run early.

use std::future::pending;

use tokio::sync::watch;

/// The operator's interrupt. The default is never raised.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Option<watch::Receiver<bool>>);

impl Interrupt {
    /// An interrupt, and what raises it.
    pub fn new() -> (Interrupt, watch::Sender<bool>) {
        let (sender, receiver) = watch::channel(false);
        (Interrupt(Some(receiver)), sender)
    }

    /// Returns `true` if it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.as_ref().is_some_and(|it| *it.borrow())
    }

    /// Returns once it is raised.
    pub async fn raised(&self) {
        let Some(mut receiver) = self.0.clone() else { return pending().await };
        // Whoever can raise it is gone: it never will be.
        if receiver.wait_for(|it| *it).await.is_err() {
            pending().await
        }
    }
}
