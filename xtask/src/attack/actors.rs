//! Receivers of webhooks, and targets that mean ill. Each has a thread that ends with this program.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// So many connections are held at a time; the oldest goes when another one comes.
const HELD_MAX: usize = 4_096;
/// A client that has connected sends its head at once.
const HEAD_TIME: Duration = Duration::from_secs(2);

/// A receiver of deliveries, and what came so far.
pub(crate) struct Shop {
    pub(crate) address: SocketAddr,
    posts: Receiver<(String, Instant)>,
}

/// The behaviour of a receiver towards posts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiverBehavior {
    /// Answers 200 at once.
    Quick,
    /// Never answers.
    Silent,
}

impl Shop {
    pub(crate) fn open(behavior: ReceiverBehavior) -> io::Result<Shop> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (tell, posts) = channel();
        thread::spawn(move || receive(&listener, behavior, &tell));
        Ok(Shop { address, posts })
    }

    /// Returns the time at which a post to this path arrived; `None` if none did in time.
    pub(crate) fn post_to(&self, path: &str, patience: Duration) -> Option<Instant> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.posts.recv_timeout(left) {
                Ok((seen, at)) if seen == path => return Some(at),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// `--forward` for a host that stands for this receiver.
    pub(crate) fn forward(&self, host: &str) -> String {
        format!("https://{host}=http://{}", self.address)
    }
}

fn receive(listener: &TcpListener, behavior: ReceiverBehavior, tell: &Sender<(String, Instant)>) {
    let mut held = std::collections::VecDeque::new();
    // An error is of one client only.
    for mut stream in listener.incoming().flatten() {
        let Ok(head) = head_of(&stream) else { continue };
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if tell.send((path, Instant::now())).is_err() {
            return;
        }
        if behavior == ReceiverBehavior::Quick {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        } else {
            held.push_back(stream);
            if held.len() > HELD_MAX {
                held.pop_front();
            }
        }
    }
}

/// A server that gives a good answer to so many requests, and to each after them interim responses without end.
pub(crate) fn interim_flood(good: usize) -> io::Result<SocketAddr> {
    const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let left = AtomicUsize::new(good);
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(4_096);
    let shared = Arc::new((left, interim));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (left, interim) = &*shared;
                while head_of(&stream).is_ok() {
                    let is_good = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
                    // The other side may have had enough.
                    while stream.write_all(if is_good { GOOD } else { interim }).is_ok() && !is_good {}
                }
            });
        }
    });
    Ok(address)
}

/// The head of a request. Its body is read too, so that closing does not tear the answer.
fn head_of(stream: &TcpStream) -> io::Result<String> {
    stream.set_read_timeout(Some(HEAD_TIME))?;
    let mut lines = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if lines.by_ref().take(64 * 1024).read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = Vec::new();
    lines.take(length).read_to_end(&mut body)?;
    Ok(head)
}

/// A target that answers every request with a body made from the request's key. Gives its address.
pub(crate) fn target(
    status: u16,
    body: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Ok(head) = head_of(&stream) else { continue };
            let bearer = head.to_ascii_lowercase().find("bearer ").map(|at| at + "bearer ".len());
            let key = bearer.and_then(|at| head[at..].lines().next()).unwrap_or_default().trim();
            let body = body(key);
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            // The other side may have had enough.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    Ok(format!("http://{address}"))
}
