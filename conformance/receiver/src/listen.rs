//! [`Receiver`]: an HTTP server that records deliveries. [`Bounds`] limits all resources that senders can use.

use std::{
    collections::VecDeque,
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use conformance_model::raw_bytes::RawBytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use time::OffsetDateTime;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{AbortHandle, JoinHandle, JoinSet},
    time::{Instant, sleep_until, timeout},
};

use super::{
    forward::HandlerUrl,
    head_capture::{CapturedHead, HeadCapture},
    received_request::ReceivedRequest,
    response_script::{ResponseScript, ScriptedResponse},
    routes::Routes,
    signature_header::quote,
};

/// The path that scripted redirects lead to. A request for it shows that the sender follows redirects.
pub const REDIRECT_PATH: &str = "/chargeproof-redirected";
/// The capacity of the queue of arrivals. Senders wait when it is full.
const ARRIVALS_MAX: usize = 256;
/// A connection is evicted only if its request has been incomplete for this long, so that a burst of senders is served.
const REQUEST_TIME_MIN: Duration = Duration::from_millis(250);
/// The size up to which a body that is too large is still read, so that the sender can read the response.
const DRAINED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The settings of a receiver.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on. Port 0 selects a free port.
    pub address: SocketAddr,
    /// The responses to requests for other paths than those of `routes`, if there is no handler.
    pub responses: ResponseScript,
    /// The responses for particular paths, if there is no handler.
    pub routes: Routes,
    /// The methods that are recorded.
    pub methods: Methods,
    /// The handler that requests are forwarded to.
    pub forward_to: Option<HandlerUrl>,
    /// The bounds on senders.
    pub bounds: Bounds,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            responses: ResponseScript::default(),
            routes: Routes::default(),
            methods: Methods::Post,
            forward_to: None,
            bounds: Bounds::default(),
        }
    }
}

/// The methods that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Methods {
    /// POST. Others are rejected.
    Post,
    /// All methods, to diagnose faulty senders.
    Any,
}

/// The bounds on the resources that senders may use.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The maximum size of a body in bytes.
    pub body_bytes: usize,
    /// The maximum size of a request line and its headers in bytes.
    pub head_bytes: usize,
    /// The maximum number of connections. A new one evicts the oldest with an incomplete request; if there is none, it
    /// waits.
    pub connections: usize,
    /// The time limit for a head, and for a body.
    pub read_timeout: Duration,
    /// The time for which the scripted response `timeout` keeps the connection open.
    pub hold_for: Duration,
    /// The maximum duration of a connection.
    pub connection_timeout: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            body_bytes: 1024 * 1024,
            head_bytes: 64 * 1024,
            connections: 64,
            read_timeout: Duration::from_secs(15),
            hold_for: Duration::from_secs(60),
            connection_timeout: Duration::from_secs(120),
        }
    }
}

/// A request that reached the receiver, or the reason why it was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A recorded request, and the response to it.
    ReceivedRequest(ReceivedRequest, ReceiverResponse),
    /// A rejected request.
    Rejected(RejectedRequest),
}

/// The response to a recorded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverResponse {
    /// A scripted response.
    Scripted(ScriptedResponse),
    /// The response of the handler, with this status.
    Forwarded(u16),
    /// 502, because the handler gave no response. Contains the reason.
    NotForwarded(String),
}

impl fmt::Display for ReceiverResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiverResponse::Scripted(ScriptedResponse::Status(status))
            | ReceiverResponse::Forwarded(status) => {
                write!(f, "{status}")
            }
            ReceiverResponse::Scripted(ScriptedResponse::Timeout) => f.write_str("timeout"),
            ReceiverResponse::Scripted(ScriptedResponse::Close) => f.write_str("close"),
            ReceiverResponse::NotForwarded(reason) => write!(f, "502 ({reason})"),
        }
    }
}

/// A rejected request, by the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectedRequest {
    /// The method is not POST. The response is 405.
    Method {
        /// The method, shortened.
        method: String,
        /// The path, shortened.
        path: String,
    },
    /// The body is larger than the bound. The response is 413.
    BodyTooLarge {
        /// The bound.
        bytes_max: usize,
    },
    /// The body is incomplete. The response is 408.
    BodyIncomplete {
        /// The reason.
        why: String,
    },
    /// A TLS handshake, which this receiver does not support.
    Tls,
    /// Not HTTP, or an incomplete or too large head.
    NotHttp {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for RejectedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RejectedRequest::Method { method, path } => {
                write!(f, "{method} {path}: 405, because deliveries are POST requests")
            }
            RejectedRequest::BodyTooLarge { bytes_max } => {
                write!(f, "413, because the body has more than {bytes_max} bytes")
            }
            RejectedRequest::BodyIncomplete { why } => write!(f, "an incomplete body: {why}"),
            RejectedRequest::Tls => f.write_str(
                "a TLS handshake: this receiver supports plain HTTP only; terminate TLS in a tunnel or proxy in front of it",
            ),
            RejectedRequest::NotHttp { why } => write!(f, "not a complete HTTP request: {why}"),
        }
    }
}

