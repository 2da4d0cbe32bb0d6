//! Parses responses as far as a load test needs: the status, the end of the body, keep-alive and `Retry-After`.
//!
//! The parser rejects a response whose end is not certain. It skips chunk extensions and trailers, whose lines may also
//! end without a carriage return. It stores no body.

/// The maximum size of a head, and of a trailer line, in bytes. A connection's buffer for heads has this size.
pub(crate) const HEAD_MAX: usize = 64 * 1024;
/// The maximum number of hexadecimal digits of a chunk size, which limits a chunk to 4 GiB.
const CHUNK_DIGITS_MAX: usize = 8;

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) length: BodyLength,
    /// `true` if the connection stays open.
    pub(crate) keep_alive: bool,
    /// `Retry-After`, in seconds; `None` if it is absent or not a number.
    pub(crate) retry_after: Option<u64>,
}

/// The length of a body, or how its end is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Known(u64),
    Chunked,
    UntilClose,
}

/// Parses the head at the start of `bytes`, of which there are at most [`HEAD_MAX`]. Returns it with its size in bytes;
/// `None` while it is incomplete.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, &'static str> {
    let Some(end) = find_end(bytes) else {
        return if bytes.len() >= HEAD_MAX { Err("response head exceeds 64 KiB") } else { Ok(None) };
    };
    let mut lines = bytes[..end].split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (status, mut keep_alive) = parse_status_line(lines.next().unwrap_or_default())?;
    let (mut length, mut chunked, mut retry_after) = (None, false, None);
    for line in lines {
        let Some(colon) = line.iter().position(|b| *b == b':') else {
            return Err("header line without a colon");
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        // The length distinguishes most names without a comparison.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let n = parse_number(value).ok_or("invalid Content-Length")?;
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
                    keep_alive = false;
                } else if value.eq_ignore_ascii_case(b"keep-alive") {
                    keep_alive = true;
                }
            }
            11 if name.eq_ignore_ascii_case(b"retry-after") => retry_after = parse_number(value),
            _ => {}
        }
    }
    let length = match (status, chunked, length) {
        (100..=199 | 204 | 304, ..) => BodyLength::Known(0),
        (_, true, Some(_)) => return Err("both Content-Length and Transfer-Encoding"),
        (_, true, None) => BodyLength::Chunked,
        (_, false, Some(n)) => BodyLength::Known(n),
        (_, false, None) => BodyLength::UntilClose,
    };
    let keep_alive = keep_alive && length != BodyLength::UntilClose;
    Ok(Some((Head { status, length, keep_alive, retry_after }, end + END.len())))
}

/// The line break of the last header, and the empty line after it.
const END: &[u8] = b"\r\n\r\n";

/// Returns the index of the first [`END`].
fn find_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    // Heads have short lines, so checking each line end is fast.
    while let Some(offset) = bytes[from..].iter().position(|b| *b == b'\r') {
        if bytes[from + offset..].starts_with(END) {
            return Some(from + offset);
        }
        from += offset + 1;
    }
    None
}

/// Returns the status, and `true` for HTTP/1.1, in which connections stay open by default.
fn parse_status_line(line: &[u8]) -> Result<(u16, bool), &'static str> {
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

fn parse_number(digits: &[u8]) -> Option<u64> {
    let is_valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_valid)?.parse().ok()
}

/// A parser that finds the end of a chunked body.
#[derive(Debug, Default)]
pub(crate) struct ChunkParser {
    state: ChunkState,
    /// The size of the chunks so far, in bytes.
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// In the line with the size of a chunk.
    Size {
        /// The size so far.
        n: u64,
        /// The number of digits so far.
        digits: usize,
        /// `true` after the digits.
        is_past_digits: bool,
    },
    /// In a chunk, with this number of bytes left.
    Data(u64),
    /// After a chunk, with this number of bytes of its line end left.
    DataEnd(u8),
    /// In a trailer line, after this number of bytes.
    Trailer(usize),
    End,
}

impl Default for ChunkState {
    fn default() -> ChunkState {
        ChunkState::Size { n: 0, digits: 0, is_past_digits: false }
    }
}

impl ChunkParser {
    /// Parses the next bytes, and passes the contents of chunks to `sink`. Returns the number of consumed bytes, and
    /// `true` at the end of the body.
    pub(crate) fn parse(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(usize, bool), &'static str> {
        let mut consumed = 0;
        while consumed < bytes.len() && self.state != ChunkState::End {
            if let ChunkState::Data(left) = self.state {
                let part = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - consumed);
                sink(&bytes[consumed..consumed + part]);
                consumed += part;
                self.bytes += part as u64;
                self.state = if part as u64 == left {
                    ChunkState::DataEnd(2)
                } else {
                    ChunkState::Data(left - part as u64)
                };
                continue;
            }
            self.state = next_state(self.state, bytes[consumed])?;
            consumed += 1;
        }
        Ok((consumed, self.state == ChunkState::End))
    }
}

