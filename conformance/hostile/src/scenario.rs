//! The fuzz target `scenario`: scenario files.

use simulator::script::Script;

const PATH: &str = "hostile.yaml";

/// Parses the bytes. An error must be printable and name the file; a script must not change by writing and parsing.
pub(crate) fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Script::parse(PATH, text) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains(PATH), "an error names the file: {message}");
        }
        Ok(script) => {
            let written = script.to_yaml();
            let again = Script::parse(PATH, &written)
                .unwrap_or_else(|error| panic!("the written file cannot be parsed: {error}\n\n{written}"));
            assert_eq!(facts(&again), facts(&script), "written as\n{written}");
            assert_eq!(again.to_yaml(), written, "written twice");
        }
    }
}

/// Returns a script without its source positions.
fn facts(script: &Script) -> String {
    let Script { path: _, source: _, title, seed, start, pace, mode, account, steps } = script;
    let all = format!("{title:?} {seed} {start} {pace:?} {mode:?} {account:?} {steps:#?}");
    let mut rest = all.as_str();
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once("span: SourceSpan {") {
        out.push_str(before);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_differ_between_scripts_and_ignore_source_positions() {
        let read = |text: &str| Script::parse(PATH, text).expect("a scenario");
        let one = read("title: A\nsteps:\n  - wait: 1s\n");
        let elsewhere = read("title: A\n\n\nsteps:\n    - wait: 1s\n");
        assert_eq!(facts(&one), facts(&elsewhere));
        for other in ["title: B\nsteps:\n  - wait: 1s\n", "title: A\nsteps:\n  - wait: 2s\n"] {
            assert_ne!(facts(&one), facts(&read(other)), "{other}");
        }
    }
}
