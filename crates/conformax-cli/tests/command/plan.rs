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

#[test]
fn counts_the_rows_of_each_group() {
    let folder = Folder::empty();
    folder.write("cal.csv", table_of(&[("cat", "north", 30), ("dog", "north", 8), ("owl", "south", 12)]));
    insta::assert_snapshot!(folder.run("plan cal.csv --drop region --by class").seen());
    let json = folder.run("plan cal.csv --by region --alpha 0.1 --json").json();
    let counts: Vec<(&str, u64)> = json["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["group"].as_str().unwrap(), group["n"].as_u64().unwrap()))
        .collect();
    assert_eq!(counts, [("south", 12), ("north", 38)]);
    folder.write("clusters.json", r#"{"cat": "pets", "dog": "pets", "owl": "birds"}"#);
    let json = folder.run("plan cal.csv --drop region --by clusters.json --json").json();
    assert_eq!(json["groups"][1]["n"], 38);
    assert_eq!(json["groups"][1]["group"], "pets");
}

/// So many rows of each label and region.
fn table_of(rows: &[(&str, &str, usize)]) -> String {
    let mut text = "cat,dog,owl,label,region\n".to_owned();
    for (label, region, n) in rows {
        (0..*n).for_each(|row| text.push_str(&format!("{row}.5,1,2,{label},{region}\n")));
    }
    text
}

#[test]
fn data_and_what_it_is_counted_by_come_together() {
    let folder = Folder::empty();
    assert!(folder.run("plan cal.npz").error().contains("--by"));
    assert!(folder.run("plan --by class").error().contains("DATA"));
}

/// Numbers are rounded for people, though never to certainty.
#[test]
fn shares_near_certainty_are_short() {
    let out = Folder::empty().run("plan --alpha 0.1 --pac 0.0002 --n 100").ok().out;
    assert!(out.contains("0.964 to 0.9997 "), "{out}");
    let longest = out.split_whitespace().filter(|word| word.starts_with("0.")).map(str::len).max();
    assert!(longest <= Some(7), "{out}");
}

/// `plan` reads rows as every other subcommand does.
#[test]
fn columns_are_told_what_they_are() {
    let folder = Folder::empty();
    folder.write("bare.csv", "a,b\n1.5,2.5\n");
    let message = folder.run("plan bare.csv --by class").error();
    assert!(message.contains("hint: name them with --label-column NAME"), "{message}");
    folder.write("text.csv", "a,b,region,label\n1.5,2.5,north,a\n");
    let message = folder.run("plan text.csv --by class").error();
    assert!(
        message.contains("--drop") && message.contains("--keep") && message.contains("--classes"),
        "{message}"
    );
    for flags in ["--drop region", "--keep region", "--classes a,b"] {
        let json = folder.run(&format!("plan text.csv --by class {flags} --json")).ok().json();
        assert_eq!(json["groups"][1]["n"], 1, "{flags}");
    }
    folder.write("z.jsonl", "{\"z\":[1.5,2.5],\"label\":1}\n");
    folder.write("names.txt", "cat\ndog\n");
    let json = folder.run("plan z.jsonl --by class --logits-column z --names names.txt --json").ok().json();
    assert_eq!((&json["groups"][1]["group"], &json["groups"][1]["n"]), (&"dog".into(), &1.into()));
    for flags in ["--drop region", "--names names.txt", "--logits z.npy"] {
        let message = folder.run(&format!("plan {flags}")).error();
        assert!(message.contains("--by"), "{flags}: {message}");
    }
}
