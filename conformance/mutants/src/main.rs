//! `cargo xtask mutants`: runs the suite on every mutant and every correct variant, and compares the statements that
//! failed with a golden table. `--grid` and `--combinations` select other trials.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{env, fs, thread};

use conformance::matches_pattern;
use mutants::{Subject, Trial, combinations, grid, grid_table, kill_table, mutants, run_trials, variants};

const HELP: &str = "\
Runs the suite on every mutant and every correct variant of a service, and compares the verdicts with the expected ones.

usage: cargo xtask mutants [--only GLOB] [--jobs N] [--bless]
       cargo xtask mutants --grid [--bless]
       cargo xtask mutants --combinations N [--seed N] [--only GLOB] [--jobs N]

  --grid        inject every known fault into the recording of one run, instead of running faulty servers

  --combinations N
                run N correct servers with traffic behind random infrastructure instead
  --seed N      the seed of the combinations [default: 1]

  --only GLOB   run only servers whose name, or a statement that they must fail, matches; `*` matches anything
  --jobs N      the number of threads [default: the number of processors]
  --bless       write the result to the golden file, conformance/mutants/kills.txt or grid.txt

exit 0 if every mutant is killed by the expected statements, nothing else fails, and the table is unchanged
";

#[derive(Debug, Default)]
struct Options {
    grid: bool,
    combinations: Option<usize>,
    seed: Option<u64>,
    only: Option<String>,
    jobs: Option<usize>,
    bless: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| matches!(argument.as_str(), "help" | "--help" | "-h")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match parse_options(&arguments).and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}\n\ntry `cargo xtask mutants --help`");
            ExitCode::from(2)
        }
    }
}

fn parse_options(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(option) = rest.next() {
        match option {
            "--bless" => options.bless = true,
            "--grid" => options.grid = true,
            "--only" => options.only = Some(rest.next().ok_or("`--only` needs a pattern")?.to_owned()),
            "--combinations" => options.combinations = Some(parse_number(rest.next(), option)?),
            "--seed" => options.seed = Some(parse_number(rest.next(), option)?),
            "--jobs" => {
                let value = rest.next().ok_or("`--jobs` needs a number")?;
                let jobs = value.parse().ok().filter(|jobs| (1..=256).contains(jobs));
                options.jobs = Some(jobs.ok_or(format!("`--jobs` is `{value}`; allowed: 1 to 256"))?);
            }
            other => return Err(format!("unknown option `{other}`")),
        }
    }
    if options.bless && options.only.is_some() {
        return Err("`--bless` writes the whole table and cannot be combined with `--only`".to_owned());
    }
    Ok(options)
}

fn parse_number<N: FromStr>(value: Option<&str>, option: &str) -> Result<N, String> {
    let value = value.ok_or_else(|| format!("`{option}` needs a number"))?;
    value.parse().map_err(|_| format!("`{option}` is `{value}`; allowed: a whole number"))
}

/// Runs combinations, and prints those with an unexpected result. Returns `true` if every result is as expected.
fn run_combinations(count: usize, options: &Options) -> Result<bool, String> {
    let started = Instant::now();
    let mut all = combinations(options.seed.unwrap_or(1), count);
    all.retain(|subject| options.only.as_deref().is_none_or(|glob| matches_pattern(glob, &subject.name)));
    let jobs = options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(2, usize::from));
    let trials = run_trials(&all, jobs, |_| {});
    let wrong: Vec<_> = trials.iter().filter(|trial| trial.deviation.is_some()).collect();
    for trial in &wrong {
        println!("WRONG  {}: {}", trial.name, trial.deviation.as_deref().unwrap_or_default());
    }
    println!(
        "{} of {} combinations judged correctly, {} s",
        trials.len() - wrong.len(),
        trials.len(),
        started.elapsed().as_secs()
    );
    Ok(wrong.is_empty())
}

