//! `Element`: a piece of SVG as a tree, so that what is written is well-formed whatever a name contains.

use std::fmt::Write;

/// An XML element: a name, attributes, and what is inside.
#[derive(Clone, Debug)]
pub struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    /// An element without anything in it.
    pub fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), children: Vec::new() }
    }

    /// A group of a class: the class is what the page's style and script find it by.
    pub fn group(class: impl Into<String>) -> Self {
        Self::new("g").set("class", class)
    }

    /// Gives an attribute its value, instead of the one it may have had: XML allows one.
    pub fn set(mut self, name: &'static str, value: impl Into<String>) -> Self {
        match self.attributes.iter_mut().find(|(had, _)| *had == name) {
            Some((_, had)) => *had = value.into(),
            None => self.attributes.push((name, value.into())),
        }
        self
    }

    /// A coordinate, to a hundredth: finer than any screen, and the same text on every machine.
    pub fn at(self, name: &'static str, value: f64) -> Self {
        self.set(name, coordinate(value))
    }

    /// Puts text inside, after what is there.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.children.push(Node::Text(text.into()));
        self
    }

    /// Puts an element inside, after what is there.
    pub fn with(mut self, child: Self) -> Self {
        self.push(child);
        self
    }

    /// The same on one that is kept.
    pub fn push(&mut self, child: Self) {
        self.children.push(Node::Element(child));
    }

    /// Appends it as XML.
    pub fn write(&self, out: &mut String) {
        out.push('<');
        out.push_str(self.name);
        for (name, value) in &self.attributes {
            let _ = write!(out, " {name}=\"{}\"", escape(value));
        }
        if self.children.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        for child in &self.children {
            match child {
                Node::Element(element) => element.write(out),
                Node::Text(text) => out.push_str(&escape(text)),
            }
        }
        let _ = write!(out, "</{}>", self.name);
    }
}

/// A number to a hundredth, without trailing zeros.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text that is safe between tags and inside quotes, in XML and HTML alike.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// The `d` of a path through points.
pub fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (i, (x, y)) in points.into_iter().enumerate() {
        let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, coordinate(x), coordinate(y));
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_whatever_a_name_contains() {
        let mut out = String::new();
        Element::new("text").set("data-at", "a\"b").text("x < y & z").write(&mut out);
        assert_eq!(out, "<text data-at=\"a&quot;b\">x &lt; y &amp; z</text>");
    }

    #[test]
    fn writes_short_coordinates() {
        assert_eq!([coordinate(1.0), coordinate(-0.001), coordinate(2.346)], ["1", "0", "2.35"]);
    }
}
