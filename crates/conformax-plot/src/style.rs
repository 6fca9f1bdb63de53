//! `Style`: the colour, dash and marker by which a series is known.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::svg::{coordinate, path};

/// How one series looks.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// What the series is called.
    pub name: String,
    /// Class by which the page recolours it when dark, where it has a dark colour.
    pub class: String,
    /// Colour on white.
    pub light: &'static str,
    /// Colour on black.
    pub dark: &'static str,
    /// SVG's dash array; empty for a solid line.
    pub dash: &'static str,
    /// Shape of its marks.
    pub marker: Marker,
}

impl Style {
    /// The style of a series that no page recolours.
    pub fn plain(name: &str, colour: &'static str, dash: &'static str, marker: Marker) -> Self {
        Self { name: name.to_owned(), class: String::new(), light: colour, dark: colour, dash, marker }
    }
}

/// Shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A triangle that points up.
    Up,
    /// A triangle that points down.
    Down,
    /// A square on its corner.
    Diamond,
    /// An upright cross.
    Cross,
}

impl Marker {
    /// The outline around a point, `r` wide to each side.
    pub fn outline(self, x: f64, y: f64, r: f64) -> String {
        match self {
            Self::Circle => {
                let (left, r2, r) = (coordinate(x - r), coordinate(2.0 * r), coordinate(r));
                format!("M{left} {}a{r} {r} 0 1 0 {r2} 0a{r} {r} 0 1 0 -{r2} 0Z", coordinate(y))
            }
            Self::Square => polygon(x, y, r * 1.25, 4, PI / 4.0),
            Self::Diamond => polygon(x, y, r * 1.35, 4, 0.0),
            Self::Up => polygon(x, y, r * 1.4, 3, -FRAC_PI_2),
            Self::Down => polygon(x, y, r * 1.4, 3, FRAC_PI_2),
            Self::Cross => cross(x, y, r),
        }
    }
}

fn polygon(x: f64, y: f64, r: f64, corners: u32, turn: f64) -> String {
    let corner = |i| turn + 2.0 * PI * f64::from(i) / f64::from(corners);
    path((0..corners).map(|i| (x + r * corner(i).cos(), y + r * corner(i).sin()))) + "Z"
}

fn cross(x: f64, y: f64, r: f64) -> String {
    let thin = r * 0.45;
    let quarter = [(-thin, -r), (thin, -r), (thin, -thin)];
    let turned = (0..4).flat_map(|turn| {
        quarter.map(|(dx, dy)| match turn {
            0 => (x + dx, y + dy),
            1 => (x - dy, y + dx),
            2 => (x - dx, y - dy),
            _ => (x + dy, y - dx),
        })
    });
    path(turned) + "Z"
}
