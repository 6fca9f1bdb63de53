//! Results of a study in, a report out: a page, figures and tables, as bytes.
//!
//! ```
//! use conformax_report::{Options, render};
//! use conformax_study::Results;
//!
//! let files = render(&Results::default(), &Options::default());
//! assert!(files.iter().any(|file| file.path == "report/index.html"));
//! ```
//!
//! Nothing here computes from logits or judges anything: every number shown is one of the study's records, their mean,
//! spread or sum, or the library's answer about a row. The page works from disk and without a network, in the light and
//! in the dark, on a phone and on paper.
//!
//! # Features
//! - `png`: [`Options::png`], figures as PNG beside the SVG.

mod conditional;
mod figure;
mod findings;
mod number;
mod page;
#[cfg(feature = "png")]
mod png;
mod small_chart;
mod style;
mod table;
mod try_it;
mod view;

use conformax_study::Results;

pub use crate::conditional::render_conditional;
pub use crate::number::count;

use crate::table::{Table, Tables};
use crate::view::View;

/// What to write besides the page, the SVG figures and the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Figures as PNG too, at two pixels per unit.
    #[cfg(feature = "png")]
    pub png: bool,
    /// Whether the folder `conditional` beside that of the study holds the page of `conformax study conditional`, which
    /// is then linked.
    pub conditional_beside: bool,
}

/// A file of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it goes, with forward slashes, under the folder of the study's output.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Everything a reader sees: `report/index.html`, `figures/*.svg` with the numbers behind each as `figures/*.csv`, and
/// `tables/*.md`, `*.csv` and `*.tex`.
pub fn render(results: &Results, options: &Options) -> Vec<File> {
    let view = View::new(results);
    let figures = figure::all(&view);
    let tables = Tables::new(&view);
    let mut files = vec![text("report/index.html".to_owned(), page::html(&view, &figures, &tables, options))];
    files.extend(figure_files(&figures, options));
    files.extend(tables.files().flat_map(table_files));
    files
}

/// Each as SVG, with its numbers as CSV.
fn figure_files(figures: &[figure::Figure], options: &Options) -> Vec<File> {
    let mut files = Vec::new();
    for figure in figures {
        let name = figure.file_name();
        files.push(text(format!("figures/{name}.svg"), figure.svg()));
        files.push(text(format!("figures/{name}.csv"), figure.data.csv()));
    }
    files.extend(pngs(figures, options));
    files
}

#[cfg(feature = "png")]
fn pngs(figures: &[figure::Figure], options: &Options) -> Vec<File> {
    if !options.png {
        return Vec::new();
    }
    let painter = png::Painter::new();
    let paint = |figure: &figure::Figure| File {
        path: format!("figures/{}.png", figure.file_name()),
        bytes: painter.paint(&figure.svg()),
    };
    figures.iter().map(paint).collect()
}

#[cfg(not(feature = "png"))]
fn pngs(_: &[figure::Figure], _: &Options) -> Vec<File> {
    Vec::new()
}

fn table_files(table: &Table) -> [File; 3] {
    let path = |ending: &str| format!("tables/{}.{ending}", table.slug);
    [text(path("md"), table.markdown()), text(path("csv"), table.csv()), text(path("tex"), table.latex())]
}

fn text(path: String, content: String) -> File {
    File { path, bytes: content.into_bytes() }
}
