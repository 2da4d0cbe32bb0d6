//! The options of a new world.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use reference_core::{
    error::ApiError,
    id::Code,
    rng::Seed,
    time::{Span, Timestamp},
};
use reference_wire::fields::{Fields, TEXT_MAX};

use crate::{
    backend::{Backend, Terms},
    clock::ClockKind,
    snapshots::WorldMoment,
};

/// The fields of a request for a world.
const FIELDS: [&str; 8] = ["name", "seed", "start", "clock", "speed", "rate_limit", "ttl", "from"];
/// Those of them that decide what a world's calls come to: one that goes on from another has them from there.
const GIVEN: [&str; 3] = ["seed", "start", "rate_limit"];
/// The default speed of a fast clock.
const SPEED: NonZeroU32 = NonZeroU32::new(60).expect("a constant above zero");
/// The shortest and the longest idle time after which a world may end.
const TTL: (Span, Span) = (Span::secs(1), Span::days(7));

/// The world that a new one goes on from, and where.
pub(crate) struct Origin {
    pub(crate) backend: Arc<Backend>,
    pub(crate) moment: WorldMoment,
}

/// The options of a new world.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// For people; worlds of one name have one seed, if none is given.
    pub(crate) name: Option<String>,
    pub(crate) seed: Option<Seed>,
    /// `None` for the time of day.
    pub(crate) start: Option<Timestamp>,
    pub(crate) clock: ClockKind,
    pub(crate) rate_limit: Option<u32>,
    /// It ends when nobody has asked it anything for so long; `None` for never.
    pub(crate) ttl: Option<Duration>,
}

impl Opening {
    /// A world as the server's own began.
    pub(crate) fn usual(usual: &Terms) -> Opening {
        let Terms { start, clock, rate_limit, .. } = *usual;
        Opening { name: None, seed: None, start, clock, rate_limit, ttl: None }
    }

    /// Reads a request for a world. What it does not say is as in the server's own, or as in the one that it goes on from.
    /// `find` finds an open world; `None` is the server's own.
    ///
    /// # Errors
    ///
    /// The refusal as it goes back, with everything that is wrong.
    pub(crate) fn read(
        body: &[u8],
        usual: &Terms,
        find: impl Fn(Option<Code>) -> Option<Arc<Backend>>,
    ) -> Result<(Opening, Option<Origin>), ApiError> {
        let mut f = Fields::read(body)?;
        f.only(&FIELDS);
        let origin = f.object("from", |f| read_origin(f, &find));
        let given = origin.as_ref().and_then(|origin| origin.backend.terms());
        for name in GIVEN {
            if origin.is_some() && f.has(name) {
                f.wrong(name, "The {} field is that of the world under from; leave it out.");
            }
        }
        let usual = given.as_ref().unwrap_or(usual);
        let name = f.text("name", TEXT_MAX);
        let seed = f.whole("seed");
        let start = f.word_like("start", "2026-01-05T09:00:00Z", Timestamp::parse);
        let clock = read_clock(&mut f, usual);
        let rate_limit = f.count("rate_limit");
        let ttl = f.word_like("ttl", "30s or 10m, from 1s to 7d", |text| {
            Span::parse(text).filter(|span| (TTL.0..=TTL.1).contains(span))
        });
        // Null is no limit, and saying nothing is the server's.
        let says_limit = f.has("rate_limit");
        f.finish()?;
        let opening = Opening {
            name,
            seed: seed.map(Seed).or(given.as_ref().map(|terms| terms.seed)),
            start: start.or(usual.start),
            clock,
            rate_limit: if says_limit { rate_limit } else { usual.rate_limit },
            ttl: ttl.map(|span| Duration::from_micros(span.0)),
        };
        Ok((opening, origin))
    }
}

