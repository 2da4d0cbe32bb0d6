//! Opens a connection to an endpoint: name lookup, address rule, TCP and TLS, with one deadline for all. The error
//! names the step that exceeded it.

use std::net::{IpAddr, SocketAddr};

use reference_core::{
    endpoint::address_rule::{self, EndpointUrl, Host, Refusal},
    outbox::{AttemptResult, HttpTrace},
};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};

use super::{
    LOCAL_HINT, Tenant, WebhookSender,
    forward::{self, NameSource, Target},
    lookups::LookupConsumer,
};

/// A connection to a receiver.
pub(super) trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection for S {}

impl WebhookSender {
    /// Connects to the receiver: to an address of the forward's `target` if there is one, otherwise to a checked address of
    /// the endpoint. Writes the address and a note about the forward to `trace`.
    pub(super) async fn connect(
        &self,
        tenant: Tenant,
        url: &EndpointUrl,
        target: Option<&Target>,
        trace: &mut HttpTrace,
    ) -> Result<Box<dyn Connection>, AttemptResult> {
        let consumer = LookupConsumer::Delivery(tenant);
        let deadline = Instant::now() + self.bounds.connect_timeout;
        let addresses = match target {
            Some(target) => self.forward_addresses(&consumer, target, deadline).await?,
            None => self.public_addresses(&consumer, url, deadline).await?,
        };
        // Set before connecting, in case no address accepts the connection.
        trace.note = target.zip(addresses.first()).map(|(target, first)| target.log_note(first.ip()));
        let stream = connect_first(&addresses, deadline).await?;
        let address = stream.peer_addr().map_err(|error| unreachable_error(&url.host(), &error))?;
        trace.address = Some(address.to_string());
        trace.note = target.map(|target| target.log_note(address.ip()));
        // A request is one write, which Nagle's algorithm would only delay.
        let _ = stream.set_nodelay(true);
        if target.is_some_and(|target| !target.is_encrypted) {
            return Ok(Box::new(stream));
        }
        let host = match target {
            Some(Target { name_source: NameSource::Target, host, .. }) => host,
            _ => url.host(),
        };
        let name = match host {
            Host::Address(ip) => ServerName::IpAddress((*ip).into()),
            Host::Name(name) => {
                ServerName::try_from(name.clone()).map_err(|error| unreachable_error(host, &error))?
            }
        };
        let encrypted = timeout_at(deadline, self.tls.connect(name, stream)).await;
        let encrypted = encrypted.map_err(|_| unreachable_error(&address, &"TLS: no handshake in time"))?;
        Ok(Box::new(encrypted.map_err(|error| unreachable_error(&address, &format!("TLS: {error}")))?))
    }

    /// Returns the addresses of the endpoint's host, after checking that all are public.
    async fn public_addresses(
        &self,
        consumer: &LookupConsumer,
        url: &EndpointUrl,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, AttemptResult> {
        let host = url.host();
        let addresses = self.addresses(consumer, host, deadline).await?;
        match address_rule::check_resolved(&addresses) {
            Ok(()) => Ok(with_port(addresses, url.port())),
            // Not a violation of the address rule, and possibly temporary.
            Err(refusal @ Refusal::Unresolved) => Err(unreachable_error(host, &refusal)),
            Err(refusal) if forward::is_local(&refusal) => {
                Err(AttemptResult::NotPublic(format!("{host}: {refusal}; {LOCAL_HINT}")))
            }
            Err(refusal) => Err(AttemptResult::NotPublic(format!("{host}: {refusal}"))),
        }
    }

    /// Returns the addresses of a forward's target, to which the address rule does not apply.
    async fn forward_addresses(
        &self,
        consumer: &LookupConsumer,
        target: &Target,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, AttemptResult> {
        let addresses = self.addresses(consumer, &target.host, deadline).await?;
        if addresses.is_empty() {
            return Err(unreachable_error(&target.host, &Refusal::Unresolved));
        }
        Ok(with_port(addresses, target.port))
    }

    /// Returns the addresses of a host; an IP address needs no lookup.
    async fn addresses(
        &self,
        consumer: &LookupConsumer,
        host: &Host,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, AttemptResult> {
        match host {
            Host::Address(ip) => Ok(vec![*ip]),
            Host::Name(name) => self
                .lookups
                .resolve(consumer, name, deadline)
                .await
                .map_err(|error| unreachable_error(host, &error)),
        }
    }
}

/// Connects to the first address that accepts. Each attempt gets an equal share of the remaining time, so an address
/// that never responds leaves time for the others.
async fn connect_first(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, AttemptResult> {
    let mut last_error = None;
    for (address, remaining) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let timeout_share = deadline.saturating_duration_since(Instant::now())
            / u32::try_from(remaining).expect("a name has fewer than 2^32 addresses");
        match timeout(timeout_share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last_error = Some(unreachable_error(address, &error)),
            Err(_) => last_error = Some(unreachable_error(address, &"no connection in time")),
        }
    }
    Err(last_error.expect("a checked host has an address"))
}

fn with_port(addresses: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
}

fn unreachable_error(target: &dyn std::fmt::Display, why: &dyn std::fmt::Display) -> AttemptResult {
    AttemptResult::Unreachable(format!("{target}: {why}"))
}
