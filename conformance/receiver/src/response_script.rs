//! [`ResponseScript`]: the scripted responses of the receiver, by default 200.

use std::{collections::VecDeque, str::FromStr};

/// A scripted response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptedResponse {
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
pub struct ResponseScript {
    next: VecDeque<ScriptedResponse>,
    last: ScriptedResponse,
}

impl Default for ResponseScript {
    fn default() -> ResponseScript {
        ResponseScript { next: VecDeque::new(), last: ScriptedResponse::Status(200) }
    }
}

impl ResponseScript {
    /// Removes and returns the response to the next request.
    pub fn next_response(&mut self) -> ScriptedResponse {
        self.next.pop_front().unwrap_or(self.last)
    }
}

impl FromStr for ResponseScript {
    type Err = String;

    /// Parses a script such as `500,200,timeout`.
    fn from_str(text: &str) -> Result<ResponseScript, String> {
        let next = text.split(',').map(str::parse).collect::<Result<VecDeque<ScriptedResponse>, _>>()?;
        let last = *next.back().expect("`split` yields at least one part");
        Ok(ResponseScript { next, last })
    }
}

impl FromStr for ScriptedResponse {
    type Err = String;

    fn from_str(text: &str) -> Result<ScriptedResponse, String> {
        match text.trim() {
            "timeout" => Ok(ScriptedResponse::Timeout),
            "close" => Ok(ScriptedResponse::Close),
            number => match number.parse() {
                Ok(status @ 200..=599) => Ok(ScriptedResponse::Status(status)),
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
    fn check(text: &str, expected: [ScriptedResponse; 4]) {
        let mut script: ResponseScript = text.parse().unwrap();
        assert_eq!([(); 4].map(|()| script.next_response()), expected, "{text}");
    }

    #[test]
    fn the_last_response_is_repeated() {
        use ScriptedResponse::{Close, Status, Timeout};
        check("500,200", [Status(500), Status(200), Status(200), Status(200)]);
        check("close, timeout", [Close, Timeout, Timeout, Timeout]);
        check("503", [Status(503); 4]);
        assert_eq!(ResponseScript::default().next_response(), Status(200));
    }

    #[test]
    fn invalid_scripts_are_rejected() {
        for text in ["", "200,", "100", "600", "ok", "200 500"] {
            let error = text.parse::<ResponseScript>().unwrap_err();
            assert!(error.contains("a status from 200 to 599"), "{text}: {error}");
        }
    }
}
