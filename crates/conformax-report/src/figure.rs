//! `Figure`: one figure of the paper from our own numbers, as panels for the page and one SVG for a file.

mod average_size;
mod bars;
mod coverage;
mod entmax_plane;
mod gamma_family;
mod gamma_size;
mod idea;
mod singletons;
mod sscv;
mod temperature;
mod tuning_ways;

use conformax_plot::{Axis, Sheet, Spacing, Style};
use conformax_study::Spread;

use crate::number;
use crate::table::{self, Column, Row, Table, exact, optional};
use crate::view::{Cell, View};

/// A figure: what it says, its panels, and the numbers behind it.
pub(crate) struct Figure {
    /// Number in the paper; one beyond its nine is ours alone.
    pub(crate) number: u32,
    /// Name in file names.
    pub(crate) slug: &'static str,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) panels: Vec<Panel>,
    /// Panels side by side where there is room.
    pub(crate) columns: usize,
    /// Series that are not named in the panels; the page has its own key of procedures.
    pub(crate) key: Vec<Style>,
    /// The numbers drawn.
    pub(crate) data: Table,
}

/// One drawing of a figure.
pub(crate) struct Panel {
    /// The benchmark it shows, for choosing one in the page.
    pub(crate) benchmark: Option<String>,
    pub(crate) drawn: conformax_plot::Panel,
}

/// The figures that the results have numbers for, in the paper's order.
pub(crate) fn all(view: &View<'_>) -> Vec<Figure> {
    let figures = [
        Some(idea::figure()),
        Some(entmax_plane::figure()),
        Some(temperature::figure()),
        Some(average_size::figure(view)),
        gamma_family::figure(view),
        Some(singletons::figure(view)),
        Some(coverage::figure(view)),
        gamma_size::figure(view),
        Some(sscv::figure(view)),
        tuning_ways::figure(view),
    ];
    figures.into_iter().flatten().collect()
}

impl Figure {
    /// Name of its files, without an ending.
    pub(crate) fn file_name(&self) -> String {
        format!("figure-{}-{}", self.number, self.slug)
    }

    /// The whole figure as one drawing that stands alone.
    pub(crate) fn svg(&self) -> String {
        let panels: Vec<&conformax_plot::Panel> = self.panels.iter().map(|panel| &panel.drawn).collect();
        Sheet { title: &self.title, columns: self.columns, key: &self.key, panels: &panels }.svg()
    }
}

/// Levels from the largest to the smallest, so that confidence grows to the right.
fn level_axis(levels: &[f64]) -> Axis {
    let high = levels.iter().copied().fold(f64::MIN, f64::max);
    let low = levels.iter().copied().fold(f64::MAX, f64::min);
    let low = if low < high { low } else { high / 2.0 };
    let mut ticks: Vec<(f64, String)> = Vec::new();
    let mut by_roundness: Vec<f64> = levels.to_vec();
    let is_round = |alpha: f64| ((alpha / 0.05).round() * 0.05 - alpha).abs() < 1e-9;
    by_roundness.sort_by_key(|&alpha| (!(alpha == high || alpha == low), !is_round(alpha)));
    for alpha in by_roundness {
        if ticks.iter().all(|(kept, _)| (kept - alpha).abs() >= (high - low) * 0.2) {
            ticks.push((alpha, number::level(alpha)));
        }
    }
    let label = "α  (confidence grows →)".to_owned();
    Axis { label, values: (high, low), spacing: Spacing::Even, ticks }
}

/// A row per benchmark and procedure, a column per level: what Figures 4 and 7 draw.
fn by_level(
    view: &View<'_>,
    slug: &str,
    metric: fn(&View<'_>, Cell) -> Option<Spread>,
    print: fn(f64) -> String,
) -> Table {
    let mut columns = vec![Column::text("Benchmark"), Column::text("Procedure")];
    columns.extend(view.levels().map(|(_, alpha)| Column::number(&format!("α = {}", number::level(alpha)))));
    let mut table = Table { slug: slug.to_owned(), columns, ..Table::default() };
    table.records.header = vec!["benchmark", "procedure", "alpha", "mean", "deviation", "splits"];
    for (benchmark, summary) in view.benchmarks() {
        for (procedure, name) in view.procedures() {
            let mut cells = vec![summary.title.as_str().into(), name.into()];
            for (level, alpha) in view.levels() {
                let spread = metric(view, Cell { benchmark, procedure, level });
                cells.push(spread.map_or_else(|| "–".into(), |spread| number::spread(spread, print).into()));
                table.records.rows.push(vec![
                    summary.name.clone(),
                    name.to_owned(),
                    exact(alpha),
                    optional(spread.map(|spread| spread.mean)),
                    optional(spread.map(|spread| spread.deviation)),
                    spread.map_or(0, |spread| spread.splits).to_string(),
                ]);
            }
            table.rows.push(Row { begins_group: procedure == 0, ..Row::of(cells) });
        }
    }
    table
}

/// A row per benchmark and procedure, a column per printed level: what Figures 6 and 9 draw. `cell` gives what is shown
/// and the record's fields after benchmark, procedure and level.
fn by_printed_level(
    view: &View<'_>,
    slug: &str,
    header: Vec<&'static str>,
    cell: impl Fn(Cell) -> (table::Cell, Vec<String>),
) -> Table {
    let levels = view.printed_levels();
    let name_of = |level: usize| format!("α = {}", number::level(view.results.levels[level]));
    let mut columns = vec![Column::text("Benchmark"), Column::text("Procedure")];
    columns.extend(levels.iter().map(|&level| Column::number(&name_of(level))));
    let mut table = Table { slug: slug.to_owned(), columns, ..Table::default() };
    table.records.header = header;
    for (benchmark, summary) in view.benchmarks() {
        for (procedure, name) in view.procedures() {
            let mut cells = vec![summary.title.as_str().into(), name.into()];
            for &level in &levels {
                let (shown, fields) = cell(Cell { benchmark, procedure, level });
                cells.push(shown);
                let key = [summary.name.clone(), name.to_owned(), exact(view.results.levels[level])];
                table.records.rows.push(key.into_iter().chain(fields).collect());
            }
            table.rows.push(Row { begins_group: procedure == 0, ..Row::of(cells) });
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_levels_that_have_room_and_prefers_round_ones() {
        let levels: Vec<f64> = (1..=10).map(|i| f64::from(i) / 100.0).collect();
        let axis = level_axis(&levels);
        assert_eq!(axis.values, (0.1, 0.01));
        let mut labels: Vec<&str> = axis.ticks.iter().map(|(_, text)| text.as_str()).collect();
        labels.sort_unstable();
        assert_eq!(labels, ["0.01", "0.03", "0.05", "0.07", "0.10"]);
    }
}
