//! Coverage by class, group, cluster and weight, and risk: the oracle's sets through files and flags.

use conformax::{
    Alpha, Calibrator, Choose, Dealer, Dealt, EntmaxScore, LabelShift, Logits, Prior, ScoreSpec, Taxonomy,
    label_weights, row_fingerprints,
};
use conformax_io::{ClassNames, Model, Overwrite};
use serde_json::Value;

use crate::folder::{Folder, lines};

fn methods() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/golden/methods.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Some rows of the oracle's file as CSV, with their groups and weights.
fn csv(file: &Value, rows: std::ops::Range<usize>) -> String {
    let mut out = "c0,c1,c2,c3,c4,c5,c6,c7,label,region,weight\n".to_owned();
    for row in rows {
        let logits: Vec<String> =
            file["logits"][row].as_array().unwrap().iter().map(ToString::to_string).collect();
        let (label, group) = (file["labels"][row].as_u64().unwrap(), file["group"][row].as_str().unwrap());
        out += &format!("{},c{label},{group},{}\n", logits.join(","), file["row_weight"][row]);
    }
    out
}

fn with_methods() -> (Folder, Value) {
    let (folder, file) = (Folder::empty(), methods());
    let n = file["n_cal"].as_u64().unwrap() as usize;
    let all = file["labels"].as_array().unwrap().len();
    folder.write("cal.csv", csv(&file, 0..n));
    folder.write("test.csv", csv(&file, n..all));
    for (shard, rows) in [0..50, 50..51, 51..n].into_iter().enumerate() {
        folder.write(&format!("shard{shard}.csv"), csv(&file, rows));
    }
    for name in ["label_weight", "severity", "cost"] {
        folder.write(&format!("{name}.json"), file[name].to_string());
    }
    let clusters = file["cluster_of_label"].as_array().unwrap().iter().enumerate();
    let clusters: Vec<String> =
        clusters.map(|(label, cluster)| format!("c{label},group {cluster}")).collect();
    folder.write("clusters.csv", format!("class,cluster\n{}\n", clusters.join("\n")));
    (folder, file)
}

/// The columns that are no classes, and what each method is asked with.
const DROP: &str = "--drop region,weight";
const METHODS: [(&str, &str, &str); 7] = [
    ("by_class", "--by class", DROP),
    ("by_group", "--by region", "--drop weight"),
    ("by_cluster", "--by clusters.csv", DROP),
    ("row_weights", "--weights weight", "--drop region"),
    ("label_weights", "--label-weights label_weight.json", DROP),
    ("severity_risk", "--severity severity.json", DROP),
    ("cost_risk", "--cost cost.json", DROP),
];

#[test]
fn sets_are_those_of_the_oracle_and_shards_give_the_same_file() {
    let (folder, file) = with_methods();
    let mut compared = 0;
    for (method, flags, drop) in METHODS {
        let cases = file["cases"].as_array().unwrap().iter();
        for case in cases.filter(|case| case["method"] == method && case["gamma"] == 1.5) {
            let alpha = case["alpha"].as_str().unwrap();
            let calibrate = format!("--alpha {alpha} --gamma 1.5 {flags} {drop} --force");
            folder.run(&format!("calibrate cal.csv {calibrate} -o model.json")).ok();
            let ran = folder.run(&format!("predict model.json test.csv {drop}")).ok();
            for (row, (line, wanted)) in
                lines(&ran.out).iter().zip(case["sets"].as_array().unwrap()).enumerate()
            {
                let name = |label: &Value| label.as_str().unwrap()[1..].parse::<u64>().unwrap();
                let mut found: Vec<u64> = line["labels"].as_array().unwrap().iter().map(name).collect();
                found.sort_unstable();
                assert_eq!(serde_json::to_value(found).unwrap(), *wanted, "{method} {alpha}, row {row}");
            }
            for shard in 0..3 {
                folder.run(&format!("calibrate shard{shard}.csv {calibrate} --partial -o part{shard}")).ok();
            }
            folder.run("merge part2 part0 part1 -o merged.json --force").ok();
            assert_eq!(folder.text("merged.json"), folder.text("model.json"), "{method} {alpha}");
            compared += 1;
        }
    }
    assert_eq!(compared, 21);
}

#[test]
fn every_printout_says_what_is_promised() {
    let (folder, _) = with_methods();
    folder.run("calibrate cal.csv --by region --drop weight -o region.json").ok();
    insta::assert_snapshot!(folder.run("inspect region.json").seen());
    insta::assert_snapshot!(folder.run("evaluate region.json test.csv --drop weight").seen());
    insta::assert_snapshot!(
        folder.run(&format!("calibrate cal.csv --severity severity.json {DROP} -o risk.json")).seen()
    );
    insta::assert_snapshot!(folder.run(&format!("evaluate risk.json test.csv {DROP}")).seen());
    insta::assert_snapshot!(folder.run(&format!("calibrate cal.csv --pac 0.05 {DROP} -o pac.json")).seen());
    // One threshold too, whatever prints it, and for machines the same.
    let plain = "coverage is at least 1 - alpha over all rows, on average; not within each class or group";
    let chosen = "coverage is at least 1 - alpha over all rows, exactly; no law of realised coverage; not within each \
                  class or group";
    for (words, wanted) in [
        ("calibrate cal.csv --force -o plain.json", plain),
        ("evaluate plain.json test.csv", plain),
        ("tune cal.csv --alpha 0.1 --force -o tuned.json", plain),
        ("tune cal.csv --alpha 0.1 --rows all --force -o all.json", chosen),
        ("evaluate all.json test.csv", chosen),
    ] {
        let ran = folder.run(&format!("{words} {DROP}")).ok();
        assert!(ran.out.contains(&format!("promise: {wanted}\n")), "{words}: {}", ran.out);
        assert_eq!(folder.run(&format!("{words} {DROP} --json")).ok().json()["promise"], wanted, "{words}");
    }
    // Any model can be evaluated by a column, by class or by clusters.
    for by in ["region", "class", "clusters.csv"] {
        let drop = if by == "region" { "--drop weight" } else { DROP };
        let json = folder.run(&format!("evaluate plain.json test.csv --by {by} {drop} --json")).ok().json();
        let groups = json["levels"][0]["groups"].as_array().unwrap();
        let rows: u64 = groups.iter().map(|group| group["n"].as_u64().unwrap()).sum();
        assert_eq!(rows, 24, "{by}");
        let coverage: Vec<f64> = groups.iter().map(|group| group["coverage"].as_f64().unwrap()).collect();
        assert!(coverage.is_sorted(), "worst first: {coverage:?}");
    }
}

