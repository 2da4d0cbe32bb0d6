//! A shop that writes down every post. Some it takes, some it refuses, and now and then it takes its time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// The longest time that a post may take.
const PATIENCE: Duration = Duration::from_secs(10);
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A post that came.
#[derive(Clone)]
pub(crate) struct Post {
    pub(crate) delivery: String,
    pub(crate) event: String,
}

/// Listens as long as the process lives.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Post>>>,
}

impl Receiver {
    pub(crate) fn start() -> Result<Receiver, String> {
        let bound =
            TcpListener::bind("127.0.0.1:0").and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|error| format!("there is no receiver: {error}"))?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sees = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sees = Arc::clone(&sees);
                // A sender that was killed leaves its post torn, which is no post.
                thread::spawn(move || drop(take(stream, &sees)));
            }
        });
        Ok(Receiver { address, seen })
    }

    /// All posts so far.
    pub(crate) fn seen(&self) -> Vec<Post> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn take(stream: TcpStream, sees: &Mutex<Vec<Post>>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            if line.trim_end().is_empty() {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length.min(BODY_BYTES_MAX)];
    stream.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let post = Post { delivery: text("id"), event: text("event_id") };
    let nth = {
        let mut seen = sees.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(post);
        seen.len()
    };
    if nth % 7 == 0 {
        thread::park_timeout(Duration::from_millis(30));
    }
    let status = if nth % 5 == 0 { "503 Service Unavailable" } else { "200 OK" };
    write!(stream.get_mut(), "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}
