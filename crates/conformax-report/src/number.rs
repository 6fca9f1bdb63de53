//! Numbers as they are printed: one rule per kind of number, used by tables, figures and sentences alike.

use conformax_study::Spread;

/// A level with at least two decimals: 0.10, 0.05, 0.001.
pub(crate) fn level(alpha: f64) -> String {
    let short = format!("{alpha}");
    if short.len() < 4 { format!("{alpha:.2}") } else { short }
}

/// A share of rows.
pub(crate) fn share(value: f64) -> String {
    format!("{value:.3}")
}

/// A number of labels, to about four digits.
pub(crate) fn size(value: f64) -> String {
    let digits = match value.abs() {
        v if v < 10.0 => 3,
        v if v < 100.0 => 2,
        _ => 1,
    };
    format!("{value:.digits$}")
}

/// A count with a comma every three digits.
///
/// ```
/// assert_eq!(conformax_report::count(1_234_567), "1,234,567");
/// ```
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number with its sign, and a true minus.
pub(crate) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let is_zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    match (is_zero, value < 0.0) {
        (true, _) => text,
        (false, true) => format!("−{text}"),
        (false, false) => format!("+{text}"),
    }
}

/// `mean ± deviation`, both printed by `print`; the mean alone where one split gives no spread.
pub(crate) fn spread(spread: Spread, print: fn(f64) -> String) -> String {
    if spread.splits > 1 {
        format!("{} ± {}", print(spread.mean), print(spread.deviation))
    } else {
        print(spread.mean)
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// A small number as a word, as sentences want it.
pub(crate) fn word(value: usize) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    WORDS.get(value).map_or_else(|| count(value as u64), |word| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_each_kind_its_way() {
        assert_eq!([level(0.1), level(0.05), level(0.001)], ["0.10", "0.05", "0.001"]);
        assert_eq!([size(1.23456), size(12.3456), size(123.456)], ["1.235", "12.35", "123.5"]);
        assert_eq!([count(7), count(1234), count(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!([signed(0.0004, 3), signed(-0.012, 3), signed(0.5, 1)], ["0.000", "−0.012", "+0.5"]);
    }

    #[test]
    fn lists_as_a_sentence_does() {
        let items = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        assert_eq!(
            [listed(&items[..1]), listed(&items[..2]), listed(&items)],
            ["a", "a and b", "a, b and c"]
        );
    }
}
