//! One world on one page: lanes for customers and owner, chains, service, network and merchants, with what happened
//! under the pointer. Owns no file: the page is text.

use std::collections::BTreeMap;

use askama::Template;
use reference_core::{outbox::AttemptResult, sighting::Depth, time::Timestamp};

use crate::{
    script::Script,
    sweep::Runner,
    witness::{Entry, Observation, RecordedCall},
};

const ROW: u32 = 15;
const LANE: u32 = 215;
const FIRST: u32 = 190;
/// Lanes that every world has; merchants follow.
const LANES: [&str; 4] = ["customers and owner", "chain", "service", "network"];

#[derive(Template)]
#[template(path = "world.html")]
struct PicturePage<'a> {
    title: &'a str,
    breach: Option<&'a str>,
    summary: String,
    lanes: Vec<Lane>,
    moments: Vec<TimeMark>,
    here: Vec<u32>,
    threads: Vec<Thread>,
    marks: Vec<Mark>,
    width: u32,
    height: u32,
}

struct Lane {
    x: u32,
    name: String,
}

struct TimeMark {
    y: u32,
    words: String,
}

struct Thread {
    class: &'static str,
    from: u32,
    to: u32,
    y: u32,
}

struct Mark {
    class: &'static str,
    x: u32,
    y: u32,
    title: String,
    label: String,
}

/// Where the lane of a number stands.
fn lane(n: usize) -> u32 {
    FIRST + u32::try_from(n).unwrap_or(0) * LANE
}

/// Plays a script and draws it. `breach` is written above, and its moment is marked if the script shows it.
pub fn page(runner: &Runner<'_>, script: &Script, breach: Option<&str>) -> String {
    let mut run = runner.play(script);
    let expected = runner.expected(script, &mut run);
    let verdict = runner.judge(script, &mut run, crate::law::Depth::Objects);
    let names: BTreeMap<&str, &str> =
        run.rehearsal.names.iter().map(|(name, id)| (id.as_str(), name.as_str())).collect();
    let mut drawing = Drawing { start: script.start, names, y: 0, last: None, ..Drawing::default() };
    let hosts: std::collections::BTreeSet<&str> = run
        .record
        .seen
        .iter()
        .filter_map(|seen| match &seen.what {
            Observation::Post(posted) => Some(posted.host.as_str()),
            _ => None,
        })
        .collect();
    let hosts: Vec<&str> = hosts.into_iter().collect();
    let mut coming = expected.iter().peekable();
    for (number, seen) in run.record.seen.iter().enumerate() {
        while let Some(told) = coming.next_if(|told| told.place <= 2 * number) {
            drawing.event(told);
        }
        drawing.entry(seen, &hosts);
    }
    coming.for_each(|told| drawing.event(told));
    let moments: Vec<Timestamp> =
        verdict.findings.breaches.iter().filter_map(|breach| breach.at).take(1).collect();
    let here =
        moments.iter().filter_map(|at| drawing.rows.range(..=*at).next_back().map(|(_, y)| *y)).collect();
    let lanes =
        LANES.iter().map(|name| (*name).to_owned()).chain(hosts.iter().map(|host| (*host).to_owned()));
    let lanes: Vec<Lane> = lanes.enumerate().map(|(n, name)| Lane { x: lane(n), name }).collect();
    let summary = format!(
        "{} events, {} posts, {} steps from {}",
        verdict.events,
        verdict.posts,
        script.steps.len(),
        script.start
    );
    let page = PicturePage {
        title: &script.title,
        breach,
        summary,
        width: lane(lanes.len()),
        lanes,
        here,
        height: drawing.y + 2 * ROW,
        moments: drawing.moments,
        threads: drawing.threads,
        marks: drawing.marks,
    };
    page.render().expect("a page of text and numbers can always be written")
}

#[derive(Default)]
struct Drawing<'a> {
    start: Timestamp,
    names: BTreeMap<&'a str, &'a str>,
    y: u32,
    last: Option<Timestamp>,
    moments: Vec<TimeMark>,
    rows: BTreeMap<Timestamp, u32>,
    threads: Vec<Thread>,
    marks: Vec<Mark>,
    /// The lane of the merchant that a delivery goes to.
    bound: BTreeMap<uuid::Uuid, u32>,
}

