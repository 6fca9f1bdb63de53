//! What the logits of a checkpoint's own head stand for: `id2label` of its config.

use std::path::Path;

use serde_json::Value;

use super::Error;
use super::config::{problem, value};

/// The labels in the order of the logits. A config without them names as many as `transformers` takes: two.
pub(super) fn labels(path: &Path) -> Result<Vec<String>, Error> {
    let config = value(path)?;
    let Some(map) = config.get("id2label").and_then(Value::as_object) else {
        let count = config.get("num_labels").and_then(Value::as_u64).unwrap_or(2);
        return Ok((0..count).map(|class| format!("LABEL_{class}")).collect());
    };
    (0..map.len())
        .map(|class| {
            let name = map.get(&class.to_string()).and_then(Value::as_str);
            let wanted = || problem(path, format!("id2label has {} labels and none for {class}", map.len()));
            name.map(str::to_owned).ok_or_else(wanted)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        std::fs::write(&path, config).unwrap();
        labels(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn labels_come_in_the_order_of_their_numbers() {
        let many: Vec<String> = (0..12).rev().map(|class| format!("\"{class}\": \"n{class}\"")).collect();
        let found = read(&format!("{{\"id2label\": {{{}}}}}", many.join(", "))).unwrap();
        assert_eq!((found.len(), found[2].as_str(), found[10].as_str()), (12, "n2", "n10"));
        assert_eq!(read("{}").unwrap(), ["LABEL_0", "LABEL_1"]);
        assert_eq!(read("{\"num_labels\": 3}").unwrap().len(), 3);
        let error = read("{\"id2label\": {\"0\": \"a\", \"2\": \"b\"}}").unwrap_err();
        assert!(error.ends_with("config.json: id2label has 2 labels and none for 1"), "{error}");
    }
}
