//! Suggestions for invalid command lines: a sentence below clap's error with the correct input.

use std::{error::Error as _, ffi::OsString};

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Options of other tools, with their replacements.
const INSTEAD: [(&str, &str, &str); 5] = [
    ("check", "--key", "keys come from the environment: CHARGEPROOF_LIVE_KEY and CHARGEPROOF_TEST_KEY"),
    ("load", "--duration", "`--for 30s` sets the duration"),
    ("play", "--only", "name the files to play: `chargeproof play scenarios/charge`"),
    ("sweep", "--only", "name the files to play: `chargeproof sweep scenarios/charge/paid.yaml`"),
    ("trigger", "--url", "`--to` sets the URL of the reference server"),
];

/// Adds a suggestion to an error that has none.
pub(crate) fn with_suggestion(mut error: Error, command: &Command, argv: &[OsString]) -> Error {
    let leaf = leaf_of(command, argv);
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => replacement(&error, leaf),
        ErrorKind::MissingRequiredArgument => example(leaf, "").map(|line| format!("for example: {line}")),
        ErrorKind::InvalidValue
            if context_text(&error, ContextKind::InvalidValue).is_some_and(str::is_empty) =>
        {
            missing_value(&error, command, argv)
        }
        ErrorKind::InvalidValue => longer_value(&error),
        _ => None,
    };
    if let Some(tip) = tip {
        // clap's suggestion is unrelated.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn context_text(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns the subcommand that a command line names.
fn leaf_of<'a>(command: &'a Command, argv: &[OsString]) -> &'a Command {
    let words = argv.iter().skip(1).filter_map(|word| word.to_str());
    words.fold(command, |at, word| at.find_subcommand(word).unwrap_or(at))
}

/// Returns the first example in the help of a command that contains `part`.
fn example(command: &Command, part: &str) -> Option<String> {
    let help = command.get_after_help()?.to_string();
    let mut lines = help.lines().filter(|line| line.starts_with("  chargeproof ") && !line.ends_with('\\'));
    // Two spaces precede a comment.
    lines.find(|line| line.contains(part)).and_then(|line| Some(line.trim().split("  ").next()?.to_owned()))
}

/// Returns the replacement of an option that a command does not have.
fn replacement(error: &Error, command: &Command) -> Option<String> {
    let option = context_text(error, ContextKind::InvalidArg)?;
    let found = INSTEAD.iter().find(|(of, unknown, _)| *of == command.get_name() && option == *unknown);
    let takes_url = command.get_positionals().any(|arg| arg.get_id() == "url");
    match found {
        Some((.., hint)) => Some((*hint).to_owned()),
        None if takes_url && matches!(option, "--url" | "--target") => {
            Some(format!("the URL is given without an option: `{}`", example(command, "http")?))
        }
        None => None,
    }
}

/// Returns the allowed values that end with a dot and the given value.
fn longer_value(error: &Error) -> Option<String> {
    let given = format!(".{}", context_text(error, ContextKind::InvalidValue)?);
    let Some(ContextValue::Strings(allowed)) = error.get(ContextKind::ValidValue) else { return None };
    let meant: Vec<_> =
        allowed.iter().filter(|value| value.ends_with(&given)).map(|value| format!("`{value}`")).collect();
    (!meant.is_empty()).then(|| format!("did you mean {}?", meant.join(" or ")))
}

/// Returns the allowed values of an option without a value, from its help and its parser's message.
fn missing_value(error: &Error, command: &Command, argv: &[OsString]) -> Option<String> {
    let long = context_text(error, ContextKind::InvalidArg)?.strip_prefix("--")?.split([' ', '=']).next()?;
    let arg = leaf_of(command, argv).get_arguments().find(|arg| arg.get_long() == Some(long))?;
    let help = arg.get_help()?;
    let option = format!("--{long}");
    let tried =
        argv.iter().map(|word| if *word == *option { format!("{option}=?").into() } else { word.clone() });
    let refused = command.clone().try_get_matches_from(tried).err();
    match refused
        .as_ref()
        .filter(|refused| refused.kind() == ErrorKind::ValueValidation)
        .and_then(|error| error.source())
    {
        Some(takes) => Some(format!("{help}; {takes}")),
        None => Some(help.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, CommandFactory};

    use super::*;
    use crate::args::Cli;

    /// Collects all commands without subcommands, with the words that name them.
    fn collect_commands(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
        let words = [words, &[command.get_name().to_owned()]].concat();
        for below in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
            collect_commands(below, &words, found);
        }
        found.push((words, command.clone()));
    }

    #[test]
    fn an_invalid_or_missing_value_lists_the_allowed_values() {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        collect_commands(&command, &[], &mut found);
        let (mut required, mut refused) = (0, 0);
        for (words, leaf) in &found {
            let takes_values = |action: &ArgAction| action.takes_values();
            for arg in leaf.get_arguments().filter(|arg| takes_values(arg.get_action())) {
                let Some(long) = arg.get_long() else { continue };
                let parse = |last: &[String]| {
                    let argv: Vec<OsString> = [words, last].concat().iter().map(OsString::from).collect();
                    let error = command.clone().try_get_matches_from(&argv).err();
                    error.map(|error| (error.kind(), with_suggestion(error, &command, &argv).to_string()))
                };
                if let Some((ErrorKind::InvalidValue, error)) = parse(&[format!("--{long}")]) {
                    required += 1;
                    assert!(
                        error.contains("tip: ") || error.contains("[possible values: "),
                        "{words:?} {error}"
                    );
                }
                let wrong = parse(&[format!("--{long}=\u{1}")]);
                let Some((ErrorKind::ValueValidation, error)) = wrong else { continue };
                refused += 1;
                let helps =
                    ["takes ", "allowed: ", "such as ", " is `"].iter().any(|phrase| error.contains(phrase));
                assert!(helps, "{words:?} {error}");
            }
        }
        assert!(
            required > 80 && refused > 20,
            "{required} options need a value, and {refused} reject an invalid one"
        );
    }
}
