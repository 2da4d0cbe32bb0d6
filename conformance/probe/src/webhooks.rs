//! How a check gets to see deliveries: from a receiver of its own, or from requests that were captured.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use conformance_model::deliveries::Registration;
use conformance_receiver::{Catch, Caught, Endpoint, Names};

/// What a plan says about deliveries.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// What the headers are called, and the sender.
    pub names: Names,
    /// Where deliveries come from.
    pub source: Source,
    /// Under which address the service reaches the receiver, if it is another than it listens on.
    pub public_url: Option<String>,
}

/// Where deliveries come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A receiver that has been listening since before the run.
    Receiver {
        /// What it has caught.
        catch: Arc<Catch>,
        /// How long to listen from the first requests on, if nobody says when all has come. What else the run does
        /// passes meanwhile.
        receive_for: Duration,
        /// Who causes deliveries. If nobody does, the operator must.
        occasion: Option<Arc<dyn Occasion>>,
    },
    /// Requests that were caught earlier.
    Captured {
        /// The requests in order.
        caught: Vec<Caught>,
        /// The endpoints that they came to.
        endpoints: Vec<Endpoint>,
    },
}

/// Somebody is making deliveries happen.
pub type Causing<'a> = Pin<Box<dyn Future<Output = Result<Caused, String>> + 'a>>;

/// Who makes deliveries happen.
pub trait Occasion: fmt::Debug + Send + Sync {
    /// Makes them happen. Endpoints that come to be on the way are declared to the catch. The error says why
    /// it could not be done.
    fn cause<'a>(&'a self, catch: &'a Catch) -> Causing<'a>;
}

/// What has been made to happen.
#[derive(Clone, Debug, Default)]
pub struct Caused {
    /// Whether everything that was to be delivered has been.
    pub settled: bool,
    /// Addresses that were given to the service as endpoints.
    pub registrations: Vec<Registration>,
}
