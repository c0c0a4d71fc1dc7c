//! The JSON Schema of a diagnosis, `docs/schema/diagnose.schema.json`, is that of the types.

use schemars::schema_for;

use super::Diagnosis;

/// Set `ACKLAB_WRITE_SCHEMA=1` to write the file anew after changing the types.
#[test]
fn the_schema_in_the_repository_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/diagnose.schema.json");
    let now = serde_json::to_string_pretty(&schema_for!(Diagnosis)).expect("a schema") + "\n";
    if std::env::var_os("ACKLAB_WRITE_SCHEMA").is_some() {
        std::fs::write(path, &now).expect("write the schema");
    }
    let stored = std::fs::read_to_string(path).expect("docs/schema/diagnose.schema.json");
    assert_eq!(stored, now, "run this test with ACKLAB_WRITE_SCHEMA=1");
}
