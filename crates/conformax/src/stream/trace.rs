//! `Trace`: how a stream went, in a bounded number of points.

/// Where a stream stood after so many labels.
///
/// ```
/// use conformax::{Alpha, Calibration, EntmaxScore, Logits, SortedScores, Stream, StreamOptions};
/// let scores = SortedScores::new((0..99).map(|i| f64::from(i) / 50.0).collect())?;
/// let calibration = Calibration::from_scores(EntmaxScore::default(), 3, scores)?;
/// let mut stream = Stream::new(calibration, Alpha::new(0.1)?, StreamOptions::default())?;
/// stream.predict(Logits::new(&[2.0_f32, 1.0, -3.0], 3)?, &["first"])?; // labels 0 and 1
/// stream.update("first", 2)?;
/// let point = stream.trace()[0];
/// assert_eq!((point.labelled, point.coverage, point.size), (1, 0.0, 2.0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TracePoint {
    /// Labels so far.
    pub labelled: u64,
    /// Share of the recent labels that were in their sets.
    pub coverage: f64,
    /// Mean size of the recent sets.
    pub size: f64,
    /// The level of the next row.
    pub level: f64,
    /// Logarithm of the alarm's capital.
    pub log_capital: f64,
}

/// Points kept at most; beyond that every other one goes.
pub(crate) const MOST_POINTS: usize = 512;

/// Points at equal distances from the first label to the last: at every label first, and at twice the distance whenever
/// there are too many.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trace {
    pub(crate) every: u64,
    pub(crate) points: Vec<TracePoint>,
}

impl Default for Trace {
    fn default() -> Self {
        Self { every: 1, points: Vec::new() }
    }
}

impl Trace {
    pub(crate) fn push(&mut self, point: TracePoint) {
        if !point.labelled.is_multiple_of(self.every) {
            return;
        }
        self.points.push(point);
        if self.points.len() > MOST_POINTS {
            self.every *= 2;
            let every = self.every;
            self.points.retain(|point| point.labelled.is_multiple_of(every));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_stream_keeps_points_at_equal_distances() {
        let mut trace = Trace::default();
        for labelled in 1..=100_000 {
            trace.push(TracePoint { labelled, coverage: 1.0, size: 1.0, level: 0.1, log_capital: 0.0 });
        }
        assert!((MOST_POINTS / 2..=MOST_POINTS).contains(&trace.points.len()), "{}", trace.points.len());
        assert!(trace.points.windows(2).all(|pair| pair[1].labelled - pair[0].labelled == trace.every));
    }
}
