//! `Splitting`: rows divided at random where the files do not divide them.

use conformax::split;
use serde::{Deserialize, Serialize};

use super::{Dataset, Error, Part, Parts, Result};

/// Which fractions of the rows are set aside at random; without any, parts stay as the files give them.
///
/// ```
/// use conformax_train::data::Splitting;
/// // The paper's 20 Newsgroups: a fifth of all documents for testing.
/// let splitting = Splitting { test: Some(0.2), ..Splitting::default() };
/// assert_eq!(splitting.seed, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Splitting {
    /// Fraction of all rows for testing, whichever part the files had them in. Without it the files' test rows
    /// stay where they are, and only their training rows are divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<f64>,
    /// Fraction of the rows divided that is for validation. Without it the files' validation rows stay, unless all
    /// rows are divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// Seed of the division.
    pub seed: u64,
}

impl Dataset {
    /// The same data with its rows divided as asked. Set-aside fractions are rounded down.
    pub fn split(mut self, splitting: &Splitting) -> Result<Self> {
        self.parts = match splitting.test {
            Some(test) => splitting.pooled(self.labels.len(), test)?,
            None => splitting.given(self.parts)?,
        };
        self.parts.some_rows(Part::Train)?;
        if self.parts.test.is_empty() {
            return Err(Error::Options("no rows for testing: set aside a fraction of them".to_owned()));
        }
        Ok(self)
    }
}

impl Splitting {
    fn pooled(&self, rows: usize, test: f64) -> Result<Parts> {
        match self.validation {
            None => {
                let [train, test] = self.divide(rows, [rest(&[test]), test])?;
                Ok(Parts { train, validation: Vec::new(), test })
            }
            Some(validation) => {
                let kept = rest(&[validation, test]);
                let [train, validation, test] = self.divide(rows, [kept, validation, test])?;
                Ok(Parts { train, validation, test })
            }
        }
    }

    fn given(&self, parts: Parts) -> Result<Parts> {
        let Some(fraction) = self.validation else { return Ok(parts) };
        if !parts.validation.is_empty() {
            let why = "the files have validation rows of their own: no fraction of others is needed";
            return Err(Error::Options(why.to_owned()));
        }
        let rows = parts.train;
        let chosen = self.divide(rows.len(), [rest(&[fraction]), fraction])?;
        let [train, validation] = chosen.map(|places| places.into_iter().map(|place| rows[place]).collect());
        Ok(Parts { train, validation, test: parts.test })
    }

    /// Rows that train come first, so that theirs is the number that is rounded up.
    fn divide<const N: usize>(&self, rows: usize, fractions: [f64; N]) -> Result<[Vec<usize>; N]> {
        let parts = split(rows, &fractions, self.seed).map_err(|_| {
            let given = fractions[1..].iter().map(f64::to_string).collect::<Vec<_>>().join(" and ");
            Error::Options(format!("the fraction set aside must lie strictly between 0 and 1, got {given}"))
        })?;
        Ok(parts.try_into().expect("one part for each fraction"))
    }
}

/// What the fractions leave of one. They are decimals: 1 − 0.07 is to be 0.93 and not 0.9299999999999999.
fn rest(fractions: &[f64]) -> f64 {
    const DIGITS: f64 = 1e12;
    ((1.0 - fractions.iter().sum::<f64>()) * DIGITS).round() / DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Inputs;

    fn dataset(train: usize, validation: usize, test: usize) -> Dataset {
        let rows = train + validation + test;
        Dataset {
            inputs: Inputs::Texts(vec![String::new(); rows]),
            labels: vec![0; rows],
            class_names: vec!["a".to_owned()],
            parts: Parts::in_sequence(train, validation, test),
        }
    }

    fn sizes(dataset: &Dataset) -> [usize; 3] {
        [Part::Train, Part::Validation, Part::Test].map(|part| dataset.parts.rows(part).len())
    }

    #[test]
    fn a_fifth_of_the_newsgroups_is_the_papers_number() {
        let splitting = Splitting { test: Some(0.2), ..Splitting::default() };
        let split = dataset(11314, 0, 7532).split(&splitting).unwrap();
        assert_eq!(sizes(&split), [15077, 0, 3769]);
    }

    #[test]
    fn pooled_rows_are_each_in_one_part_and_depend_on_the_seed() {
        let divide = |seed| {
            let splitting = Splitting { test: Some(0.2), validation: Some(0.07), seed };
            dataset(50, 20, 30).split(&splitting).unwrap().parts
        };
        let parts = divide(3);
        let mut rows = [parts.train.clone(), parts.validation.clone(), parts.test.clone()].concat();
        rows.sort_unstable();
        assert_eq!(rows, (0..100).collect::<Vec<_>>());
        assert_eq!([parts.train.len(), parts.validation.len(), parts.test.len()], [73, 7, 20]);
        assert_eq!(parts, divide(3));
        assert_ne!(parts, divide(4));
    }

    #[test]
    fn test_rows_of_the_files_stay_and_training_rows_are_divided() {
        let splitting = Splitting { validation: Some(0.1), ..Splitting::default() };
        let split = dataset(20, 0, 5).split(&splitting).unwrap();
        assert_eq!(sizes(&split), [18, 2, 5]);
        assert_eq!(split.parts.test, [20, 21, 22, 23, 24]);
        assert!(split.parts.validation.iter().all(|row| *row < 20));
    }

    #[test]
    fn parts_of_the_files_stay_as_they_are() {
        let given = dataset(3, 2, 1);
        assert_eq!(given.clone().split(&Splitting::default()).unwrap(), given);
    }

    #[test]
    fn refuses_fractions_and_parts_that_make_no_sense() {
        let message = |data: Dataset, test, validation| {
            data.split(&Splitting { test, validation, seed: 0 }).unwrap_err().to_string()
        };
        for bad in [0.0, 1.0, -0.5, 1.5, f64::NAN] {
            let text = message(dataset(9, 0, 1), Some(bad), None);
            assert!(text.starts_with("the fraction set aside must lie strictly"), "{text}");
        }
        assert!(message(dataset(9, 0, 1), Some(0.5), Some(0.5)).contains("0.5 and 0.5"));
        assert!(message(dataset(9, 0, 0), None, None).contains("no rows for testing"));
        assert!(message(dataset(9, 3, 3), None, Some(0.1)).contains("validation rows of their own"));
        assert_eq!(message(dataset(0, 0, 3), None, None), "the training part has no rows");
    }
}
