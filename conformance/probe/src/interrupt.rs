//! The interrupt, by which the operator ends a run early (Ctrl-C).

use std::future::pending;

use tokio::sync::watch;

/// An interrupt by the operator. The default is never raised.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Option<watch::Receiver<bool>>);

impl Interrupt {
    /// Creates an interrupt, and the sender that raises it.
    pub fn new() -> (Interrupt, watch::Sender<bool>) {
        let (sender, receiver) = watch::channel(false);
        (Interrupt(Some(receiver)), sender)
    }

    /// Returns `true` if it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.as_ref().is_some_and(|receiver| *receiver.borrow())
    }

    /// Returns once it is raised.
    pub async fn wait_until_raised(&self) {
        let Some(mut receiver) = self.0.clone() else { return pending().await };
        // The sender was dropped, so it is never raised.
        if receiver.wait_for(|raised| *raised).await.is_err() {
            pending().await
        }
    }
}
