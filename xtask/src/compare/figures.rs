//! [`Figures`]: medians and spread of several rounds. Ratios are integers in thousandths.

use std::process::Stdio;

use serde_json::Value;

use super::Programs;
use super::case::PreparedRequest;
use super::process::{Cores, MeasuredServer};

const CONNECTIONS: &str = "32";

/// A measurement of one server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// The number of responses per second.
    pub(crate) responses_per_second: u64,
    /// The processor time of the server per response, in nanoseconds.
    pub(crate) cpu_ns: u64,
}

impl Sample {
    /// Sends the prepared request to a server for some seconds, over many connections.
    ///
    /// # Errors
    /// There is no response, one has another status than the prepared one, or the client fails.
    pub(crate) fn measure(
        programs: &Programs,
        server: &MeasuredServer,
        prepared: &PreparedRequest,
        cores: Cores,
        seconds: u32,
    ) -> Result<Sample, String> {
        let mut client = cores.client_command(programs.path("chargeproof"));
        client.args(["load", &format!("http://{}", server.address), "--max", "--format", "json"]);
        client.args(["--for", &format!("{seconds}s"), "--connections", CONNECTIONS]);
        client.args(["--threads", if cores == Cores::Pinned { "1" } else { "2" }]);
        match prepared.asset {
            None => client.args(["--path", &prepared.path]),
            Some(asset) => client.args(["--mix", "write", "--allow-writes", "--asset", asset]),
        };
        client.env("CHARGEPROOF_TEST_KEY", &server.key).stderr(Stdio::inherit());
        let cpu_before = server.cpu_ns();
        let output = client.output().map_err(|err| format!("cannot start the client: {err}"))?;
        let cpu_used = server.cpu_ns().saturating_sub(cpu_before);
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|err| format!("`chargeproof load` ended with {} and no report: {err}", output.status))?;
        let number = |name: &str| report[name].as_u64().unwrap_or(0);
        let (responses, rate) = (number("answers"), number("rate_achieved"));
        let as_prepared = report["statuses"][prepared.status.to_string()].as_u64().unwrap_or(0);
        if responses == 0
            || as_prepared != responses
            || report["errors"].as_object().is_none_or(|errors| !errors.is_empty())
        {
            return Err(format!(
                "not all responses to {} {} have the prepared status: {report}",
                prepared.method, prepared.path
            ));
        }
        Ok(Sample { responses_per_second: rate, cpu_ns: cpu_used / responses })
    }
}

/// The samples of both servers for each round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// The sample of the reference server and that of the bare server.
    rounds: Vec<(Sample, Sample)>,
}

impl Figures {
    pub(crate) fn add(&mut self, reference: Sample, bare: Sample) {
        self.rounds.push((reference, bare));
    }

    /// Returns the ratio of the rates, reference to bare server, in thousandths.
    pub(crate) fn ratio(&self) -> Spread {
        Spread::from_values(self.rounds.iter().map(|(reference, bare)| {
            reference.responses_per_second * 1_000 / bare.responses_per_second.max(1)
        }))
    }

    /// Returns the ratio of the processor times per response, reference to bare server, in thousandths.
    pub(crate) fn cpu_ratio(&self) -> Spread {
        Spread::from_values(
            self.rounds.iter().map(|(reference, bare)| reference.cpu_ns * 1_000 / bare.cpu_ns.max(1)),
        )
    }

    /// Returns the responses per second of the reference server.
    pub(crate) fn rate(&self) -> Spread {
        Spread::from_values(self.rounds.iter().map(|(reference, _)| reference.responses_per_second))
    }

    /// Returns the processor time per response of the reference server and of the bare server, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> (Spread, Spread) {
        (
            Spread::from_values(self.rounds.iter().map(|(reference, _)| reference.cpu_ns)),
            Spread::from_values(self.rounds.iter().map(|(_, bare)| bare.cpu_ns)),
        )
    }
}

/// The minimum, median and maximum of some rounds. For an even number of rounds, the median is the higher middle value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) min: u64,
    pub(crate) median: u64,
    pub(crate) max: u64,
}

impl Spread {
    fn from_values(values: impl Iterator<Item = u64>) -> Spread {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        match values.as_slice() {
            [] => Spread::default(),
            [min, .., max] => Spread { min: *min, median: values[values.len() / 2], max: *max },
            [single] => Spread { min: *single, median: *single, max: *single },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rounds: &[(u64, u64)]) -> Figures {
        let mut figures = Figures::default();
        for &(reference, bare) in rounds {
            figures.add(
                Sample { responses_per_second: reference, cpu_ns: 1_000 },
                Sample { responses_per_second: bare, cpu_ns: 800 },
            );
        }
        figures
    }

    #[test]
    fn ratios_are_calculated_within_each_round() {
        // A round on a machine that is twice as slow has no effect.
        let found = figures(&[(90, 100), (45, 50), (99, 100), (80, 100), (46, 50)]).ratio();
        assert_eq!(found, Spread { min: 800, median: 900, max: 990 });
        assert_eq!(figures(&[(1, 2)]).ratio(), Spread { min: 500, median: 500, max: 500 });
        assert_eq!(figures(&[(1, 2), (1, 2)]).cpu_ratio().median, 1_250);
    }
}