#[test]
fn a_probability_over_rows_and_a_prior_come_by_shards_too() {
    let (folder, _) = with_methods();
    folder.write("prior.csv", "c7,0.3\nc0,0.1\nc1,0.1\nc2,0.1\nc3,0.1\nc4,0.1\nc5,0.1\nc6,0.1\n");
    for (flags, drop) in [
        ("--pac 0.05", DROP),
        ("--prior prior.csv", DROP),
        ("--by region --pac 0.1 --prior prior.csv", "--drop weight"),
    ] {
        let calibrate = format!("--alpha 0.2 {flags} {drop} --force");
        folder.run(&format!("calibrate cal.csv {calibrate} -o model.json")).ok();
        for shard in 0..3 {
            folder.run(&format!("calibrate shard{shard}.csv {calibrate} --partial -o part{shard}")).ok();
        }
        folder.run("merge part1 part2 part0 -o merged.json --force").ok();
        assert_eq!(folder.text("merged.json"), folder.text("model.json"), "{flags}");
    }
}

/// Seven shards merged in several orders, one run over one file or over all shards, and a pipe.
#[test]
fn clusters_and_ranks_are_the_same_from_shards_files_and_pipes() {
    let (folder, file) = with_methods();
    let (mut logits, mut labels) = many(&file);
    // Some rows come several times, in the same shard and in others.
    for row in 0..labels.len() {
        let from = match row % 6 {
            0 => row / 60,
            1 => row - 1,
            _ => continue,
        };
        logits.copy_within(8 * from..8 * from + 8, 8 * row);
        labels[row] = labels[from];
    }
    let all = plain_csv(&logits, &labels);
    folder.write("all.csv", &all);
    let ends = [0, 1, 200, 210, 500, 501, 900, labels.len()];
    for (shard, ends) in ends.windows(2).enumerate() {
        let rows = ends[0]..ends[1];
        let csv = plain_csv(&logits[8 * rows.start..8 * rows.end], &labels[rows]);
        folder.write(&format!("s{shard}.csv"), csv);
    }
    folder.write("prior.json", "[0.3, 0.02, 0.05, 0.2, 0.1, 0.13, 0.15, 0.05]");
    for flags in [
        "--clusters --alpha 0.1",
        "--clusters 2 --alpha 0.05,0.1 --prior prior.json",
        "--truncate-ranks --alpha 0.1,0.2",
        "--truncate-ranks --pac 0.2 --score raps --seed 5 --masked never",
    ] {
        let calibrate = |words: &str| folder.run(&format!("calibrate {words} {flags} --force")).ok();
        calibrate("all.csv -o whole.json");
        let whole = folder.text("whole.json");
        calibrate("s4.csv s0.csv s1.csv s6.csv s2.csv s3.csv s5.csv -o files.json");
        assert_eq!(folder.text("files.json"), whole, "{flags}: other files in another order");
        folder.run_with(&format!("calibrate - {flags} --force -o piped.json"), all.as_bytes()).ok();
        assert_eq!(folder.text("piped.json"), whole, "{flags}: a pipe");
        for shard in 0..7 {
            calibrate(&format!("s{shard}.csv --partial -o part{shard}"));
        }
        for order in ["0 1 2 3 4 5 6", "4 0 6 1 2 5 3", "6 5 4 3 2 1 0"] {
            let parts = order.split(' ').map(|shard| format!("part{shard} ")).collect::<String>();
            folder.run(&format!("merge {parts} -o merged.json --force")).ok();
            assert_eq!(folder.text("merged.json"), whole, "{flags}: {order}");
        }
    }
    // Every row is one of those that choose or one of those that calibrate.
    let model = Model::read(&folder.file("whole.json")).unwrap();
    let choosing = model.choosing_rows.as_ref().unwrap().rows();
    assert_eq!((model.n, model.n + choosing), (labels.len() as u64 * 6 / 10, labels.len() as u64));
    // What is too few is known when all parts are there.
    folder.run("calibrate s1.csv --clusters --partial -o few").ok();
    let error = folder.run("merge few -o x.json").error();
    assert!(error.contains("of 8 classes the rarest has") && error.contains("with --by FILE"), "{error}");
    folder.run("calibrate s1.csv --clusters 2 --partial -o other").ok();
    folder.run("calibrate s1.csv --truncate-ranks --partial -o ranks").ok();
    folder.run("calibrate s1.csv --partial -o plain").ok();
    for parts in ["few other", "ranks few", "plain few", "few plain"] {
        let error = folder.run(&format!("merge {parts} -o x.json")).error();
        assert!(error.contains("ways to thresholds differ"), "{parts}: {error}");
    }
}

/// Rows of the oracle's file with a column more, which thresholds have nothing to do with.
fn with_teams(file: &Value, rows: std::ops::Range<usize>) -> String {
    let csv = csv(file, rows);
    let (heading, lines) = csv.split_once('\n').unwrap();
    let lines = lines.lines().enumerate().map(|(row, line)| format!("{line},team {}\n", row % 3));
    format!("{heading},team\n{}", lines.collect::<String>())
}

