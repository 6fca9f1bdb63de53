//! `Input`: what the numbers in a file are, and how they become logits.

use crate::data::values::{each_dtype, wide};
use crate::{Dtype, Problem, Values};

/// What the numbers in a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Input {
    /// Logits, used as they are.
    #[default]
    Logits,
    /// Probabilities; their logarithms are used, and zero becomes −∞, a class that cannot be.
    Probabilities,
    /// Logarithms of probabilities, used as they are.
    LogProbabilities,
}

/// What is said of rows that are called logits and look like probabilities, after "these rows".
pub const LIKE_PROBABILITIES: &str =
    "are not negative and sum to 1, as probabilities do, and are taken for logits";

/// What to do about them where a model was calibrated on logits.
pub const GIVE_LOGITS: &str = "if that is what they are, give the logits, as the model was calibrated on, or calibrate \
                               again with --input probabilities";

/// A probability this far above 1, or its logarithm above 0, is still taken for rounding: a softmax in single precision
/// may give 1.0000001, and half precision has an epsilon of 1e-3.
const ROUNDING: f64 = 1e-2;

/// Rows of a block that are looked at for probabilities.
const LOOK: usize = 100;
/// How far from one a sum of rounded probabilities may be.
const SUM_ROUNDING: f64 = 1e-2;

impl Input {
    /// The name it is written with.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logits => "logits",
            Self::Probabilities => "probabilities",
            Self::LogProbabilities => "log_probabilities",
        }
    }

    /// The input of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Logits, Self::Probabilities, Self::LogProbabilities]
            .into_iter()
            .find(|input| input.name() == name)
    }

    /// Type of the logits made from numbers of type `stored`.
    pub(crate) fn dtype(self, stored: Dtype) -> Dtype {
        match self {
            Self::Probabilities => Dtype::F64,
            Self::Logits | Self::LogProbabilities => stored,
        }
    }

    /// Whether numbers are said to be logits and look like probabilities: none of the first rows is negative, and all
    /// sum to one.
    pub(crate) fn is_doubtful(self, numbers: &Values, classes: usize) -> bool {
        let of_several = self == Self::Logits && classes > 1 && !numbers.is_empty();
        of_several
            && each_dtype!(numbers, v => v.chunks_exact(classes).take(LOOK).all(|row| {
                row.iter().all(|&x| (0.0..=1.0).contains(&wide(x)))
                    && (row.iter().map(|&x| wide(x)).sum::<f64>() - 1.0).abs() < SUM_ROUNDING
            }))
    }

    /// Moves numbers into `out` as logits; the error is the index of the first number that cannot be one.
    pub(crate) fn into_logits(self, numbers: &mut Values, out: &mut Values) -> Result<(), (usize, Problem)> {
        match self {
            Self::Logits => std::mem::swap(numbers, out),
            Self::LogProbabilities => {
                each_dtype!(&*numbers, v => check_logarithms(v.iter().map(|&x| wide(x))))?;
                std::mem::swap(numbers, out);
            }
            Self::Probabilities => {
                out.reset(Dtype::F64);
                if let Values::F64(logits) = out {
                    each_dtype!(&*numbers, v => logarithms(v.iter().map(|&x| wide(x)), logits))?;
                }
            }
        }
        Ok(())
    }
}

fn check_logarithms(values: impl Iterator<Item = f64>) -> Result<(), (usize, Problem)> {
    for (index, value) in values.enumerate() {
        if value.is_nan() || value > ROUNDING {
            return Err((index, Problem::LogProbability(value)));
        }
    }
    Ok(())
}

fn logarithms(values: impl Iterator<Item = f64>, out: &mut Vec<f64>) -> Result<(), (usize, Problem)> {
    for (index, value) in values.enumerate() {
        if !(0.0..=1.0 + ROUNDING).contains(&value) {
            return Err((index, Problem::Probability(value)));
        }
        out.push(conformax::log_probability(value));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_becomes_minus_infinity() {
        let mut out = Values::new(Dtype::F32);
        Input::Probabilities.into_logits(&mut Values::F32(vec![0.0, 1.0]), &mut out).unwrap();
        assert_eq!(out, Values::F64(vec![f64::NEG_INFINITY, 0.0]));
    }

    #[test]
    fn numbers_that_sum_to_one_are_doubtful_as_logits() {
        let doubtful = |numbers: &[f64], input: Input| input.is_doubtful(&Values::F64(numbers.to_vec()), 2);
        assert!(doubtful(&[0.25, 0.75, 1.0, 0.0], Input::Logits));
        assert!(doubtful(&[0.253, 0.75], Input::Logits), "rounded");
        assert!(!doubtful(&[0.25, 0.75, 2.0, -1.0], Input::Logits), "one row is enough to know better");
        assert!(!doubtful(&[0.25, 0.5], Input::Logits) && !doubtful(&[], Input::Logits));
        assert!(!doubtful(&[0.25, 0.75], Input::Probabilities), "that is what they are said to be");
        assert!(!Input::Logits.is_doubtful(&Values::F64(vec![1.0]), 1));
    }

    #[test]
    fn rounding_above_one_is_no_error() {
        let mut out = Values::new(Dtype::F64);
        let mut numbers = Values::F32(vec![1.0_f32.next_up(), 0.0]);
        Input::Probabilities.into_logits(&mut numbers, &mut out).unwrap();
        let Values::F64(logits) = out else { panic!("logarithms are f64") };
        assert!((0.0..1e-6).contains(&logits[0]) && logits[1] == f64::NEG_INFINITY);
    }

    #[test]
    fn names_the_first_number_that_is_no_probability() {
        for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            let mut numbers = Values::F64(vec![0.5, bad]);
            let (index, _) =
                Input::Probabilities.into_logits(&mut numbers, &mut Values::new(Dtype::F64)).unwrap_err();
            assert_eq!(index, 1);
        }
        let mut numbers = Values::F64(vec![-0.5, f64::NEG_INFINITY, 0.5]);
        let (index, _) =
            Input::LogProbabilities.into_logits(&mut numbers, &mut Values::new(Dtype::F64)).unwrap_err();
        assert_eq!(index, 2);
    }
}
