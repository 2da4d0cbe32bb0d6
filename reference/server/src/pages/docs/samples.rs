//! Samples of verifying a delivery, in four languages. The files are run by the tests.

/// One function in one language.
pub(crate) struct Sample {
    /// As people call the language.
    pub(crate) language: &'static str,
    /// Fit for an id.
    pub(crate) id: &'static str,
    pub(crate) text: &'static str,
}

pub(crate) const SAMPLES: [Sample; 4] = [
    Sample { language: "Python", id: "python", text: include_str!("../../../templates/verify/verify.py") },
    Sample { language: "Node", id: "node", text: include_str!("../../../templates/verify/verify.js") },
    Sample { language: "PHP", id: "php", text: include_str!("../../../templates/verify/verify.php") },
    Sample { language: "Go", id: "go", text: include_str!("../../../templates/verify/verify.go") },
];
