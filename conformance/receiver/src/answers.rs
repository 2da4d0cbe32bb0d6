//! [`ResponseScript`]: the scripted responses of the receiver, by default 200.

use std::{collections::VecDeque, str::FromStr};

/// A scripted response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status from 200 to 599, with an empty body.
    Status(u16),
    /// No response; the connection stays open for longer than a sender waits.
    Timeout,
    /// No response; the connection is closed.
    Close,
}

/// The responses to requests in order of arrival. The last one is repeated. Parsed from a script such as
/// `500,200,timeout`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    next: VecDeque<Reply>,
    last: Reply,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers { next: VecDeque::new(), last: Reply::Status(200) }
    }
}

impl Answers {
    /// Removes and returns the response to the next request.
    pub fn take(&mut self) -> Reply {
        self.next.pop_front().unwrap_or(self.last)
    }
}

impl FromStr for Answers {
    type Err = String;

    /// Parses a script such as `500,200,timeout`.
    fn from_str(text: &str) -> Result<Answers, String> {
        let next = text.split(',').map(str::parse).collect::<Result<VecDeque<Reply>, _>>()?;
        let last = *next.back().expect("`split` yields at least one part");
        Ok(Answers { next, last })
    }
}

impl FromStr for Reply {
    type Err = String;

    fn from_str(text: &str) -> Result<Reply, String> {
        match text.trim() {
            "timeout" => Ok(Reply::Timeout),
            "close" => Ok(Reply::Close),
            number => match number.parse() {
                Ok(status @ 200..=599) => Ok(Reply::Status(status)),
                _ => Err(format!(
                    "`{text}` is not a response; allowed: a status from 200 to 599, `timeout` or `close`"
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: [Reply; 4]) {
        let mut script: Answers = text.parse().unwrap();
        assert_eq!([(); 4].map(|()| script.take()), expected, "{text}");
    }

    #[test]
    fn the_last_response_is_repeated() {
        use Reply::{Close, Status, Timeout};
        check("500,200", [Status(500), Status(200), Status(200), Status(200)]);
        check("close, timeout", [Close, Timeout, Timeout, Timeout]);
        check("503", [Status(503); 4]);
        assert_eq!(Answers::default().take(), Status(200));
    }

    #[test]
    fn invalid_scripts_are_rejected() {
        for text in ["", "200,", "100", "600", "ok", "200 500"] {
            let error = text.parse::<Answers>().unwrap_err();
            assert!(error.contains("a status from 200 to 599"), "{text}: {error}");
        }
    }
}
