//! A client that sends the bytes it is given and reads answers one by one.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Every header as `name: value`, in the order they came.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        Client { stream: BufReader::new(TcpStream::connect(address).await.expect("the server listens")) }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).await.expect("the server takes what is sent");
    }

    /// Sends what the server may not take to its end.
    pub(crate) async fn send_in_vain(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.get_mut().write_all(bytes.as_ref()).await;
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn finish(&mut self) {
        self.stream.get_mut().shutdown().await.expect("the connection is open");
    }

    /// The next answer; nothing if the server closed the connection.
    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        let head = self.head().await?;
        self.rest_of(head, true).await
    }

    /// The next answer, known to have no body.
    pub(crate) async fn reply_without_body(&mut self) -> Option<Reply> {
        let head = self.head().await?;
        self.rest_of(head, false).await
    }

    pub(crate) async fn ask(&mut self, request: impl AsRef<[u8]>) -> Reply {
        self.send(request).await;
        self.reply().await.expect("the server answers")
    }

    /// The next event of a stream.
    pub(crate) async fn event(&mut self) -> serde_json::Value {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert!(self.stream.read_line(&mut line).await.expect("text") > 0, "the stream goes on");
        }
        serde_json::from_str(&line["data: ".len()..]).expect("JSON")
    }

    /// Returns `true` if the server closed the connection without sending more.
    pub(crate) async fn is_closed(&mut self) -> bool {
        matches!(self.stream.read_u8().await, Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof)
    }

    async fn head(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => return Some(lines),
                line => lines.push(line.to_string()),
            }
        }
    }

    async fn rest_of(&mut self, mut headers: Vec<String>, with_body: bool) -> Option<Reply> {
        let first = headers.remove(0);
        let status = first.split(' ').nth(1)?.parse().ok()?;
        let mut reply = Reply { status, headers, body: String::new() };
        let length = reply.header("content-length").map_or(0, |n| n.parse().expect("a length"));
        if with_body && status >= 200 {
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).await.ok()?;
            reply.body = String::from_utf8(body).expect("bodies in tests are text");
        }
        Some(reply)
    }
}
