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
    backend::{Backend, WorldParameters},
    clock::ClockKind,
    snapshots::WorldMoment,
};

/// The fields of a request that opens a world.
const FIELDS: [&str; 8] = ["name", "seed", "start", "clock", "speed", "rate_limit", "ttl", "from"];
/// The fields that a branch inherits from its parent, because they determine the outcomes of calls.
const INHERITED: [&str; 3] = ["seed", "start", "rate_limit"];
/// The default speed of a fast clock.
const DEFAULT_SPEED: NonZeroU32 = NonZeroU32::new(60).expect("a constant above zero");
/// The shortest and the longest time to live of an idle world.
const TTL_RANGE: (Span, Span) = (Span::secs(1), Span::days(7));

/// The world and the moment from which a new world branches.
pub(crate) struct BranchPoint {
    pub(crate) backend: Arc<Backend>,
    pub(crate) moment: WorldMoment,
}

/// The options of a new world.
#[derive(Clone, Debug)]
pub(crate) struct WorldOptions {
    /// A name for display; also determines the seed if none is given.
    pub(crate) name: Option<String>,
    pub(crate) seed: Option<Seed>,
    /// The start of the clock; `None` for the present time.
    pub(crate) start: Option<Timestamp>,
    pub(crate) clock: ClockKind,
    pub(crate) rate_limit: Option<u32>,
    /// The idle time after which the world ends; `None` for never.
    pub(crate) ttl: Option<Duration>,
}

impl WorldOptions {
    /// Returns the options of a new world with these defaults, except the seed.
    pub(crate) fn from_parameters(defaults: &WorldParameters) -> WorldOptions {
        let WorldParameters { start, clock, rate_limit, .. } = *defaults;
        WorldOptions { name: None, seed: None, start, clock, rate_limit, ttl: None }
    }

    /// Reads a request that opens a world. Missing fields default to those of the first world, or of the parent of a branch.
    /// `find` returns an open world; for `None`, the first.
    ///
    /// # Errors
    ///
    /// The refusal, with all errors of the request.
    pub(crate) fn read(
        body: &[u8],
        defaults: &WorldParameters,
        find: impl Fn(Option<Code>) -> Option<Arc<Backend>>,
    ) -> Result<(WorldOptions, Option<BranchPoint>), ApiError> {
        let mut fields = Fields::read(body)?;
        fields.reject_unknown(&FIELDS);
        let branch_point = fields.object("from", |fields| read_branch_point(fields, &find));
        let inherited = branch_point.as_ref().and_then(|branch_point| branch_point.backend.parameters());
        for name in INHERITED {
            if branch_point.is_some() && fields.has(name) {
                fields.add_error(name, "The {} field is determined by the world in from; leave it out.");
            }
        }
        let defaults = inherited.as_ref().unwrap_or(defaults);
        let name = fields.text("name", TEXT_MAX);
        let seed = fields.whole_number("seed");
        let start = fields.parsed_text("start", "2026-01-05T09:00:00Z", Timestamp::parse);
        let clock = read_clock(&mut fields, defaults);
        let rate_limit = fields.count("rate_limit");
        let ttl = fields.parsed_text("ttl", "30s or 10m, from 1s to 7d", |text| {
            Span::parse(text).filter(|span| (TTL_RANGE.0..=TTL_RANGE.1).contains(span))
        });
        // Null means no limit; a missing field means the default limit.
        let has_limit = fields.has("rate_limit");
        fields.finish()?;
        let options = WorldOptions {
            name,
            seed: seed.map(Seed).or(inherited.as_ref().map(|parameters| parameters.seed)),
            start: start.or(defaults.start),
            clock,
            rate_limit: if has_limit { rate_limit } else { defaults.rate_limit },
            ttl: ttl.map(|span| Duration::from_micros(span.0)),
        };
        Ok((options, branch_point))
    }
}

fn read_branch_point(
    fields: &mut Fields<'_>,
    find: impl Fn(Option<Code>) -> Option<Arc<Backend>>,
) -> Option<BranchPoint> {
    fields.reject_unknown(&["world", "snapshot", "at"]);
    let backend = match fields.text("world", TEXT_MAX) {
        None => find(None),
        Some(id) => Code::parse(&id).and_then(|id| find(Some(id))),
    };
    if backend.is_none() {
        fields.add_error("world", "The selected {} is not open.");
    }
    let backend = backend?;
    let moment = WorldMoment::read(fields, &backend.host.snapshots());
    Some(BranchPoint { backend, moment })
}

fn read_clock(fields: &mut Fields<'_>, defaults: &WorldParameters) -> ClockKind {
    let kind = fields.choice("clock", &["wall", "fast", "frozen"], |text| match text {
        "wall" => Some(ClockKind::Wall),
        "fast" => Some(ClockKind::Fast { factor: DEFAULT_SPEED }),
        "frozen" => Some(ClockKind::Frozen),
        _ => None,
    });
    let speed = fields.count("speed").and_then(NonZeroU32::new);
    match (kind.unwrap_or(defaults.clock), speed) {
        (ClockKind::Fast { .. }, Some(factor)) => ClockKind::Fast { factor },
        (clock, None) => clock,
        (clock, Some(_)) => {
            fields.add_error("speed", "The {} field is for a fast clock: give \"clock\":\"fast\" with it.");
            clock
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: WorldParameters = WorldParameters {
        seed: Seed(1),
        start: Some(Timestamp(1_000_000)),
        clock: ClockKind::Wall,
        rate_limit: Some(120),
    };

    /// Checks the options that a body yields.
    #[track_caller]
    fn check(body: &str, expected: &str) {
        let found = match WorldOptions::read(body.as_bytes(), &DEFAULTS, |_| None) {
            Ok((WorldOptions { name, seed, start, clock, rate_limit, ttl }, _)) => {
                let seed = seed.map(|seed| seed.0);
                let start = start.map_or(0, |start| start.unix_secs());
                format!("{name:?} {seed:?} {start} {clock:?} {rate_limit:?} {ttl:?}")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn missing_options_default_to_those_of_the_first_world() {
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
    fn errors_state_the_allowed_values() {
        check(
            "[1]",
            "The request body is not a JSON object: invalid type: sequence, expected a JSON object at line 1 column 0.",
        );
        check(r#"{"names":1}"#, "The names field is not known here.");
        check(r#"{"seed":-1}"#, "The seed field must be a whole number below 2^64.");
        check(r#"{"start":"now"}"#, "The start field must be of the form 2026-01-05T09:00:00Z.");
        check(
            r#"{"clock":"slow"}"#,
            "The selected clock is invalid; the allowed values are wall, fast, frozen.",
        );
        check(r#"{"speed":9}"#, "The speed field is for a fast clock: give \"clock\":\"fast\" with it.");
        check(r#"{"from":"a"}"#, "The from field must be an object.");
        check(r#"{"from":{"world":"a"}}"#, "The selected from.world is not open.");
        check(r#"{"rate_limit":0}"#, "The rate_limit field must be a whole number of at least 1.");
        for ttl in ["999ms", "8d", "soon"] {
            let body = format!(r#"{{"ttl":"{ttl}"}}"#);
            check(&body, "The ttl field must be of the form 30s or 10m, from 1s to 7d.");
        }
    }
}
