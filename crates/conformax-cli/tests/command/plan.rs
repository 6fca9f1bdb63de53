//! `plan`: the law of coverage in words and numbers.

use crate::folder::Folder;

#[test]
fn shows_the_law_and_the_rows_needed() {
    let folder = Folder::empty();
    insta::assert_snapshot!(folder.run("plan --alpha 0.1").seen());
    insta::assert_snapshot!(folder.run("plan --confidence 0.95 --n 10,1000 --precision 0.02 --json").seen());
}

#[test]
fn refuses_what_makes_no_sense() {
    let folder = Folder::empty();
    for words in ["--alpha 0", "--alpha 1.5", "--alpha x", "--n 0", "--precision 2", "--probability 1"] {
        let message = folder.run(&format!("plan {words}")).error();
        assert!(message.starts_with("error:"), "{words}: {message}");
    }
}
