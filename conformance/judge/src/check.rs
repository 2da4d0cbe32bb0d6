//! [`Check`]: the name of a statement, the groups of probes that it needs, and the function that judges it.

use conformance_model::group::Group;
use conformance_model::part::Part;
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckResult;

/// The expected and the actual value of a violation.
pub(crate) type Mismatch = (String, String);

/// The check of one statement.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The name of the statement in the catalogue.
    pub id: &'static str,
    /// The groups of probes that it requires. If one of them is excluded by `--without`, so is the check.
    pub needs: &'static [Group],
    /// The groups of probes that provide additional evidence if they run.
    pub optional: &'static [Group],
    /// A further part whose exclusion by `--without` excludes the check.
    pub excluded_with: Option<Part>,
    /// The function that judges it.
    pub judge: fn(&Recording) -> CheckResult,
}

impl Check {
    /// Returns a check that needs these probes.
    pub(crate) const fn new(
        id: &'static str,
        needs: &'static [Group],
        judge: fn(&Recording) -> CheckResult,
    ) -> Check {
        Check { id, needs, optional: &[], excluded_with: None, judge }
    }

    /// Adds groups of probes that provide additional evidence if they run.
    pub(crate) const fn with_optional_probes(self, optional: &'static [Group]) -> Check {
        Check { optional, ..self }
    }

    /// Adds a part whose exclusion by `--without` excludes the check.
    pub(crate) const fn excluded_with(self, part: Part) -> Check {
        Check { excluded_with: Some(part), ..self }
    }

    /// Returns `true` if `--without` with this part excludes the statement.
    pub fn is_excluded_by(&self, part: Part) -> bool {
        self.excluded_with == Some(part)
            || self.needs.iter().any(|group| group.part_to_exclude() == Some(part))
    }
}
