//! `tune`: the command's choice is the library's, and no row does two jobs.

use conformax::{Alpha, Draw, Masked, ScoreSpec, TuneOn, Tuning, TuningSplit, entmax_grid, raps_grid};
use conformax_io::Model;

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
