//! [`Connection`]: a blocking connection that sends arbitrary bytes.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::message::{Message, ReceiveBuffer, Request};

/// The timeout of a read or a write.
const IO_TIMEOUT: Duration = Duration::from_secs(60);
/// The most received bytes that may wait to be consumed, against peers that never stop sending.
const RECEIVED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// One connection, of a client or of a server.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    incoming: ReceiveBuffer,
    host: String,
}

impl Connection {
    /// Connects to an address such as `127.0.0.1:8402`.
    ///
    /// # Errors
    /// No server listens at the address.
    pub fn open(address: impl ToString) -> io::Result<Connection> {
        let host = address.to_string();
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        Connection::from_stream(stream, host)
    }

    pub(crate) fn from_stream(stream: TcpStream, host: String) -> io::Result<Connection> {
        stream.set_read_timeout(Some(IO_TIMEOUT))?;
        stream.set_write_timeout(Some(IO_TIMEOUT))?;
        Ok(Connection { stream, incoming: ReceiveBuffer::default(), host })
    }

    /// Returns the socket.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends bytes unchanged.
    ///
    /// # Errors
    /// The peer does not accept them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends a request without waiting for the response.
    ///
    /// # Errors
    /// The peer does not accept it.
    pub fn send_request(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &str,
    ) -> io::Result<()> {
        let text = Request { method, key, body, host: &self.host, ..Request::get(path) }.to_string();
        self.send(text)
    }

    /// Sends a request and returns the response.
    ///
    /// # Errors
    /// The errors of [`Connection::message`].
    pub fn call(&mut self, method: &str, path: &str, key: Option<&str>, body: &str) -> io::Result<Message> {
        self.send_request(method, path, key, body)?;
        self.message()
    }

    /// Reads the next message, whose body has a `Content-Length` or is empty.
    ///
    /// # Errors
    /// The connection ends, nothing is received for a minute, or the message exceeds 256 MiB.
    pub fn message(&mut self) -> io::Result<Message> {
        let mut message = self.read_until(ReceiveBuffer::head)?;
        let length = message.body_length();
        message.body = self.read_until(|incoming| incoming.take(length))?;
        Ok(message)
    }

    /// Reads the next line, without its end.
    ///
    /// # Errors
    /// The connection ends, nothing is received for a minute, or the line exceeds 256 MiB.
    pub fn line(&mut self) -> io::Result<String> {
        self.read_until(ReceiveBuffer::line)
    }

    /// Reads and discards up to 64 bytes that arrive within 5 ms. Returns `false` if the peer has closed the
    /// connection.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn discard_some(&mut self) -> io::Result<bool> {
        const READ_TIMEOUT: Duration = Duration::from_millis(5);
        self.stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let read = self.stream.read(&mut [0; 64]);
        self.stream.set_read_timeout(Some(IO_TIMEOUT))?;
        match read {
            Ok(bytes) => Ok(bytes > 0),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads until `take` consumes a value from the received bytes.
    fn read_until<T>(&mut self, take: impl Fn(&mut ReceiveBuffer) -> Option<T>) -> io::Result<T> {
        loop {
            if let Some(value) = take(&mut self.incoming) {
                return Ok(value);
            }
            if self.read()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let count = self.stream.read(&mut buffer)?;
        self.incoming.push(&buffer[..count]);
        if self.incoming.len() > RECEIVED_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "more than 256 MiB without an end"));
        }
        Ok(count)
    }
}

/// Sends a request over a new connection, which the server has to close, and returns the response. The body of the
/// response is everything after its head.
///
/// # Errors
/// No server listens, nothing is received for a minute, or the response exceeds 256 MiB or is not HTTP/1.
pub fn call(address: impl ToString, request: Request<'_>) -> io::Result<Message> {
    let mut connection = Connection::open(address)?;
    let lines = format!("{}Connection: close\r\n", request.header_lines);
    connection.send(Request { header_lines: &lines, ..request }.to_string())?;
    let mut response = connection.read_until(ReceiveBuffer::head)?;
    while connection.read()? > 0 {}
    response.body = connection.incoming.rest();
    // The parser found no status.
    if response.status == 0 {
        let message = format!("not an HTTP/1 response: {}", response.start_line);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(response)
}