impl Drawing<'_> {
    fn row(&mut self, at: Timestamp) -> u32 {
        self.y += ROW;
        if self.last != Some(at) {
            let words = at.since(self.start).to_string();
            self.moments.push(TimeMark { y: self.y + 4, words });
            self.last = Some(at);
        }
        self.rows.entry(at).or_insert(self.y);
        self.y
    }

    fn mark(&mut self, class: &'static str, lane_number: usize, at: Timestamp, label: String, title: String) {
        let y = self.row(at);
        self.marks.push(Mark { class, x: lane(lane_number), y, title: format!("{at}\n{title}"), label });
    }

    fn name(&self, id: &str) -> String {
        self.names.get(id).map_or_else(|| id.chars().take(12).collect(), |name| (*name).to_owned())
    }

    fn event(&mut self, told: &crate::law::ExpectedEvent) {
        let label = format!("{} {}", told.kind, self.name(&told.subject));
        let title = format!("{label}\nstatus {}\nchain: {}", told.status, told.situation.as_str());
        self.mark("event", 2, told.at, label, title);
    }

    fn entry(&mut self, seen: &Entry, hosts: &[&str]) {
        let at = seen.at;
        match &seen.what {
            Observation::Call(call) => self.call(at, call),
            Observation::Told(notices) => {
                for notice in notices {
                    let (class, state) = match notice.depth {
                        Depth::Confirmations(n) => ("chain", format!("{n} confirmations")),
                        Depth::Gone(why) => ("gone", why.as_str().to_owned()),
                    };
                    let label = format!("{} {state}", self.name(&notice.txid));
                    let title = format!(
                        "{label}\n{} {} {}\n{}",
                        notice.amount, notice.asset, notice.mode, notice.txid
                    );
                    self.mark(class, 1, at, label, title);
                }
            }
            Observation::Post(posted) => {
                let place = hosts.iter().position(|host| *host == posted.host).unwrap_or(0) + LANES.len();
                let y = self.row(at);
                let to = if posted.arrived.is_some() { lane(place) } else { lane(3) };
                let class = if posted.arrived.is_some() { "fly" } else { "lost" };
                self.threads.push(Thread { class, from: lane(2), to, y });
                let title = format!("{at}\n{} {}\n{} copies", posted.kind, posted.delivery, posted.copies);
                self.marks.push(Mark { class: "post", x: lane(3), y, title, label: posted.kind.to_owned() });
                self.bound.insert(posted.delivery, lane(place));
            }
            Observation::Landed { delivery, outcome } => {
                let (class, word) = match outcome {
                    AttemptResult::Answered(status @ 200..=299) => ("post", status.to_string()),
                    AttemptResult::Answered(status) => ("failed", status.to_string()),
                    AttemptResult::Unreachable(_) => ("failed", "unreachable".to_owned()),
                    AttemptResult::TimedOut => ("failed", "timeout".to_owned()),
                    AttemptResult::Refused(_) => ("failed", "refused".to_owned()),
                };
                let x = self.bound.get(delivery).copied().unwrap_or(lane(3));
                let y = self.row(at);
                self.marks.push(Mark {
                    class,
                    x,
                    y,
                    title: format!("{at}\n{delivery}\n{outcome:?}"),
                    label: word,
                });
            }
            Observation::Restarted => {
                self.mark("restart", 2, at, "restart".to_owned(), "stops and starts again".to_owned())
            }
        }
    }

    fn call(&mut self, at: Timestamp, call: &RecordedCall) {
        if call.method == "GET" {
            return;
        }
        let class = if (200..300).contains(&call.status) { "act" } else { "refused" };
        let path: Vec<String> = call
            .path
            .split('/')
            .skip(2)
            .map(|part| self.name(part))
            .filter(|part| !part.is_empty())
            .collect();
        let label = format!("{} {}", path.join(" "), call.status);
        let body = String::from_utf8_lossy(&call.body).chars().take(300).collect::<String>();
        let title = format!("{} {} -> {}\n{body}", call.method, call.path, call.status);
        self.mark(class, 0, at, label, title);
    }
}
