//! HTTPS and HTTP on the same port.

use std::sync::Arc;

use reference_server::{Bounds, ClockKind, Config, Server, TlsIdentity};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use testkit::{Message, Request};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Client, config};

/// Returns a self-signed certificate with its key.
fn identity() -> TlsIdentity {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    TlsIdentity {
        certificates: certified.cert.pem().into_bytes(),
        key: certified.signing_key.serialize_pem().into_bytes(),
    }
}

async fn start(identity: &TlsIdentity) -> Server {
    start_with_bounds(identity, Bounds::default()).await
}

async fn start_with_bounds(identity: &TlsIdentity, bounds: Bounds) -> Server {
    let config = Config { tls: Some(identity.clone()), bounds, ..config(ClockKind::Frozen) };
    Server::start(config).await.expect("loopback has a free port")
}

/// Returns a connector that trusts this certificate only.
fn connector(trusted: &TlsIdentity) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(&trusted.certificates).expect("PEM");
    roots.add(certificate).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// Sends a request over TLS.
async fn call(server: &Server, connector: &TlsConnector, path: &str) -> std::io::Result<Message> {
    send(server, connector, Request::get(path)).await
}

async fn send(server: &Server, connector: &TlsConnector, request: Request<'_>) -> std::io::Result<Message> {
    let stream = TcpStream::connect(server.address()).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = connector.connect(name, stream).await?;
    let host = &format!("localhost:{}", server.address().port());
    Ok(Client::from_stream(stream).call_once(Request { host, ..request }).await)
}

#[tokio::test]
async fn clients_in_a_handshake_are_evicted() {
    let server = start_with_bounds(&identity(), Bounds { connections: 2, ..Bounds::default() }).await;
    let mut silent = Client::connect(server.address()).await;
    let mut half = Client::connect(server.address()).await;
    // The start of a ClientHello.
    half.send([0x16, 0x03, 0x01, 0x02]).await;
    for first in [&mut silent, &mut half] {
        let mut new = Client::connect(server.address()).await;
        assert_eq!(new.call("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.status, 200);
        assert!(first.message().await.is_none(), "the connection in a handshake is closed");
    }
}

#[tokio::test]
async fn one_port_serves_https_and_http_and_links_use_https() {
    let identity = identity();
    let server = start(&identity).await;
    let port = server.address().port();
    assert_eq!(server.url(), format!("https://127.0.0.1:{port}"));
    let response =
        call(&server, &connector(&identity), "/openapi.json").await.expect("the certificate is trusted");
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.body.contains(&format!("https://localhost:{port}")), "links start with https");
    let mut http_client = Client::connect(server.address()).await;
    assert_eq!(http_client.call("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.status, 200);
    let other_connector = connector(&self::identity());
    assert!(call(&server, &other_connector, "/healthz").await.is_err(), "the certificate is not trusted");
    // A client that disconnects during the handshake affects no others.
    let mut half = Client::connect(server.address()).await;
    half.send([0x16, 3, 1]).await;
    drop(half);
    let response =
        call(&server, &connector(&identity), "/healthz").await.expect("the certificate is trusted");
    assert_eq!(response.status, 200, "{response:?}");
}

#[tokio::test]
async fn a_world_opened_over_tls_has_https_urls() {
    let identity = identity();
    let (server, connector) = (start(&identity).await, connector(&identity));
    let origin = format!("https://localhost:{}", server.address().port());
    let request = Request { method: "POST", ..Request::get("/sandbox/worlds") };
    let world = send(&server, &connector, request).await.expect("the server responds").json();
    let text = |name: &str| world[name].as_str().expect("a string");
    let base = format!("{origin}/w/{}", text("world"));
    assert_eq!((text("base_url"), text("dashboard_url")), (&*base, &*format!("{base}/dashboard")));
    let key = Some(text("test_key"));
    // By its path, and by its key alone.
    for path in [format!("/w/{}/v1/charges", text("world")), "/v1/charges".to_owned()] {
        let response = send(&server, &connector, Request { key, ..Request::get(&path) })
            .await
            .expect("the server responds");
        assert_eq!(response.status, 200, "{path}: {response:?}");
        assert!(response.body.contains(&format!("\"{base}/v1/charges?")), "{path}: {response:?}");
    }
    let page = call(&server, &connector, &format!("/w/{}/dashboard/acme/test", text("world"))).await;
    assert_eq!(page.expect("the server responds").status, 200);
}

#[tokio::test]
async fn invalid_certificates_are_rejected_at_start() {
    let (good, other) = (identity(), identity());
    let empty = Vec::new;
    for (certificates, key, expected) in [
        (empty(), good.key.clone(), "no `BEGIN CERTIFICATE`"),
        (good.key.clone(), good.key.clone(), "no `BEGIN CERTIFICATE`"),
        (good.certificates.clone(), empty(), "the server's private key"),
        (good.certificates.clone(), other.key.clone(), "the certificate and the key of the server"),
    ] {
        let tls = TlsIdentity { certificates, key };
        let refused = Server::start(Config { tls: Some(tls), ..config(ClockKind::Frozen) }).await;
        let error = refused.err().expect("the server does not start");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
