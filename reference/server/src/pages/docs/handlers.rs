//! Complete webhook handlers in several languages, which `cargo xtask handlers` runs.

/// A file with a webhook handler.
pub(crate) struct HandlerSource {
    pub(crate) framework: &'static str,
    /// The name of the file under `/docs/handlers`.
    pub(crate) file: &'static str,
    /// The content, with a placeholder `{verify}` for the function.
    text: &'static str,
    /// A sample with the function that verifies signatures, and the start of that function after its imports.
    verify: (&'static str, &'static str),
}

const PYTHON: (&str, &str) = (include_str!("../../../templates/verify/verify.py"), "def verify");
const COMMENT: &str = "// Returns true";

pub(crate) const HANDLERS: [HandlerSource; 5] = [
    HandlerSource {
        framework: "Flask",
        file: "flask_hooks.py",
        text: include_str!("../../../templates/handlers/flask_hooks.py"),
        verify: PYTHON,
    },
    HandlerSource {
        framework: "FastAPI",
        file: "fastapi_hooks.py",
        text: include_str!("../../../templates/handlers/fastapi_hooks.py"),
        verify: PYTHON,
    },
    HandlerSource {
        framework: "Express",
        file: "express_hooks.js",
        text: include_str!("../../../templates/handlers/express_hooks.js"),
        verify: (include_str!("../../../templates/verify/verify.js"), COMMENT),
    },
    HandlerSource {
        framework: "PHP",
        file: "hooks.php",
        text: include_str!("../../../templates/handlers/hooks.php"),
        verify: (include_str!("../../../templates/verify/verify.php"), COMMENT),
    },
    HandlerSource {
        framework: "Go (net/http)",
        file: "hooks.go",
        text: include_str!("../../../templates/handlers/hooks.go"),
        verify: (include_str!("../../../templates/verify/verify.go"), "// Verify returns"),
    },
];

impl HandlerSource {
    /// Returns the whole file. `signature`: the name of the signature header.
    pub(crate) fn text(&self, signature: &str) -> String {
        let (sample, start) = self.verify;
        let function = sample.find(start).map_or("", |at| &sample[at..]);
        let text = self.text.replace("{verify}\n", &format!("{function}\n"));
        let in_php = |name: &str| name.to_uppercase().replace('-', "_");
        text.replace(SIGNATURE, signature).replace(&in_php(SIGNATURE), &in_php(signature))
    }
}

/// The header of the default dialect.
const SIGNATURE: &str = "X-Service-Signature";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handler_has_the_function_and_the_header_of_the_dialect() {
        for handler in HANDLERS {
            let text = handler.text("X-Shop-Signature");
            assert!(text.to_lowercase().matches("verify(").count() >= 2, "{}", handler.file);
            assert!(text.contains("X-Shop-Signature") || text.contains("HTTP_X_SHOP_SIGNATURE"), "{text}");
            assert!(!text.contains("{verify}") && !text.to_lowercase().contains("service"), "{text}");
        }
    }
}