fn read_origin(f: &mut Fields<'_>, find: impl Fn(Option<Code>) -> Option<Arc<Backend>>) -> Option<Origin> {
    f.only(&["world", "snapshot", "at"]);
    let backend = match f.text("world", TEXT_MAX) {
        None => find(None),
        Some(id) => Code::parse(&id).and_then(|id| find(Some(id))),
    };
    if backend.is_none() {
        f.wrong("world", "The selected {} is not open.");
    }
    let backend = backend?;
    let moment = WorldMoment::read(f, &backend.host.snapshots());
    Some(Origin { backend, moment })
}

fn read_clock(f: &mut Fields<'_>, usual: &Terms) -> ClockKind {
    let word = f.word("clock", &["wall", "fast", "frozen"], |text| match text {
        "wall" => Some(ClockKind::Wall),
        "fast" => Some(ClockKind::Fast { factor: SPEED }),
        "frozen" => Some(ClockKind::Frozen),
        _ => None,
    });
    let speed = f.count("speed").and_then(NonZeroU32::new);
    match (word.unwrap_or(usual.clock), speed) {
        (ClockKind::Fast { .. }, Some(factor)) => ClockKind::Fast { factor },
        (clock, None) => clock,
        (clock, Some(_)) => {
            f.wrong("speed", "The {} field is for a clock that is fast: give \"clock\":\"fast\" with it.");
            clock
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Terms = Terms {
        seed: Seed(1),
        start: Some(Timestamp(1_000_000)),
        clock: ClockKind::Wall,
        rate_limit: Some(120),
    };

    /// Without what is as in the server's own.
    #[track_caller]
    fn check(body: &str, expected: &str) {
        let found = match Opening::read(body.as_bytes(), &USUAL, |_| None) {
            Ok((Opening { name, seed, start, clock, rate_limit, ttl }, _)) => {
                let seed = seed.map(|seed| seed.0);
                let start = start.map_or(0, |start| start.unix_secs());
                format!("{name:?} {seed:?} {start} {clock:?} {rate_limit:?} {ttl:?}")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn what_is_not_said_is_as_in_the_server_s_own_world() {
        check("", "None None 1 Wall Some(120) None");
        check("{}", "None None 1 Wall Some(120) None");
        check(
            r#"{"name":"a","seed":7,"start":"1970-01-01T00:00:09Z","clock":"frozen","rate_limit":5,"ttl":"10m"}"#,
            r#"Some("a") Some(7) 9 Frozen Some(5) Some(600s)"#,
        );
        check(r#"{"rate_limit":null}"#, "None None 1 Wall None None");
        check(r#"{"clock":"fast"}"#, "None None 1 Fast { factor: 60 } Some(120) None");
        check(r#"{"clock":"fast","speed":9}"#, "None None 1 Fast { factor: 9 } Some(120) None");
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_taken() {
        check(
            "[1]",
            "The request body is not a JSON object: invalid type: sequence, expected a JSON object at line 1 column 0.",
        );
        check(r#"{"names":1}"#, "The names field is not known here.");
        check(r#"{"seed":-1}"#, "The seed field must be a whole number below 2^64.");
        check(r#"{"start":"now"}"#, "The start field must be of the form 2026-01-05T09:00:00Z.");
        check(r#"{"clock":"slow"}"#, "The selected clock is invalid; it takes wall, fast, frozen.");
        check(
            r#"{"speed":9}"#,
            "The speed field is for a clock that is fast: give \"clock\":\"fast\" with it.",
        );
        check(r#"{"from":"a"}"#, "The from field must be an object.");
        check(r#"{"from":{"world":"a"}}"#, "The selected from.world is not open.");
        check(r#"{"rate_limit":0}"#, "The rate_limit field must be a whole number of at least 1.");
        for ttl in ["999ms", "8d", "soon"] {
            let body = format!(r#"{{"ttl":"{ttl}"}}"#);
            check(&body, "The ttl field must be of the form 30s or 10m, from 1s to 7d.");
        }
    }
}
