//! Figures as PNG, from their SVG and the machine's own fonts.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Pixels per unit of the drawing: sharp on a dense screen.
const SCALE: f32 = 2.0;

/// Draws with the fonts it found once.
pub(crate) struct Painter {
    options: Options<'static>,
}

impl Painter {
    pub(crate) fn new() -> Self {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        let has =
            |name: &str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name));
        let sans = ["Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans"];
        if let Some(found) = sans.into_iter().find(|name| has(name)) {
            fonts.set_sans_serif_family(found);
        }
        Self { options: Options { fontdb: Arc::new(fonts), ..Options::default() } }
    }

    pub(crate) fn paint(&self, svg: &str) -> Vec<u8> {
        let tree = Tree::from_str(svg, &self.options).expect("our own drawing is valid SVG");
        let size = tree.size().to_int_size().scale_by(SCALE).expect("a figure has a size");
        let mut pixels = Pixmap::new(size.width(), size.height()).expect("a figure has a size");
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().expect("pixels in memory encode")
    }
}
