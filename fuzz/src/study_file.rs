//! Study files: read, or refused with the line at fault.

use std::path::Path;

use conformax_study::Study;

/// Reads `bytes` as the TOML of a study.
pub fn read_study(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Study::parse(text, "study.toml", Path::new(".")) {
        Ok(study) => assert!(study.splits > 0 && !study.levels.is_empty() && !study.procedures.is_empty()),
        Err(error) => assert!(error.to_string().contains("study.toml"), "no file is named: {error}"),
    }
}
