//! No dependency is linked in two major versions, unless the reason is written here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::packages::{Reach, shipped};

/// Packages that may be linked twice, and why.
const ALLOWED: &[(&str, &str)] =
    &[("getrandom", "ring 0.17 is on 0.2 and has no newer release; everything else is on 0.4")];

/// Packages that are linked more than once without a reason, and reasons that are no longer needed.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let linked = shipped(root, Reach::Linked)?;
    Ok(judge(linked.iter().map(|it| (it.name.as_str(), it.version.as_str())), ALLOWED))
}

fn judge<'a>(linked: impl IntoIterator<Item = (&'a str, &'a str)>, allowed: &[(&str, &str)]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, version) in linked {
        versions.entry(name).or_default().insert(major(version));
    }
    versions.retain(|_, majors| majors.len() > 1);

    let is_allowed = |name: &str| allowed.iter().any(|(it, _)| *it == name);
    let unexplained = versions.iter().filter(|(name, _)| !is_allowed(name)).map(|(name, majors)| {
        let majors: Vec<&str> = majors.iter().copied().collect();
        format!(
            "`{name}` is linked in versions {}; one is allowed (see `cargo tree -d`)",
            majors.join(" and ")
        )
    });
    let idle = allowed
        .iter()
        .filter(|(name, _)| !versions.contains_key(name))
        .map(|(name, _)| format!("`{name}` is allowed to be linked twice but is not; take it off the list"));
    unexplained.chain(idle).collect()
}

/// The part of a version that cargo counts as compatible: `1`, `0.4`, `0.0.3`.
fn major(version: &str) -> &str {
    let release = version.split(['-', '+']).next().unwrap_or(version);
    let mut end = 0;
    for part in release.split('.') {
        end += part.len();
        if part != "0" {
            return &release[..end];
        }
        end += 1;
    }
    release
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(linked: &[(&str, &str)], allowed: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(judge(linked.iter().copied(), allowed), expected);
    }

    #[test]
    fn compatible_versions_share_a_major() {
        for (version, expected) in
            [("1.2.3", "1"), ("12.0.0", "12"), ("0.4.1", "0.4"), ("0.0.3", "0.0.3"), ("1.0.0-rc.1+b", "1")]
        {
            assert_eq!(major(version), expected);
        }
    }

    #[test]
    fn two_majors_need_a_reason() {
        let twice = [("rand", "0.9.5"), ("rand", "0.10.3"), ("url", "2.5.8")];
        check(
            &twice,
            &[],
            &["`rand` is linked in versions 0.10 and 0.9; one is allowed (see `cargo tree -d`)"],
        );
        check(&twice, &[("rand", "because")], &[]);
        check(&[("rand", "0.9.4"), ("rand", "0.9.5")], &[], &[]);
    }

    #[test]
    fn a_reason_goes_when_its_duplicate_goes() {
        check(
            &[("rand", "0.9.5")],
            &[("rand", "because")],
            &["`rand` is allowed to be linked twice but is not; take it off the list"],
        );
    }
}
