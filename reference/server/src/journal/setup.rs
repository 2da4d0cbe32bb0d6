//! The setup of a stored world, and the check that a server may continue it.

use std::io;

use reference_core::{dialect::Dialect, mode::Mode, rng::Seed, time::Timestamp};
use serde::{Deserialize, Serialize};
use simulator::sandbox::{Reach, Setup};

/// The format that this program writes: records with outcomes, commits with seals (checksums), a setup with the default mode.
const FORMAT: u32 = 3;
/// The oldest format that this program reads. Format 2 added outcomes and seals, format 3 the default mode.
const FORMAT_OLDEST: u32 = 1;

/// The part of a world's setup that determines the outcomes of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetupRecord {
    /// The format, read first: it decides the meaning of the other fields.
    format: u32,
    seed: u64,
    /// In microseconds since 1970.
    start: u64,
    rate_limit: Option<u32>,
    key_prefix: String,
    header_prefix: String,
    user_agent: String,
    /// `true` if deliveries are sent over the real network.
    #[serde(rename = "posts")]
    uses_network: bool,
    /// The part of API keys after the mode: the world's id, if a request created the world.
    key_tag: String,
    /// The mode of `/sandbox` calls that do not specify one; live in formats without this field.
    #[serde(default = "mode_of_old_formats")]
    default_mode: Mode,
}

fn mode_of_old_formats() -> Mode {
    Mode::Live
}

/// The field that all formats share.
#[derive(Deserialize)]
struct FormatField {
    format: u32,
}

impl SetupRecord {
    pub(crate) fn from_setup(setup: &Setup) -> SetupRecord {
        SetupRecord {
            format: FORMAT,
            seed: setup.seed.0,
            start: setup.start.0,
            rate_limit: setup.rate_limit,
            key_prefix: setup.dialect.key_prefix.clone(),
            header_prefix: setup.dialect.header_prefix.clone(),
            user_agent: setup.dialect.user_agent.clone(),
            uses_network: setup.reach == Reach::Network,
            key_tag: setup.key_tag.clone(),
            default_mode: setup.default_mode,
        }
    }

    /// Parses the text of [`SetupRecord::to_json`].
    ///
    /// # Errors
    ///
    /// `InvalidData` if it is unreadable or of an unknown format.
    pub(crate) fn parse(text: &[u8]) -> io::Result<SetupRecord> {
        let FormatField { format } =
            serde_json::from_slice(text).map_err(|_| damage_error("its setup is unreadable"))?;
        if !(FORMAT_OLDEST..=FORMAT).contains(&format) {
            let why = format!(
                "it has format {format}, and this program reads formats {FORMAT_OLDEST} to {FORMAT}: open it with the \
                 program that wrote it"
            );
            return Err(damage_error(why));
        }
        let read: SetupRecord = serde_json::from_slice(text)
            .map_err(|error| damage_error(format!("its setup is unreadable: {error}")))?;
        Ok(SetupRecord { format: FORMAT, ..read })
    }

    /// Returns `true` if the journal of this setup, in JSON, has seals.
    pub(crate) fn has_seals(text: &[u8]) -> bool {
        serde_json::from_slice(text).is_ok_and(|FormatField { format }| format > FORMAT_OLDEST)
    }

    /// Returns the text that [`SetupRecord::parse`] reads.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers are JSON")
    }

    /// Returns the setup of a world whose hosted pages are at `public_url`.
    pub(crate) fn to_setup(&self, public_url: &str) -> Setup {
        Setup {
            seed: Seed(self.seed),
            start: Timestamp(self.start),
            public_url: public_url.to_owned(),
            rate_limit: self.rate_limit,
            dialect: Dialect {
                key_prefix: self.key_prefix.clone(),
                header_prefix: self.header_prefix.clone(),
                user_agent: self.user_agent.clone(),
            },
            journal: false,
            reach: if self.uses_network { Reach::Network } else { Reach::Simulated },
            wallet_cache: None,
            key_tag: self.key_tag.clone(),
            default_mode: self.default_mode,
        }
    }

    /// Checks that a server with these settings may continue this world. `seed` and `start` are given if the user set them.
    ///
    /// # Errors
    ///
    /// Names the first setting that differs, with both values.
    pub(crate) fn check_compatible(
        &self,
        given: &Setup,
        seed: Option<Seed>,
        start: Option<Timestamp>,
    ) -> Result<(), String> {
        let limit = |limit: Option<u32>| limit.map_or_else(|| "off".to_owned(), |n| n.to_string());
        let difference = |name: &str, stored: &str, given: &str| {
            (stored != given).then(|| {
                format!(
                    "began with {name} `{stored}`, not `{given}`; use the same value or another directory"
                )
            })
        };
        let reach = |uses_network: bool| if uses_network { "network" } else { "simulated" };
        let differences = [
            seed.and_then(|seed| difference("the seed", &self.seed.to_string(), &seed.0.to_string())),
            start.and_then(|start| {
                difference("the start", &Timestamp(self.start).to_string(), &start.to_string())
            }),
            difference("the rate limit", &limit(self.rate_limit), &limit(given.rate_limit)),
            difference("the key prefix", &self.key_prefix, &given.dialect.key_prefix),
            difference("the header prefix", &self.header_prefix, &given.dialect.header_prefix),
            difference("the user agent", &self.user_agent, &given.dialect.user_agent),
            difference("the reach", reach(self.uses_network), reach(given.reach == Reach::Network)),
        ];
        differences.into_iter().flatten().next().map_or(Ok(()), Err)
    }
}

/// Returns an error for damaged storage.
pub(crate) fn damage_error(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}
