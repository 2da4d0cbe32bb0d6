//! One request at a time over a socket of its own: enough to fill a world and to look at answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Result<Value, String> {
        serde_json::from_slice(&self.body).map_err(|err| format!("an answer is not JSON: {err}"))
    }
}

/// Asks, and reads until the server closes. `body`: JSON to post.
pub(crate) fn ask(
    address: SocketAddr,
    (method, path): (&str, &str),
    key: &str,
    body: Option<&str>,
) -> Result<Answer, String> {
    let talk = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        if !key.is_empty() {
            text.push_str(&format!("Authorization: Bearer {key}\r\n"));
        }
        if let Some(body) = body {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body.unwrap_or_default());
        stream.write_all(text.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = talk().map_err(|err| format!("{method} {path} at {address}: {err}"))?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let status =
        std::str::from_utf8(answer.get(9..12).unwrap_or_default()).ok().and_then(|text| text.parse().ok());
    match (end, status) {
        (Some(end), Some(status)) => Ok(Answer { status, body: answer[end + 4..].to_vec() }),
        _ => Err(format!("{method} {path} at {address} is not answered in HTTP")),
    }
}

/// Asks for something that must be granted.
pub(crate) fn granted(
    address: SocketAddr,
    call: (&str, &str),
    key: &str,
    body: Option<&str>,
) -> Result<Value, String> {
    let answer = ask(address, call, key, body)?;
    if answer.status >= 300 {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        return Err(format!("{} {} is refused with {}: {text}", call.0, call.1, answer.status));
    }
    answer.json()
}
