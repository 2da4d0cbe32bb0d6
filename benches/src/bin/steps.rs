//! Sends one request repeatedly to an in-process world, for instruction counters such as Callgrind.
//!
//! `steps COUNT [METHOD] PATH [BODY]`: `{event}` and `{charge}` in the path are replaced with the ids of the newest
//! event and charge.
//! `valgrind --tool=callgrind --toggle-collect='benches::World::send'` counts only the requests.

use std::{env, process::ExitCode};

use benches::World;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (count, method, path, body) = match arguments.as_slice() {
        [count, path] => (count, "GET", path, ""),
        [count, method, path, body] => (count, method.as_str(), path, body.as_str()),
        _ => {
            eprintln!("error: usage: steps COUNT [METHOD] PATH [BODY]");
            return ExitCode::from(2);
        }
    };
    let Ok(count) = count.parse::<u32>() else {
        eprintln!("error: `{count}` is not a number of requests");
        return ExitCode::from(2);
    };
    let mut world = World::new();
    let charge = (0..100).map(|_| world.open_charge()).last().unwrap_or_default();
    let newest = world.send_expecting_2xx("GET", "/v1/events?per_page=1", "");
    let event = newest["data"][0]["id"].as_str().unwrap_or_default().to_owned();
    let path = path.replace("{event}", &event).replace("{charge}", &charge);
    for _ in 0..count {
        let response = world.send(method, &path, body);
        if response.status >= 300 {
            eprintln!("error: the response to {method} {path} has status {}", response.status);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
