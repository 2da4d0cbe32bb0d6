//! Merges `chargeproof.toml` into the command line: an option that only the file contains is added to the arguments.
//!
//! So every option can also be set in the file, and the same code validates both.

use std::{collections::BTreeSet, error::Error as _, ffi::OsString, path::PathBuf};

use clap::{
    Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};
use toml::{Table, Value};

use crate::{
    Failure,
    args::Cli,
    config::{Config, ConfigFile, NON_OPTION_SETTINGS},
    suggestions,
};

/// The setting for the positional URL of a command.
const TARGET: &str = "target";
/// Options that are allowed on the command line only, with the reason.
pub(crate) const NOT_IN_FILE: [(&str, &str); 5] = [
    ("config", "names the file"),
    ("help", "prints information instead of running the command"),
    ("version", "prints information instead of running the command"),
    ("init", "writes the file"),
    ("save_from", "has two values, and a setting has one"),
];
/// Options of `check` and the argument that each requires: an option or the URL. An option of the file
/// whose required argument is missing is ignored.
const REQUIRED_OPTIONS: [(&str, &str); 7] = [
    ("cacert", "url"),
    ("receiver", "url"),
    ("deliveries", "url"),
    ("public_url", "receiver"),
    ("receive_for", "receiver"),
    ("redirect_trial", "receiver"),
    ("register", "receiver"),
];

/// An error of the command line or of the file. No command runs.
pub(crate) enum SettingsError {
    /// The command line is invalid or contains `--help` or `--version`.
    Usage(Box<clap::Error>),
    /// The file is invalid.
    File(Failure),
}

impl From<clap::Error> for SettingsError {
    fn from(error: clap::Error) -> SettingsError {
        SettingsError::Usage(Box::new(error))
    }
}

/// Parses the command line, completed by the file.
pub(crate) fn read(mut argv: Vec<OsString>) -> Result<(Cli, Config), SettingsError> {
    let mut command = Cli::command();
    command.build();
    let matches = match command.clone().try_get_matches_from(&argv) {
        // The file may contain the missing argument.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            allow_incomplete(command.clone()).try_get_matches_from(&argv)?
        }
        Err(error) => return Err(suggestions::with_suggestion(error, &command, &argv).into()),
        Ok(matches) => matches,
    };
    let (mut subcommand, mut given, mut section) = (&command, &matches, Vec::new());
    while let Some((name, matches)) = given.subcommand() {
        subcommand = subcommand.find_subcommand(name).expect("clap matched the subcommand");
        given = matches;
        section.push(name.to_owned());
    }
    let config_path = given.get_one::<PathBuf>("config").map(PathBuf::as_path);
    let file = ConfigFile::read(config_path).map_err(SettingsError::File)?;
    let file_error =
        |why: String| SettingsError::File(Failure::usage(format!("`{}`: {why}", file.path.display())));
    check_names(&command, &file.settings, "").map_err(file_error)?;
    let mut table = Some(&file.settings);
    for name in &section {
        table = table.and_then(|table| table.get(name)).and_then(Value::as_table);
    }
    let section = section.join(".");
    let from_file = match table {
        None => Vec::new(),
        Some(table) => file_settings(subcommand, given, table, &section).map_err(file_error)?,
    };
    // Arguments after `--` are not options.
    let end = argv.iter().position(|word| word == "--").unwrap_or(argv.len());
    argv.splice(end..end, from_file.iter().flat_map(|setting| setting.arguments.iter().map(OsString::from)));
    let matches =
        command.clone().try_get_matches_from(&argv).map_err(|error| match explain(&error, &from_file) {
            Some(why) => file_error(why),
            None => suggestions::with_suggestion(error, &command, &argv).into(),
        })?;
    Ok((Cli::from_arg_matches(&matches)?, file.config))
}

/// Makes a command and its subcommands accept incomplete arguments.
fn allow_incomplete(command: Command) -> Command {
    command.ignore_errors(true).mut_subcommands(allow_incomplete)
}

/// A setting of the file as command-line arguments.
struct FileSetting {
    /// `check.time_limit`
    name: String,
    /// `--time-limit`
    option: String,
    arguments: Vec<String>,
}

/// Returns the key of an option in the file.
pub(crate) fn key_of(arg: &Arg) -> Option<String> {
    let id = arg.get_id().as_str();
    match arg.get_long() {
        Some(long) if !NOT_IN_FILE.iter().any(|(name, _)| *name == id) => Some(long.replace('-', "_")),
        None if id == "url" => Some(TARGET.to_owned()),
        _ => None,
    }
}

