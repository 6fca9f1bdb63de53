//! How numbers look: rounded for people, whole for machines.

/// Confidence of every interval that is printed.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// `12,345`: long counts are read in groups of three.
pub(crate) use conformax_report::count;

/// A number with four significant decimals below ten and fewer above, ∞ as a sign.
pub(crate) fn shown(value: f64) -> String {
    if value == f64::INFINITY {
        return "∞".to_owned();
    }
    let magnitude = value.abs();
    match magnitude {
        0.0 => "0".to_owned(),
        _ if !(1e-4..1e7).contains(&magnitude) => format!("{value:.3e}"),
        _ if magnitude < 10.0 => format!("{value:.4}"),
        _ if magnitude < 1000.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// A share between 0 and 1, to `digits` decimals, or to as many as it takes not to round it to 0 or 1 where it is
/// neither.
pub(crate) fn share(value: f64, digits: usize) -> String {
    let certain = |text: &String| {
        let rounded = text.parse::<f64>().unwrap_or(value);
        (rounded == 1.0 && value < 1.0) || (rounded == 0.0 && value > 0.0)
    };
    let mut rounded = (digits..digits + 20).map(|digits| format!("{value:.digits$}"));
    rounded.find(|text| !certain(text)).unwrap_or_else(|| format!("{value:.1e}"))
}

/// `0.881 to 0.918`: two shares, neither rounded to certainty.
pub(crate) fn range((low, high): (f64, f64)) -> String {
    format!("{} to {}", share(low, 3), share(high, 3))
}

/// An absent number is a dash.
pub(crate) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// `1 row`, `2 rows`.
pub(crate) fn rows(value: u64) -> String {
    format!("{} row{}", count(value), if value == 1 { "" } else { "s" })
}

/// `1 label`, `2 labels`.
pub(crate) fn labels(value: u64) -> String {
    format!("{} label{}", count(value), if value == 1 { "" } else { "s" })
}

/// `1 part`, `2 parts`.
pub(crate) fn parts(value: u64) -> String {
    format!("{} part{}", count(value), if value == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_claims_certainty() {
        assert_eq!(share(0.99999, 3), "0.99999");
        assert_eq!(share(0.999_744_297_263_334_1, 3), "0.9997");
        assert_eq!(share(0.000_026_561_398_887_587_56, 3), "0.00003");
        assert_eq!(share(1e-40, 3), "1.0e-40");
        assert_eq!(share(1.0, 3), "1.000");
        assert_eq!(share(0.00001, 3), "0.00001");
        assert_eq!(share(0.9, 3), "0.900");
        assert_eq!(range((0.00001, 0.99999)), "0.00001 to 0.99999");
        assert_eq!(range((0.9, 1.0)), "0.900 to 1.000");
    }

    #[test]
    fn every_size_of_number_is_readable() {
        assert_eq!([0.0, 0.5, 12.345, 4321.5].map(shown), ["0", "0.5000", "12.35", "4322"]);
        assert_eq!([f64::INFINITY, 1e-9].map(shown), ["∞", "1.000e-9"]);
    }
}
