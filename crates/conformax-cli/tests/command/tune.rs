//! `tune`: the command's choice is the library's, and no row does two jobs.

use conformax::{
    Alpha, Draw, InvProbScore, Masked, ScoreSpec, TuneOn, Tuner, Tuning, TuningSplit, entmax_grid, raps_grid,
};
use conformax_io::{Model, Overwrite, SelectionRecord};

use crate::folder::{CLASSES, Folder, Rows};

#[test]
fn shows_every_candidate() {
    let folder = Folder::with_data();
    insta::assert_snapshot!(folder.run("tune cal.npz --alpha 0.1 -o model.json").seen());
    insta::assert_snapshot!(
        folder.run("tune cal.npz --over raps --grid 0.01:1,0.1:5 --json -o b.json").seen()
    );
}

#[test]
fn chooses_what_the_library_chooses() {
    let (folder, rows) = (Folder::with_data(), Rows::new(200, 1));
    let split = TuningSplit::new(200, 0.4, 3).unwrap();
    let (tuning, calibrating) = (rows.take(&split.tuning), rows.take(&split.calibrating));
    let entmax = entmax_grid().into_iter().map(ScoreSpec::Entmax).collect::<Vec<_>>();
    let raps = raps_grid(CLASSES, Draw::Seeded(3)).into_iter().map(ScoreSpec::Raps).collect::<Vec<_>>();
    for (over, grid) in [("gamma", entmax), ("raps", raps)] {
        let wanted = conformax::tune(TuneOn {
            grid: &grid,
            tuning: tuning.as_logits().labelled(&tuning.labels).unwrap(),
            calibrating: calibrating.as_logits().labelled(&calibrating.labels).unwrap(),
            alpha: Alpha::new(0.15).unwrap(),
            method: Tuning::Valid,
            masked: Masked::Allowed,
        })
        .unwrap();
        folder.run(&format!("tune cal.npz --alpha 0.15 --seed 3 --over {over} -o {over}.json")).ok();
        let model = Model::read(&folder.file(&format!("{over}.json"))).unwrap();
        let record = model.tuning.as_ref().unwrap();
        assert_eq!(record.choice, wanted.choice, "{over}");
        assert_eq!(model.evidence.as_ref(), Some(wanted.calibration.evidence()), "{over}");
        assert_eq!((record.n, model.n), (80, 120));
    }
}

#[test]
fn rows_that_tuned_cannot_test_either() {
    let folder = Folder::with_data();
    folder.run("tune cal.npz -o model.json").ok();
    let message = folder.run("evaluate model.json cal.npz").error();
    assert!(message.contains("200 of 200 rows also calibrated or tuned this model"), "{message}");
}

#[test]
fn refuses_grids_it_cannot_read() {
    let folder = Folder::with_data();
    for (words, wanted) in [
        ("--grid 1.5,x", "`x` in --grid is not a gamma"),
        ("--grid 0.5", "gamma must lie between 1 and 16"),
        ("--over raps --grid 0.1", "LAMBDA:K_REG"),
        ("--over raps --grid=-1:5", "lambda must be"),
        ("--tuning-fraction 1", "fraction"),
    ] {
        let message = folder.run(&format!("tune cal.npz {words} -o model.json")).error();
        assert!(message.contains(wanted), "{words}: {message}");
        assert_eq!(folder.names(), ["cal.npz", "test.npz"]);
    }
}

#[test]
fn counts_rows_of_text_first_and_refuses_a_pipe() {
    let folder = Folder::empty();
    let line = |row: usize| format!("{},{},{}\n", row % 5, row % 3, ["a", "b"][row % 2]);
    let text = String::from("a,b,label\n") + &(0..40).map(line).collect::<String>();
    folder.write("cal.csv", &text);
    folder.run("tune cal.csv --alpha 0.2 -o model.json").ok();
    let message = folder.run_with("tune - -o other.json", text.as_bytes()).error();
    assert!(message.contains("save it to a file"), "{message}");
}

#[test]
fn all_rows_choose_and_calibrate_as_in_the_library() {
    let (folder, rows) = (Folder::with_data(), Rows::new(200, 1));
    let labelled = rows.as_logits().labelled(&rows.labels).unwrap();
    let entmax = entmax_grid().into_iter().map(ScoreSpec::Entmax).collect::<Vec<_>>();
    let raps = raps_grid(CLASSES, Draw::Seeded(3)).into_iter().map(ScoreSpec::Raps).collect::<Vec<_>>();
    for (over, grid) in [("gamma", entmax), ("raps", raps)] {
        let mut tuner = Tuner::new(grid, CLASSES, Alpha::new(0.15).unwrap()).unwrap();
        tuner.extend(labelled).unwrap();
        let mut pairs = tuner.finish_selecting().unwrap();
        pairs.extend(labelled).unwrap();
        let (wanted, wins) = pairs.finish().unwrap();
        folder
            .run(&format!("tune cal.npz --alpha 0.15 --seed 3 --over {over} --rows all -o {over}.json"))
            .ok();
        let model = Model::read(&folder.file(&format!("{over}.json"))).unwrap();
        let record = model.selection.as_ref().unwrap();
        assert_eq!(record.selection.rivals(), wanted.rivals(), "{over}");
        assert_eq!(record.wins, Some(wins), "{over}");
        assert_eq!((model.n, model.tuning.is_none()), (200, true));
        let sets = wanted.predictor().predict(Rows::new(300, 2).as_logits()).unwrap();
        let out = folder.run(&format!("predict {over}.json test.npz")).ok().out;
        assert!(written_sets(&out).eq(sets.iter()), "{over}");
    }
}

