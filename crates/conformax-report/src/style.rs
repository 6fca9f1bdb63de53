//! Styles: the colour, dash and marker by which a procedure is known on every figure.
//!
//! Hues are those Okabe and Ito chose for colour-blind readers, darkened on white and lightened on black until each
//! stands out from the paper at 3 : 1. Shape and dash tell the same story without any colour.

use conformax_plot::{Marker, Style};
use conformax_study::paper::PROCEDURES;

const MARKERS: [Marker; 6] =
    [Marker::Circle, Marker::Square, Marker::Up, Marker::Diamond, Marker::Down, Marker::Cross];

/// Light, dark and dash of each place in the palette.
const PALETTE: [(&str, &str, &str); 8] = [
    ("#3b4048", "#dfe3e8", ""),
    ("#c47f00", "#f0b23c", "7 3"),
    ("#2f9bd8", "#7cc8f5", "2 3"),
    ("#00845f", "#35c49a", "9 3 2 3"),
    ("#b4568f", "#e39ac6", "4 3"),
    ("#0062a3", "#4aa8e8", ""),
    ("#c65000", "#f58a4b", "7 3 2 3 2 3"),
    ("#7a7000", "#d8cf4a", "12 4"),
];

/// One style per procedure, the same whichever of them a study has: the paper's have places of their own in the
/// palette, others take what is left.
pub(crate) fn of_procedures(names: &[String]) -> Vec<Style> {
    let mut spare = (0..).filter(|place| {
        PROCEDURES.get(*place).is_none_or(|known| !names.iter().any(|name| name == known))
            || *place >= PALETTE.len()
    });
    names
        .iter()
        .map(|name| match PROCEDURES.iter().position(|known| known == name) {
            Some(place) => styled(name, place),
            None => styled(name, spare.next().unwrap_or(0)),
        })
        .collect()
}

/// The style of a procedure of the paper, for figures that draw its activation.
pub(crate) fn known(name: &str) -> Style {
    styled(name, PROCEDURES.iter().position(|known| *known == name).unwrap_or(0))
}

fn styled(name: &str, place: usize) -> Style {
    let (light, dark, dash) = PALETTE[place % PALETTE.len()];
    let marker = MARKERS[(place + place / PALETTE.len()) % MARKERS.len()];
    Style { name: name.to_owned(), class: format!("s{}", place % PALETTE.len()), light, dark, dash, marker }
}

/// All classes with their two colours, for the page's style sheet.
pub(crate) fn palette() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    PALETTE.iter().enumerate().map(|(place, (light, dark, _))| (format!("s{place}"), *light, *dark))
}

/// Blue to red through green and amber, all of middling lightness so that each shows on white and on black.
const RAMP: [&str; 11] = [
    "#4a6fc4", "#3f84c6", "#3397bd", "#35a5a4", "#4bab83", "#71ab60", "#9aa643", "#bd9a36", "#d28638",
    "#d76f45", "#d1565a",
];

/// Styles for `names` along an ordered quantity.
pub(crate) fn ramp(names: &[String]) -> Vec<Style> {
    let last = names.len().saturating_sub(1).max(1);
    let styled = |(i, name): (usize, &String)| {
        let colour = RAMP[i * (RAMP.len() - 1) / last];
        let marker = MARKERS[i % MARKERS.len()];
        Style::plain(name, colour, "", marker)
    };
    names.iter().enumerate().map(styled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_procedures_style_whatever_stands_beside_it() {
        let alone = of_procedures(&["RAPS".to_owned()]);
        let among = of_procedures(&["APS".to_owned(), "opt-entmax".to_owned(), "RAPS".to_owned()]);
        assert_eq!(alone[0], among[2]);
        assert_ne!(among[0].light, among[2].light);
        assert_ne!(among[0].light, among[1].light);
    }
}
