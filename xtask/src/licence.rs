//! Every dependency comes under terms that let the program be shipped as MIT or Apache-2.0.

use std::path::Path;

use crate::packages::{Reach, Shipped, shipped};
use crate::spdx;

/// Licences that ask for no more than their own text and a notice.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0", // the list of certificate authorities
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Dependencies whose licence is missing, unreadable or not allowed.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>, String> {
    Ok(shipped(root, Reach::Built)?.iter().filter_map(judge).collect())
}

fn judge(package: &Shipped) -> Option<String> {
    complaint(&package.licence).map(|it| format!("{} {} {it}", package.name, package.version))
}

fn complaint(expression: &str) -> Option<String> {
    if expression.is_empty() {
        return Some("states no licence; an SPDX expression is needed".to_owned());
    }
    match spdx::is_satisfied(expression, |id| ALLOWED.contains(&id)) {
        Ok(true) => None,
        Ok(false) => Some(format!("is licensed `{expression}`; allowed are {}", ALLOWED.join(", "))),
        Err(error) => Some(format!("is licensed `{expression}`, which is not an SPDX expression: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissive_terms_pass() {
        for licence in
            ["MIT", "MIT OR Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"]
        {
            assert_eq!(complaint(licence), None, "{licence}");
        }
    }

    #[test]
    fn other_terms_are_named() {
        for (licence, expected) in [
            ("", "states no licence"),
            ("GPL-3.0-only", "is licensed `GPL-3.0-only`; allowed are 0BSD, "),
            ("MIT AND GPL-3.0-only", "is licensed `MIT AND GPL-3.0-only`; allowed"),
            ("see LICENSE", "is licensed `see LICENSE`, which is not an SPDX expression"),
        ] {
            let complaint = complaint(licence).expect("a complaint");
            assert!(complaint.starts_with(expected), "{complaint}");
        }
    }
}