#[test]
fn rows_of_a_model_by_a_column_are_counted_by_another() {
    let (folder, file) = with_methods();
    folder.run("calibrate cal.csv --by region --drop weight -o region.json").ok();
    folder.run(&format!("calibrate cal.csv {DROP} -o plain.json")).ok();
    folder.write("teams.csv", with_teams(&file, 240..264));
    let groups = |words: &str| {
        let ran = folder.run(&format!("{words} --json")).ok().json();
        ran["levels"][0]["groups"].as_array().unwrap().clone()
    };
    let found = groups("evaluate region.json teams.csv --by team --drop weight");
    let mut names: Vec<&str> = found.iter().map(|group| group["group"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["team 0", "team 1", "team 2"]);
    // Sets go by the region: what each team holds is what its rows' own sets hold.
    let sets = lines(&folder.run("predict region.json teams.csv --drop weight,team").ok().out);
    for group in &found {
        let team: usize = group["group"].as_str().unwrap()[5..].parse().unwrap();
        let rows: Vec<usize> = (0..24).filter(|row| row % 3 == team).collect();
        let labels = rows.iter().map(|row| sets[*row]["labels"].as_array().unwrap().len());
        let covered = rows.iter().filter(|row| {
            let label = format!("c{}", file["labels"][240 + **row]);
            sets[**row]["labels"].as_array().unwrap().contains(&label.into())
        });
        assert_eq!(group["n"], rows.len());
        assert_eq!(group["average_size"], labels.sum::<usize>() as f64 / rows.len() as f64);
        assert_eq!(group["coverage"], covered.count() as f64 / rows.len() as f64);
    }
    // Shards of the rows give the same.
    folder.write("half.csv", with_teams(&file, 240..255));
    folder.write("rest.csv", with_teams(&file, 255..264));
    for half in ["half", "rest"] {
        let words =
            format!("evaluate region.json {half}.csv --by team --drop weight --partial -o {half}.part");
        folder.run(&words).ok();
    }
    assert_eq!(groups("merge half.part rest.part"), found);
    let missing = with_teams(&file, 240..264).replace("team 2", "");
    folder.write("missing.csv", missing);
    let error = folder.run("evaluate region.json missing.csv --by team --drop weight").error();
    assert!(error.contains("row 2 has nothing in `team`"), "{error}");
    let error = folder.run("evaluate region.json test.csv --by team --drop weight").error();
    assert!(error.contains("team"), "{error}");
}

/// Two of a model's groups have so few rows that their sets are full and a miss would break their law. Others of the
/// same number are not these: a few misses among many rows are nothing to them.
#[test]
fn other_groups_of_the_same_number_have_no_law_of_their_own() {
    let (folder, file) = with_methods();
    let rare = |line: &&str| !line.contains(",east,") && !line.contains(",c0,");
    let all = csv(&file, 0..240);
    let (heading, lines) = all.split_once('\n').unwrap();
    let few =
        lines.lines().filter(rare).chain(lines.lines().filter(|line| line.contains(",c0,east,")).take(1));
    folder.write("few.csv", format!("{heading}\n{}\n", few.collect::<Vec<_>>().join("\n")));
    folder.write("teams.csv", with_teams(&file, 240..264));
    folder.write("own.csv", "c0,a\nc1,b\nc2,b\nc3,b\nc4,b\nc5,b\nc6,b\nc7,b\n");
    folder.write("other.csv", "c0,a\nc1,a\nc2,a\nc3,a\nc4,b\nc5,b\nc6,b\nc7,b\n");
    for (own, drop, other) in
        [("region", "--drop weight", "--by team"), ("own.csv", "--drop region,weight,team", "--by other.csv")]
    {
        let calibrated = drop.replace(",team", "");
        let words = format!("calibrate few.csv --by {own} --alpha 0.3 {calibrated} -o model.json --force");
        let ran = folder.run(&words).ok();
        assert!(ran.err.contains("(1 row)"), "{own}: {}", ran.err);
        let evaluate = format!("evaluate model.json teams.csv {other} {drop}");
        let found = folder.run(&format!("{evaluate} --json")).ok().json();
        let groups = found["levels"][0]["groups"].as_array().unwrap();
        let first = groups.iter().find(|group| ["team 0", "a"].contains(&group["group"].as_str().unwrap()));
        let coverage = first.unwrap()["coverage"].as_f64().unwrap();
        assert!(coverage < 1.0, "{other}: a miss, which no full set has");
        let ran = folder.run(&format!("{evaluate} --expect-coverage"));
        assert_eq!(ran.code, 0, "{other}: {}", ran.err);
    }
}

/// Classes of no cluster go by the rows of all; in the others' company that is no promise to anybody.
#[test]
fn classes_of_no_cluster_are_promised_nothing_and_judged_by_nothing() {
    let (folder, file) = with_methods();
    let of_class = [Some(0), Some(0), Some(0), Some(1), Some(1), Some(1), None, None];
    let logits: Vec<f64> = (0..240)
        .flat_map(|row| file["logits"][row].as_array().unwrap())
        .map(|logit| logit.as_f64().unwrap())
        .collect();
    let labels: Vec<u32> = (0..240).map(|row| file["labels"][row].as_u64().unwrap() as u32).collect();
    let taxonomy = Taxonomy::Cluster(of_class.to_vec());
    let mut calibrator = Calibrator::new(ScoreSpec::default(), 8).unwrap().by(taxonomy).unwrap();
    calibrator.extend(Logits::new(&logits, 8).unwrap().labelled(&labels).unwrap()).unwrap();
    let names = ClassNames::new((0..8).map(|class| format!("c{class}")).collect()).unwrap();
    let model = Model::new(&calibrator.finish().unwrap(), &[Alpha::new(0.1).unwrap()], Some(names));
    model.write(&folder.file("model.json"), Overwrite::Refuse).unwrap();

    let ran = folder.run("inspect model.json").ok();
    let promise = "coverage is at least 1 - alpha within every cluster of classes (classes of no cluster are \
                   promised nothing), on average; not within each class or group of rows";
    assert!(ran.out.contains(promise), "{}", ran.out);
    let shown = folder.run("inspect model.json --json").ok().json();
    let groups = shown["levels"][0]["groups"].as_array().unwrap();
    let has_interval = |group: &Value| (group["group"].clone(), !group["coverage_interval"].is_null());
    let wanted = [("cluster 0", true), ("cluster 1", true), ("no cluster", false)];
    assert_eq!(
        groups.iter().map(has_interval).collect::<Vec<_>>(),
        wanted.map(|(name, has)| (name.into(), has))
    );

    // Rows of some classes with their logits turned round, so that the true label is far behind.
    let turned = |turned: &[&str], kept: &[&str]| {
        let mut rows = file.clone();
        for row in 240..264 {
            let class = format!("c{}", rows["labels"][row]);
            if turned.contains(&class.as_str()) {
                let logits = rows["logits"][row].as_array().unwrap().iter();
                rows["logits"][row] = logits.map(|logit| -10.0 * logit.as_f64().unwrap()).collect();
            }
        }
        let all = csv(&rows, 240..264);
        let (heading, lines) = all.split_once('\n').unwrap();
        let is_kept = |line: &&str| kept.iter().any(|class| line.contains(&format!(",{class},")));
        let lines: String = lines.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
        folder.write("turned.csv", format!("{heading}\n{}", lines.repeat(8)));
    };
    let every = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
    let gate =
        |by: &str| folder.run(&format!("evaluate model.json turned.csv {DROP} {by} --expect-coverage"));
    turned(&every[6..], &every);
    let ran = gate("");
    assert_eq!(ran.code, 0, "{}", ran.err);
    // Asked for by class, they are held to the level as all are that are promised nothing.
    let ran = gate("--by class");
    assert!(ran.code == 1 && ran.err.contains("of the group c6"), "{}", ran.err);
    turned(&every[..3], &every);
    let ran = gate("");
    assert!(ran.code == 1 && ran.err.contains("of the group cluster 0 at"), "{}", ran.err);
    assert!(ran.err.contains("makes one of 2 groups undercut"), "{}", ran.err);
    turned(&[], &every[6..]);
    let error = gate("").error();
    assert!(error.contains("no law that coverage"), "{error}");
}

#[test]
fn clusters_of_no_class_are_an_error() {
    let folder = Folder::empty();
    let classes = 60;
    let heading: String = (0..classes).map(|class| format!("c{class},")).collect();
    let row = |label: usize| {
        (0..classes).map(|class| if class == label { "1," } else { "0," }).collect::<String>()
            + &format!("c{label}\n")
    };
    // Enough rows of each class for a plan, but not for a class among those that cluster.
    let rows: String = (0..9 * classes).map(|place| row(place % classes)).collect();
    folder.write("cal.csv", format!("{heading}label\n{rows}"));
    let error = folder.run("calibrate cal.csv --clusters --alpha 0.1 -o model.json").error();
    assert!(
        error.contains("too few rows of each class, or classes, to find clusters at alpha = 0.1"),
        "{error}"
    );
    assert!(error.contains("of 60 classes the rarest has 9 rows"), "{error}");
}

#[test]
fn the_name_of_a_column_cannot_write_to_the_terminal() {
    let (folder, file) = with_methods();
    folder.write("odd.csv", csv(&file, 0..240).replace("region", "re\u{1b}[31mgion"));
    folder.write("odd-test.csv", csv(&file, 240..264).replace("region", "re\u{1b}[31mgion"));
    for words in [
        "calibrate odd.csv --by re\u{1b}[31mgion --drop weight -o odd.json",
        "inspect odd.json",
        "evaluate odd.json odd-test.csv --drop weight",
    ] {
        let ran = folder.run(words).ok();
        assert!(ran.out.contains("within every group of `re\\u{1b}[31mgion`"), "{words}: {}", ran.out);
        assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{words}");
    }
}

#[test]
fn the_gate_holds_every_group_to_its_own_law() {
    let (folder, file) = with_methods();
    folder.run("calibrate cal.csv --by region --drop weight -o model.json").ok();
    folder.run("evaluate model.json test.csv --drop weight --expect-coverage").ok();
    // Rows of one region whose logits are turned round, so that the true label is far behind.
    let mut turned = file.clone();
    for row in 0..240 {
        if turned["group"][row] == "west" {
            let logits = turned["logits"][row].as_array().unwrap().iter();
            let logits: Vec<f64> = logits.map(|logit| -10.0 * logit.as_f64().unwrap()).collect();
            turned["logits"][row] = logits.into();
        }
    }
    folder.write("turned.csv", csv(&turned, 0..240));
    let ran = folder.run("evaluate model.json turned.csv --drop weight --expect-coverage --allow-seen");
    assert!(ran.err.contains("no law"), "rows that calibrated have none: {}", ran.err);
    let west: String = csv(&turned, 0..240)
        .lines()
        .filter(|line| !line.contains("east") && !line.contains("north"))
        .map(|line| format!("{line}\n"))
        .collect();
    folder.write("west.csv", west);
    let ran = folder.run("evaluate model.json west.csv --drop weight --expect-coverage");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("of the group west at alpha = 0.1 is below"), "{}", ran.err);
    folder.run(&format!("calibrate cal.csv --severity severity.json {DROP} -o risk.json")).ok();
    for flag in ["--p-values", "--all-p-values"] {
        let error = folder.run(&format!("predict risk.json test.csv {DROP} {flag}")).error();
        let wanted =
            "error: risk.json: bounds an expected loss, and p-values cannot be had with risk control";
        assert!(error.contains(wanted), "{error}");
    }
    // A bound on a loss says nothing of coverage, by whatever rows are counted.
    for (by, drop) in
        [("", DROP), ("--by class", DROP), ("--by clusters.csv", DROP), ("--by region", "--drop weight")]
    {
        let evaluate = format!("evaluate risk.json test.csv {by} {drop}");
        let error = folder.run(&format!("{evaluate} --expect-coverage")).error();
        assert!(error.contains("no law that coverage"), "{by}: {error}");
        let seen = folder.run(&evaluate).ok().out;
        assert!(!seen.contains("short of"), "{by}: {seen}");
    }
}

