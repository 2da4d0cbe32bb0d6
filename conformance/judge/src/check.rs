//! [`Check`]: a statement's name, the groups of probes that it needs, and the function that judges it.

use conformance_model::group::Group;
use conformance_model::recording::Recording;
use conformance_model::verdict::Judged;
use conformance_model::words::Part;

/// The fault of one subject of a statement: the expectation, and the actual value.
pub(crate) type Flaw = Option<(String, String)>;

/// The entry of a statement among the checks.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The statement's name in the catalogue.
    pub id: &'static str,
    /// The probes that exercise it. What an operator can leave out, and what it costs, follows from them.
    pub needs: &'static [Group],
    /// Probes that show more of it, where they run.
    pub also: &'static [Group],
    /// The part that an operator may leave out of it beside its probes.
    pub part: Option<Part>,
    /// Judges it.
    pub judge: fn(&Recording) -> Judged,
}

impl Check {
    /// A check that needs these probes.
    pub(crate) const fn of(
        id: &'static str,
        needs: &'static [Group],
        judge: fn(&Recording) -> Judged,
    ) -> Check {
        Check { id, needs, also: &[], part: None, judge }
    }

    /// The same, shown by these probes as well.
    pub(crate) const fn and(self, also: &'static [Group]) -> Check {
        Check { also, ..self }
    }

    /// The same, left out together with this part.
    pub(crate) const fn part(self, part: Part) -> Check {
        Check { part: Some(part), ..self }
    }

    /// Returns `true` if `--without` that part leaves the statement out.
    pub fn is_left_out_with(&self, part: Part) -> bool {
        self.part == Some(part) || self.needs.iter().any(|group| group.part() == Some(part))
    }
}
