//! Tests of the receiver over TCP.

use std::{ops::ControlFlow, time::Duration};

use testkit::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};

use conformance_model::raw_bytes::RawBytes;

use super::{BODY, NOW, keyring, signed_header};
use crate::{
    Arrival, Bounds, Diagnosis, Receiver, ReceiverResponse, RejectedRequest, ScriptedResponse, Settings,
    diagnose,
};

/// The timeout of the tests, so that a hang becomes a failure.
const TIMEOUT: Duration = Duration::from_secs(20);

async fn start(settings: Settings) -> Receiver {
    Receiver::start(settings).await.unwrap()
}

async fn next(receiver: &mut Receiver) -> Arrival {
    timeout(TIMEOUT, receiver.next()).await.expect("a request arrives").expect("the receiver is not stopped")
}

async fn connect(receiver: &Receiver) -> TcpStream {
    TcpStream::connect(receiver.address()).await.unwrap()
}

/// Reads a response until the connection closes.
async fn read(mut stream: TcpStream) -> String {
    let mut response = Vec::new();
    timeout(TIMEOUT, stream.read_to_end(&mut response)).await.expect("the connection closes").unwrap();
    String::from_utf8(response).unwrap()
}

/// Sends bytes on a new connection, and returns the response.
async fn send(receiver: &Receiver, bytes: &[u8]) -> String {
    let mut stream = connect(receiver).await;
    stream.write_all(bytes).await.unwrap();
    read(stream).await
}

/// Returns a `POST` with these headers and body.
fn post(headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /hooks?a=%20b HTTP/1.1\r\nHost: here\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[tokio::test]
async fn a_request_is_recorded_verbatim() {
    let mut receiver = start(Settings::default()).await;
    let headers = format!(
        "X-SERVICE-signature:  {} \r\nx-Odd: \u{fc}\r\nX-Service-Event: a\r\nx-odd: 2\r\n",
        signed_header(BODY)
    );
    let response = send(&receiver, &post(&headers, BODY)).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    let Arrival::ReceivedRequest(received, recorded_response) = next(&mut receiver).await else {
        panic!("the request was not recorded")
    };
    assert_eq!(recorded_response, ReceiverResponse::Scripted(ScriptedResponse::Status(200)));
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/hooks?a=%20b"));
    let names: Vec<&str> = received.headers.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["Host", "X-SERVICE-signature", "x-Odd", "X-Service-Event", "x-odd", "Content-Length"];
    assert_eq!(names, expected);
    assert_eq!(received.header_values("X-Odd"), ["\u{fc}".as_bytes(), b"2"]);
    assert_eq!(received.body.to_string_lossy(), BODY);
    assert!(matches!(diagnose(&received, &keyring(), NOW), Diagnosis::Verified { .. }));
}

#[tokio::test]
async fn a_chunked_request_in_pieces_is_recorded_completely() {
    let mut receiver = start(Settings::default()).await;
    let mut stream = connect(&receiver).await;
    let request =
        "\r\nPOST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{ \r\n1\r\n}\r\n0\r\n\r\n";
    for byte in request.as_bytes() {
        stream.write_all(&[*byte]).await.unwrap();
    }
    assert!(read(stream).await.starts_with("HTTP/1.1 200"));
    let Arrival::ReceivedRequest(received, _) = next(&mut receiver).await else {
        panic!("the request was not recorded")
    };
    assert_eq!(received.body, RawBytes(b"{ }".to_vec()));
    assert_eq!(received.headers.len(), 2);
}

#[tokio::test]
async fn responses_follow_the_script() {
    let bounds = Bounds { hold_for: Duration::from_millis(1), ..Bounds::default() };
    let script = "500,302,timeout,close,204".parse().unwrap();
    let mut receiver = start(Settings { responses: script, bounds, ..Settings::default() }).await;
    for (start, expected) in [
        ("HTTP/1.1 500 ", ScriptedResponse::Status(500)),
        ("HTTP/1.1 302 Found\r\nlocation: /chargeproof-redirected\r\n", ScriptedResponse::Status(302)),
        ("", ScriptedResponse::Timeout),
        ("", ScriptedResponse::Close),
        ("HTTP/1.1 204 ", ScriptedResponse::Status(204)),
        ("HTTP/1.1 204 ", ScriptedResponse::Status(204)),
    ] {
        let response = send(&receiver, &post("", "{}")).await;
        assert!(
            response.starts_with(start) && response.is_empty() == start.is_empty(),
            "{expected:?}: {response}"
        );
        let Arrival::ReceivedRequest(_, recorded_response) = next(&mut receiver).await else {
            panic!("the request was not recorded")
        };
        assert_eq!(recorded_response, ReceiverResponse::Scripted(expected));
    }
}

#[track_caller]
fn check_rejected(arrival: Arrival, expected: &RejectedRequest) {
    assert_eq!(arrival, Arrival::Rejected(expected.clone()));
}

#[tokio::test]
async fn another_method_is_rejected() {
    let mut receiver = start(Settings::default()).await;
    let response = send(&receiver, b"GET /hooks HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 405 ") && response.contains("allow: POST\r\n"), "{response}");
    let (method, path) = ("GET".to_owned(), "/hooks".to_owned());
    check_rejected(next(&mut receiver).await, &RejectedRequest::Method { method, path });
}