#[test]
fn clusters_ranks_and_weights_are_found() {
    let (folder, _) = with_methods();
    let drop = DROP;
    folder.run(&format!("calibrate cal.csv --truncate-ranks --alpha 0.2 {drop} -o ranks.json")).ok();
    let file: Value = serde_json::from_str(&folder.text("ranks.json")).unwrap();
    assert_eq!((&file["n"], file["largest_ranks"].as_array().unwrap().len()), (&Value::from(144), 8));
    let error = folder.run(&format!("calibrate cal.csv --clusters --alpha 0.1 {drop} -o x.json")).error();
    assert!(error.contains("too few rows of each class"), "{error}");
    folder.run(&format!("calibrate cal.csv --clusters 2 --alpha 0.05 {drop} -o clusters.json")).error();
    folder.run(&format!("weigh cal.csv test.csv {drop} -o weights.json")).ok();
    let ran = folder.run(&format!("calibrate cal.csv --label-weights weights.json {drop} -o w.json")).ok();
    assert!(ran.out.contains("approximately, as the weights are estimated"), "{}", ran.out);
    folder.write("prior.csv", "c7,0.3\nc0,0.1\nc1,0.1\nc2,0.1\nc3,0.1\nc4,0.1\nc5,0.1\nc6,0.1\n");
    folder.run(&format!("calibrate cal.csv --prior prior.csv {drop} -o prior.json")).ok();
    folder.run(&format!("predict prior.json test.csv {drop}")).ok();
}