/// A server that records deliveries. It stops when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    arrivals: mpsc::Receiver<Arrival>,
    /// The number of arrivals, including those in the queue.
    count: Arc<AtomicUsize>,
    /// The task that accepts connections.
    task: JoinHandle<()>,
}

impl Receiver {
    /// Starts to listen. Needs a Tokio runtime with time and I/O.
    ///
    /// # Errors
    ///
    /// If the receiver cannot listen on the address.
    pub async fn start(settings: Settings) -> io::Result<Receiver> {
        let listener = TcpListener::bind(settings.address).await?;
        let address = listener.local_addr()?;
        let (arrivals, receiver) = mpsc::channel(ARRIVALS_MAX);
        let count = Arc::new(AtomicUsize::new(0));
        let handler = Arc::new(RequestHandler {
            script: Mutex::new(settings.responses),
            routes: settings.routes,
            methods: settings.methods,
            forward_to: settings.forward_to,
            bounds: settings.bounds,
            arrivals,
            count: Arc::clone(&count),
        });
        let task = tokio::spawn(accept_connections(listener, handler));
        Ok(Receiver { address, arrivals: receiver, count, task })
    }

    /// Returns the address that the receiver listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the next arrival; `None` after `stop` once the queue is empty.
    pub async fn next(&mut self) -> Option<Arrival> {
        self.arrivals.recv().await
    }

    /// Returns the count of arrivals. A request is counted before its response is sent.
    pub(super) fn arrival_count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.count)
    }

    /// Closes the listener and every connection. The queue of arrivals can still be read.
    pub fn stop(&mut self) {
        self.task.abort();
        self.arrivals.close();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct RequestHandler {
    script: Mutex<ResponseScript>,
    routes: Routes,
    methods: Methods,
    forward_to: Option<HandlerUrl>,
    bounds: Bounds,
    arrivals: mpsc::Sender<Arrival>,
    count: Arc<AtomicUsize>,
}

/// Accepts connections until the task is aborted, which closes all of them.
async fn accept_connections(listener: TcpListener, handler: Arc<RequestHandler>) {
    let mut connections = Connections::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Usually, there are no free file descriptors, which is temporary.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        connections.make_room(handler.bounds.connections).await;
        connections.serve(Arc::clone(&handler), stream);
    }
}

/// The open connections, the oldest first.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    open: VecDeque<OpenConnection>,
}

struct OpenConnection {
    task: AbortHandle,
    opened_at: Instant,
    /// `true` once the body has been read, or reading it has failed.
    is_received: Arc<AtomicBool>,
}

