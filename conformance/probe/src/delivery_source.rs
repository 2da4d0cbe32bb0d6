//! The source of a check's deliveries: a receiver, or captured requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use conformance_model::deliveries::Registration;
use conformance_receiver::{BackgroundReceiver, Endpoint, ReceivedRequest, WebhookNames};

/// The webhook part of a plan.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// The names of the headers and of the sender.
    pub names: WebhookNames,
    /// The source of deliveries.
    pub source: DeliverySource,
    /// The address by which the service reaches the receiver, if it differs from the local one.
    pub public_url: Option<String>,
}

/// The source of deliveries.
#[derive(Clone, Debug)]
pub enum DeliverySource {
    /// A receiver that was started before the run.
    Receiver {
        /// The running receiver.
        receiver: Arc<BackgroundReceiver>,
        /// The time to receive deliveries, counted from the first requests of the run. Ends earlier if the trigger
        /// reports that every delivery has been sent, or when every event type was delivered.
        receive_for: Duration,
        /// The trigger of deliveries. Without one the operator must cause them.
        trigger: Option<Arc<dyn DeliveryTrigger>>,
    },
    /// Requests that were captured earlier.
    Captured {
        /// The requests in order.
        received: Vec<ReceivedRequest>,
        /// The endpoints that received them.
        endpoints: Vec<Endpoint>,
    },
}

/// The future that causes deliveries.
pub type TriggerFuture<'a> = Pin<Box<dyn Future<Output = Result<TriggeredDeliveries, String>> + 'a>>;

/// A trigger of deliveries.
pub trait DeliveryTrigger: fmt::Debug + Send + Sync {
    /// Causes deliveries, and declares new endpoints to the receiver. The error is the reason why this failed.
    fn trigger<'a>(&'a self, receiver: &'a BackgroundReceiver) -> TriggerFuture<'a>;
}

/// The result of a trigger.
#[derive(Clone, Debug, Default)]
pub struct TriggeredDeliveries {
    /// `true` if every delivery has been sent.
    pub settled: bool,
    /// The addresses that were registered as endpoints.
    pub registrations: Vec<Registration>,
}
