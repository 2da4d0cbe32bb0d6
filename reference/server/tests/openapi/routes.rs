//! The routers take what the document names, and nothing else.

use std::collections::BTreeSet;

use crate::{
    document::{Document, Operation},
    world::{Ask, World},
};

const API: &str = include_str!("../../../core/src/wire/route.rs");
const SANDBOX: &str = include_str!("../../../../simulator/src/sandbox/api/mod.rs");

/// `GET /v1/charges/{}` for each documented operation under this path.
fn documented(under: &str) -> BTreeSet<String> {
    let inside = |path: &str| path == under || path.starts_with(&format!("{under}/"));
    let operations = Document::read().operations().into_iter().filter(|it| inside(&it.path));
    operations
        .map(|Operation { method, path }| {
            let segments = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
            format!("{method} {}", segments.collect::<Vec<_>>().join("/"))
        })
        .collect()
}

/// The segments of `["charges", id, "cancel"]` as a path.
fn path_of(pattern: &str) -> String {
    let segments = pattern.split(',').map(str::trim).filter(|segment| !segment.is_empty());
    segments
        .map(|segment| segment.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or("{}"))
        .map(|segment| format!("/{segment}"))
        .collect()
}

/// What stands between the first of `open` and the next `close`, and what follows.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, &'t str)> {
    text.split_once(open)?.1.split_once(close)
}

/// The routes that a router's source names: arms such as `(["v1", "account"], "GET") => …`.
fn api_routes() -> BTreeSet<String> {
    let arms = API.lines().filter(|line| line.trim_start().starts_with("([\"v1\""));
    arms.filter_map(|line| {
        let (pattern, rest) = between(line, "[", "]")?;
        let method = rest.strip_prefix(", \"")?.split('"').next()?;
        Some(format!("{method} {}", path_of(pattern)))
    })
    .collect()
}

/// The same of arms such as `("POST", ["pay"]) => …`.
fn sandbox_routes() -> BTreeSet<String> {
    let arms = SANDBOX
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with("(\"") && line.contains("\", [") && line.contains("=>"));
    arms.filter_map(|line| {
        let (method, rest) = between(line, "\"", "\"")?;
        let (pattern, _) = between(rest, "[", "]")?;
        Some(format!("{method} /sandbox{}", path_of(pattern)))
    })
    .collect()
}

#[test]
fn the_document_names_the_routes_of_the_routers_and_no_others() {
    assert_eq!(documented("/v1"), api_routes());
    // The sandbox answers what a key would read, too.
    let looks = api_routes()
        .into_iter()
        .filter_map(|route| Some(format!("GET /sandbox/books/{{}}/{{}}{}", route.strip_prefix("GET /v1")?)));
    assert_eq!(documented("/sandbox"), sandbox_routes().into_iter().chain(looks).collect());
}

/// Asks each path for a method that no path takes: the answer says what it takes.
#[test]
fn a_documented_path_takes_the_documented_methods() {
    let mut world = World::new();
    let operations = world.document.operations();
    let paths: BTreeSet<&str> = operations.iter().map(|it| it.path.as_str()).collect();
    for path in paths.into_iter().filter(|path| path.starts_with("/v1") || path.starts_with("/sandbox")) {
        let mut takes: Vec<&str> = Vec::new();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            if operations.iter().any(|it| it.path == path && it.method == method) {
                takes.push(method);
                takes.extend((method == "GET").then_some("HEAD"));
            }
        }
        let key = world.live.clone();
        let asked = path.replace("{id}", "aaaaaaaaaaaa").replace("{account}/{mode}", "acme/live");
        let answer = world.refusal("TRACE", &asked, Ask { key: &key, ..Ask::default() });
        assert_eq!(answer, (405, Some(takes.join(", "))), "{path}");
    }
}