/// The rows of the oracle's file several times over, slightly moved, so that there are enough of each class.
fn many(file: &Value) -> (Vec<f64>, Vec<u32>) {
    let (mut logits, mut labels) = (Vec::new(), Vec::new());
    for copy in 0..5 {
        for row in 0..240 {
            let of_row = file["logits"][row].as_array().unwrap().iter();
            logits.extend(
                of_row.map(|logit| logit.as_f64().unwrap() + f64::from(copy * (1 + row as i32)) / 4096.0),
            );
            labels.push(file["labels"][row].as_u64().unwrap() as u32);
        }
    }
    (logits, labels)
}

/// Rows of eight classes as CSV.
fn plain_csv(logits: &[f64], labels: &[u32]) -> String {
    let lines = logits.chunks(8).zip(labels).map(|(row, label)| {
        let row: Vec<String> = row.iter().map(ToString::to_string).collect();
        format!("{},c{label}\n", row.join(","))
    });
    format!("c0,c1,c2,c3,c4,c5,c6,c7,label\n{}", lines.collect::<String>())
}

/// Of the rows that the library deals out, at the strictest of the levels.
fn dealt(logits: &[f64], labels: &[u32], choose: Choose) -> Dealt<EntmaxScore> {
    let mut dealer = Dealer::new(EntmaxScore::default(), 8, choose).unwrap();
    dealer.extend(Logits::new(logits, 8).unwrap().labelled(labels).unwrap()).unwrap();
    dealer.finish(Alpha::new(0.1).unwrap()).unwrap()
}

#[test]
fn clusters_and_ranks_are_those_that_the_library_finds() {
    let (folder, file) = with_methods();
    let (logits, labels) = many(&file);
    folder.write("many.csv", plain_csv(&logits, &labels));
    for (flag, choose, within) in [
        ("--clusters 2", Choose::Clusters(Some(2)), "cluster of classes"),
        ("--clusters", Choose::Clusters(None), "cluster of classes"),
        ("--truncate-ranks", Choose::Ranks, "class"),
    ] {
        let ran =
            folder.run(&format!("calibrate many.csv {flag} --alpha 0.2,0.1 --force -o model.json")).ok();
        assert!(ran.out.contains(&format!("within every {within}")), "{}", ran.out);
        let dealt = dealt(&logits, &labels, choose);
        let (model, calibration) = (Model::read(&folder.file("model.json")).unwrap(), &dealt.calibration);
        assert_eq!(
            (&model.scheme, model.ranks.as_ref()),
            (calibration.scheme(), calibration.ranks()),
            "{flag}"
        );
        for level in &model.levels {
            assert_eq!(&level.thresholds, calibration.at(level.alpha()).0.thresholds(), "{flag}");
        }
        assert_eq!((model.n, &model.calibrating_rows), (calibration.n(), calibration.rows()), "{flag}");
        assert_eq!(model.choosing_rows, Some(dealt.choosing.clone()), "{flag}");
        // Rows that chose are as little new as those that calibrated.
        let choosing = (0..labels.len()).filter(|row| {
            let of_row = Logits::new(&logits[8 * row..8 * row + 8], 8).unwrap();
            dealt.choosing.contains(row_fingerprints(of_row)[0])
        });
        let choosing: Vec<usize> = choosing.collect();
        assert!(choosing.len() > 20, "{flag}: {}", choosing.len());
        let of_rows: Vec<f64> =
            choosing.iter().flat_map(|row| &logits[8 * row..8 * row + 8]).copied().collect();
        let truth: Vec<u32> = choosing.iter().map(|row| labels[*row]).collect();
        folder.write("choosing.csv", plain_csv(&of_rows, &truth));
        for data in ["many.csv", "choosing.csv"] {
            let error = folder.run(&format!("evaluate model.json {data}")).error();
            assert!(error.contains("also calibrated or tuned this model"), "{flag}: {error}");
        }
    }
}

/// What calibrates and what is predicted has the logarithms of the shares taken from it, by hand or by the model.
#[test]
fn a_prior_is_taken_out_of_the_rows_that_are_predicted() {
    let (folder, file) = with_methods();
    let shares = [0.3, 0.02, 0.05, 0.2, 0.1, 0.13, 0.15, 0.05];
    folder.write("prior.json", serde_json::to_string(&shares).unwrap());
    let prior = Prior::new(shares.to_vec()).unwrap();
    let by_hand = |rows: std::ops::Range<usize>| {
        let of = |row: usize| file["logits"][row].as_array().unwrap();
        let logits: Vec<f64> = rows.clone().flat_map(of).map(|logit| logit.as_f64().unwrap()).collect();
        let mut adjusted = Vec::new();
        prior.adjust(Logits::new(&logits, 8).unwrap(), &mut adjusted).unwrap();
        let labels: Vec<u32> = rows.map(|row| file["labels"][row].as_u64().unwrap() as u32).collect();
        plain_csv(&adjusted, &labels)
    };
    folder.write("cal-by-hand.csv", by_hand(0..240));
    folder.write("test-by-hand.csv", by_hand(240..264));
    folder.run(&format!("calibrate cal.csv --prior prior.json {DROP} -o model.json")).ok();
    folder.run("calibrate cal-by-hand.csv -o by-hand.json").ok();
    let sets = |words: &str| folder.run(&format!("predict {words}")).ok().out;
    let wanted = sets("by-hand.json test-by-hand.csv");
    assert_eq!(sets(&format!("model.json test.csv {DROP}")), wanted);
    assert_ne!(sets(&format!("by-hand.json test.csv {DROP}")), wanted, "it makes a difference");
    let rows = |words: &str| folder.run(&format!("evaluate {words} --json")).ok().json()["levels"].clone();
    assert_eq!(rows(&format!("model.json test.csv {DROP}")), rows("by-hand.json test-by-hand.csv"));
}

