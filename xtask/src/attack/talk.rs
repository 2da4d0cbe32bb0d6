//! A client that speaks HTTP by hand: it must be able to do what no good client does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// No read and no write takes longer, so that no case waits for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A longer answer is a fault of the server.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// One connection.
pub(crate) struct Line {
    stream: BufReader<TcpStream>,
    address: String,
}

/// A response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The body as JSON; `Null` if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body of a success.
    pub(crate) fn good(self) -> Result<Value, String> {
        match self.status {
            200..=299 => Ok(self.json()),
            status => {
                let said = String::from_utf8_lossy(&self.body[..self.body.len().min(300)]);
                Err(format!("{status}: {said}"))
            }
        }
    }
}

impl Line {
    pub(crate) fn open(address: &str) -> io::Result<Line> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Line { stream: BufReader::new(stream), address: address.to_owned() })
    }

    /// Sends text as it is.
    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        self.stream.get_mut().write_all(text.as_bytes())
    }

    /// The head of a request of this client.
    fn head(&self, method: &str, path: &str, key: Option<&str>, length: usize) -> String {
        let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{key}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n",
            self.address
        )
    }

    /// Sends a request, and does not wait for the answer.
    pub(crate) fn begin(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &str,
    ) -> io::Result<()> {
        let text = self.head(method, path, key, body.len()) + body;
        self.send(&text)
    }

    /// Reads up to a line that begins like this.
    pub(crate) fn read_to(&mut self, beginning: &str) -> io::Result<()> {
        let mut line = String::new();
        while !line.starts_with(beginning) {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &str,
    ) -> io::Result<Reply> {
        self.begin(method, path, key, body)?;
        self.answer()
    }

    /// Reads an answer with a `Content-Length`, which every answer here has.
    pub(crate) fn answer(&mut self) -> io::Result<Reply> {
        let torn = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| torn("it is no HTTP answer"))?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(|_| torn("its length is no number"))?;
            }
        }
        if length > BODY_BYTES_MAX {
            return Err(torn("it is too long"));
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Reply { status, body })
    }

    /// Takes a few bytes of an answer, if there are any; says whether the connection is still open.
    pub(crate) fn sip(&mut self) -> bool {
        const MOMENT: Duration = Duration::from_millis(5);
        let mut room = [0; 64];
        let read =
            self.stream.get_ref().set_read_timeout(Some(MOMENT)).and_then(|()| self.stream.read(&mut room));
        match read {
            Ok(bytes) => bytes > 0,
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }
}
