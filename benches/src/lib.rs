//! The shared code of the benchmarks: [`World`], a simulated world without a socket, and [`BenchDriver`], the service
//! alone.

mod driver;

pub use driver::BenchDriver;
use reference_core::{rng::Seed, time::Timestamp};
use reference_wire::{Request, Response};
use serde_json::Value;
use simulator::sandbox::{Sandbox, Setup};

/// A simulated world, called without a socket, with an API key for its requests.
pub struct World {
    sandbox: Sandbox,
    authorization: String,
}

impl World {
    /// Creates a world with a fixed seed and start, and without a rate limit, as is the default of [`Setup::new`].
    pub fn new() -> World {
        let sandbox = Sandbox::new(&Setup::new(
            Seed(1),
            Timestamp::parse("2026-01-05T09:00:00Z").expect("the constant is valid"),
            "https://pay.example",
        ));
        let authorization = format!("Bearer {}", sandbox.first_keys().live);
        World { sandbox, authorization }
    }

    /// Sends a request and returns the response, whatever its status.
    // Not inlined, so that profilers find the function by name.
    #[inline(never)]
    pub fn send(&mut self, method: &str, path: &str, body: &str) -> Response {
        let request = request(method, path, &self.authorization, body);
        let now = self.sandbox.now();
        self.sandbox.respond(now, &request)
    }

    /// Sends a request that must succeed; returns the body.
    ///
    /// # Panics
    ///
    /// Panics if the status is not 2xx.
    pub fn send_expecting_2xx(&mut self, method: &str, path: &str, body: &str) -> Value {
        let response = self.send(method, path, body);
        let text = String::from_utf8_lossy(&response.body);
        assert!(response.status < 300, "{method} {path}: {} {text}", response.status);
        serde_json::from_slice(&response.body).expect("responses are JSON")
    }

    /// Opens a charge and returns its id.
    pub fn open_charge(&mut self) -> String {
        let body = r#"{"asset":"BTC","amount":"49.90","currency":"EUR","metadata":{"order":7}}"#;
        let response = self.send_expecting_2xx("POST", "/v1/charges", body);
        response["data"]["id"].as_str().expect("a charge has an id").to_owned()
    }

    /// Opens a charge, pays it, mines the required blocks, and lets a second pass, in which its deliveries are made.
    pub fn complete_charge(&mut self) {
        let charge_id = self.open_charge();
        self.send_expecting_2xx("POST", "/sandbox/pay", &format!(r#"{{"charge":"{charge_id}"}}"#));
        self.send_expecting_2xx(
            "POST",
            "/sandbox/mine",
            r#"{"mode":"live","asset":"BTC","blocks":2,"at_once":true}"#,
        );
        self.send_expecting_2xx("POST", "/sandbox/advance", r#"{"by":"1s"}"#);
    }
}

/// Builds a request as the HTTP server passes it to the sandbox. `path` includes the query.
fn request<'a>(method: &'a str, path: &'a str, authorization: &'a str, body: &'a str) -> Request<'a> {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    Request {
        query,
        authorization: Some(authorization.as_bytes()),
        ..Request::json("https://pay.example", method, path, body)
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmark_world_completes_a_charge_with_its_deliveries() {
        let mut world = World::new();
        world.send_expecting_2xx(
            "POST",
            "/sandbox/endpoints",
            r#"{"mode":"live","url":"https://shop.sim/hooks"}"#,
        );
        world.complete_charge();
        let events = world.send_expecting_2xx("GET", "/v1/events", "");
        assert_eq!(events["meta"]["total"], 3);
        assert_eq!(events["data"][0]["type"], "charge.paid");
        let deliveries = world.send_expecting_2xx("GET", "/sandbox/deliveries", "");
        assert_eq!(deliveries["deliveries"].as_array().map(Vec::len), Some(3));
    }
}