#[test]
fn weights_of_labels_are_the_librarys_by_either_method() {
    let (folder, file) = with_methods();
    let numbers = |rows: std::ops::Range<usize>| -> Vec<f64> {
        let of = |row: usize| file["logits"][row].as_array().unwrap();
        rows.flat_map(of).map(|logit| logit.as_f64().unwrap()).collect()
    };
    let (known, target) = (numbers(0..240), numbers(240..264));
    let labels: Vec<u32> = (0..240).map(|row| file["labels"][row].as_u64().unwrap() as u32).collect();
    let source = Logits::new(&known, 8).unwrap().labelled(&labels).unwrap();
    for (name, shown, method) in [("em", "EM", LabelShift::Em), ("bbse", "BBSE", LabelShift::Bbse)] {
        let ran = folder.run(&format!("weigh cal.csv test.csv --method {name} {DROP} -o {name}.json")).ok();
        assert!(
            ran.out.starts_with(&format!("weights of labels by {shown}, from 240 rows and 24 rows")),
            "{}",
            ran.out
        );
        let written: Value = serde_json::from_str(&folder.text(&format!("{name}.json"))).unwrap();
        let wanted = label_weights(source, Logits::new(&target, 8).unwrap(), method).unwrap();
        assert_eq!(written["weights"], serde_json::to_value(wanted).unwrap(), "{name}");
        let words = format!("calibrate cal.csv --label-weights {name}.json {DROP} -o {name}-model.json");
        let ran = folder.run(&words).ok();
        assert!(ran.out.contains("approximately, as the weights are estimated"), "{}", ran.out);
    }
    assert_ne!(folder.text("em-model.json"), folder.text("bbse-model.json"));
}

