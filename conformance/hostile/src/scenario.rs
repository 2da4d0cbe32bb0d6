//! The fuzz target `scenario`: scenario files.

use simulator::script::Script;

/// The path by which error messages name the input; there is no such file.
const PATH: &str = "hostile.yaml";

/// Parses the bytes, if they are UTF-8. An error message must contain the path. A valid script that is written and
/// parsed again must be the same.
pub(crate) fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Script::parse(PATH, text) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains(PATH), "an error names the file: {message}");
        }
        Ok(script) => {
            let written = script.to_yaml();
            let parsed = Script::parse(PATH, &written)
                .unwrap_or_else(|error| panic!("the written file cannot be parsed: {error}\n\n{written}"));
            assert_eq!(without_positions(&parsed), without_positions(&script), "written as\n{written}");
            assert_eq!(parsed.to_yaml(), written, "the file changed when it was written again");
        }
    }
}

/// Returns the debug text of a script, without source positions.
fn without_positions(script: &Script) -> String {
    let Script { path: _, source: _, title, seed, start, pace, mode, account, steps } = script;
    let all = format!("{title:?} {seed} {start} {pace:?} {mode:?} {account:?} {steps:#?}");
    let mut rest = all.as_str();
    let mut result = String::new();
    // The debug text of a span contains no `}` before its end.
    while let Some((before, after)) = rest.split_once("span: SourceSpan {") {
        result.push_str(before);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_compared_without_source_positions() {
        let parse = |text: &str| Script::parse(PATH, text).expect("the text is a valid scenario");
        let script = parse("title: A\nsteps:\n  - wait: 1s\n");
        let reformatted = parse("title: A\n\n\nsteps:\n    - wait: 1s\n");
        assert_eq!(without_positions(&script), without_positions(&reformatted));
        for other in ["title: B\nsteps:\n  - wait: 1s\n", "title: A\nsteps:\n  - wait: 2s\n"] {
            assert_ne!(without_positions(&script), without_positions(&parse(other)), "{other}");
        }
    }
}