#[tokio::test]
async fn a_body_over_the_bound_gets_413() {
    let mut receiver = start(Settings::default()).await;
    let bytes_max = 1024 * 1024;
    let response = send(&receiver, &post("", &"x".repeat(bytes_max))).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(matches!(next(&mut receiver).await, Arrival::ReceivedRequest(..)));
    let response = send(&receiver, &post("", &"x".repeat(bytes_max + 1))).await;
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    check_rejected(next(&mut receiver).await, &RejectedRequest::BodyTooLarge { bytes_max });
}

#[tokio::test]
async fn a_truncated_body_is_rejected() {
    let mut receiver = start(Settings::default()).await;
    let mut stream = connect(&receiver).await;
    stream.write_all(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n{}").await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(matches!(next(&mut receiver).await, Arrival::Rejected(RejectedRequest::BodyIncomplete { .. })));
}

#[tokio::test]
async fn tls_and_garbage_are_rejected_and_the_next_request_is_recorded() {
    let mut receiver = start(Settings::default()).await;
    send(&receiver, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
    check_rejected(next(&mut receiver).await, &RejectedRequest::Tls);
    send(&receiver, b"\x00\xff nonsense\r\n\r\n").await;
    assert!(matches!(next(&mut receiver).await, Arrival::Rejected(RejectedRequest::NotHttp { .. })));
    // A connection without data is not an arrival.
    drop(connect(&receiver).await);
    send(&receiver, &post("", "{}")).await;
    assert!(matches!(next(&mut receiver).await, Arrival::ReceivedRequest(..)));
}

#[tokio::test]
async fn more_connections_than_slots_are_served_one_after_another() {
    let bounds = Bounds { connections: 1, ..Bounds::default() };
    let receiver = start(Settings { bounds, ..Settings::default() }).await;
    let (first, second) = (post("", "{\"n\":1}"), post("", "{\"n\":2}"));
    let (first, second) = tokio::join!(send(&receiver, &first), send(&receiver, &second));
    assert!(first.starts_with("HTTP/1.1 200") && second.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_delivery_evicts_a_connection_whose_request_is_incomplete() {
    // No data, an incomplete head, and an incomplete body.
    for incomplete in
        ["", "POST / HTTP/1.1\r\nHost", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{"]
    {
        let receiver = start(Settings::default()).await;
        let mut idle = Vec::new();
        for _ in 0..Bounds::default().connections {
            let mut stream = connect(&receiver).await;
            stream.write_all(incomplete.as_bytes()).await.unwrap();
            idle.push(stream);
        }
        let response = timeout(Bounds::default().read_timeout / 3, send(&receiver, &post("", BODY))).await;
        let response = response.expect("an idle connection is evicted before it times out");
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{incomplete:?}: {response}");
    }
}

#[tokio::test]
async fn a_stopped_receiver_drains_its_queue_and_then_ends() {
    let mut receiver = start(Settings::default()).await;
    send(&receiver, &post("", "{}")).await;
    receiver.stop();
    assert!(matches!(next(&mut receiver).await, Arrival::ReceivedRequest(..)));
    assert_eq!(timeout(TIMEOUT, receiver.next()).await.unwrap(), None);
}

/// Starts a handler with the same response to each request. Returns its URL and the received requests.
fn handler(response: &'static str) -> (String, mpsc::UnboundedReceiver<Message>) {
    let (sender, requests) = mpsc::unbounded_channel();
    let address = testkit::serve(move |request, connection| {
        sender.send(request.clone()).expect("the test reads the requests");
        connection.send(response).map(ControlFlow::Break)
    });
    (format!("http://{}/local?x=1", address.unwrap()), requests)
}

#[tokio::test]
async fn a_request_is_forwarded_and_the_response_returned() {
    let (address, mut requests) =
        handler("HTTP/1.1 418 Teapot\r\nX-Handler: yes\r\nContent-Length: 2\r\n\r\nno");
    let forward_to = Some(address.parse().unwrap());
    let mut receiver = start(Settings { forward_to, ..Settings::default() }).await;
    let headers = format!("X-Service-Signature: {}\r\nConnection: close\r\n", signed_header(BODY));
    let response = send(&receiver, &post(&headers, BODY)).await;
    assert!(response.starts_with("HTTP/1.1 418 ") && response.ends_with("\r\n\r\nno"), "{response}");
    assert!(response.contains("x-handler: yes\r\n"), "{response}");
    let request = timeout(TIMEOUT, requests.recv()).await.unwrap().unwrap();
    assert_eq!((request.start_line.as_str(), request.body.as_str()), ("POST /local?x=1 HTTP/1.1", BODY));
    assert_eq!(request.header("x-service-signature"), Some(signed_header(BODY).as_str()), "{request:?}");
    assert_eq!(request.header("connection"), None, "{request:?}");
    assert!(matches!(
        next(&mut receiver).await,
        Arrival::ReceivedRequest(_, ReceiverResponse::Forwarded(418))
    ));
}

#[tokio::test]
async fn an_unreachable_handler_gives_502() {
    let address = format!("http://{}", testkit::free_address().unwrap());
    let forward_to = Some(address.parse().unwrap());
    let mut receiver = start(Settings { forward_to, ..Settings::default() }).await;
    let response = send(&receiver, &post("", BODY)).await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    assert!(matches!(
        next(&mut receiver).await,
        Arrival::ReceivedRequest(_, ReceiverResponse::NotForwarded(_))
    ));
}