#[test]
fn a_class_or_group_with_too_few_rows_is_warned_of() {
    let (folder, file) = with_methods();
    let without: String = csv(&file, 0..240)
        .lines()
        .enumerate()
        // The head names the class too.
        .filter(|(place, line)| *place == 0 || !line.contains(",c7,"))
        .map(|(_, line)| line)
        .map(|line| format!("{line}\n"))
        .collect();
    folder.write("without.csv", without);
    let ran = folder.run(&format!("calibrate without.csv --by class --alpha 0.2 {DROP} -o model.json")).ok();
    let wanted =
        "too few rows for c7 (0 rows): their labels will be in every set; each needs at least 4 rows";
    assert!(ran.err.contains(wanted), "{}", ran.err);
    let sets = lines(&folder.run(&format!("predict model.json test.csv {DROP}")).ok().out);
    assert!(sets.iter().all(|set| set["labels"].as_array().unwrap().contains(&"c7".into())));
    let (all, east) = (csv(&file, 0..240), |line: &&str| line.contains(",east,"));
    let few = all.lines().filter(|line| !east(line)).chain(all.lines().filter(east).take(3));
    folder.write("few.csv", few.collect::<Vec<_>>().join("\n"));
    let drop = "--drop weight";
    let ran = folder.run(&format!("calibrate few.csv --by region --alpha 0.2 {drop} -o region.json")).ok();
    let wanted = "too few rows for east (3 rows): sets of their rows will hold every label; each needs at least 4 rows";
    assert!(ran.err.contains(wanted), "{}", ran.err);
    let sets = lines(&folder.run(&format!("predict region.json test.csv {drop}")).ok().out);
    for (row, set) in sets.iter().enumerate() {
        assert!(file["group"][240 + row] != "east" || set["size"] == 8, "row {row}: {set}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let (folder, file) = with_methods();
    folder.run("calibrate cal.csv --by region --drop weight -o model.json").ok();
    folder.run("calibrate cal.csv --by class --pac 0.05 --alpha 0.2 --drop region,weight -o pac.json").ok();
    assert!(folder.text("pac.json").contains("for each of them by itself"));
    folder.write("south.csv", csv(&file, 240..264).replace("west", "south"));
    folder.write("short.json", "[1, 2, 3]");
    folder.write("diagonal.json", "[[1,1],[1,0]]");
    folder.write("zero.csv", "c0,1\nc1,1\nc2,1\nc3,0\nc4,1\nc5,1\nc6,1\nc7,1\n");
    folder.write("gap.csv", "c0,1\nc1,1\nc2,1\nc4,1\nc5,1\nc6,1\nc7,1\n");
    folder.write("none.csv", csv(&file, 0..9).replace(",4\n", ",-4\n"));
    folder.write("nan.csv", csv(&file, 0..9).replace(",4\n", ",NaN\n"));
    let zero = |line: &str| format!("{},{}\n", line.rsplit_once(',').unwrap().0, "0");
    folder.write(
        "zeros.csv",
        csv(&file, 0..9).lines().map(zero).collect::<String>().replacen(",0", ",weight", 1),
    );
    let mut costs = file["cost"].clone();
    costs[5][5] = 0.25.into();
    folder.write("own.json", costs.to_string());
    folder.run("calibrate cal.csv --weights weight --drop region -o weights.json").ok();
    folder.write("minus.json", "[1, 1, -1, 1, 1, 1, 1, 1]");
    folder.write("none.json", "[0, 0, 0, 0, 0, 0, 0, 0]");
    folder.write("nan-weight.csv", "c0,1\nc1,1\nc2,1\nc3,1\nc4,1\nc5,NaN\nc6,1\nc7,1\n");
    for (words, wanted) in [
        ("predict model.json south.csv --drop weight", "the group `south` is none of those that calibrated"),
        ("evaluate model.json south.csv --drop weight", "the group `south` is none of those that calibrated"),
        ("predict weights.json none.csv --drop region", "weight of row 0 must be a finite number"),
        ("evaluate weights.json nan.csv --drop region", "must be a finite number of at least 0, got NaN"),
        (
            "calibrate cal.csv --label-weights minus.json --drop region,weight -o x.json",
            "minus.json: the weight of the class `c2` must be a finite number of at least 0, got -1",
        ),
        (
            "calibrate cal.csv --label-weights nan-weight.csv --drop region,weight -o x.json",
            "nan-weight.csv: the weight of the class `c5` must be a finite number of at least 0, got NaN",
        ),
        (
            "calibrate cal.csv --label-weights none.json --drop region,weight -o x.json",
            "none.json: at least one weight must be positive, and all are 0",
        ),
        (
            "calibrate cal.csv --severity none.json --drop region,weight -o x.json",
            "none.json: at least one severity must be positive, and all are 0",
        ),
        ("predict model.json test.csv --drop weight,region", "region"),
        ("calibrate cal.csv --weights region --drop weight -o x.json", "is not a number"),
        (
            "calibrate none.csv --weights weight --drop region -o x.json",
            "weight of row 0 must be a finite number",
        ),
        ("calibrate cal.csv --severity short.json --drop region,weight -o x.json", "wanted 8 values, got 3"),
        (
            "calibrate cal.csv --cost diagonal.json --drop region,weight -o x.json",
            "wanted 8 rows of 8 numbers",
        ),
        (
            "calibrate cal.csv --prior zero.csv --drop region,weight -o x.json",
            "zero.csv: the prior of the class `c3` must be a positive number, got 0",
        ),
        (
            "calibrate nan.csv --weights weight --drop region -o x.json",
            "must be a finite number of at least 0, got NaN",
        ),
        (
            "calibrate zeros.csv --weights weight --drop region -o x.json",
            "the column `weight`: at least one weight must be positive, and all are 0",
        ),
        (
            "calibrate cal.csv --cost own.json --drop region,weight -o x.json",
            "own.json: the cost of the true label of the class `c5` must be 0, got 0.25",
        ),
        ("calibrate cal.csv --by gap.csv --drop region,weight -o x.json", "the class `c3` is left out"),
        ("calibrate cal.csv --by class --weights weight --drop region -o x.json", "cannot be used with"),
        ("calibrate cal.csv --weights weight --thresholds-only --drop region -o x.json", "need the scores"),
        ("calibrate cal.csv --by label --drop region,weight -o x.json", "`label` is the true label"),
        ("predict pac.json test.csv --drop region,weight --p-values", "for which there are no p-values"),
        ("weigh cal.csv cal.csv --drop region,weight -o x.json", "are the same file"),
    ] {
        let error = folder.run(words).error();
        assert!(error.contains(wanted), "{words}: {error}");
    }
    let few = folder.run("calibrate cal.csv --by class --alpha 0.01 --drop region,weight -o few.json").ok();
    assert!(few.err.contains("too few rows for c0 (") && few.err.contains("at least 99 rows"), "{}", few.err);
    folder.write("severe.json", "[9, 9, 9, 9, 9, 9, 9, 9000]");
    let full = folder.run("calibrate cal.csv --severity severe.json --drop region,weight -o full.json").ok();
    assert!(full.err.contains("every set will hold every label"), "{}", full.err);
    // Weights of any size, and nothing but the file where that is standard output.
    folder.write("tiny.csv", csv(&file, 0..240).replace(",4\n", ",5e-324\n"));
    let model = folder.run("calibrate tiny.csv --weights weight --drop region -o -").ok();
    assert!(model.out.starts_with('{') && model.out.ends_with("}\n"), "{}", model.out);
}

/// A model of one threshold promises groups nothing of their own; whoever counts by group and asks for the gate is told
/// all the same.
#[test]
fn the_gate_holds_groups_without_a_law_to_the_level() {
    let (folder, file) = with_methods();
    folder.run(&format!("calibrate cal.csv {DROP} -o model.json")).ok();
    folder.run("evaluate model.json test.csv --by region --drop weight --expect-coverage").ok();
    let n = file["n_cal"].as_u64().unwrap() as usize;
    let all = file["labels"].as_array().unwrap().len();
    let mut turned = file.clone();
    let mut rows = csv(&turned, 0..0);
    for copy in 0..20 {
        for row in n..all {
            let logits = file["logits"][row].as_array().unwrap().iter();
            let sign = if file["group"][row] == "west" { -10.0 } else { 1.0 };
            let logits = logits.map(|logit| sign * logit.as_f64().unwrap() + 1e-3 * f64::from(copy));
            turned["logits"][row] = logits.collect::<Vec<_>>().into();
        }
        rows += csv(&turned, n..all).split_once('\n').unwrap().1;
    }
    folder.write("turned.csv", rows);
    let ran = folder.run("evaluate model.json turned.csv --by region --drop weight --expect-coverage");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("of the group west"), "{}", ran.err);
}

#[test]
fn files_per_class_go_by_name() {
    let (folder, file) = with_methods();
    let n = file["n_cal"].as_u64().unwrap() as usize;
    let all = file["labels"].as_array().unwrap().len();
    let reversed = |rows: std::ops::Range<usize>| {
        let turn = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            let (logits, rest) = cells.split_at(8);
            let logits: Vec<&str> = logits.iter().rev().copied().collect();
            format!("{},{}\n", logits.join(","), rest.join(","))
        };
        csv(&file, rows).lines().map(turn).collect::<String>()
    };
    folder.write("reversed-cal.csv", reversed(0..n));
    folder.write("reversed-test.csv", reversed(n..all));
    let error = folder.run(&format!("weigh cal.csv reversed-test.csv {DROP} -o w.json")).error();
    assert!(error.contains("class 0 is `c7` here and `c0` elsewhere"), "{error}");
    folder.run(&format!("weigh cal.csv test.csv {DROP} -o w.json")).ok();
    folder.run(&format!("weigh reversed-cal.csv reversed-test.csv {DROP} -o reversed.json")).ok();
    folder.run(&format!("calibrate cal.csv --label-weights w.json {DROP} -o one.json")).ok();
    folder.run(&format!("calibrate cal.csv --label-weights reversed.json {DROP} -o other.json")).ok();
    let thresholds = |name: &str| {
        let file: Value = serde_json::from_str(&folder.text(name)).unwrap();
        file["levels"][0]["thresholds"].clone()
    };
    assert_eq!(thresholds("one.json"), thresholds("other.json"));
    for (text, says) in [
        (
            r#"{"c0":1,"c1":1,"c2":1,"c3":1,"c4":1,"c5":1,"c6":1,"c7":1,"c0":2}"#,
            "the class `c0` occurs twice",
        ),
        ("[1, 1, 1, null, 1, 1, 1, 1]", "the class `c3` has `null`, not a number"),
    ] {
        folder.write("bad.json", text);
        let error = folder.run(&format!("calibrate cal.csv --severity bad.json {DROP} -o x.json")).error();
        assert!(error.contains(says), "{error}");
    }
    let error = folder.run(&format!("calibrate cal.csv --severity w.json {DROP} -o x.json")).error();
    assert!(error.contains("weights of labels"), "{error}");
}

