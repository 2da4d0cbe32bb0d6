//! Checks the relative links in Markdown files: each must lead to an existing file, directory or heading.

use std::collections::BTreeMap;

/// Returns all broken links in Markdown files.
pub(crate) fn broken_links(files: &BTreeMap<String, String>) -> Vec<String> {
    let guides = files.iter().filter(|(path, _)| path.ends_with(".md"));
    guides.flat_map(|(path, text)| broken_links_in(path, text, files)).collect()
}

fn broken_links_in(path: &str, text: &str, files: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // Indented lines are examples.
        if line.starts_with("    ") {
            continue;
        }
        for target in targets(line).filter(|target| !target.contains(':')) {
            if let Some(reason) = link_fault(path, target, files) {
                found.push(format!("{path}:{}: `{target}` {reason} (links)", index + 1));
            }
        }
    }
    found
}

/// Returns the targets of links: `path` of `[text](path)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Returns the reason why a link from a file is broken; `None` if it is not.
fn link_fault(from: &str, target: &str, files: &BTreeMap<String, String>) -> Option<&'static str> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { from.to_owned() } else { resolve(from, file)? };
    let is_directory = || files.keys().any(|key| key.starts_with(&format!("{path}/")));
    match files.get(&path) {
        None if is_directory() => None,
        None => Some("leads to no file"),
        Some(text) if !heading.is_empty() && !headings(text).any(|anchor| anchor == heading) => {
            Some("leads to no heading of that file")
        }
        Some(_) => None,
    }
}

/// Returns the path of a link's target relative to the workspace; `None` outside of it.
fn resolve(from: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            ".." => {
                parts.pop()?;
            }
            "." | "" => {}
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the anchors of headings: lower case, without punctuation, hyphens for spaces.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let files = [("a/README.md", text), ("b/guide.md", "# A guide\n\n## Test your `verify`, now\n")];
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(broken_links(&files), expected, "{text}");
    }

    #[test]
    fn links_to_files_directories_and_headings_are_followed() {
        check("See [it](../b/guide.md), [all](../b) and [how](../b/guide.md#test-your-verify-now).", &[]);
        check("# Here\n\nSee [above](#here) and [elsewhere](https://site.example/x#y).", &[]);
    }

    #[test]
    fn broken_links_are_reported() {
        check("See [it](../c.md).", &["a/README.md:1: `../c.md` leads to no file (links)"]);
        check(
            "\nSee [it](../b/guide.md#when).",
            &["a/README.md:2: `../b/guide.md#when` leads to no heading of that file (links)"],
        );
        check("See [it](#here).", &["a/README.md:1: `#here` leads to no heading of that file (links)"]);
    }

    #[test]
    fn examples_are_not_links() {
        check("    [it](nowhere.md)", &[]);
    }
}
