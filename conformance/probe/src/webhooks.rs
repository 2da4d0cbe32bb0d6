//! The source of a check's deliveries: a receiver of its own, or captured requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use conformance_model::deliveries::Registration;
use conformance_receiver::{Catch, Caught, Endpoint, Names};

/// The plan for deliveries.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// The names of the headers and of the sender.
    pub names: Names,
    /// The source of deliveries.
    pub source: Source,
    /// Under which address the service reaches the receiver, if it is another than it listens on.
    pub public_url: Option<String>,
}

/// The source of deliveries.
#[derive(Clone, Debug)]
pub enum Source {
    /// A receiver that has been listening since before the run.
    Receiver {
        /// The received requests.
        catch: Arc<Catch>,
        /// The time to listen from the first requests on, if nobody reports that all have arrived. The rest of the
        /// run happens meanwhile.
        receive_for: Duration,
        /// The cause of deliveries. Without one the operator must cause them.
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

/// The future that causes deliveries.
pub type Causing<'a> = Pin<Box<dyn Future<Output = Result<Caused, String>> + 'a>>;

/// A cause of deliveries.
pub trait Occasion: fmt::Debug + Send + Sync {
    /// Makes them happen. Endpoints that come to be on the way are declared to the catch. The error says why
    /// it could not be done.
    fn cause<'a>(&'a self, catch: &'a Catch) -> Causing<'a>;
}

/// The caused deliveries.
#[derive(Clone, Debug, Default)]
pub struct Caused {
    /// `true` if every delivery has been sent.
    pub settled: bool,
    /// Addresses that were given to the service as endpoints.
    pub registrations: Vec<Registration>,
}
