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

use conformax_study::Spread;

use crate::number;
use crate::plot::{INK, LETTER, words};
use crate::style::Style;
use crate::svg::{Element, path};
use crate::table::{self, Column, Row, Table, exact, optional};
use crate::view::{Cell, View};

/// A figure: what it says, its panels, and the numbers behind it.
pub(crate) struct Figure {
    /// Number in the paper.
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
    pub(crate) title: String,
    /// The benchmark it shows, for choosing one in the page.
    pub(crate) benchmark: Option<String>,
    /// What it shows, in words.
    pub(crate) alternative: String,
    pub(crate) size: (f64, f64),
    pub(crate) drawing: Element,
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
    ];
    figures.into_iter().flatten().collect()
}

/// Fonts that are there already, wherever the page or figure is opened.
const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";
const MARGIN: f64 = 16.0;
const GAP: f64 = 24.0;
const TITLE_ROOM: f64 = 24.0;

impl Figure {
    /// Name of its files, without an ending.
    pub(crate) fn file_name(&self) -> String {
        format!("figure-{}-{}", self.number, self.slug)
    }

    /// What all panels show, in words.
    pub(crate) fn alternative(&self) -> String {
        self.panels.iter().map(|panel| panel.alternative.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The whole figure as one drawing that stands alone.
    pub(crate) fn svg(&self) -> String {
        let columns = self.columns.min(self.panels.len()).max(1);
        let cell = self.panels.iter().fold((0.0, 0.0), |(w, h): (f64, f64), panel| {
            (w.max(panel.size.0), h.max(panel.size.1 + TITLE_ROOM))
        });
        let width = 2.0 * MARGIN + columns as f64 * (cell.0 + GAP) - GAP;
        let key = key(&self.key, width - 2.0 * MARGIN);
        let head = MARGIN + 34.0 + key.1;
        let rows = self.panels.len().div_ceil(columns);
        let height = head + rows as f64 * (cell.1 + GAP) - GAP + MARGIN;

        let mut root = Element::new("svg")
            .set("xmlns", "http://www.w3.org/2000/svg")
            .set("viewBox", format!("0 0 {width:.0} {height:.0}"))
            .set("width", format!("{width:.0}"))
            .set("height", format!("{height:.0}"))
            .set("role", "img")
            .set("aria-labelledby", "title desc")
            .set("font-family", FONTS)
            .with(Element::new("title").set("id", "title").text(&self.title))
            .with(Element::new("desc").set("id", "desc").text(self.alternative()))
            .with(Element::new("rect").set("width", "100%").set("height", "100%").set("fill", "#ffffff"))
            .with(
                words(MARGIN, MARGIN + 14.0, &self.title, "title")
                    .at("font-size", 15.0)
                    .set("font-weight", "700"),
            )
            .with(key.0.set("transform", format!("translate({MARGIN} {})", MARGIN + 32.0)));
        for (i, panel) in self.panels.iter().enumerate() {
            let x = MARGIN + (i % columns) as f64 * (cell.0 + GAP);
            let y = head + (i / columns) as f64 * (cell.1 + GAP);
            root.push(panel.standing(x, y));
        }
        let mut out = String::new();
        root.write(&mut out);
        out.push('\n');
        out
    }
}

impl Panel {
    fn standing(&self, x: f64, y: f64) -> Element {
        Element::group("panel")
            .set("transform", format!("translate({x} {y})"))
            .with(words(0.0, 14.0, &self.title, "panel-title").set("font-weight", "600"))
            .with(
                Element::group("drawing")
                    .set("transform", format!("translate(0 {TITLE_ROOM})"))
                    .with(self.drawing.clone()),
            )
    }

    /// The drawing inside the page, which names it in its own heading.
    pub(crate) fn inline(&self) -> String {
        let (width, height) = self.size;
        let mut out = String::new();
        Element::new("svg")
            .set("viewBox", format!("0 0 {width} {height}"))
            .set("role", "img")
            .set("tabindex", "0")
            .set("aria-label", &self.alternative)
            .with(self.drawing.clone())
            .write(&mut out);
        out
    }
}

/// A row of swatches with names, and its height.
fn key(styles: &[Style], width: f64) -> (Element, f64) {
    let mut group = Element::group("key");
    let (mut x, mut y) = (0.0, 6.0);
    for style in styles {
        let room = 40.0 + LETTER * 0.62 * style.name.chars().count() as f64;
        if x + room > width {
            (x, y) = (0.0, y + 18.0);
        }
        group.push(swatch(style, x, y));
        group.push(words(x + 30.0, y + 4.0, &style.name, "name").set("fill", INK));
        x += room + 8.0;
    }
    (group, if styles.is_empty() { 0.0 } else { y + 14.0 })
}

/// A short line with the style's dash and marker, 26 wide.
pub(crate) fn swatch(style: &Style, x: f64, y: f64) -> Element {
    Element::group(format!("series {}", style.class).trim_end())
        .with(
            Element::new("path")
                .set("class", "line")
                .set("d", path([(x, y), (x + 26.0, y)]))
                .set("fill", "none")
                .set("stroke", style.light)
                .set("stroke-width", "1.8")
                .set("stroke-dasharray", if style.dash.is_empty() { "none" } else { style.dash }),
        )
        .with(
            Element::new("path")
                .set("class", "mark")
                .set("d", style.marker.outline(x + 13.0, y, 3.2))
                .set("fill", style.light),
        )
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
