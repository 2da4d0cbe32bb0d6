//! Parses responses as far as a load test needs: status, length, keep-alive and Retry-After.
//!
//! Strict, so that no wrong response is counted as a right one. Keeps no body.

/// The largest head that is read.
pub(crate) const HEAD_MAX: usize = 64 * 1024;
/// A chunk's size has at most so many digits: 4 GiB.
const CHUNK_DIGITS_MAX: usize = 8;

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) length: Length,
    /// The connection stays open.
    pub(crate) keeps: bool,
    /// `Retry-After`, in seconds.
    pub(crate) retry_after: Option<u64>,
}

/// The end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Known(u64),
    Chunked,
    UntilClose,
}

/// Reads the head that `bytes` begin with and says how long it is; nothing while it is incomplete.
pub(crate) fn head(bytes: &[u8]) -> Result<Option<(Head, usize)>, &'static str> {
    let Some(end) = find_end(bytes) else {
        return if bytes.len() >= HEAD_MAX { Err("response head exceeds 64 KiB") } else { Ok(None) };
    };
    let text = &bytes[..end];
    let mut lines = text.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (status, mut keeps) = status(lines.next().unwrap_or_default())?;
    let (mut length, mut chunked, mut retry_after) = (None, false, None);
    for line in lines {
        let Some(colon) = line.iter().position(|b| *b == b':') else {
            return Err("header line without a colon");
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        // The length tells most names apart before a letter is compared.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let n = number(value).ok_or("invalid Content-Length")?;
                if length.is_some_and(|known| known != n) {
                    return Err("two different Content-Length headers");
                }
                length = Some(n);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err("Transfer-Encoding other than chunked");
                }
                chunked = true;
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                if value.eq_ignore_ascii_case(b"close") {
                    keeps = false;
                } else if value.eq_ignore_ascii_case(b"keep-alive") {
                    keeps = true;
                }
            }
            11 if name.eq_ignore_ascii_case(b"retry-after") => retry_after = number(value),
            _ => {}
        }
    }
    let length = match (status, chunked, length) {
        (100..=199 | 204 | 304, ..) => Length::Known(0),
        (_, true, Some(_)) => return Err("both Content-Length and Transfer-Encoding"),
        (_, true, None) => Length::Chunked,
        (_, false, Some(n)) => Length::Known(n),
        (_, false, None) => Length::UntilClose,
    };
    let keeps = keeps && length != Length::UntilClose;
    Ok(Some((Head { status, length, keeps, retry_after }, end + END.len())))
}

const END: &[u8] = b"\r\n\r\n";

fn find_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    // Heads are short lines: a look at every line's end is all it takes.
    while let Some(at) = bytes[from..].iter().position(|b| *b == b'\r') {
        if bytes[from + at..].starts_with(END) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

fn status(line: &[u8]) -> Result<(u16, bool), &'static str> {
    let rest = line.strip_prefix(b"HTTP/1.").ok_or("response is not HTTP/1.x")?;
    let (&version, rest) = rest.split_first().ok_or("response is not HTTP/1.x")?;
    let digits = match rest {
        [b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => [a, b, c],
        [b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] => [a, b, c],
        _ => return Err("response without a status"),
    };
    let status = digits.iter().fold(0, |n, digit| n * 10 + u16::from(**digit - b'0'));
    Ok((status, version == b'1'))
}

fn number(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}

/// Follows a chunked body to its end.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    place: Place,
    /// Bytes of chunks so far.
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the line that tells a size: the size and its digits so far, and whether an extension has begun.
    Size {
        n: u64,
        digits: usize,
        rest: bool,
    },
    Data(u64),
    /// Behind a chunk: so many bytes of its line end are still to come.
    DataEnd(u8),
    /// In a trailer: letters in its line so far.
    Trailer(usize),
    End,
}

impl Default for Place {
    fn default() -> Place {
        Place::Size { n: 0, digits: 0, rest: false }
    }
}

impl Chunks {
    /// Takes the next bytes; hands on what stands in chunks. Says how many it took, fewer than all only at the end.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(usize, bool), &'static str> {
        let mut at = 0;
        while at < bytes.len() && self.place != Place::End {
            if let Place::Data(left) = self.place {
                let part = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                sink(&bytes[at..at + part]);
                at += part;
                self.bytes += part as u64;
                self.place =
                    if part as u64 == left { Place::DataEnd(2) } else { Place::Data(left - part as u64) };
                continue;
            }
            self.place = step(self.place, bytes[at])?;
            at += 1;
        }
        Ok((at, self.place == Place::End))
    }
}