/// Returns the settings of the file that the command line does not override.
fn file_settings(
    command: &Command,
    given: &ArgMatches,
    table: &Table,
    section: &str,
) -> Result<Vec<FileSetting>, String> {
    let is_given = |arg: &&Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let given_args: Vec<&Arg> = command.get_arguments().filter(is_given).collect();
    let excludes = |first: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(first).iter().any(|arg| arg.get_id() == other.get_id())
    };
    let candidates = command.get_arguments().filter_map(|arg| Some((arg, table.get(&key_of(arg)?)?)));
    let mut chosen: Vec<(&Arg, &Value)> = candidates
        .filter(|(arg, _)| !given_args.iter().any(|given| given.get_id() == arg.get_id()))
        .filter(|(arg, _)| !given_args.iter().any(|given| excludes(given, arg) || excludes(arg, given)))
        .collect();
    // Repeated, because the removal of an option may leave another one without its required argument.
    let mut count_before = usize::MAX;
    while section == "check" && chosen.len() < count_before {
        count_before = chosen.len();
        let all = given_args.iter().chain(chosen.iter().map(|(arg, _)| arg));
        let present: BTreeSet<&str> = all.map(|arg| arg.get_id().as_str()).collect();
        let lacks_required = |arg: &Arg| {
            REQUIRED_OPTIONS.iter().any(|(id, required)| arg.get_id() == id && !present.contains(required))
        };
        chosen.retain(|(arg, _)| !lacks_required(arg));
    }
    chosen.into_iter().map(|(arg, value)| file_setting(arg, value, section)).collect()
}

fn file_setting(arg: &Arg, value: &Value, section: &str) -> Result<FileSetting, String> {
    let key = key_of(arg).expect("only options with a key are selected");
    let name = format!("{section}.{key}");
    let option = arg.get_long().map_or_else(|| "<URL>".to_owned(), |long| format!("--{long}"));
    let invalid = |allowed: &str| format!("`{name}` is `{value}`; allowed: {allowed}");
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    let arguments = match (arg.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(true)) => vec![option.clone()],
        (ArgAction::SetTrue, Value::Boolean(false)) => Vec::new(),
        (ArgAction::SetTrue, _) => return Err(invalid("true or false")),
        (_, Value::Array(values)) if is_list => values
            .iter()
            .map(|value| {
                Ok(to_argument(&option, arg, &value_text(value).ok_or_else(|| invalid("a list of strings"))?))
            })
            .collect::<Result<_, String>>()?,
        (_, value) => {
            vec![to_argument(&option, arg, &value_text(value).ok_or_else(|| invalid("one value"))?)]
        }
    };
    Ok(FileSetting { name, option, arguments })
}

fn to_argument(option: &str, arg: &Arg, value: &str) -> String {
    if arg.is_positional() { value.to_owned() } else { format!("{option}={value}") }
}

/// Returns a string, an integer or a date as text; `None` for another value.
fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Datetime(datetime) => Some(datetime.to_string()),
        _ => None,
    }
}

/// Checks that every section is a command or `dialect`, and every key an option or another setting.
fn check_names(command: &Command, table: &Table, section: &str) -> Result<(), String> {
    let sections: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let keys: Vec<String> = command.get_arguments().filter_map(key_of).collect();
    for (key, value) in table {
        let name = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
        if let (Some(subcommand), Value::Table(table)) = (command.find_subcommand(key), value) {
            check_names(subcommand, table, &name)?;
        } else if section.is_empty() {
            let sections = sections.iter().copied().chain(["dialect"]).filter(|section| *section != "help");
            return Err(format!("`{name}` is not a section; {}", allowed_names(key, sections)));
        } else if !keys.contains(key) {
            let other_settings = if section == "check" { &NON_OPTION_SETTINGS[..] } else { &[] };
            let known = keys.iter().map(String::as_str).chain(other_settings.iter().copied());
            return Err(format!("`{name}` is not a setting; {}", allowed_names(key, known)));
        }
    }
    Ok(())
}

/// Returns the end of an error message about an unknown name: the most similar of the known names, or all of them.
fn allowed_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("allowed: {}", known.join(", ")),
    }
}

/// Returns the known name that is most similar; `None` if no name is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const SIMILARITY_MIN: f64 = 0.8;
    // Longer than any name. Limited, because the time of a comparison grows with the product of both lengths.
    const NAME_BYTES_MAX: usize = 256;
    known
        .filter(|_| name.len() <= NAME_BYTES_MAX)
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .max_by(|(similarity, _), (other, _)| similarity.total_cmp(other))
        .filter(|(similarity, _)| *similarity > SIMILARITY_MIN)
        .map(|(_, nearest)| nearest)
}

