//! [`Load`]: clients that open charges, pay them, create other objects and move the clock until the program is
//! killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use super::objects::{AcknowledgedCharge, AcknowledgedObjects, create_objects_until_killed, open_charge};
use super::world::{AcknowledgedWrites, ServedProgram};
use testkit::Connection;

/// The number of clients that open charges.
const OPENING_CLIENTS: u32 = 3;
/// The number of the newest charges of each client that are repeated under their `Idempotency-Key`. The keys are
/// stored for 24 hours of the world, so older charges cannot be repeated.
const REPEATED_PER_CLIENT: usize = 7;

/// The running clients. All stop when the program is killed, because their connections break.
pub(crate) struct Load {
    openers: Vec<JoinHandle<Vec<AcknowledgedCharge>>>,
    creator: JoinHandle<AcknowledgedObjects>,
    others: Vec<JoinHandle<()>>,
    /// The number of requests for a charge so far.
    requested: Arc<AtomicUsize>,
}

impl Load {
    /// Starts the clients. `round` makes their idempotency keys unique.
    pub(crate) fn start(server: &ServedProgram, round: u32) -> Load {
        let requested = Arc::new(AtomicUsize::new(0));
        let openers = (0..OPENING_CLIENTS).map(|client| {
            let (address, key, requested) =
                (server.address().to_owned(), server.key().to_owned(), Arc::clone(&requested));
            thread::spawn(move || open_charges(&address, &key, &requested, &format!("{round}-{client}")))
        });
        let openers = openers.collect();
        let (address, key) = (server.address().to_owned(), server.key().to_owned());
        let paying = thread::spawn(move || pay(&address, &key).unwrap_or_default());
        let address = server.address().to_owned();
        let advancing = thread::spawn(move || advance_clock(&address).unwrap_or_default());
        let address = server.address().to_owned();
        let creator = thread::spawn(move || {
            let mut created = AcknowledgedObjects::default();
            // `None` means that the program was killed.
            let _ = create_objects_until_killed(&address, round, &mut created);
            created
        });
        Load { openers, creator, others: vec![paying, advancing], requested }
    }

    /// Waits for all clients and returns the acknowledged writes. The program must have ended.
    pub(crate) fn join(self) -> AcknowledgedWrites {
        let charges_by_client: Vec<Vec<AcknowledgedCharge>> =
            self.openers.into_iter().map(|opener| opener.join().unwrap_or_default()).collect();
        let objects = self.creator.join().unwrap_or_default();
        for other in self.others {
            // A panic was already printed.
            let _ = other.join();
        }
        AcknowledgedWrites {
            recent: newest_of_each_client(&charges_by_client),
            charges: charges_by_client.into_iter().flatten().collect(),
            requested: self.requested.load(Ordering::SeqCst),
            objects,
        }
    }
}

/// Returns the newest charges of each client.
fn newest_of_each_client(charges_by_client: &[Vec<AcknowledgedCharge>]) -> Vec<AcknowledgedCharge> {
    let newest = |charges: &Vec<AcknowledgedCharge>| {
        charges[charges.len().saturating_sub(REPEATED_PER_CLIENT)..].to_vec()
    };
    charges_by_client.iter().flat_map(newest).collect()
}

/// Opens charges until the connection breaks. Returns those with a complete response.
fn open_charges(
    address: &str,
    key: &str,
    requested: &AtomicUsize,
    order_prefix: &str,
) -> Vec<AcknowledgedCharge> {
    let mut charges = Vec::new();
    let Ok(mut connection) = Connection::open(address) else { return charges };
    for nth in 0.. {
        let order = format!("{order_prefix}-{nth}");
        let body = format!(
            r#"{{"asset":"BTC","amount":"{}.00","currency":"EUR","metadata":{{"order":"{order}"}}}}"#,
            nth % 90 + 10
        );
        requested.fetch_add(1, Ordering::SeqCst);
        match open_charge(&mut connection, (address, key), &order, &body) {
            Ok((201, created)) => {
                let charge = created["data"].clone();
                charges.push(AcknowledgedCharge { order, body, charge });
            }
            _ => break,
        }
    }
    charges
}

/// Pays the newest charge and mines a block, repeatedly, until the connection breaks.
fn pay(address: &str, key: &str) -> Option<()> {
    let mut connection = Connection::open(address).ok()?;
    loop {
        let newest = connection.call("GET", "/v1/charges?per_page=1", Some(key), "").ok()?.json();
        if let Some(code) = newest["data"][0]["code"].as_str() {
            connection.call("POST", "/sandbox/pay", None, &format!(r#"{{"charge":"{code}"}}"#)).ok()?;
        }
        connection.call("POST", "/sandbox/mine", None, r#"{"mode":"live","asset":"BTC","blocks":1}"#).ok()?;
    }
}

/// Moves the clock in small steps, until the connection breaks.
fn advance_clock(address: &str) -> Option<()> {
    let mut connection = Connection::open(address).ok()?;
    loop {
        connection.call("POST", "/sandbox/advance", None, r#"{"by":"20s"}"#).ok()?;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_newest_charges_of_every_client_are_repeated() {
        let charges = |client: &str, count: usize| -> Vec<AcknowledgedCharge> {
            let charge = |nth: usize| AcknowledgedCharge {
                order: format!("{client}-{nth}"),
                body: String::new(),
                charge: Value::Null,
            };
            (0..count).map(charge).collect()
        };
        let newest =
            newest_of_each_client(&[charges("a", REPEATED_PER_CLIENT + 2), charges("b", 0), charges("c", 1)]);
        let orders: Vec<&str> = newest.iter().map(|charge| charge.order.as_str()).collect();
        assert_eq!(orders, ["a-2", "a-3", "a-4", "a-5", "a-6", "a-7", "a-8", "c-0"]);
    }
}
