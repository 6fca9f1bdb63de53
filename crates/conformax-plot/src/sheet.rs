//! `Sheet`: panels under a title, as one drawing that stands alone.

use crate::plot::{INK, LETTER, words};
use crate::style::Style;
use crate::svg::{Element, path};

/// Fonts that are there already, wherever the page or figure is opened.
const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";
const MARGIN: f64 = 16.0;
const GAP: f64 = 24.0;
const TITLE_ROOM: f64 = 24.0;

/// One drawing of several.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// What it shows, in words.
    pub alternative: String,
    /// Width and height.
    pub size: (f64, f64),
    /// The drawing itself.
    pub drawing: Element,
}

/// Panels under a title.
#[derive(Clone, Copy, Debug)]
pub struct Sheet<'a> {
    /// The title.
    pub title: &'a str,
    /// Panels side by side.
    pub columns: usize,
    /// Series that are not named in the panels.
    pub key: &'a [Style],
    /// From left to right, then down.
    pub panels: &'a [&'a Panel],
}

impl Sheet<'_> {
    /// The whole sheet as a file.
    pub fn svg(&self) -> String {
        let columns = self.columns.min(self.panels.len()).max(1);
        let cell = self.panels.iter().fold((0.0, 0.0), |(w, h): (f64, f64), panel| {
            (w.max(panel.size.0), h.max(panel.size.1 + TITLE_ROOM))
        });
        let width = 2.0 * MARGIN + columns as f64 * (cell.0 + GAP) - GAP;
        let key = key(self.key, width - 2.0 * MARGIN);
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
            .with(Element::new("title").set("id", "title").text(self.title))
            .with(Element::new("desc").set("id", "desc").text(self.alternative()))
            .with(Element::new("rect").set("width", "100%").set("height", "100%").set("fill", "#ffffff"))
            .with(
                words(MARGIN, MARGIN + 14.0, self.title, "title")
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

    /// What all panels show, in words.
    fn alternative(&self) -> String {
        self.panels.iter().map(|panel| panel.alternative.as_str()).collect::<Vec<_>>().join(" ")
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

    /// The drawing inside a page, which names it in a heading of its own.
    pub fn inline(&self) -> String {
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
pub fn swatch(style: &Style, x: f64, y: f64) -> Element {
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
