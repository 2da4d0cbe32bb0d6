//! From an endpoint's URL to a connection that may be spoken on.

use std::net::{IpAddr, SocketAddr};

use reference_core::{
    endpoint::address_rule::{self, EndpointUrl, Host, Refusal},
    outbox::{Outcome, Trace},
};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout},
};

use super::{Courier, forward::Target};

/// A connection to a receiver.
pub(super) trait Line: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Line for S {}

impl Courier {
    /// Connects to one of the addresses that were judged, and to nothing else.
    pub(super) async fn connect(
        &self,
        url: &EndpointUrl,
        trace: &mut Trace,
    ) -> Result<Box<dyn Line>, Outcome> {
        let target = self.forwards.iter().find(|forward| forward.serves(url)).map(|forward| &forward.target);
        let addresses = match target {
            Some(target) => self.forwarded(target).await?,
            None => self.judged(url).await?,
        };
        trace.note = target.zip(addresses.first()).map(|(target, first)| target.note(first.ip()));
        let stream = self.first_that_connects(&addresses).await?;
        let reached = stream.peer_addr().map_err(|error| unreachable(&url.host(), &error))?;
        trace.address = Some(reached.to_string());
        trace.note = target.map(|target| target.note(reached.ip()));
        // A post is one write; waiting for more would only delay it.
        let _ = stream.set_nodelay(true);
        if target.is_some_and(|target| !target.is_encrypted) {
            return Ok(Box::new(stream));
        }
        let name = match url.host() {
            Host::Address(ip) => ServerName::IpAddress((*ip).into()),
            Host::Name(name) => {
                ServerName::try_from(name.clone()).map_err(|error| unreachable(&url.host(), &error))?
            }
        };
        let encrypted = self.tls.connect(name, stream).await;
        Ok(Box::new(encrypted.map_err(|error| unreachable(&reached, &format!("TLS: {error}")))?))
    }

    /// Every address of the endpoint's host, each public at this moment.
    async fn judged(&self, url: &EndpointUrl) -> Result<Vec<SocketAddr>, Outcome> {
        let host = url.host();
        let found = self.addresses(host).await.map_err(|error| unreachable(host, &error))?;
        match address_rule::judge_resolved(&found) {
            Ok(()) => Ok(with_port(found, url.port())),
            // That is no breach of the rule, and may be over at the next attempt.
            Err(refusal @ Refusal::Unresolved) => Err(unreachable(host, &refusal)),
            Err(refusal) => Err(Outcome::Refused(format!("{host}: {refusal}"))),
        }
    }

    /// Where a forward leads. The rule is not asked: that is what a forward is for.
    async fn forwarded(&self, target: &Target) -> Result<Vec<SocketAddr>, Outcome> {
        let found = self.addresses(&target.host).await.map_err(|error| unreachable(&target.host, &error))?;
        if found.is_empty() {
            return Err(unreachable(&target.host, &Refusal::Unresolved));
        }
        Ok(with_port(found, target.port))
    }

    /// An address that swallows everything leaves the others their share of the time.
    async fn first_that_connects(&self, addresses: &[SocketAddr]) -> Result<TcpStream, Outcome> {
        let until = Instant::now() + self.bounds.connect_time;
        let mut last = None;
        for (address, left) in addresses.iter().zip((1..=addresses.len()).rev()) {
            let share = until.saturating_duration_since(Instant::now())
                / u32::try_from(left).expect("a name has few addresses");
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = Some(unreachable(address, &error)),
                Err(_) => last = Some(unreachable(address, &format!("no connection within {share:?}"))),
            }
        }
        Err(last.expect("a host that was judged has an address"))
    }
}

fn with_port(addresses: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
}

fn unreachable(place: &dyn std::fmt::Display, why: &dyn std::fmt::Display) -> Outcome {
    Outcome::Unreachable(format!("{place}: {why}"))
}