/// Returns the state after a byte that is not in a chunk.
fn next_state(state: ChunkState, byte: u8) -> Result<ChunkState, &'static str> {
    Ok(match (state, byte) {
        (ChunkState::Size { digits: 0, .. }, b'\r' | b'\n' | b';') => return Err("chunk without a size"),
        (ChunkState::Size { n: 0, .. }, b'\n') => ChunkState::Trailer(0),
        (ChunkState::Size { n, .. }, b'\n') => ChunkState::Data(n),
        (ChunkState::Size { n, digits, .. }, b'\r' | b';' | b' ') => {
            ChunkState::Size { n, digits, is_past_digits: true }
        }
        (ChunkState::Size { is_past_digits: true, .. }, _) => state,
        (ChunkState::Size { n, digits, .. }, _) => {
            let digit = char::from(byte).to_digit(16).ok_or("invalid chunk size")?;
            if digits == CHUNK_DIGITS_MAX {
                return Err("chunk exceeds 4 GiB");
            }
            ChunkState::Size { n: n * 16 + u64::from(digit), digits: digits + 1, is_past_digits: false }
        }
        (ChunkState::DataEnd(2), b'\r') => ChunkState::DataEnd(1),
        (ChunkState::DataEnd(1), b'\n') => ChunkState::default(),
        (ChunkState::DataEnd(_), _) => return Err("chunk longer than its size"),
        (ChunkState::Trailer(column), b'\r') => ChunkState::Trailer(column),
        (ChunkState::Trailer(0), b'\n') => ChunkState::End,
        (ChunkState::Trailer(_), b'\n') => ChunkState::Trailer(0),
        (ChunkState::Trailer(column), _) if column < HEAD_MAX => ChunkState::Trailer(column + 1),
        (ChunkState::Trailer(_), _) => return Err("trailer exceeds 64 KiB"),
        (ChunkState::Data(_) | ChunkState::End, _) => unreachable!("`parse` handles these states"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Head) {
        let (head, len) =
            parse_head(text.as_bytes()).expect("the head is valid").expect("the head is complete");
        assert_eq!(head, expected, "{text}");
        assert!(text[..len].ends_with("\r\n\r\n"), "{text}");
        // Each prefix is incomplete.
        for end in 0..len {
            assert_eq!(parse_head(&text.as_bytes()[..end]), Ok(None), "{text} up to {end}");
        }
    }

    #[test]
    fn a_head_determines_the_end_of_its_body() {
        let head = |status, length| Head { status, length, keep_alive: true, retry_after: None };
        let closing = |head: Head| Head { keep_alive: false, ..head };
        check("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{", head(200, BodyLength::Known(12)));
        check("HTTP/1.1 200\r\nContent-Length:0\r\n\r\n", head(200, BodyLength::Known(0)));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", head(200, BodyLength::Chunked));
        check("HTTP/1.1 204 No Content\r\nx: y\r\n\r\n", head(204, BodyLength::Known(0)));
        check("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n", closing(head(200, BodyLength::Known(1))));
        check("HTTP/1.1 200 OK\r\nx: y\r\n\r\n", closing(head(200, BodyLength::UntilClose)));
        check(
            "HTTP/1.1 429 Too Many\r\nRetry-After: 58\r\nconnection: close\r\ncontent-length: 2\r\n\r\n",
            Head { retry_after: Some(58), ..closing(head(429, BodyLength::Known(2))) },
        );
    }

    #[track_caller]
    fn check_rejected(text: &str, expected: &str) {
        let error = parse_head(text.as_bytes()).expect_err("the input is rejected");
        assert!(error.contains(expected), "{text}: {error}");
    }

    #[test]
    fn an_invalid_head_is_rejected() {
        check_rejected("HTTP/2 200\r\n\r\n", "not HTTP/1.x");
        check_rejected("\r\n\r\n", "not HTTP/1.x");
        check_rejected("HTTP/1.1 20 OK\r\n\r\n", "without a status");
        check_rejected("HTTP/1.1 2000 OK\r\n\r\n", "without a status");
        check_rejected("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "invalid Content-Length");
        check_rejected("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "two different");
        check_rejected(
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            "both Content-Length",
        );
        check_rejected("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "other than chunked");
        check_rejected("HTTP/1.1 200 OK\r\nnothing\r\n\r\n", "without a colon");
        assert!(parse_head(&vec![b'x'; HEAD_MAX]).is_err());
    }

    /// Parses `text` in pieces of each size. It consists of a chunked body, whose content is `body`, and of `rest`.
    #[track_caller]
    fn check_chunked(text: &str, body: &str, rest: &str) {
        for size in 1..=text.len() {
            let (mut chunks, mut parsed, mut consumed, mut is_over) =
                (ChunkParser::default(), Vec::new(), 0, false);
            for piece in text.as_bytes().chunks(size) {
                let (n, end) =
                    chunks.parse(piece, |part| parsed.extend_from_slice(part)).expect("the body is valid");
                consumed += n;
                if end {
                    is_over = true;
                    break;
                }
            }
            assert!(is_over, "{text} in pieces of {size}");
            assert_eq!(String::from_utf8(parsed).unwrap(), body);
            assert_eq!(chunks.bytes, body.len() as u64);
            assert_eq!(&text[consumed..], rest, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_chunked_body_is_found() {
        check_chunked("0\r\n\r\n", "", "");
        check_chunked("3\r\nabc\r\n0\r\n\r\n", "abc", "");
        check_chunked("00A;x=y\r\n0123456789\r\n1 \r\n!\r\n0\r\nsum: 1\r\n\r\n", "0123456789!", "");
        check_chunked("1\r\na\r\n0\r\n\r\nHTTP", "a", "HTTP");
    }

    #[track_caller]
    fn check_chunks_rejected(text: &str, expected: &str) {
        let error = ChunkParser::default().parse(text.as_bytes(), |_| {}).expect_err("the input is rejected");
        assert!(error.contains(expected), "{text}: {error}");
    }

    #[test]
    fn invalid_chunks_are_rejected() {
        check_chunks_rejected("\r\n", "without a size");
        check_chunks_rejected("x\r\n", "invalid chunk size");
        check_chunks_rejected("123456789\r\n", "exceeds 4 GiB");
        check_chunks_rejected("1\r\nab\r\n", "longer than its size");
    }
}
