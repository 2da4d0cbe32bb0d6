//! HTTPS targets: trusted certificates, and the error messages for untrusted ones.

use std::sync::Arc;

use ::mutants::fake::{Clock, FakeServer, block_on, http_server, ids_with_verdicts, plan};
use conformance::{Outcome, Plan, Silent, check as check_plan, report};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

/// Returns the PEM of a private CA, and a TLS acceptor with a certificate for `localhost`.
fn ca_and_acceptor() -> (String, TlsAcceptor) {
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::new(Vec::new()).expect("no names");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = ca.self_signed(&ca_key).expect("a certificate").pem();
    let key = KeyPair::generate().expect("a key");
    let names = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = names.signed_by(&key, &Issuer::new(ca, ca_key)).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("the key belongs to the certificate");
    (pem, TlsAcceptor::from(Arc::new(config)))
}

/// Checks a service over TLS under a host name and a path prefix.
fn run(host: &str, change: impl FnOnce(&mut Plan, String)) -> Outcome {
    let (pem, tls) = ca_and_acceptor();
    let server = FakeServer { prefix: "/pay/api", ..FakeServer::default() };
    let mut clock = server.clock.clone();
    block_on(async {
        let port = http_server::serve_tls(server, tls).await;
        let mut plan = plan(&format!("https://{host}:{port}/pay/api"));
        change(&mut plan, pem);
        check_plan(plan, &mut clock, &mut Silent).await
    })
}

#[track_caller]
fn check(host: &str, change: impl FnOnce(&mut Plan, String), exit: u8, expected: &str) {
    let outcome = run(host, change);
    let text = report::text(&outcome, report::Style::Plain);
    assert_eq!(outcome.exit_code(), exit, "{text}");
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_service_below_a_prefix_behind_tls_is_judged_like_any_other() {
    let outcome = run("localhost", |plan, pem| plan.ca_pem = Some(pem));
    let text = report::text(&outcome, report::Style::Plain);
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn", "not judged"]), Vec::<String>::new(), "{text}");
    assert_eq!(outcome.exit_code(), 0, "{text}");
}

#[test]
fn a_certificate_for_another_name_is_refused_with_the_name() {
    check(
        "127.0.0.1",
        |plan, pem| plan.ca_pem = Some(pem),
        4,
        "the certificate is not valid for the name `127.0.0.1`",
    );
    check("127.0.0.1", |plan, pem| plan.ca_pem = Some(pem), 4, "localhost");
}

#[test]
fn an_unknown_ca_is_not_trusted() {
    check("localhost", |_, _| {}, 4, "name the CA's file with --cacert");
    let (other, _) = ca_and_acceptor();
    check("localhost", |plan, _| plan.ca_pem = Some(other), 4, "not signed by a trusted CA");
}

#[test]
fn an_invalid_ca_file_is_a_configuration_error() {
    check("localhost", |plan, _| plan.ca_pem = Some("PEM".into()), 2, "contains no certificate");
}

#[test]
fn a_server_without_tls_is_reported() {
    let outcome = block_on(async {
        let base = http_server::serve(FakeServer::default()).await.replace("http://", "https://");
        check_plan(plan(&base), &mut Clock::default(), &mut Silent).await
    });
    let text = report::text(&outcome, report::Style::Plain);
    assert_eq!(outcome.exit_code(), 4, "{text}");
    assert!(text.contains("does not use TLS on this port"), "{text}");
}
