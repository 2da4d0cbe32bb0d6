//! Generated descriptions of the command line: shell completions and man pages. The tests generate
//! `REFERENCE.md` and the schema of `chargeproof.toml`.

use std::{fs, path::Path};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Failure, args::Cli, terminal};

/// Prints a completion script.
pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "chargeproof", &mut script);
    terminal::print_raw(&String::from_utf8_lossy(&script));
    Ok(0)
}

/// Writes a man page for every command.
pub(crate) fn write_man_pages(directory: &Path) -> Result<u8, Failure> {
    let to_failure =
        |error| Failure::usage(format!("`{}` can't be written to: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(to_failure)?;
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), directory).map_err(to_failure)?;
    terminal::print_line!("man pages written to {}", directory.display());
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::{env, fmt::Write};

    use clap::{Arg, ArgAction, Command};
    use serde_json::{Value, json};

    use super::*;
    use crate::{config, settings};

    const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/REFERENCE.md");

    /// Returns a command and all its subcommands, each with its full name such as
    /// `chargeproof sweep merge`.
    fn all_commands(command: &Command, parent: &str) -> Vec<(String, Command)> {
        let name = format!("{parent} {}", command.get_name()).trim_start().to_owned();
        let subcommands = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help");
        let descendants: Vec<_> =
            subcommands.flat_map(|subcommand| all_commands(subcommand, &name)).collect();
        let mut all = vec![(name.clone(), command.clone().bin_name(name).disable_help_subcommand(true))];
        all.extend(descendants);
        all
    }

    /// Returns the text of `REFERENCE.md`: the long help of every command.
    fn reference() -> String {
        let mut text = String::from(
            "# Command-line reference\n\nGenerated from the program. To rewrite it: \
             `BLESS=1 cargo test -p chargeproof manual`\n",
        );
        let mut command = Cli::command().term_width(100);
        command.build();
        for (name, command) in all_commands(&command, "") {
            let help = command.term_width(100).render_long_help().to_string();
            let lines: Vec<_> = help.lines().map(str::trim_end).collect();
            write!(text, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end())
                .expect("writing to a string does not fail");
        }
        text
    }

    #[test]
    fn the_reference_is_up_to_date() {
        let text = reference();
        if env::var_os("BLESS").is_some() {
            fs::write(REFERENCE, &text).expect("the package can be written to");
        }
        let committed = fs::read_to_string(REFERENCE).unwrap_or_default();
        assert!(committed == text, "REFERENCE.md is outdated; run: BLESS=1 cargo test -p chargeproof manual");
    }

    #[test]
    fn every_command_shows_an_example() {
        for (name, mut command) in all_commands(&Cli::command(), "") {
            let is_leaf = !command.has_subcommands() || name == "chargeproof sweep";
            let help = command.render_help().to_string();
            assert!(!is_leaf || help.contains("Example"), "{name} has no example");
        }
    }

    #[test]
    fn every_example_is_a_command_line_that_parses() {
        for (name, mut command) in all_commands(&Cli::command(), "") {
            let help = command.render_help().to_string().replace("\\\n", " ");
            for line in help.lines().filter(|line| line.starts_with("  chargeproof ")) {
                // Two spaces precede a comment.
                let line = line.trim().split("  ").next().unwrap_or_default();
                let words = line
                    .split(" > ")
                    .next()
                    .unwrap_or_default()
                    .split(' ')
                    .map(|word| word.trim_matches('\''));
                let parsed = Cli::command().try_get_matches_from(words);
                // Nested quotes of the shell are not parsed here.
                let has_nested_quotes = line.contains("--acted");
                assert!(has_nested_quotes || parsed.is_ok(), "{name}: {line}: {}", parsed.unwrap_err());
            }
        }
    }

    const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/chargeproof.schema.json");

    /// Returns the schema of the setting that sets an option.
    fn setting(arg: &Arg) -> Value {
        let allowed: Vec<_> =
            arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let value = match (arg.get_action(), allowed.is_empty()) {
            (ArgAction::SetTrue, _) => json!({ "type": "boolean" }),
            (_, false) => json!({ "enum": allowed }),
            (_, true) => json!({ "type": ["string", "integer"] }),
        };
        let mut setting = match arg.get_action() {
            ArgAction::Append => json!({ "anyOf": [{ "type": "array", "items": value.clone() }, value] }),
            _ => value,
        };
        setting["description"] = arg.get_help().map(ToString::to_string).into();
        setting
    }

    /// Returns the schema of a command's section.
    fn section(command: &Command) -> Value {
        let subcommands = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help");
        let mut properties: serde_json::Map<_, _> =
            subcommands.map(|subcommand| (subcommand.get_name().to_owned(), section(subcommand))).collect();
        let options = command.get_arguments().filter_map(|arg| Some((settings::key_of(arg)?, setting(arg))));
        properties.extend(options);
        if command.get_name() == "check" {
            properties.extend(typed_settings());
        }
        let about = command.get_about().map(ToString::to_string);
        json!({ "type": "object", "description": about, "properties": properties, "additionalProperties": false })
    }

    fn object_of_strings(names: &[&str]) -> Value {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    }

    /// Returns the schemas of the settings of `[check]` that are not options.
    fn typed_settings() -> serde_json::Map<String, Value> {
        let mut entry = object_of_strings(&["reason", "fingerprint"]);
        entry["properties"]["expires"] = json!({ "description": "a day such as 2027-01-31" });
        entry["required"] = json!(["reason", "fingerprint", "expires"]);
        let schema_of = |name: &str| match name {
            "create" => object_of_strings(&["path", "body"]),
            "paths" => object_of_strings(&["charge", "invoice", "payment_link"]),
            "baseline" => json!({ "type": "object", "additionalProperties": entry }),
            _ => json!({ "type": "string" }),
        };
        config::NON_OPTION_SETTINGS.into_iter().map(|name| (name.to_owned(), schema_of(name))).collect()
    }

    fn schema() -> Value {
        let mut command = Cli::command();
        command.build();
        let mut schema = section(&command);
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = "chargeproof.toml".into();
        schema["properties"]["dialect"] = object_of_strings(&["key_prefix", "header_prefix", "user_agent"]);
        schema
    }

    #[test]
    fn the_configuration_schema_is_up_to_date() {
        let text = serde_json::to_string_pretty(&schema()).expect("a schema serializes to JSON") + "\n";
        if env::var_os("BLESS").is_some() {
            fs::write(SCHEMA, &text).expect("the package can be written to");
        }
        let committed = fs::read_to_string(SCHEMA).unwrap_or_default();
        assert!(
            committed == text,
            "chargeproof.schema.json is outdated; run: BLESS=1 cargo test -p chargeproof manual"
        );
    }

    #[test]
    fn the_sample_configuration_matches_the_schema() {
        let schema = schema();
        let mut section = String::new();
        let mut count = 0;
        for line in config::SAMPLE_CONFIG.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = format!("/properties/{}", name.replace('.', "/properties/"));
                assert!(schema.pointer(&section).is_some(), "[{name}]");
            } else if let Some((key, _)) = line.strip_prefix('#').and_then(|rest| rest.split_once(" = ")) {
                let is_known = key.starts_with([' ', '"'])
                    || schema.pointer(&format!("{section}/properties/{key}")).is_some();
                assert!(is_known, "{key} in {section}");
                count += 1;
            }
        }
        assert!(count > 30, "{count} settings are shown");
    }

    /// Positional arguments that are not settings.
    const NOT_SETTINGS: [&str; 8] = ["a", "b", "directory", "event", "file", "files", "paths", "shell"];
    /// A value in each format that an option accepts.
    const SAMPLES: [&str; 14] = [
        "7",
        "x",
        "/x",
        "http://127.0.0.1:3000/a",
        "127.0.0.1:3000",
        "2026-01-05T09:00:00Z",
        "90s",
        "https://shop.example=http://127.0.0.1:3000",
        "html=x",
        "junit=x",
        "1/2",
        "incomplete",
        "webhooks",
        "500",
    ];
    /// Sets of arguments that an option may require; the first set that is accepted is used.
    const REQUIRED_SETS: [&str; 13] = [
        "http://127.0.0.1:9 --receiver=127.0.0.1:0",
        "http://127.0.0.1:9",
        "",
        "x",
        "--list",
        "--secret-env=x http://127.0.0.1:9",
        "--max http://127.0.0.1:9",
        "--watch=x",
        "--hook=x",
        "--tls-key=x",
        "--tls-cert=x",
        "--exhaust=charge",
        "--scenario=x",
    ];

    /// Returns the required arguments of a command, with sample values.
    fn required_arguments(command: &Command) -> impl Iterator<Item = String> {
        let argument = |arg: &Arg| match (arg.get_long(), arg.get_possible_values().first()) {
            (Some(long), _) => format!("--{long}=x"),
            (None, Some(value)) => value.get_name().to_owned(),
            (None, None) => "http://127.0.0.1:9".to_owned(),
        };
        command.get_arguments().filter(|arg| arg.is_required_set()).map(argument)
    }

    /// Parses a command line and the content of a settings file; returns the command in debug format, or the error.
    fn parse_with_file(words: &[String], file: &str) -> Result<String, String> {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let path = directory.path().join("x.toml");
        fs::write(&path, file).expect("the file can be written");
        let argv = words.iter().map(Into::into).chain(["--config".into(), path.into_os_string()]);
        let read = settings::read(argv.collect()).map_err(|error| match error {
            settings::SettingsError::Usage(error) => error.to_string(),
            settings::SettingsError::File(failure) => failure.message,
        });
        read.map(|(cli, _)| format!("{:?}", cli.command))
    }

    #[test]
    fn every_option_can_be_set_in_the_file_with_the_same_effect() {
        let mut command = Cli::command();
        command.build();
        let schema = schema();
        let mut compared = 0;
        for (name, subcommand) in all_commands(&command, "") {
            let path: Vec<_> = name.split(' ').skip(1).collect();
            let pointer = path.iter().map(|name| format!("/properties/{name}")).collect::<String>();
            let words: Vec<_> =
                name.split(' ').map(str::to_owned).chain(required_arguments(&subcommand)).collect();
            for arg in subcommand.get_arguments().filter(|_| !path.is_empty()) {
                let Some(key) = settings::key_of(arg) else {
                    let id = arg.get_id().as_str();
                    let is_exception = NOT_SETTINGS.contains(&id)
                        || settings::NOT_IN_FILE.iter().any(|setting| setting.0 == id);
                    assert!(is_exception, "{name} {id} is neither a setting nor an exception");
                    continue;
                };
                assert!(schema.pointer(&format!("{pointer}/properties/{key}")).is_some(), "{name}: {key}");
                let Some(long) = arg.get_long().filter(|_| !arg.is_required_set()) else { continue };
                let section = path.join(".");
                let allowed = arg.get_possible_values();
                let values = allowed.iter().map(clap::builder::PossibleValue::get_name).chain(SAMPLES);
                let mut samples = values.map(|value| match arg.get_action() {
                    ArgAction::SetTrue => (format!("--{long}"), format!("[{section}]\n{key} = true")),
                    _ => (format!("--{long}={value}"), format!("[{section}]\n{key} = {value:?}")),
                });
                let parse_both = |(argument, file): (String, String)| {
                    let sets = REQUIRED_SETS.map(|options| options.split_whitespace().map(str::to_owned));
                    sets.into_iter().find_map(|set| {
                        let words: Vec<_> = words.iter().cloned().chain(set).collect();
                        let from_option =
                            parse_with_file(&[&words[..], std::slice::from_ref(&argument)].concat(), "")
                                .ok()?;
                        Some((from_option, parse_with_file(&words, &file), file.clone()))
                    })
                };
                let (from_option, from_file, file) = samples
                    .find_map(parse_both)
                    .unwrap_or_else(|| panic!("no sample value for {name} --{long} is accepted"));
                assert_eq!(from_file.as_ref(), Ok(&from_option), "{file}");
                compared += 1;
            }
        }
        assert!(compared > 100, "{compared} options were compared");
    }
}