impl Connections {
    /// Returns once fewer than `max` connections are open. Evicts the oldest one with an incomplete request; without
    /// one, waits for a connection to end.
    async fn make_room(&mut self, max: usize) {
        while self.tasks.try_join_next().is_some() {}
        while self.tasks.len() >= max {
            self.open.retain(|connection| !connection.task.is_finished());
            let incomplete = self.open.iter().find(|connection| !connection.is_received.load(Relaxed));
            let eviction = incomplete
                .map(|connection| (connection.opened_at + REQUEST_TIME_MIN, connection.task.clone()));
            let evict = async {
                match eviction {
                    Some((evict_at, task)) => {
                        sleep_until(evict_at).await;
                        task.abort();
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.tasks.join_next() => {}
                () = evict => {
                    self.tasks.join_next().await;
                }
            }
        }
    }

    fn serve(&mut self, handler: Arc<RequestHandler>, stream: TcpStream) {
        let is_received = Arc::new(AtomicBool::new(false));
        let received = Arc::clone(&is_received);
        let task = self.tasks.spawn(async move {
            let _ = timeout(handler.bounds.connection_timeout, serve_connection(&handler, stream, &received))
                .await;
        });
        self.open.push_back(OpenConnection { task, opened_at: Instant::now(), is_received });
    }
}

/// Serves one connection with one request, so the bytes before the first empty line are that request's head.
async fn serve_connection(handler: &Arc<RequestHandler>, stream: TcpStream, is_received: &Arc<AtomicBool>) {
    let _ = stream.set_nodelay(true);
    let capture = HeadCapture::new(stream, handler.bounds.head_bytes);
    let head = capture.head();
    let is_parsed = AtomicBool::new(false);
    let service = service_fn(|request| {
        is_parsed.store(true, Relaxed);
        let (handler, head, is_received) = (Arc::clone(handler), head.clone(), Arc::clone(is_received));
        async move { handler.on_request(&head, request, &is_received).await }
    });
    let result = http1::Builder::new()
        .keep_alive(false)
        // A sender may close its side after the request.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(handler.bounds.read_timeout)
        .max_header_size(handler.bounds.head_bytes)
        .serve_connection(TokioIo::new(capture), service)
        .await;
    if let Err(error) = result
        && !is_parsed.load(Relaxed)
        && !head.is_empty()
    {
        let rejected = match head.is_tls() {
            true => RejectedRequest::Tls,
            false => RejectedRequest::NotHttp { why: error.to_string() },
        };
        handler.report(Arrival::Rejected(rejected)).await;
    }
}

impl RequestHandler {
    /// Reads a request and returns the response. An error closes the connection without a response.
    async fn on_request(
        self: Arc<Self>,
        head: &CapturedHead,
        request: Request<Incoming>,
        is_received: &AtomicBool,
    ) -> Result<Response<Full<Bytes>>, &'static str> {
        let (method, path) = head.request_line();
        if request.method() != Method::POST && self.methods == Methods::Post {
            let rejected = RejectedRequest::Method { method: quote(&method), path: quote(&path) };
            self.report(Arrival::Rejected(rejected)).await;
            let mut response = empty_response(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            return Ok(response);
        }
        let headers = head.headers();
        let read = timeout(self.bounds.read_timeout, read_body(request.into_body(), self.bounds.body_bytes));
        let timed_out = || RejectedRequest::BodyIncomplete {
            why: format!("not within {} s", self.bounds.read_timeout.as_secs()),
        };
        let read = read.await;
        is_received.store(true, Relaxed);
        let body = match read.unwrap_or_else(|_| Err(timed_out())) {
            Ok(body) => RawBytes(body),
            Err(rejected) => {
                let status = match rejected {
                    RejectedRequest::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                    _ => StatusCode::REQUEST_TIMEOUT,
                };
                self.report(Arrival::Rejected(rejected)).await;
                return Ok(empty_response(status));
            }
        };
        let received = ReceivedRequest { at: OffsetDateTime::now_utc(), method, path, headers, body };
        // In a separate task, the request is recorded even if the sender disconnects meanwhile.
        let handler = Arc::clone(&self);
        let task = tokio::spawn(async move { handler.respond(received).await });
        match task.await.expect("the response task does not panic") {
            Some(response) => Ok(response),
            None => Err("closed without a response, as the script requires"),
        }
    }

    /// Records a request and returns the response; `None` closes the connection.
    async fn respond(&self, received: ReceivedRequest) -> Option<Response<Full<Bytes>>> {
        if let Some(handler) = &self.forward_to {
            let (recorded_response, response) = match handler.forward(&received).await {
                Ok(response) => (ReceiverResponse::Forwarded(response.status().as_u16()), response),
                Err(reason) => {
                    (ReceiverResponse::NotForwarded(reason), empty_response(StatusCode::BAD_GATEWAY))
                }
            };
            self.report(Arrival::ReceivedRequest(received, recorded_response)).await;
            return Some(response);
        }
        let routed = self.routes.next_response(&received.path);
        let response = routed
            .unwrap_or_else(|| self.script.lock().unwrap_or_else(PoisonError::into_inner).next_response());
        self.report(Arrival::ReceivedRequest(received, ReceiverResponse::Scripted(response))).await;
        match response {
            ScriptedResponse::Status(status) => Some(scripted_response(status)),
            ScriptedResponse::Close => None,
            ScriptedResponse::Timeout => {
                tokio::time::sleep(self.bounds.hold_for).await;
                None
            }
        }
    }

    async fn report(&self, arrival: Arrival) {
        self.count.fetch_add(1, Relaxed);
        // Fails only if the receiver was dropped.
        let _ = self.arrivals.send(arrival).await;
    }
}

/// Reads a body. If it is too large, reads on up to a limit, so that the sender can read the response.
async fn read_body(mut body: Incoming, bytes_max: usize) -> Result<Vec<u8>, RejectedRequest> {
    let mut bytes = BytesMut::new();
    let mut total = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| RejectedRequest::BodyIncomplete { why: error.to_string() })?;
        let Ok(data) = frame.into_data() else { continue };
        total += data.len();
        match total {
            ..=DRAINED_BYTES_MAX if total > bytes_max => bytes.clear(),
            ..=DRAINED_BYTES_MAX => bytes.extend_from_slice(&data),
            _ => break,
        }
    }
    match total > bytes_max {
        true => Err(RejectedRequest::BodyTooLarge { bytes_max }),
        false => Ok(bytes.to_vec()),
    }
}

/// Returns a response with this status and an empty body. Redirects lead to [`REDIRECT_PATH`].
fn scripted_response(status: u16) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(status).expect("a script contains only valid statuses");
    let mut response = empty_response(status);
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(REDIRECT_PATH));
    }
    response
}

fn empty_response(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
