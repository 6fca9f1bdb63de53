//! The files of a report, by path, and CSV as rows of named fields.

use std::collections::HashMap;
use std::sync::LazyLock;

use conformax_report::{File, Options, render};
use conformax_study::{Record, Results};

use crate::synthetic;

pub struct Rendered {
    pub results: Results,
    files: Vec<File>,
}

impl Rendered {
    /// The report of the made-up results, rendered once for all tests.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Rendered> = LazyLock::new(|| Rendered::of(synthetic::results()));
        &SHARED
    }

    pub fn of(results: Results) -> Self {
        let files = render(&results, &Options::default());
        Self { results, files }
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.path.as_str())
    }

    pub fn text(&self, path: &str) -> &str {
        let file = self.files.iter().find(|file| file.path == path);
        let file =
            file.unwrap_or_else(|| panic!("{path} is not among {:?}", self.paths().collect::<Vec<_>>()));
        std::str::from_utf8(&file.bytes).unwrap()
    }

    pub fn csv(&self, path: &str) -> Vec<HashMap<String, String>> {
        let mut lines = self.text(path).lines().map(fields);
        let header = lines.next().unwrap();
        lines
            .map(|line| {
                assert_eq!(line.len(), header.len(), "{path}: {line:?}");
                header.iter().cloned().zip(line).collect()
            })
            .collect()
    }

    /// The records of one cell.
    pub fn records(&self, benchmark: &str, procedure: &str, alpha: f64) -> Vec<&Record> {
        let is_here = |r: &&Record| r.benchmark == benchmark && r.procedure == procedure && r.alpha == alpha;
        let all = self.results.records.iter().chain(&self.results.tuned);
        let found: Vec<_> = all.filter(is_here).collect();
        assert!(!found.is_empty(), "{benchmark} {procedure} {alpha}");
        found
    }
}

fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut in_quotes = false;
    for c in line.chars() {
        match c {
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => out.push(String::new()),
            _ => out.last_mut().unwrap().push(c),
        }
    }
    out
}

pub fn number(row: &HashMap<String, String>, field: &str) -> f64 {
    row[field].parse().unwrap_or_else(|_| panic!("{field} is {:?}", row[field]))
}

pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn deviation(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    let centre = mean(values.iter().copied());
    (values.iter().map(|v| (v - centre) * (v - centre)).sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
}

#[track_caller]
pub fn assert_close(got: f64, wanted: f64) {
    assert!((got - wanted).abs() <= 1e-12 * wanted.abs().max(1.0), "got {got}, wanted {wanted}");
}
