//! [`Receiver`]: a server that receives deliveries, correct or faulty.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use testkit::{AsyncConnection, Message};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{
        Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

/// The behaviour of a receiver on each connection. Unless stated otherwise, it reads a request first.
#[derive(Clone)]
pub(crate) enum ReceiverBehavior {
    /// Sends these bytes and closes.
    RespondAndClose(&'static str),
    /// Sends the first bytes once and the second ones repeatedly.
    RespondEndlessly(&'static str, &'static str),
    /// Sends these bytes and keeps the connection open.
    RespondAndHang(&'static str),
    /// Responds with 200 once a permit is available.
    RespondWithPermit(Arc<Semaphore>),
    /// Resets the connection.
    ResetConnection,
    /// Accepts the connection but reads nothing.
    ReadNothing,
}

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    /// The received requests.
    pub(crate) requests: UnboundedReceiver<Message>,
    connections: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Receiver {
    /// Starts a receiver of HTTP requests.
    pub(crate) async fn http(behavior: ReceiverBehavior) -> Receiver {
        Receiver::start(None, behavior).await
    }

    /// Starts a receiver of HTTPS requests.
    pub(crate) async fn https(acceptor: TlsAcceptor, behavior: ReceiverBehavior) -> Receiver {
        Receiver::start(Some(acceptor), behavior).await
    }

    async fn start(acceptor: Option<TlsAcceptor>, behavior: ReceiverBehavior) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let connections = Arc::new(AtomicUsize::new(0));
        let (sender, requests) = unbounded_channel();
        let mut task = JoinSet::new();
        let count = Arc::clone(&connections);
        task.spawn(async move {
            let mut tasks = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("the listener accepts");
                count.fetch_add(1, SeqCst);
                tasks.spawn(serve(stream, acceptor.clone(), behavior.clone(), sender.clone()));
            }
        });
        Receiver { address, requests, connections, _task: task }
    }

    /// Returns the number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    /// Returns the next received request.
    pub(crate) async fn next_request(&mut self) -> Message {
        self.requests.recv().await.expect("the receiver listens")
    }
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    behavior: ReceiverBehavior,
    sender: UnboundedSender<Message>,
) {
    if matches!(behavior, ReceiverBehavior::ResetConnection) {
        stream.set_zero_linger().expect("the option is supported");
    }
    if matches!(behavior, ReceiverBehavior::ReadNothing) {
        return std::future::pending().await;
    }
    match tls {
        None => handle_request(stream, behavior, sender).await,
        // The client may reject the certificate.
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                handle_request(stream, behavior, sender).await;
            }
        }
    }
}

async fn handle_request<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    behavior: ReceiverBehavior,
    sender: UnboundedSender<Message>,
) {
    let mut connection = AsyncConnection::from_stream(stream);
    let Some(request) = connection.message().await else { return };
    // The test may have dropped the receiving end.
    let _ = sender.send(request);
    // The webhook sender may close early.
    let _ = respond(connection.stream(), behavior).await;
}

async fn respond<S: AsyncWrite + Unpin>(stream: &mut S, behavior: ReceiverBehavior) -> std::io::Result<()> {
    match behavior {
        ReceiverBehavior::RespondAndClose(bytes) => {
            stream.write_all(bytes.as_bytes()).await?;
            stream.shutdown().await
        }
        ReceiverBehavior::RespondEndlessly(first, then) => {
            stream.write_all(first.as_bytes()).await?;
            loop {
                stream.write_all(then.as_bytes()).await?;
                tokio::task::yield_now().await;
            }
        }
        ReceiverBehavior::RespondAndHang(bytes) => {
            stream.write_all(bytes.as_bytes()).await?;
            stream.flush().await?;
            std::future::pending().await
        }
        ReceiverBehavior::RespondWithPermit(permits) => {
            permits.acquire().await.expect("the semaphore is open").forget();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await?;
            stream.shutdown().await
        }
        ReceiverBehavior::ResetConnection | ReceiverBehavior::ReadNothing => Ok(()),
    }
}
