//! `Card`: what a run was and what came of it, for people (`card.md`) and programs (`card.json`).

use serde::Serialize;

use crate::config::Config;
use crate::curve::Curve;
use crate::training::{Best, Ending};

/// What a run was and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    /// Version of conformax.
    pub version: &'static str,
    /// Commit that the program was built from, where it was a release built inside the repository.
    pub commit: Option<&'static str>,
    /// What it was made from.
    pub hashes: Hashes,
    /// Where it computed last.
    pub device: String,
    /// The config, its seed included.
    pub config: Config,
    /// Names of the classes, in the order of the logits.
    pub class_names: Vec<String>,
    /// Rows that trained, validated and tested.
    pub rows: Rows,
    /// Share of test rows that the best weights have right.
    pub test_accuracy: f64,
    /// The epoch whose weights were kept.
    pub best: Best,
    /// Why it ended.
    pub ending: Ending,
    /// Steps done.
    pub steps: u64,
    /// Training steps a second, evaluation and checkpoints not counted.
    pub steps_per_second: f64,
    /// Loss and accuracy by epoch.
    pub curve: Curve,
}

/// SHA-256 sums of what a run was made from.
#[derive(Clone, Debug, Serialize)]
pub struct Hashes {
    /// Of rows, labels and names of classes, as read; of image files on disk, of their names and lengths.
    pub data: String,
    /// Of the weights' files that it started from, if there were any.
    pub checkpoint: Option<String>,
}

/// How many rows a run had.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rows {
    /// That trained.
    pub train: usize,
    /// That chose the weights.
    pub validation: usize,
    /// That neither saw.
    pub test: usize,
}

impl Card {
    /// As `card.json`.
    pub(crate) fn json(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a card holds numbers, text and lists");
        bytes.push(b'\n');
        bytes
    }

    /// As `card.md`.
    pub(crate) fn markdown(&self) -> String {
        let number = |number: Option<f64>| number.map_or("none".to_owned(), |number| format!("{number:.4}"));
        let Rows { train, validation, test } = self.rows;
        let config = toml::to_string(&self.config).expect("a config is made of tables, numbers and text");
        format!(
            "# Test accuracy {accuracy:.4}\n\n\
             | | |\n|---|---|\n\
             | rows | {train} training, {validation} validation, {test} test |\n\
             | classes | {classes} |\n\
             | best epoch | {epoch}: validation loss {loss}, accuracy {validated} |\n\
             | ended | {ending} after {steps} steps |\n\
             | speed | {speed:.1} steps a second on {device} |\n\
             | seed | {seed} |\n\
             | data | {data} |\n\
             | checkpoint | {checkpoint} |\n\
             | made by | conformax {version}, commit {commit} |\n\n\
             ![loss and accuracy by epoch](curve.svg)\n\n\
             ```toml\n{config}```\n",
            accuracy = self.test_accuracy,
            classes = self.class_names.len(),
            epoch = self.best.epoch,
            loss = number(self.best.validation_loss),
            validated = number(self.best.validation_accuracy),
            ending = self.ending,
            steps = self.steps,
            speed = self.steps_per_second,
            device = self.device,
            seed = self.config.seed,
            data = self.hashes.data,
            checkpoint = self.hashes.checkpoint.as_deref().unwrap_or("none"),
            version = self.version,
            commit = self.commit.unwrap_or("unknown"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_commit_where_the_build_knows_it() {
        let text = "seed = 1\ndata = { format = \"cifar10\", path = \"cifar10\" }\nmodel = { name = \"cnn\" }\n\
                    training = { epochs = 1, batch_size = 16, learning_rate = 1e-3 }";
        let made_by = |commit| Card {
            version: "1.2.3",
            commit,
            hashes: Hashes { data: "ab".to_owned(), checkpoint: None },
            device: "cpu".to_owned(),
            config: Config::parse(text, "small.toml").unwrap(),
            class_names: vec!["cat".to_owned(), "dog".to_owned()],
            rows: Rows { train: 4, validation: 2, test: 2 },
            test_accuracy: 0.5,
            best: Best { epoch: 1, validation_loss: None, validation_accuracy: None },
            ending: Ending::AllEpochs,
            steps: 1,
            steps_per_second: 2.0,
            curve: Curve::default(),
        };
        for (commit, told) in [(Some("0123456789ab"), "0123456789ab"), (None, "unknown")] {
            let card = made_by(commit);
            let line = format!("| made by | conformax 1.2.3, commit {told} |\n");
            assert!(card.markdown().contains(&line), "{}", card.markdown());
            let json: serde_json::Value = serde_json::from_slice(&card.json()).unwrap();
            assert_eq!(json["commit"].as_str(), commit);
        }
    }

    /// The script of the build asks git, and only for a release: others would be stale after every commit.
    #[test]
    fn a_release_is_built_from_a_commit() {
        let known = option_env!("CONFORMAX_COMMIT").is_some();
        assert_eq!(known, !cfg!(debug_assertions) && in_a_repository());
    }

    fn in_a_repository() -> bool {
        let asked = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
        asked.is_ok_and(|told| told.status.success())
    }
}
