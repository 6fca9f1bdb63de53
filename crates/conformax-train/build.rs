//! Tells a release which commit it is built from, for the cards of its runs.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Builds for tests would otherwise be stale after every commit.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for path in
            ["HEAD", "logs/HEAD"].into_iter().filter_map(|name| git(&["rev-parse", "--git-path", name]))
        {
            println!("cargo::rerun-if-changed={path}");
        }
        if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
            println!("cargo::rustc-env=CONFORMAX_COMMIT={commit}");
        }
    }
}

/// What git says, or nothing where there is no git or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