/// Returns the error with the name of the setting instead of the option, if a setting of the file caused it.
fn explain(error: &clap::Error, from_file: &[FileSetting]) -> Option<String> {
    let context_text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let arg = context_text(ContextKind::InvalidArg)?;
    let setting =
        from_file.iter().find(|setting| arg.split([' ', '=']).next() == Some(setting.option.as_str()))?;
    let name = &setting.name;
    match (error.kind(), context_text(ContextKind::InvalidValue)) {
        (ErrorKind::ValueValidation, Some(value)) => {
            Some(format!("`{name}` is `{value}`; {}", error.source()?))
        }
        (ErrorKind::InvalidValue, Some(value)) => {
            Some(format!("`{name}` is `{value}`; allowed: {}", context_text(ContextKind::ValidValue)?))
        }
        _ => Some(format!("`{name}`: {}", error.to_string().trim_start_matches("error: ").trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, net::SocketAddr};

    use conformance::CreateRequest;
    use reference_core::dialect::Dialect;

    use super::*;
    use crate::{
        args::{self, Check, Serve},
        config::SAMPLE_CONFIG,
    };

    fn parse(settings: &str, arguments: &[&str]) -> Result<(args::Command, Config), String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.toml");
        fs::write(&path, settings).unwrap();
        let path = path.to_str().unwrap();
        let argv =
            ["chargeproof"].iter().chain(arguments).copied().chain(["--config", path]).map(OsString::from);
        match read(argv.collect()) {
            Ok((cli, config)) => Ok((cli.command, config)),
            Err(SettingsError::File(failure)) => Err(failure.message),
            Err(SettingsError::Usage(error)) => Err(error.to_string()),
        }
    }

    #[track_caller]
    fn check_args(settings: &str, arguments: &[&str]) -> Check {
        match parse(settings, &[&["check"], arguments].concat()) {
            Ok((args::Command::Check(check), _)) => *check,
            Ok(_) => panic!("another command"),
            Err(error) => panic!("{error}"),
        }
    }

    #[track_caller]
    fn serve_args(settings: &str, arguments: &[&str]) -> Serve {
        match parse(settings, &[&["serve"], arguments].concat()) {
            Ok((args::Command::Serve(serve), _)) => serve,
            Ok(_) => panic!("another command"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_setting_has_the_effect_of_the_option() {
        let settings = "[serve]\nlisten = \"127.0.0.1:7\"\nseed = 7\nclock = \"frozen\"\nrate_limit = \"off\"\n\
            start = 2026-01-05T09:00:00Z\nforward = [\"https://shop.example=http://127.0.0.1:3000\"]\n\
            port = 9\nforward_to = \"http://localhost:3000/hooks\"\n";
        let serve = serve_args(settings, &[]);
        assert_eq!((serve.listen, serve.seed), ("127.0.0.1:7".parse::<SocketAddr>().unwrap(), Some(7)));
        assert_eq!((serve.clock, serve.rate_limit), (args::Clock::Frozen, args::RateLimit(None)));
        assert_eq!(serve.start.unwrap().to_string(), "2026-01-05T09:00:00.000000Z");
        assert_eq!((serve.forward.len(), serve.forward_to.len(), serve.port), (1, 1, Some(9)));
    }

    #[test]
    fn options_override_the_file() {
        let settings = "[check]\ntarget = \"http://a.example\"\nquick = true\nonly = [\"paging.*\"]\n\
            receiver = \"127.0.0.1:0\"\npublic_url = \"https://b.example\"\n";
        let check = check_args(settings, &[]);
        assert_eq!((check.url.as_deref(), check.quick), (Some("http://a.example"), true));
        assert!(check.webhooks.receiver.is_some() && check.webhooks.public_url.is_some());
        let check = check_args(settings, &["http://c.example", "--only", "auth.*", "--thorough"]);
        assert_eq!((check.url.as_deref(), check.quick), (Some("http://c.example"), false));
        assert_eq!(check.only, ["auth.*"]);
        let check = check_args(settings, &["--built-in"]);
        assert!(
            check.url.is_none() && check.webhooks.receiver.is_none() && check.webhooks.public_url.is_none()
        );
    }

    #[test]
    fn the_file_may_set_required_arguments() {
        let settings = "[load]\ntarget = \"http://a.example\"\nmax = true\n[receiver.listen]\nport = 9000\n";
        let Ok((args::Command::Load(load), _)) = parse(settings, &["load"]) else {
            panic!("another command")
        };
        assert_eq!((load.url.as_str(), load.max), ("http://a.example", true));
        let Ok((args::Command::Load(load), _)) = parse(settings, &["load", "--rate", "5"]) else {
            panic!("another command")
        };
        assert!(!load.max, "--rate on the command line replaces max of the file");
        let listen = parse(settings, &["receiver", "listen"]);
        assert!(
            matches!(listen, Ok((args::Command::Receiver(args::Receiver::Listen(listen)), _)) if listen.port == Some(9000))
        );
        assert!(parse("", &["load"]).is_err_and(|why| why.contains("<URL>")));
    }

    /// Settings of [serve] that conflict with others.
    const CONFLICTING: [&str; 1] = ["from"];

    /// Returns the sample configuration with all settings enabled. Settings start with `#` and no space; comments have
    /// a space.
    fn uncommented_sample() -> String {
        let setting = |line: &str| {
            line.strip_prefix('#')
                .filter(|setting| !setting.is_empty() && !setting.starts_with(' '))
                .map(str::to_owned)
        };
        let is_conflicting =
            |line: &&str| CONFLICTING.iter().any(|name| line.starts_with(&format!("#{name} = ")));
        let lines = SAMPLE_CONFIG.lines().filter(|line| !is_conflicting(line));
        lines.map(|line| setting(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }

    #[test]
    fn the_sample_configuration_is_inert_and_valid_when_uncommented() {
        let (_, config) = parse(SAMPLE_CONFIG, &["check"]).unwrap();
        assert_eq!(config, Config::default());
        let (_, config) = parse(&uncommented_sample(), &["check", "--list"]).unwrap();
        assert_eq!((&config.dialect, config.check.create()), (&Dialect::default(), CreateRequest::default()));
        assert_eq!(config.check.baseline("2026-11-21".into()).unwrap().known.len(), 1);
        assert_eq!(config.check.paths().charge.as_deref(), Some("/v1/charges/{id}"));
        let check = check_args(&uncommented_sample(), &[]);
        assert!(!check.allow_writes && !check.quick && check.only.is_empty() && check.without.is_empty());
        assert_eq!((check.time_limit, check.hook_time_limit), (10, 30));
        assert_eq!(serve_args(&uncommented_sample(), &[]).rate_limit, args::RateLimit(Some(120)));
        for name in CONFLICTING {
            let line = SAMPLE_CONFIG.lines().find_map(|line| line.strip_prefix(&format!("#{name} = ")));
            serve_args(
                &format!("[serve]\n{name} = {}\n", line.expect("the sample contains the setting")),
                &[],
            );
        }
    }

    #[track_caller]
    fn check_rejected(settings: &str, arguments: &[&str], part: &str) {
        let error = parse(settings, arguments).map(|_| ()).expect_err("the input is rejected");
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn error_names_the_invalid_setting() {
        let allowed = "allowed: a whole number of seconds from 1 to 300";
        check_rejected(
            "[check]\nwithout = [\"webhook\"]",
            &["check"],
            "`check.without` is `webhook`; allowed: revoked, second",
        );
        check_rejected(
            "[check]\ntime_limit = 0",
            &["check"],
            &format!("`check.time_limit` is `0`; {allowed}"),
        );
        check_rejected("[check]\nhook_time_limit = 301", &["check"], "`check.hook_time_limit` is `301`");
        check_rejected("[check]\nquick = 1", &["check"], "`check.quick` is `1`; allowed: true or false");
        check_rejected("[check]\nhook = [\"a\"]", &["check"], "allowed: one value");
        check_rejected("[check]\nonly = [true]", &["check"], "allowed: a list of strings");
        check_rejected(
            "[check]\ntiem_limit = 1",
            &["serve"],
            "`check.tiem_limit` is not a setting; did you mean `time_limit`?",
        );
        check_rejected(
            "[serve]\nprot = 1",
            &["serve"],
            "`serve.prot` is not a setting; did you mean `port`?",
        );
        check_rejected("[server]\nport = 1", &["serve"], "`server` is not a section; did you mean `serve`?");
        check_rejected(
            "[serve]\nclock = \"slow\"",
            &["serve"],
            "`serve.clock` is `slow`; allowed: wall, fast, frozen",
        );
        check_rejected(
            "[serve]\nstart = \"today\"",
            &["serve"],
            "`serve.start` is `today`; allowed: a UTC time such as",
        );
        check_rejected("[serve]\nrate_limit = true", &["serve"], "`serve.rate_limit` is `true`");
        check_rejected("[serve]\nrate_limit = -1", &["serve"], "`serve.rate_limit` is `-1`");
        check_rejected("[serve]\nforward = [\"shop\"]", &["serve"], "`serve.forward` is `shop`");
        check_rejected(
            "[serve]\nforward_to = \"shop\"",
            &["serve"],
            "`serve.forward_to` is `shop`; not a URL",
        );
        check_rejected("[receiver.listen]\nprot = 1", &["serve"], "did you mean `port`?");
    }
}