/// The command makes none, and reads those that the library makes.
#[test]
fn a_mix_of_scores_predicts_and_is_judged_as_in_the_library() {
    let (folder, rows) = (Folder::with_data(), Rows::new(200, 1));
    let labelled = rows.as_logits().labelled(&rows.labels).unwrap();
    let entmax = entmax_grid().into_iter().map(ScoreSpec::Entmax);
    let grid = entmax.step_by(4).chain([ScoreSpec::InvProb(InvProbScore)]).collect();
    let mut tuner = Tuner::new(grid, CLASSES, Alpha::new(0.15).unwrap()).unwrap();
    tuner.extend(labelled).unwrap();
    let mut pairs = tuner.finish_selecting().unwrap();
    pairs.extend(labelled).unwrap();
    let (selection, wins) = pairs.finish().unwrap();
    let model = Model::of_selection(SelectionRecord { selection: selection.clone(), wins: Some(wins) }, None);
    model.write(&folder.file("mix.json"), Overwrite::Refuse).unwrap();
    insta::assert_snapshot!(folder.run("inspect mix.json").seen());
    let test = Rows::new(300, 2);
    let sets = selection.predictor().predict(test.as_logits()).unwrap();
    assert!(written_sets(&folder.run("predict mix.json test.npz").ok().out).eq(sets.iter()));
    let shown = folder.run("evaluate mix.json test.npz --json").ok().json();
    let covered = sets.iter().zip(&test.labels).filter(|(set, label)| set.contains(label)).count();
    assert_eq!(shown["levels"][0]["coverage"], covered as f64 / 300.0, "{shown}");
}

/// The sets that the command wrote as lines of JSON.
fn written_sets(out: &str) -> impl Iterator<Item = Vec<u32>> {
    out.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["labels"].as_array().unwrap().iter().map(|label| label.as_u64().unwrap() as u32).collect()
    })
}

#[test]
fn shows_who_is_alive_and_who_decides() {
    let folder = Folder::with_data();
    insta::assert_snapshot!(folder.run("tune cal.npz --rows all -o model.json").seen());
    insta::assert_snapshot!(folder.run("inspect model.json").seen());
    insta::assert_snapshot!(folder.run("evaluate model.json test.npz").seen());
    let shown = folder.run("inspect model.json --json").ok().json();
    let decided = shown["candidates"].as_array().unwrap().iter().map(|it| it["wins"].as_u64().unwrap());
    assert_eq!(decided.sum::<u64>(), 200);
    let shown = folder.run("tune cal.npz --rows all --json -o other.json").ok().json();
    assert!(shown["promise"].as_str().unwrap().contains("no law of realised coverage"));
    assert!(shown["levels"][0]["coverage_interval"].is_null());
}

#[test]
fn refuses_what_all_rows_cannot_give() {
    let folder = Folder::with_data();
    for (words, wanted) in
        [("--tuning-fraction 0.3", "leave out one of them"), ("--thresholds-only", "--rows all keeps none")]
    {
        let message = folder.run(&format!("tune cal.npz --rows all {words} -o model.json")).error();
        assert!(message.contains(wanted), "{words}: {message}");
        assert_eq!(folder.names(), ["cal.npz", "test.npz"]);
    }
    folder.run("tune cal.npz --rows all -o model.json").ok();
    for (words, wanted) in [
        ("predict model.json test.npz --alpha 0.2", "chosen by all rows at alpha 0.1"),
        ("predict model.json test.npz --p-values", "p-values are of all levels"),
        ("evaluate model.json test.npz --expect-coverage", "no law of realised coverage"),
        ("evaluate model.json cal.npz", "200 of 200 rows also calibrated or tuned this model"),
    ] {
        let message = folder.run(words).error();
        assert!(message.contains(wanted) && !message.contains("can be used"), "{words}: {message}");
    }
}

/// Shards of a test set are counted apart and merged, with the candidates in each part.
#[test]
fn a_selection_is_evaluated_by_parts() {
    let folder = Folder::with_data();
    folder.run("tune cal.npz --rows all --alpha 0.05 -o model.json").ok();
    folder.run("split test.npz --fractions 0.5,0.5 -o a.npz b.npz").ok();
    for part in ["a", "b"] {
        folder.run(&format!("evaluate model.json {part}.npz --partial -o {part}.part")).ok();
    }
    let merged = folder.run("merge a.part b.part --json").ok().json();
    let whole = folder.run("evaluate model.json test.npz --json").ok().json();
    assert_eq!(merged["levels"], whole["levels"]);
}

/// As `calibrate` counts them.
#[test]
fn impossible_labels_are_counted_where_all_rows_choose() {
    let folder = Folder::empty();
    let row = |row: usize| if row < 3 { "-inf,1,a\n" } else { "1,0.5,a\n" };
    folder.write("cal.csv", format!("a,b,label\n{}", (0..10).map(row).collect::<String>()));
    for words in ["calibrate cal.csv", "tune cal.csv --rows all", "tune cal.csv --rows all --over raps"] {
        let ran = folder.run(&format!("{words} --alpha 0.2 -o model.json --force")).ok();
        assert!(ran.err.contains("alpha = 0.2: 3 of 10 true labels have logit -inf"), "{words}: {}", ran.err);
    }
}

#[test]
fn too_few_rows_for_all_rows_are_warned_of() {
    let folder = Folder::with_data();
    let ran = folder.run("tune cal.npz --rows all --alpha 0.001 -o model.json").ok();
    assert!(ran.err.contains("200 rows cannot reach alpha = 0.001"), "{}", ran.err);
    let sets = folder.run("predict model.json test.npz").ok().out;
    assert!(sets.lines().all(|line| line.matches(',').count() >= CLASSES - 1));
}
