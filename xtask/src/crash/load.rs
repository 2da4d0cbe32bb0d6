//! [`Load`]: clients that open charges, pay them and move the clock until the program is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use super::objects::{AcknowledgedCharge, AcknowledgedObjects, create, open_charge};
use super::world::{AcknowledgedWrites, ServedProgram};
use testkit::Connection;

/// The number of clients that open charges.
const OPENING_CLIENTS: u32 = 3;

/// The running clients. All stop when the program is killed, because their connections break.
pub(crate) struct Load {
    openers: Vec<JoinHandle<Vec<AcknowledgedCharge>>>,
    creator: JoinHandle<AcknowledgedObjects>,
    others: Vec<JoinHandle<()>>,
    requested: Arc<AtomicUsize>,
}

impl Load {
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
            // An error means that the program was killed.
            let _ = create(&address, round, &mut created);
            created
        });
        Load { openers, creator, others: vec![paying, advancing], requested }
    }

    /// Waits for all clients and returns the acknowledged writes. The program must have ended.
    pub(crate) fn stop(self) -> AcknowledgedWrites {
        let charges = self.openers.into_iter().flat_map(|opener| opener.join().unwrap_or_default()).collect();
        let objects = self.creator.join().unwrap_or_default();
        for other in self.others {
            // A panic was already printed.
            let _ = other.join();
        }
        AcknowledgedWrites {
            charges,
            recent: Vec::new(),
            requested: self.requested.load(Ordering::SeqCst),
            objects,
        }
    }
}

/// Opens charges until the connection breaks. Returns those with a complete response.
fn open_charges(address: &str, key: &str, requested: &AtomicUsize, name: &str) -> Vec<AcknowledgedCharge> {
    let mut charges = Vec::new();
    let Ok(mut connection) = Connection::open(address) else { return charges };
    for nth in 0.. {
        let order = format!("{name}-{nth}");
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

/// Pays the newest charge repeatedly and mines blocks.
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

/// Moves the clock in small steps.
fn advance_clock(address: &str) -> Option<()> {
    let mut connection = Connection::open(address).ok()?;
    loop {
        connection.call("POST", "/sandbox/advance", None, r#"{"by":"20s"}"#).ok()?;
    }
}