/// Runs the trials that the options select. Returns `true` if every result is as expected.
fn run(options: &Options) -> Result<bool, String> {
    if options.grid {
        let started = Instant::now();
        let table = grid_table(&grid());
        println!("{table}{} s", started.elapsed().as_secs());
        return check_golden(&table, "grid.txt", options);
    }
    if let Some(count) = options.combinations {
        return run_combinations(count, options);
    }
    let is_selected = |subject: &Subject| {
        options.only.as_deref().is_none_or(|glob| {
            matches_pattern(glob, &subject.name)
                || subject.violates.iter().any(|id| matches_pattern(glob, id))
        })
    };
    let [faulty, correct] =
        [mutants(), variants()].map(|subjects| subjects.into_iter().filter(is_selected).collect::<Vec<_>>());
    let total = faulty.len() + correct.len();
    if total == 0 {
        return Err(format!("no server matches `{}`", options.only.as_deref().unwrap_or_default()));
    }
    let jobs = options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(2, usize::from));
    let (started, done_count) = (Instant::now(), AtomicUsize::new(0));
    let report = |trial: &Trial| {
        let done = done_count.fetch_add(1, Ordering::Relaxed) + 1;
        if stderr().is_terminal() {
            // Errors of the progress output are ignored.
            let _ = write!(stderr(), "\r\x1b[2K{done} of {total}  {}", trial.name);
        } else if done.is_multiple_of(50) {
            eprintln!("{done} of {total}");
        }
    };
    let faulty_trials = run_trials(&faulty, jobs, report);
    let correct_trials = run_trials(&correct, jobs, report);
    if stderr().is_terminal() {
        eprint!("\r\x1b[2K");
    }
    print!("{}", mutants_by_statement(&faulty, &faulty_trials));
    print!("\ncorrect variants\n{}", kill_table(&correct_trials));
    let wrong: Vec<_> =
        faulty_trials.iter().chain(&correct_trials).filter(|trial| trial.deviation.is_some()).collect();
    for trial in &wrong {
        println!("WRONG  {}: {}", trial.name, trial.deviation.as_deref().unwrap_or_default());
    }
    let count_expected = |trials: &[Trial]| trials.iter().filter(|trial| trial.deviation.is_none()).count();
    println!(
        "\n{} of {} mutants killed by the expected statements, {} false alarms at {} correct variants, {} s",
        count_expected(&faulty_trials),
        faulty_trials.len(),
        correct_trials.len() - count_expected(&correct_trials),
        correct_trials.len(),
        started.elapsed().as_secs(),
    );
    let is_unchanged = options.only.is_some()
        || check_golden(
            &format!("{}\n{}", kill_table(&faulty_trials), kill_table(&correct_trials)),
            "kills.txt",
            options,
        )?;
    Ok(wrong.is_empty() && is_unchanged)
}

/// Formats the statements, each with the mutants that fail it.
fn mutants_by_statement(subjects: &[Subject], trials: &[Trial]) -> String {
    let mut names_by_id: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (subject, trial) in subjects.iter().zip(trials) {
        for id in &trial.broken {
            // See the legend below.
            let mark = if subject.violates.contains(&id.as_str()) { ' ' } else { '~' };
            names_by_id.entry(id).or_default().push(format!(
                "  {mark} {:<72} needs {}",
                trial.name,
                subject.required_input()
            ));
        }
    }
    let lines =
        names_by_id.iter().map(|(id, names)| format!("{id}  ({})\n{}\n", names.len(), names.join("\n")));
    let legend = "statements and the mutants they kill; ~ marks mutants that may fail them\n\n";
    legend.to_owned() + &lines.collect::<String>()
}

/// Prints the differences of a table from its golden file, or with `--bless` writes the file. Returns `true` if both are
/// the same now.
fn check_golden(table: &str, file_name: &str, options: &Options) -> Result<bool, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file_name);
    let shown_path = format!("conformance/mutants/{file_name}");
    if options.bless {
        fs::write(&path, table).map_err(|err| format!("cannot write `{shown_path}`: {err}"))?;
        println!("wrote {shown_path}");
        return Ok(true);
    }
    let golden = fs::read_to_string(&path).map_err(|err| format!("cannot read `{shown_path}`: {err}"))?;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (old, new) = (lines(&golden), lines(table));
    for line in old.iter().filter(|line| !new.contains(line)) {
        println!("- {line}");
    }
    for line in new.iter().filter(|line| !old.contains(line)) {
        println!("+ {line}");
    }
    if old != new {
        println!("differs from {shown_path}; `cargo xtask mutants --bless` updates it");
    }
    Ok(old == new)
}
