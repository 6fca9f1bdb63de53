//! Work that was told to stop stops, at whatever point that is; a process of its own, as the wish to stop is global.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use conformax_cli::{ExitCode, interrupt, run};

#[test]
fn study_and_compare_end_without_results_once_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let data = folder.path().join("data.csv");
    let rows: String = (0..40).map(|i| format!("{},{},{}\n", i % 5, i % 7, i % 2)).collect();
    std::fs::write(&data, format!("a,b,label\n{rows}")).unwrap();
    interrupt();
    for words in [
        ["study", "-o", out.to_str().unwrap(), "--quiet"],
        ["compare", data.to_str().unwrap(), "--splits", "5"],
    ] {
        let (mut said, mut told) = (Vec::new(), Vec::new());
        let code = run(["conformax"].into_iter().chain(words), &mut said, &mut told);
        let told = String::from_utf8(told).unwrap();
        assert_eq!(code, ExitCode::CouldNotRun, "{told}");
        assert!(said.is_empty() && told.contains("interrupted; no output was written"), "{told}");
    }
    assert!(!out.exists(), "a stopped study leaves nothing");
}
