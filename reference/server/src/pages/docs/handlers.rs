//! Complete webhook handlers in several languages, which `cargo xtask handlers` runs.

/// A file with a webhook handler.
pub(crate) struct HandlerSource {
    pub(crate) framework: &'static str,
    /// The name of the file under `/docs/handlers`.
    pub(crate) file: &'static str,
    /// The commands that install the framework and start the handler on port 3000.
    pub(crate) start: &'static str,
    /// The content, with the placeholder `{verify}` for the function that verifies signatures.
    template: &'static str,
    /// A file with that function, and the text at which the function starts, after the imports.
    verify: (&'static str, &'static str),
}

/// The file with the Python function that verifies signatures, and the start of the function.
const PYTHON: (&str, &str) = (include_str!("../../../templates/verify/verify.py"), "def verify");
/// The start of the comment above that function in JavaScript and PHP.
const FUNCTION_COMMENT: &str = "// Returns true";

pub(crate) const HANDLERS: [HandlerSource; 5] = [
    HandlerSource {
        framework: "Flask",
        file: "flask_hooks.py",
        start: "pip install flask; WEBHOOK_SECRET=$CHARGEPROOF_TEST_WEBHOOK_SECRET flask --app flask_hooks run --port 3000",
        template: include_str!("../../../templates/handlers/flask_hooks.py"),
        verify: PYTHON,
    },
    HandlerSource {
        framework: "FastAPI",
        file: "fastapi_hooks.py",
        start: "pip install fastapi uvicorn; WEBHOOK_SECRET=$CHARGEPROOF_TEST_WEBHOOK_SECRET uvicorn fastapi_hooks:app --port 3000",
        template: include_str!("../../../templates/handlers/fastapi_hooks.py"),
        verify: PYTHON,
    },
    HandlerSource {
        framework: "Express",
        file: "express_hooks.js",
        start: "npm install express; WEBHOOK_SECRET=$CHARGEPROOF_TEST_WEBHOOK_SECRET node express_hooks.js",
        template: include_str!("../../../templates/handlers/express_hooks.js"),
        verify: (include_str!("../../../templates/verify/verify.js"), FUNCTION_COMMENT),
    },
    HandlerSource {
        framework: "PHP",
        file: "hooks.php",
        start: "WEBHOOK_SECRET=$CHARGEPROOF_TEST_WEBHOOK_SECRET php -S localhost:3000 hooks.php",
        template: include_str!("../../../templates/handlers/hooks.php"),
        verify: (include_str!("../../../templates/verify/verify.php"), FUNCTION_COMMENT),
    },
    HandlerSource {
        framework: "Go (net/http)",
        file: "hooks.go",
        start: "WEBHOOK_SECRET=$CHARGEPROOF_TEST_WEBHOOK_SECRET go run hooks.go",
        template: include_str!("../../../templates/handlers/hooks.go"),
        verify: (include_str!("../../../templates/verify/verify.go"), "// Verify returns"),
    },
];

impl HandlerSource {
    /// Returns the content of the file. `signature`: the name of the signature header.
    pub(crate) fn text(&self, signature: &str) -> String {
        let (source, function_start) = self.verify;
        let function = source.find(function_start).map_or("", |index| &source[index..]);
        let text = self.template.replace("{verify}\n", &format!("{function}\n"));
        // PHP reads a header in upper case, with underscores.
        let php_name = |name: &str| name.to_uppercase().replace('-', "_");
        text.replace(SIGNATURE_HEADER, signature).replace(&php_name(SIGNATURE_HEADER), &php_name(signature))
    }
}

/// The signature header of the default dialect.
const SIGNATURE_HEADER: &str = "X-Service-Signature";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handler_verifies_signatures_in_the_header_of_the_dialect() {
        for handler in HANDLERS {
            let text = handler.text("X-Shop-Signature");
            assert!(text.to_lowercase().matches("verify(").count() >= 2, "{}", handler.file);
            assert!(text.contains("X-Shop-Signature") || text.contains("HTTP_X_SHOP_SIGNATURE"), "{text}");
            // With an empty secret, anyone could sign a delivery.
            assert!(text.contains("WEBHOOK_SECRET is not set"), "{text}");
            assert!(handler.start.contains(handler.file.trim_end_matches(".py")), "{}", handler.start);
            assert!(!text.contains("{verify}") && !text.to_lowercase().contains("service"), "{text}");
        }
    }
}
