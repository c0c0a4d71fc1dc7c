//! The JSON Schema of a diagnosis, generated from the types.

use schemars::schema_for;

use super::Diagnosis;

/// The JSON Schema (draft 2020-12) as pretty-printed text with a final newline.
pub fn json_schema() -> String {
    let schema = schema_for!(Diagnosis);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set `ACKLAB_WRITE_SCHEMA=1` to write the file anew after changing the types.
    #[test]
    fn the_schema_in_the_repository_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/diagnose.schema.json");
        let now = json_schema();
        if std::env::var_os("ACKLAB_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &now).expect("write the schema");
        }
        let stored = std::fs::read_to_string(path).expect("docs/schema/diagnose.schema.json");
        assert_eq!(stored, now, "run this test with ACKLAB_WRITE_SCHEMA=1");
    }
}
