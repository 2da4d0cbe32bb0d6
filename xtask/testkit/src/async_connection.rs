//! [`AsyncConnection`]: an asynchronous connection, for tests that run in one runtime with the server.

use std::io::ErrorKind;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::message::{Message, ReceiveBuffer, Request};

/// One connection, of a client or of a server.
#[derive(Debug)]
pub struct AsyncConnection<S = TcpStream> {
    stream: S,
    incoming: ReceiveBuffer,
}

impl AsyncConnection {
    /// Connects to a listening server.
    pub async fn connect(address: SocketAddr) -> AsyncConnection {
        AsyncConnection::from_stream(TcpStream::connect(address).await.expect("the server listens"))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncConnection<S> {
    /// Creates a connection over an open stream.
    pub fn from_stream(stream: S) -> AsyncConnection<S> {
        AsyncConnection { stream, incoming: ReceiveBuffer::default() }
    }

    /// Returns the stream.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Sends bytes unchanged.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.expect("the peer accepts the bytes");
    }

    /// Sends bytes; ignores all errors, because the peer may have closed the connection.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Closes the sending side.
    pub async fn close_sending_side(&mut self) {
        self.stream.shutdown().await.expect("the connection is open");
    }

    /// Reads the next message, whose body has a `Content-Length` or is empty; `None` if the connection ends before the
    /// message is complete.
    pub async fn message(&mut self) -> Option<Message> {
        let head = self.head().await?;
        self.read_body(head).await
    }

    /// Reads the next head, as a message with an empty body; `None` if the connection ends before the head is complete.
    pub async fn head(&mut self) -> Option<Message> {
        self.read_until(ReceiveBuffer::head).await
    }

    /// Reads the body that belongs to a head, and returns both; `None` if the connection ends before the body is
    /// complete.
    pub async fn read_body(&mut self, mut head: Message) -> Option<Message> {
        let length = head.body_length();
        head.body = self.read_until(|incoming| incoming.take(length)).await?;
        Some(head)
    }

    /// Sends a request and returns the response.
    pub async fn call(&mut self, request: impl AsRef<[u8]>) -> Message {
        self.send(request).await;
        self.message().await.expect("the server responds")
    }

    /// Sends the only request of this connection, which the server has to close after its response. The body of the
    /// returned response is everything after its head.
    pub async fn call_once(mut self, request: Request<'_>) -> Message {
        let lines = format!("{}Connection: close\r\n", request.header_lines);
        self.send(Request { header_lines: &lines, ..request }.to_string()).await;
        let mut response = self.head().await.expect("the server responds");
        while self.read().await.is_some_and(|count| count > 0) {}
        response.body = self.incoming.rest();
        response
    }

    /// Reads the next server-sent event and returns its data as JSON.
    pub async fn event(&mut self) -> Value {
        loop {
            let line = self.read_until(ReceiveBuffer::line).await.expect("the stream continues");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("the data of an event is JSON");
            }
        }
    }

    /// Waits until bytes arrive or the peer closes the connection, unless received bytes are left. Returns `true` if the
    /// peer closed the connection without another byte.
    pub async fn is_closed(&mut self) -> bool {
        self.incoming.is_empty() && self.read().await == Some(0)
    }

    /// Reads until `take` consumes a value from the received bytes; `None` if the connection ends or fails first.
    async fn read_until<T>(&mut self, take: impl Fn(&mut ReceiveBuffer) -> Option<T>) -> Option<T> {
        loop {
            if let Some(value) = take(&mut self.incoming) {
                return Some(value);
            }
            if self.read().await.is_none_or(|count| count == 0) {
                return None;
            }
        }
    }

    /// Reads available bytes; returns 0 at the end, `None` if the connection failed.
    async fn read(&mut self) -> Option<usize> {
        let mut buffer = [0; 8 * 1024];
        match self.stream.read(&mut buffer).await {
            Ok(count) => {
                self.incoming.push(&buffer[..count]);
                Some(count)
            }
            // A TLS peer that closes without a close_notify: an end like any other.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Some(0),
            Err(_) => None,
        }
    }
}
