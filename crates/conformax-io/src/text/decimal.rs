//! The number that a plain decimal stands for: the numbers that most tables consist of, without asking for the parser
//! that can read them all.

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Digits that fit 64 bits whatever they are.
const MOST_DIGITS: usize = 19;

/// The double nearest to the number written here, or `None` where it takes more to find it: an exponent, many digits,
/// space around it, or no number at all.
///
/// Digits without their point are a whole number. Up to 2⁵³ a double holds it exactly, as it does the power of ten it
/// is divided by, so the quotient is rounded once: it is what any correct parser gives.
pub(crate) fn plain_decimal(text: &[u8]) -> Option<f64> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if text.len() > MOST_DIGITS + 1 {
        return None;
    }
    let (whole, before) = digits(text, 0);
    let (number, after) = match text.get(before) {
        None => (whole, 0),
        Some(b'.') => digits(&text[before + 1..], whole),
        Some(_) => return None,
    };
    let point = usize::from(before < text.len());
    let complete = before + point + after == text.len() && (1..=MOST_DIGITS).contains(&(before + after));
    if !complete || number > 1 << 53 {
        return None;
    }
    let number = number as f64 / POWERS[after];
    Some(if negative { -number } else { number })
}

/// The digits that a text begins with, appended to those of `number`, and how many there are.
fn digits(text: &[u8], mut number: u64) -> (u64, usize) {
    let mut count = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        // Twenty digits may be too many, and are counted and refused.
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        count += 1;
    }
    (number, count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_plain_numbers_and_leaves_the_others() {
        let plain =
            ["0", "-0", "7", "-12.5", "1.", ".5", "007.250", "9007199254740992", "0.000000000000000001"];
        for text in plain {
            let number = plain_decimal(text.as_bytes()).expect(text);
            assert_eq!(number.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        let others =
            ["", "-", ".", "-.", "+1", "1e5", " 1", "1 ", "--1", "1.2.3", "1,2", "inf", "nan", "1_0", "٣"];
        let long =
            ["9007199254740993", "12345678901234567890", "0.0000000000000000001", "99999999999999999999"];
        for text in others.into_iter().chain(long) {
            assert_eq!(plain_decimal(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_parser_of_all_numbers(text in "-?[0-9]{0,10}(\\.[0-9]{0,10})?") {
            if let Some(number) = plain_decimal(text.as_bytes()) {
                prop_assert_eq!(number.to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
        }

        #[test]
        fn reads_single_precision_as_it_is_written(number in -1e4_f32..1e4) {
            let text = number.to_string();
            if text.len() < 16 {
                prop_assert_eq!(plain_decimal(text.as_bytes()), text.parse().ok());
            }
        }
    }
}
