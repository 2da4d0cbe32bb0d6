//! [`Gateway`] and [`Deployment`], parsed from the files in `xtask/gateways`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// A gateway: the template of its configuration, and its deployments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gateway {
    /// The name of the file.
    #[serde(skip)]
    pub(crate) name: String,
    /// The Debian or Ubuntu package of the program.
    pub(crate) package: String,
    pub(crate) program: String,
    /// The option that prints the version and exits.
    pub(crate) version: String,
    /// The arguments that run the gateway in the foreground, in one process group.
    arguments: Vec<String>,
    /// The template of the configuration; `{{name}}` is replaced by a part or by a value of the run.
    template: String,
    /// Parts that a deployment may replace.
    #[serde(default)]
    defaults: BTreeMap<String, String>,
    pub(crate) deployments: Vec<Deployment>,
}

/// One configuration of a gateway: a misconfiguration if `breaks` is not empty, otherwise a legal deployment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deployment {
    /// The position in the gateway's file.
    #[serde(skip)]
    pub(crate) index: usize,
    pub(crate) name: String,
    /// Patterns of the ids of statements. At least one matching statement must fail.
    #[serde(default)]
    pub(crate) breaks: Vec<String>,
    /// `true` if the check must exceed the rate limit, which takes a minute. For legal deployments, every check does.
    #[serde(default)]
    burst: bool,
    /// `true` if the reference server has no rate limit, because the gateway has one.
    #[serde(default)]
    pub(crate) unlimited: bool,
    /// The reason why the check does not detect the misconfiguration; `None` if it must.
    pub(crate) undetected: Option<String>,
    /// The values of the template's parts.
    #[serde(default)]
    parts: BTreeMap<String, String>,
}

impl Deployment {
    pub(crate) fn is_faulty(&self) -> bool {
        !self.breaks.is_empty()
    }

    /// Returns `true` if the check exceeds the rate limit.
    pub(crate) fn has_burst(&self) -> bool {
        self.burst || !self.is_faulty()
    }
}

impl Gateway {
    /// Loads all gateways in the directory, ordered by name.
    pub(crate) fn load_all(directory: &Path) -> Result<Vec<Gateway>, String> {
        let unreadable = |err: std::io::Error| format!("cannot read `{}`: {err}", directory.display());
        let mut gateways = Vec::new();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(unreadable)?;
            let mut gateway: Gateway =
                toml::from_str(&text).map_err(|err| format!("`{}`: {err}", path.display()))?;
            gateway.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for (index, deployment) in gateway.deployments.iter_mut().enumerate() {
                deployment.index = index;
            }
            gateways.push(gateway);
        }
        gateways.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(gateways)
    }

    /// Returns the configuration of a deployment.
    pub(crate) fn configuration(&self, deployment: &Deployment, values: &BTreeMap<&str, String>) -> String {
        let mut text = self.template.clone();
        let mut parts = self.defaults.clone();
        parts.extend(deployment.parts.clone());
        for (name, part) in &parts {
            text = text.replace(&format!("{{{{{name}}}}}"), part.trim_end());
        }
        without_unfilled(&fill_template(&text, values))
    }

    /// Returns the arguments of the program.
    pub(crate) fn arguments(&self, values: &BTreeMap<&str, String>) -> Vec<String> {
        self.arguments.iter().map(|argument| fill_template(argument, values)).collect()
    }
}

fn fill_template(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{{{name}}}}}"), value);
    }
    text
}

/// Removes placeholders that neither the deployment nor the defaults define.
fn without_unfilled(text: &str) -> String {
    let mut parts = text.split("{{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |filled, part| match part.split_once("}}") {
        Some((name, rest)) if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
            filled + rest
        }
        _ => filled + "{{" + part,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_files_are_valid_and_every_part_has_a_placeholder() {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("gateways");
        let gateways = Gateway::load_all(&directory).expect("the files are valid");
        assert_eq!(gateways.len(), 4);
        for gateway in gateways {
            for deployment in &gateway.deployments {
                for name in deployment.parts.keys().chain(gateway.defaults.keys()) {
                    let placeholder = format!("{{{{{name}}}}}");
                    let mut templates = gateway.defaults.values().chain([&gateway.template]);
                    assert!(
                        templates.any(|text| text.contains(&placeholder)),
                        "{}: {}: {name}",
                        gateway.name,
                        deployment.name
                    );
                }
                assert!(
                    deployment.undetected.is_none() || deployment.is_faulty(),
                    "{}: {}",
                    gateway.name,
                    deployment.name
                );
            }
            let (faulty, legal): (Vec<_>, Vec<_>) =
                gateway.deployments.iter().partition(|deployment| deployment.is_faulty());
            assert!(legal.len() >= 3 && faulty.len() >= 10, "{}", gateway.name);
        }
    }

    #[test]
    fn unset_placeholders_are_empty() {
        let values = BTreeMap::from([("port", "80".to_owned())]);
        assert_eq!(without_unfilled(&fill_template("a {{port}} {{rest}};{ {b} }", &values)), "a 80 ;{ {b} }");
    }
}
