//! The JSON Schema of the format, for editors and for other people's tools.

use schemars::generate::SchemaSettings;

use super::Page;

/// The schema as it stands in `scenarios/scenario.schema.json`, with a line break at its end.
pub fn schema() -> String {
    let schema =
        SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<Page>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}
