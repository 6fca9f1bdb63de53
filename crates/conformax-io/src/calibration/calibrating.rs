//! `Calibrating`: rows on their way to a calibration file, whether all of them calibrate or some choose first.

use conformax::{Alpha, Calibrator, Dealer, Error, Labelled, Logit, Result, ScoreSpec};

use crate::ClassNames;
use crate::calibration::model::Model;

/// Takes labelled rows in any blocks and merges with others of its kind in any order, to the same calibration file.
#[derive(Clone, Debug)]
pub enum Calibrating {
    /// Every row calibrates.
    All(Calibrator<ScoreSpec>),
    /// Some rows find clusters or choose ranks, and the others calibrate.
    Dealt(Dealer<ScoreSpec>),
}

impl Calibrating {
    /// The same without its rows: what is taken in by it can be merged into this one.
    #[must_use]
    pub fn emptied(&self) -> Self {
        match self {
            Self::All(calibrator) => Self::All(calibrator.emptied()),
            Self::Dealt(dealer) => Self::Dealt(dealer.emptied()),
        }
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        match self {
            Self::All(calibrator) => calibrator.n(),
            Self::Dealt(dealer) => dealer.n(),
        }
    }

    /// Takes in rows. An error names the row in the whole and leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        match self {
            Self::All(calibrator) => calibrator.extend(rows),
            Self::Dealt(dealer) => dealer.extend(rows),
        }
    }

    /// Takes in what another of its kind took in.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        match (self, other) {
            (Self::All(mine), Self::All(theirs)) => mine.merge(theirs),
            (Self::Dealt(mine), Self::Dealt(theirs)) => mine.merge(theirs),
            _ => Err(Error::Unlike { what: "ways to thresholds" }),
        }
    }

    /// The same with its groups of rows moved, as [`Calibrator::regrouped`].
    pub fn regrouped(self, places: &[usize], count: usize) -> Result<Self> {
        match self {
            Self::All(calibrator) => calibrator.regrouped(places, count).map(Self::All),
            Self::Dealt(_) => Err(Error::NotWith { what: "groups of rows", with: "this way to thresholds" }),
        }
    }

    /// What the file says at these levels. The strictest is the one that clusters and ranks are for.
    pub fn model(self, alphas: &[Alpha], names: Option<ClassNames>) -> Result<Model> {
        match self {
            Self::All(calibrator) => Ok(Model::new(&calibrator.finish()?, alphas, names)),
            Self::Dealt(dealer) => {
                let strictest = alphas.iter().min().ok_or(Error::Missing { what: "a level" })?;
                let dealt = dealer.finish(*strictest)?;
                let mut model = Model::new(&dealt.calibration, alphas, names);
                model.choosing_rows = Some(dealt.choosing);
                Ok(model)
            }
        }
    }

    /// As bytes that [`from_bytes`](Self::from_bytes) reads: the same for the same rows, whatever their blocks.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::All(calibrator) => calibrator.to_bytes(),
            Self::Dealt(dealer) => dealer.to_bytes(),
        }
    }

    /// From the bytes of either.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let holds_another =
            |error: &Error| matches!(error, Error::Bytes { what: "they hold something else", .. });
        match Calibrator::from_bytes(bytes) {
            Err(error) if holds_another(&error) => match Dealer::from_bytes(bytes) {
                Err(other) if holds_another(&other) => Err(error),
                read => read.map(Self::Dealt),
            },
            read => read.map(Self::All),
        }
    }
}
