//! The curve as SVG: loss and accuracy side by side, a line each for training and validation rows.

use conformax_plot::{Axis, Frame, Marker, Panel, Plot, Point, Series, Sheet, Spacing, Style};

use super::EpochRecord;

/// What a panel reads from an epoch: training rows, then validation rows.
type Lines = [fn(&EpochRecord) -> Option<f64>; 2];

pub(super) fn draw(epochs: &[EpochRecord]) -> String {
    // Colours that people with any colour vision tell apart; the validation line is dashed as well.
    let styles = [
        Style::plain("training", "#3b6fb6", "", Marker::Circle),
        Style::plain("validation", "#d1651f", "5 3", Marker::Square),
    ];
    let loss = panel("Loss", epochs, &styles, [|e| Some(e.train_loss), |e| e.validation_loss]);
    let accuracy =
        panel("Accuracy", epochs, &styles, [|e| Some(e.train_accuracy), |e| e.validation_accuracy]);
    let title = "Loss and accuracy by epoch";
    Sheet { title, columns: 2, key: &[], panels: &[&loss, &accuracy] }.svg()
}

fn panel(title: &str, epochs: &[EpochRecord], styles: &[Style; 2], lines: Lines) -> Panel {
    let lines = styles.iter().zip(lines).map(|(style, read)| Series {
        style,
        is_procedure: false,
        points: epochs.iter().filter_map(|epoch| point(epoch.epoch, read(epoch)?)).collect(),
    });
    let series: Vec<Series<'_>> = lines.filter(|series| !series.points.is_empty()).collect();
    let values = || series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let (low, high) = values().fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(y), high.max(y)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let mut plot = Plot::new(Frame::NAMED, &epoch_axis(epochs), &Axis::even("", low, high));
    for series in &series {
        plot.line(series);
        plot.marks(series, 2.2);
    }
    plot.name_ends(&series);
    Panel {
        title: title.to_owned(),
        alternative: alternative(title, &series),
        size: Frame::NAMED.size(),
        drawing: plot.finish(),
    }
}

/// A loss that has run away to infinity has no place on the paper.
fn point(epoch: u64, value: f64) -> Option<Point> {
    let (at, shown) = (format!("epoch {epoch}"), format!("{value:.4}"));
    value.is_finite().then_some(Point { x: epoch as f64, y: value, spread: (value, value), at, value: shown })
}

/// The first and the last epoch are written. One alone lies on the left.
fn epoch_axis(epochs: &[EpochRecord]) -> Axis {
    let last = epochs.last().map_or(1, |epoch| epoch.epoch);
    let mut ticks: Vec<(f64, String)> = [1, last].map(|epoch| (epoch as f64, epoch.to_string())).to_vec();
    ticks.dedup();
    let values = (1.0, (last as f64).max(2.0));
    Axis { label: "epoch".to_owned(), values, spacing: Spacing::Even, ticks }
}

fn alternative(title: &str, series: &[Series<'_>]) -> String {
    let ends = series.iter().filter_map(|series| {
        let (first, last) = (series.points.first()?, series.points.last()?);
        Some(format!("{} from {} to {}", series.style.name, first.value, last.value))
    });
    format!("{title} by epoch: {}.", ends.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_a_line_per_kind_of_row() {
        let record = |epoch, loss: f64, validation: Option<f64>| EpochRecord {
            epoch,
            step: epoch * 10,
            learning_rate: 0.1,
            train_loss: loss,
            train_accuracy: 1.0 - loss / 4.0,
            validation_loss: validation,
            validation_accuracy: validation.map(|loss| 1.0 - loss / 4.0),
        };
        let lines = |svg: &str| svg.matches("class=\"line\"").count();
        let both = draw(&[record(1, 2.0, Some(2.1)), record(2, 1.0, Some(1.4))]);
        assert_eq!((lines(&both), both.matches(">validation<").count()), (4, 2));
        let one = draw(&[record(1, 2.0, None)]);
        assert_eq!((lines(&one), one.contains("validation")), (2, false));
        let run_away = draw(&[record(1, 2.0, None), record(2, f64::NAN, Some(f64::INFINITY))]);
        for svg in [both, one, run_away, draw(&[])] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