#[test]
fn a_column_that_no_row_is_labelled_with_is_named() {
    let (folder, _) = with_methods();
    let ran = folder.run("calibrate cal.csv --drop region -o model.json").ok();
    assert!(ran.err.contains("no row has the label `weight`"), "{}", ran.err);
    let ran = folder.run(&format!("calibrate cal.csv {DROP} -o plain.json")).ok();
    assert!(!ran.err.contains("no row has the label"), "{}", ran.err);
}

/// A model by region knows three groups of rows, more than there are clusters of classes.
#[test]
fn rows_are_counted_by_clusters_of_classes_whatever_thresholds_go_by() {
    let (folder, _) = with_methods();
    folder.write("two.csv", "c0,a\nc1,a\nc2,a\nc3,a\nc4,b\nc5,b\nc6,b\nc7,b\n");
    for (_, flags, drop) in METHODS {
        folder.run(&format!("calibrate cal.csv {flags} {drop} -o model.json --force")).ok();
        let ran = folder.run(&format!("evaluate model.json test.csv --by two.csv {drop} --json")).ok();
        let mut groups: Vec<String> = ran.json()["levels"][0]["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|group| group["group"].as_str().unwrap().to_owned())
            .collect();
        groups.sort();
        assert_eq!(groups, ["a", "b"], "{flags}");
    }
}

#[test]
fn a_column_of_another_length_is_called_by_its_name() {
    use crate::written::{npy, zip};
    let folder = Folder::empty();
    let logits: Vec<u8> = [2.0_f32, 1.0, 0.5, 1.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let data = zip(
        &[
            ("logits.npy", npy("<f4", false, &[2, 2], &logits)),
            ("labels.npy", npy("<i4", false, &[2], &[0; 8])),
            ("region.npy", npy("<i4", false, &[3], &[0; 12])),
        ],
        false,
        false,
    );
    folder.write("cal.npz", data);
    for flag in ["--by", "--weights"] {
        let message = folder.run(&format!("calibrate cal.npz {flag} region -o model.json")).error();
        assert!(message.contains("3 values of `region` for 2 rows of logits"), "{flag}: {message}");
        assert!(!message.contains("labels"), "{flag}: {message}");
    }
}

/// One reader of clusters for all that ask: what one refuses, none takes.
#[test]
fn a_file_of_clusters_is_read_alike_everywhere() {
    let (folder, _) = with_methods();
    folder.run(&format!("calibrate cal.csv {DROP} -o model.json")).ok();
    folder.write("gap.csv", "class,cluster\nc0,a\nc1,a\nc2,a\nc3,\nc4,b\nc5,b\nc6,b\nc7,b\n");
    folder.write("list.json", r#"["a", "a", "a", ["b"], "b", "b", "b", "b"]"#);
    folder.write("off.csv", "c_0,a\nc1,a\nc2,a\nc3,a\nc4,b\nc5,b\nc6,b\nc7,b\n");
    std::fs::create_dir(folder.file("clusters")).unwrap();
    for (by, wanted) in [
        ("gap.csv", "gap.csv: line 5: the class `c3` has no cluster"),
        ("list.json", "list.json: the class `c3` has a list for its cluster; wanted is a name or a number"),
        (
            "off.csv",
            "off.csv: the class `c0` is left out; line 1, which begins with `c_0`, was taken for a heading",
        ),
        ("gone.csv", "gone.csv: No such file"),
        ("gone.tsv", "gone.tsv: No such file"),
        ("gone.JSON", "gone.JSON: No such file"),
        ("clusters/gone", "clusters/gone: No such file"),
    ] {
        for words in [
            format!("calibrate cal.csv --by {by} {DROP} -o x.json"),
            format!("evaluate model.json test.csv --by {by} {DROP}"),
            format!("plan cal.csv --by {by} {DROP}"),
        ] {
            let error = folder.run(&words).error();
            assert!(error.contains(wanted), "{words}: {error}");
        }
    }
    folder.write("numbers", "c0,1\nc1,1\nc2,1\nc3,\"a, b\"\nc4,\"a, b\"\nc5,2\nc6,2\nc7,2\n");
    for words in ["calibrate cal.csv -o x.json", "evaluate model.json test.csv", "plan cal.csv"] {
        let seen = folder.run(&format!("{words} --by numbers {DROP}")).ok().out;
        assert!(["cluster 1", "cluster 2", "a, b"].iter().all(|name| seen.contains(name)), "{words}: {seen}");
    }
}

#[test]
fn clusters_keep_the_names_that_were_given_them() {
    let (folder, _) = with_methods();
    folder.write("named.csv", "c0,pets\nc1,pets\nc2,pets\nc3,pets\nc4,7\nc5,7\nc6,7\nc7,7\n");
    folder.run(&format!("calibrate cal.csv --by named.csv {DROP} -o model.json")).ok();
    for shard in 0..3 {
        let words = format!("calibrate shard{shard}.csv --by named.csv {DROP} --partial -o part{shard}");
        folder.run(&words).ok();
    }
    folder.run("merge part1 part2 part0 -o merged.json").ok();
    assert_eq!(folder.text("merged.json"), folder.text("model.json"));
    for shown in ["inspect merged.json".to_owned(), format!("evaluate merged.json test.csv {DROP}")] {
        let seen = folder.run(&shown).ok().out;
        assert!(seen.contains("pets") && seen.contains("cluster 7") && !seen.contains("cluster 0"), "{seen}");
    }
    let short = folder.text("model.json").replace("\"cluster 7\"", "\"cluster 7\",\"owls\"");
    folder.write("short.json", short);
    folder.run("inspect short.json").error();
}
