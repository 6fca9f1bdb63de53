//! The configs that ship are configs, and say where their data comes from and whether they were run.

use std::path::Path;

use conformax_train::Config;

#[test]
fn every_config_reads_and_says_what_it_must() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        Config::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(&path).unwrap();
        for wanted in ["# Data: ", "ours"] {
            assert!(text.contains(wanted), "{} lacks {wanted:?}", path.display());
        }
        assert!(text.contains("# Run here: ") != text.contains("# Not run here"), "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 6);
}
