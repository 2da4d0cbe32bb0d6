//! Suggestions for invalid command lines: a sentence below clap's error with the correct input.

use std::{error::Error as _, ffi::OsString};

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// A hint for an option that a command does not have, but that other tools have.
struct OptionHint {
    command: &'static str,
    unknown_option: &'static str,
    hint: &'static str,
}

const OPTION_HINTS: [OptionHint; 5] = [
    OptionHint {
        command: "check",
        unknown_option: "--key",
        hint: "keys come from the environment: CHARGEPROOF_LIVE_KEY and CHARGEPROOF_TEST_KEY",
    },
    OptionHint { command: "load", unknown_option: "--duration", hint: "`--for 30s` sets the duration" },
    OptionHint {
        command: "play",
        unknown_option: "--only",
        hint: "name the files to play: `chargeproof play scenarios/charge`",
    },
    OptionHint {
        command: "sweep",
        unknown_option: "--only",
        hint: "name the files to check: `chargeproof sweep scenarios/charge/paid.yaml`",
    },
    OptionHint {
        command: "trigger",
        unknown_option: "--url",
        hint: "`--to` sets the URL of the reference server",
    },
];

/// Adds a suggestion to an error if there is one; it replaces the suggestion of clap.
pub(crate) fn with_suggestion(mut error: Error, command: &Command, argv: &[OsString]) -> Error {
    let subcommand = selected_subcommand(command, argv);
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => option_hint(&error, subcommand),
        ErrorKind::MissingRequiredArgument => {
            example(subcommand, "").map(|line| format!("for example: {line}"))
        }
        ErrorKind::InvalidValue
            if context_text(&error, ContextKind::InvalidValue).is_some_and(str::is_empty) =>
        {
            value_help(&error, command, argv)
        }
        ErrorKind::InvalidValue => suffix_suggestion(&error),
        _ => None,
    };
    if let Some(tip) = tip {
        // Otherwise clap would print its own suggestion, too.
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
fn selected_subcommand<'a>(command: &'a Command, argv: &[OsString]) -> &'a Command {
    let words = argv.iter().skip(1).filter_map(|word| word.to_str());
    words.fold(command, |current, word| current.find_subcommand(word).unwrap_or(current))
}

/// Returns the first example in the help of a command that contains `part`.
fn example(command: &Command, part: &str) -> Option<String> {
    let help = command.get_after_help()?.to_string();
    let mut lines = help.lines().filter(|line| line.starts_with("  chargeproof ") && !line.ends_with('\\'));
    // Two spaces precede a comment.
    lines.find(|line| line.contains(part)).and_then(|line| Some(line.trim().split("  ").next()?.to_owned()))
}

/// Returns the hint for an option that a command does not have.
fn option_hint(error: &Error, command: &Command) -> Option<String> {
    let option = context_text(error, ContextKind::InvalidArg)?;
    let hint =
        OPTION_HINTS.iter().find(|hint| hint.command == command.get_name() && hint.unknown_option == option);
    let takes_url = command.get_positionals().any(|arg| arg.get_id() == "url");
    match hint {
        Some(hint) => Some(hint.hint.to_owned()),
        None if takes_url && matches!(option, "--url" | "--target") => {
            Some(format!("the URL is given without an option: `{}`", example(command, "http")?))
        }
        None => None,
    }
}

/// Returns a suggestion of the allowed values that end with a dot and the given value:
/// `charge.paid` for `paid`.
fn suffix_suggestion(error: &Error) -> Option<String> {
    let given = format!(".{}", context_text(error, ContextKind::InvalidValue)?);
    let Some(ContextValue::Strings(allowed)) = error.get(ContextKind::ValidValue) else { return None };
    let matching: Vec<_> =
        allowed.iter().filter(|value| value.ends_with(&given)).map(|value| format!("`{value}`")).collect();
    (!matching.is_empty()).then(|| format!("did you mean {}?", matching.join(" or ")))
}

/// Returns the help of an option that was given without a value, and the allowed values from its parser's message.
fn value_help(error: &Error, command: &Command, argv: &[OsString]) -> Option<String> {
    let long = context_text(error, ContextKind::InvalidArg)?.strip_prefix("--")?.split([' ', '=']).next()?;
    let arg = selected_subcommand(command, argv).get_arguments().find(|arg| arg.get_long() == Some(long))?;
    let help = arg.get_help()?;
    let option = format!("--{long}");
    // Every parser that checks the format of its value rejects `?`, with a message of the allowed values.
    let with_invalid_value =
        argv.iter().map(|word| if *word == *option { format!("{option}=?").into() } else { word.clone() });
    let error = command.clone().try_get_matches_from(with_invalid_value).err();
    match error
        .as_ref()
        .filter(|error| error.kind() == ErrorKind::ValueValidation)
        .and_then(|error| error.source())
    {
        Some(allowed) => Some(format!("{help}; {allowed}")),
        None => Some(help.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, CommandFactory};

    use super::*;
    use crate::args::Cli;

    /// Collects a command and all its subcommands, each with the words that select it.
    fn collect_commands(command: &Command, words: &[String], commands: &mut Vec<(Vec<String>, Command)>) {
        let words = [words, &[command.get_name().to_owned()]].concat();
        for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
            collect_commands(subcommand, &words, commands);
        }
        commands.push((words, command.clone()));
    }

    #[test]
    fn an_invalid_or_missing_value_is_explained() {
        let mut command = Cli::command();
        command.build();
        let mut commands = Vec::new();
        collect_commands(&command, &[], &mut commands);
        let (mut need_value, mut reject_value) = (0, 0);
        for (words, subcommand) in &commands {
            let takes_values = |action: &ArgAction| action.takes_values();
            for arg in subcommand.get_arguments().filter(|arg| takes_values(arg.get_action())) {
                let Some(long) = arg.get_long() else { continue };
                let parse_error = |last: &[String]| {
                    let argv: Vec<OsString> = [words, last].concat().iter().map(OsString::from).collect();
                    let error = command.clone().try_get_matches_from(&argv).err();
                    error.map(|error| (error.kind(), with_suggestion(error, &command, &argv).to_string()))
                };
                if let Some((ErrorKind::InvalidValue, error)) = parse_error(&[format!("--{long}")]) {
                    need_value += 1;
                    assert!(
                        error.contains("tip: ") || error.contains("[possible values: "),
                        "{words:?} {error}"
                    );
                }
                let invalid = parse_error(&[format!("--{long}=\u{1}")]);
                let Some((ErrorKind::ValueValidation, error)) = invalid else { continue };
                reject_value += 1;
                let has_help = ["allowed: ", "such as ", " is `"].iter().any(|phrase| error.contains(phrase));
                assert!(has_help, "{words:?} {error}");
            }
        }
        assert!(
            need_value > 80 && reject_value > 20,
            "{need_value} options need a value, and {reject_value} reject an invalid one"
        );
    }
}
