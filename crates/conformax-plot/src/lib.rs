//! Drawings as SVG: axes, series, and sheets of panels that stand alone.
//!
//! ```
//! use conformax_plot::{Axis, Frame, Marker, Panel, Plot, Point, Series, Sheet, Style};
//!
//! let style = Style::plain("training", "#3b6fb6", "", Marker::Circle);
//! let point = |x, y: f64| Point { x, y, spread: (y, y), at: format!("epoch {x}"), value: y.to_string() };
//! let series = Series { style: &style, is_procedure: false, points: vec![point(1.0, 2.0), point(2.0, 1.5)] };
//! let mut plot = Plot::new(Frame::PLAIN, &Axis::even("epoch", 1.0, 2.0), &Axis::even("Loss", 1.5, 2.0));
//! plot.line(&series);
//! let panel = Panel {
//!     title: "Loss".to_owned(),
//!     alternative: "Loss falls from 2 to 1.5.".to_owned(),
//!     size: Frame::PLAIN.size(),
//!     drawing: plot.finish(),
//! };
//! let sheet = Sheet { title: "A run", columns: 1, key: &[], panels: &[&panel] };
//! assert!(sheet.svg().starts_with("<svg"));
//! ```
//!
//! The same drawing stands alone in a file and inside a page, whose style sheet may recolour it. Text is the same on
//! every machine: coordinates are written to a hundredth.

mod axis;
mod plot;
mod sheet;
mod style;
mod svg;

pub use axis::{Axis, Scale, Spacing};
pub use plot::{Frame, INK, LETTER, Plot, Point, Series, mark, rule, words};
pub use sheet::{Panel, Sheet, swatch};
pub use style::{Marker, Style};
pub use svg::{Element, path};
