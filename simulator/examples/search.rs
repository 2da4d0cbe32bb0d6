//! Searches for a bug of the service by scenarios with golden transcripts, random worlds and exhausted scopes, and prints
//! the first failure that each kind of search finds. `cargo xtask planted` runs it on a faulty service.
//!
//! Usage: `search WORLDS FROM DEPTH`: the maximum number of worlds, the seed of the first, and the length of the longest
//! sequences of a scope. Scopes are slow, so they are only searched for faults that the others miss.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a program: it has arguments, reads scenarios and prints results"
)]

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use simulator::{
    exhaust::{Exploration, Scope},
    play::{LocalStage, golden, play},
    script::Script,
    sweep::Runner,
};
use testkit::files_below;

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("WORLDS, FROM and DEPTH are numbers"))
        .collect();
    let [worlds, first_seed, depth] = numbers[..] else { panic!("usage: search WORLDS FROM DEPTH") };
    // A panic of the service is a result.
    std::panic::set_hook(Box::new(|_| {}));
    let depth = usize::try_from(depth).expect("the depth fits into usize");
    let searches: [(&str, &dyn Fn() -> Option<String>); 3] = [
        ("transcripts", &transcripts),
        ("worlds", &|| random_worlds(first_seed, worlds)),
        ("exhaustion", &|| exhaustion(depth)),
    ];
    let mut is_found = false;
    for (name, search) in searches {
        let result = if name == "exhaustion" && is_found { None } else { search() };
        is_found |= result.is_some();
        println!("{name}\t{}", result.unwrap_or_else(|| "-".to_owned()));
    }
}

/// Runs a search; if the service panics, returns the result of `on_panic` for the panic's message.
fn catch_panic<T>(search: impl FnOnce() -> Option<T>, on_panic: impl FnOnce(&str) -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(search)).unwrap_or_else(|payload| {
        let message = payload.downcast_ref::<String>().map(String::as_str);
        Some(on_panic(message.or_else(|| payload.downcast_ref().copied()).unwrap_or_default()))
    })
}

/// Returns the number of scenarios that fail or differ from their transcripts, and the first of them.
fn transcripts() -> Option<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let files = files_below(&directory, "yaml");
    let name_if_different = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a scenario can be read");
        let name =
            path.strip_prefix(&directory).expect("the file is under the directory").display().to_string();
        let script = Script::parse(&format!("scenarios/{name}"), &text)
            .expect("every scenario of the repository is valid");
        let equals_golden = || {
            play(&script, None, &mut LocalStage::new()).is_ok_and(|summary| {
                let golden = fs::read_to_string(path.with_extension("transcript")).unwrap_or_default();
                golden::compare(&golden, &summary.transcript).is_none()
            })
        };
        let is_same = catch_panic(|| Some(equals_golden()), |_| false);
        (is_same == Some(false)).then_some(name)
    };
    let failed: Vec<String> = files.iter().filter_map(name_if_different).collect();
    failed.first().map(|first| format!("{} of {}: {first}", failed.len(), files.len()))
}

/// Plays random worlds until one has a violation, a difference between two runs, or a panic. Returns the
/// number of worlds played, and that failure.
fn random_worlds(first_seed: u64, worlds_max: u64) -> Option<String> {
    let runner = Runner::default();
    (0..worlds_max).find_map(|n| {
        let violation = || {
            let verdict = runner.try_seed(first_seed + n);
            let differs = verdict.run_difference.map(|differs| format!("two runs differ: {differs}"));
            verdict.findings.violations.first().map(ToString::to_string).or(differs)
        };
        catch_panic(violation, |message| format!("panic: {message}"))
            .map(|message| format!("{}: {message}", n + 1))
    })
}

/// Returns the name of the first scope with a violation or a panic, its shortest such sequence, and the message.
fn exhaustion(depth: usize) -> Option<String> {
    Scope::ALL.iter().find_map(|scope| {
        let runner = Runner::default();
        let mut search = Exploration::new(scope);
        for _ in 0..=depth {
            let mut attempts = Vec::new();
            for path in search.next_paths() {
                let attempt =
                    catch_panic(|| Some(Ok(search.run(&runner, &path))), |message| Err(message.to_owned()));
                match attempt.expect("an attempt has a result") {
                    Ok(attempt) => attempts.push((path, attempt)),
                    Err(message) => {
                        return Some(format!(
                            "{}: {}: panic: {message}",
                            scope.name,
                            search.input_names(&path)
                        ));
                    }
                }
            }
            if let Some((path, violation)) = search.record_results(attempts) {
                return Some(format!("{}: {}: {violation}", scope.name, search.input_names(&path)));
            }
        }
        None
    })
}