fn step(place: Place, byte: u8) -> Result<Place, &'static str> {
    Ok(match (place, byte) {
        (Place::Size { digits: 0, .. }, b'\r' | b'\n' | b';') => return Err("chunk without a size"),
        (Place::Size { n: 0, .. }, b'\n') => Place::Trailer(0),
        (Place::Size { n, .. }, b'\n') => Place::Data(n),
        (Place::Size { n, digits, .. }, b'\r' | b';' | b' ') => Place::Size { n, digits, rest: true },
        (Place::Size { rest: true, .. }, _) => place,
        (Place::Size { n, digits, .. }, _) => {
            let digit = char::from(byte).to_digit(16).ok_or("invalid chunk size")?;
            if digits == CHUNK_DIGITS_MAX {
                return Err("chunk exceeds 4 GiB");
            }
            Place::Size { n: n * 16 + u64::from(digit), digits: digits + 1, rest: false }
        }
        (Place::DataEnd(2), b'\r') => Place::DataEnd(1),
        (Place::DataEnd(1), b'\n') => Place::default(),
        (Place::DataEnd(_), _) => return Err("chunk longer than its size"),
        (Place::Trailer(letters), b'\r') => Place::Trailer(letters),
        (Place::Trailer(0), b'\n') => Place::End,
        (Place::Trailer(_), b'\n') => Place::Trailer(0),
        (Place::Trailer(letters), _) if letters < HEAD_MAX => Place::Trailer(letters + 1),
        (Place::Trailer(_), _) => return Err("trailer exceeds 64 KiB"),
        (Place::Data(_) | Place::End, _) => unreachable!("handled before"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: (u16, Length, bool, Option<u64>)) {
        let (read, len) = head(text.as_bytes()).expect("a good head").expect("a whole head");
        assert_eq!((read.status, read.length, read.keeps, read.retry_after), expected, "{text}");
        assert!(text[..len].ends_with("\r\n\r\n"), "{text}");
        // The same in pieces.
        for cut in 0..len {
            assert_eq!(head(&text.as_bytes()[..cut]), Ok(None), "{text} up to {cut}");
        }
    }

    #[test]
    fn a_head_tells_where_its_body_ends() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{", (200, Length::Known(12), true, None));
        check("HTTP/1.1 200\r\nContent-Length:0\r\n\r\n", (200, Length::Known(0), true, None));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", (200, Length::Chunked, true, None));
        check("HTTP/1.1 204 No Content\r\nx: y\r\n\r\n", (204, Length::Known(0), true, None));
        check("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n", (200, Length::Known(1), false, None));
        check("HTTP/1.1 200 OK\r\nx: y\r\n\r\n", (200, Length::UntilClose, false, None));
        check(
            "HTTP/1.1 429 Too Many\r\nRetry-After: 58\r\nconnection: close\r\ncontent-length: 2\r\n\r\n",
            (429, Length::Known(2), false, Some(58)),
        );
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let found = head(text.as_bytes()).expect_err("it is refused");
        assert!(found.contains(expected), "{text}: {found}");
    }

    #[test]
    fn a_head_that_nobody_can_trust_is_refused() {
        refused("HTTP/2 200\r\n\r\n", "not HTTP/1.x");
        refused("\r\n\r\n", "not HTTP/1.x");
        refused("HTTP/1.1 20 OK\r\n\r\n", "without a status");
        refused("HTTP/1.1 2000 OK\r\n\r\n", "without a status");
        refused("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "invalid Content-Length");
        refused("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "two different");
        refused(
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            "both Content-Length",
        );
        refused("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "other than chunked");
        refused("HTTP/1.1 200 OK\r\nnothing\r\n\r\n", "without a colon");
        assert!(head(&vec![b'x'; HEAD_MAX]).is_err());
    }

    /// The body and what follows it, in pieces of every size.
    #[track_caller]
    fn chunked(text: &str, body: &str, rest: &str) {
        for size in 1..=text.len() {
            let (mut chunks, mut found, mut taken, mut over) = (Chunks::default(), Vec::new(), 0, false);
            for piece in text.as_bytes().chunks(size) {
                let (n, end) = chunks.take(piece, |part| found.extend_from_slice(part)).expect("a good body");
                taken += n;
                if end {
                    over = true;
                    break;
                }
            }
            assert!(over, "{text} in pieces of {size}");
            assert_eq!(String::from_utf8(found).unwrap(), body);
            assert_eq!(chunks.bytes, body.len() as u64);
            assert!(text[taken..].ends_with(rest) && text.len() - taken >= rest.len().min(1), "{text}");
        }
    }

    #[test]
    fn chunks_are_followed_to_their_end() {
        chunked("0\r\n\r\n", "", "");
        chunked("3\r\nabc\r\n0\r\n\r\n", "abc", "");
        chunked("00A;x=y\r\n0123456789\r\n1 \r\n!\r\n0\r\nsum: 1\r\n\r\n", "0123456789!", "");
        chunked("1\r\na\r\n0\r\n\r\nHTTP", "a", "HTTP");
    }

    #[track_caller]
    fn broken(text: &str, expected: &str) {
        let found = Chunks::default().take(text.as_bytes(), |_| {}).expect_err("it is refused");
        assert!(found.contains(expected), "{text}: {found}");
    }

    #[test]
    fn chunks_that_nobody_can_trust_are_refused() {
        broken("\r\n", "without a size");
        broken("x\r\n", "invalid chunk size");
        broken("123456789\r\n", "exceeds 4 GiB");
        broken("1\r\nab\r\n", "longer than its size");
    }
}
