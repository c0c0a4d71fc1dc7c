//! JSON against a JSON Schema: as much of the language as ours use.

use serde_json::Value;

/// Panics with the place where `value` is not what `schema` says.
pub(crate) fn check(schema: &Value, value: &Value) {
    if let Err(wrong) = within(schema, schema, value, "the value") {
        panic!("{wrong}");
    }
}

/// Types, properties, items, references, constants, alternatives.
fn within(schema: &Value, root: &Value, value: &Value, place: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").expect("a definition of this file");
        return within(&root["$defs"][name], root, value, place);
    }
    if let Some(ways) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        let tried: Vec<_> = ways.iter().map(|way| within(way, root, value, place)).collect();
        if tried.iter().any(Result::is_ok) {
            return Ok(());
        }
        return Err(tried.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; or "));
    }
    let expected = &schema["const"];
    if !expected.is_null() && expected != value {
        return Err(format!("{place} is {value}, not {expected}"));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => vec![kind],
    };
    let fits = types.contains(&kind) || (kind == "integer" && types.contains(&"number"));
    if !fits {
        return Err(format!("{place} is {kind}, not {types:?}"));
    }
    if let Value::Object(object) = value {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(name.as_str().expect("a name")) {
                return Err(format!("{place} lacks {name}"));
            }
        }
        for (name, value) in object {
            let known = &schema["properties"][name];
            let other = &schema["additionalProperties"];
            let schema = if known.is_null() { other } else { known };
            if *schema == Value::Bool(false) {
                return Err(format!("{place}.{name}: unknown"));
            }
            within(schema, root, value, &format!("{place}.{name}"))?;
        }
    }
    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
        within(&schema["items"], root, value, &format!("{place}[{index}]"))?;
    }
    Ok(())
}
