//! `Scale` and `Axis`: where a value lies on the paper, and which values are written beside it.

/// How values spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences take equal lengths.
    Even,
    /// Equal ratios take equal lengths.
    Ratio,
}

/// From values to coordinates; the values may run backwards.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Values at the ends.
    pub values: (f64, f64),
    /// Coordinates of the ends.
    pub place: (f64, f64),
    /// What lies between.
    pub spacing: Spacing,
}

impl Scale {
    /// Where a value lies.
    pub fn at(&self, value: f64) -> f64 {
        let (from, to) = self.values;
        let share = match self.spacing {
            Spacing::Even => (value - from) / (to - from),
            Spacing::Ratio => (value / from).ln() / (to / from).ln(),
        };
        self.place.0 + share * (self.place.1 - self.place.0)
    }
}

/// Beyond this many steps an axis is all labels.
const MOST_STEPS: i64 = 6;

/// What an axis shows, before it has a place.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What the values are.
    pub label: String,
    /// Values at the ends.
    pub values: (f64, f64),
    /// What lies between.
    pub spacing: Spacing,
    /// Values that are written, and how.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Evenly spaced round ticks from `low` to `high`, which widen to the next tick: of a few steps, the one that
    /// widens least.
    pub fn even(label: &str, low: f64, high: f64) -> Self {
        let ends = |step: f64| ((low / step).floor() as i64, (high / step).ceil() as i64);
        let extent = |step: &f64| (ends(*step).1 - ends(*step).0) as f64 * step;
        let steps = [4.0, 5.0, 6.0].map(|parts| round_step((high - low) / parts));
        let fitting = steps.into_iter().filter(|&step| ends(step).1 - ends(step).0 <= MOST_STEPS);
        let step = fitting.min_by(|a, b| extent(a).total_cmp(&extent(b))).unwrap_or(steps[0]);
        let ((first, last), digits) = (ends(step), decimals(step));
        // One round value alone has no extent to be drawn on.
        let last = last.max(first + 1);
        let tick = |i| (i as f64 * step, format!("{:.digits$}", i as f64 * step).replace('-', "−"));
        let values = (first as f64 * step, last as f64 * step);
        let ticks = (first..=last).map(tick).collect();
        Self { label: label.to_owned(), values, spacing: Spacing::Even, ticks }
    }

    /// Ticks at 1, 2 and 5 times powers of ten, and at 3 and 7 times too where those are fewer than three.
    pub fn ratio(label: &str, low: f64, high: f64) -> Self {
        let (low, high) = (low / 1.06, high * 1.06);
        let at = |digits: &[f64]| -> Vec<(f64, String)> {
            let values =
                (-6..=9).flat_map(|exponent| digits.iter().map(move |digit| digit * 10f64.powi(exponent)));
            values.filter(|value| (low..=high).contains(value)).map(|value| (value, plain(value))).collect()
        };
        let few = at(&[1.0, 2.0, 5.0]);
        let ticks = if few.len() < 3 { at(&[1.0, 2.0, 3.0, 5.0, 7.0]) } else { few };
        Self { label: label.to_owned(), values: (low, high), spacing: Spacing::Ratio, ticks }
    }

    /// Average sizes: by ratio where the largest is several times the smallest, evenly otherwise.
    pub fn sizes(label: &str, low: f64, high: f64) -> Self {
        if high > 6.0 * low && low > 0.0 {
            Self::ratio(&format!("{label} (log scale)"), low, high)
        } else {
            Self::even(label, low, high)
        }
    }
}

fn is_multiple(value: f64, of: f64) -> bool {
    ((value / of).round() * of - value).abs() < 1e-9
}

/// The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let step = if step > 0.0 && step.is_finite() { step } else { 1.0 };
    let power = 10f64.powf(step.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let times = steps.into_iter().find(|times| times * power >= step * (1.0 - 1e-9)).unwrap_or(10.0);
    times * power
}

/// Digits after the point that tell multiples of `step` apart.
fn decimals(step: f64) -> usize {
    (0..8).find(|&digits| is_multiple(step, 10f64.powi(-digits))).unwrap_or(8) as usize
}

fn plain(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn widens_to_round_ticks() {
        let axis = Axis::even("size", 0.93, 1.52);
        assert_eq!(written(&axis), ["0.8", "1.0", "1.2", "1.4", "1.6"]);
        assert_eq!(axis.values, (0.8, 1.6));
        assert_eq!(written(&Axis::even("points", -2.1, 2.1)), ["−3", "−2", "−1", "0", "1", "2", "3"]);
    }

    #[test]
    fn has_an_extent_around_a_single_value() {
        assert_eq!(Axis::even("loss", 2.0, 2.0).values, (2.0, 3.0));
        assert_eq!(Axis::even("loss", 2.5, 2.5).values, (2.0, 3.0));
    }

    #[test]
    fn ticks_ratios_at_one_two_five() {
        assert_eq!(written(&Axis::ratio("size", 0.9, 40.0)), ["1", "2", "5", "10", "20"]);
        assert_eq!(written(&Axis::ratio("size", 1.07, 7.2)), ["2", "3", "5", "7"]);
    }

    #[test]
    fn puts_the_ends_at_the_ends() {
        let scale = Scale { values: (1.0, 100.0), place: (200.0, 0.0), spacing: Spacing::Ratio };
        assert_eq!([scale.at(1.0), scale.at(10.0), scale.at(100.0)], [200.0, 100.0, 0.0]);
    }
}
