//! `Alpha`, `Gamma` and `Lambda`: numbers that are checked once and trusted after.
//!
//! Levels and indices are decimals. A float stands for its shortest round-trip decimal, so `0.1` is one tenth and not
//! the binary fraction next to it; ranks and `δ = 1/(γ − 1)` are then integer arithmetic.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// A non-negative decimal `digits / 10^scale`, without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Decimal {
    digits: u64,
    scale: u32,
}

impl Decimal {
    /// The shortest decimal that reads back as `value`.
    fn shortest(value: f64) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then(|| Self::parse(&format!("{value:e}")))?
    }

    /// Exact for at most 18 significant digits; `None` otherwise, and for anything that is not a number.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.len() + fraction.len() == 0 {
            return None;
        }
        let mut digits = 0u64;
        let mut scale = i64::from(exponent).checked_neg()? + i64::try_from(fraction.len()).ok()?;
        for digit in whole.chars().chain(fraction.trim_end_matches('0').chars()) {
            digits = digits.checked_mul(10)?.checked_add(u64::from(digit.to_digit(10)?))?;
        }
        if digits == 0 {
            return Some(Self { digits: 0, scale: 0 });
        }
        scale -= (fraction.len() - fraction.trim_end_matches('0').len()) as i64;
        while scale < 0 {
            digits = digits.checked_mul(10)?;
            scale += 1;
        }
        while scale > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            scale -= 1;
        }
        (digits < 1_000_000_000_000_000_000).then_some(Self { digits, scale: u32::try_from(scale).ok()? })
    }

    /// The nearest `f64`: reading a decimal is correctly rounded.
    fn value(self) -> f64 {
        format!("{}e-{}", self.digits, self.scale).parse().expect("digits and an exponent are a number")
    }
}

/// Places after the point up to which a decimal is written out; smaller ones get an exponent.
const PLAIN_PLACES: u32 = 18;

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digits, scale } = *self;
        if scale > PLAIN_PLACES {
            return write!(f, "{digits}e-{scale}");
        }
        let one = 10u64.pow(scale);
        write!(f, "{}", digits / one)?;
        match scale {
            0 => Ok(()),
            _ => write!(f, ".{:0width$}", digits % one, width = scale as usize),
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.scale > other.scale {
            return other.cmp(self).reverse();
        }
        // Fewer than 19 digits each: with 19 places more, `other` is smaller than any positive number here.
        let places = other.scale - self.scale;
        match (self.digits, 10u128.checked_pow(places).filter(|_| places <= 19)) {
            (0, _) => 0.cmp(&other.digits),
            (digits, Some(one)) => (u128::from(digits) * one).cmp(&u128::from(other.digits)),
            (_, None) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A miscoverage level strictly between 0 and 1, kept as the decimal it was written as.
///
/// ```
/// use conformax::Alpha;
/// let alpha = Alpha::new(0.1)?;
/// assert_eq!(alpha, "0.10".parse()?);
/// assert_eq!(alpha, Alpha::from_confidence(0.9)?); // 1.0 - 0.9 in floating point is not 0.1
/// assert_eq!(alpha.to_string(), "0.1");
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Alpha(Decimal);

impl Alpha {
    /// The level whose shortest decimal `alpha` is.
    pub fn new(alpha: f64) -> Result<Self> {
        if alpha > 0.0 && alpha < 1.0 {
            Decimal::shortest(alpha).map(Self).ok_or(Error::Alpha(alpha))
        } else {
            Err(Error::Alpha(alpha))
        }
    }

    /// The level `1 − confidence`, complemented in decimal.
    pub fn from_confidence(confidence: f64) -> Result<Self> {
        let fault = Error::Confidence(confidence);
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(fault);
        }
        let Some(Decimal { digits, scale }) = Decimal::shortest(confidence).filter(|c| c.scale <= 18) else {
            return Err(fault);
        };
        // 10^scale − digits has the same scale and, as `digits` does not end in 0, neither does it.
        Ok(Self(Decimal { digits: 10u64.pow(scale) - digits, scale }))
    }

    /// The nearest `f64`, for showing and plotting; ranks never go through it.
    pub fn value(self) -> f64 {
        self.0.value()
    }

    /// `1 − α` as the nearest `f64`: the coverage that is promised.
    pub fn confidence(self) -> f64 {
        let Decimal { digits, scale } = self.0;
        match 10u64.checked_pow(scale) {
            Some(one) => Decimal { digits: one - digits, scale }.value(),
            None => 1.0 - self.value(),
        }
    }

    /// `⌊count · α⌋`, exactly.
    pub(crate) fn floor_of(self, count: u128) -> u128 {
        let digits = u128::from(self.0.digits);
        match 10u128.checked_pow(self.0.scale) {
            // Wholes and rest apart: digits < 10^18, so up to a scale of 19 the product of the rest stays below 10^37.
            Some(one) if self.0.scale <= 19 => count / one * digits + count % one * digits / one,
            // A level below a thousandth of the last digits; what is divided by parts loses nothing of the floor.
            _ => {
                let (high, low) = ((count >> 64) * digits, (count & u128::from(u64::MAX)) * digits);
                divided(high + (low >> 64), low as u64, self.0.scale)
            }
        }
    }

    /// Calibration rows that give a finite threshold: `⌈1/α⌉ − 1`.
    pub fn rows_needed(self) -> u64 {
        let enough = 10u128.checked_pow(self.0.scale).map(|one| one.div_ceil(u128::from(self.0.digits)) - 1);
        enough.and_then(|rows| u64::try_from(rows).ok()).unwrap_or(u64::MAX)
    }
}

/// `⌊(high · 2^64 + low) / 10^scale⌋`, by one power of ten that fits after another: a floor of a floor is the floor.
fn divided(mut high: u128, mut low: u64, mut scale: u32) -> u128 {
    while scale > 0 && (high, low) != (0, 0) {
        let tens = scale.min(19);
        let by = 10u128.pow(tens);
        let rest = high % by;
        let below = (rest << 64 | u128::from(low)) / by;
        (high, low, scale) = (high / by, below as u64, scale - tens);
    }
    high << 64 | u128::from(low)
}

/// The error of a text that is no decimal: of the number, where it is one below zero.
fn no_decimal(text: &str, below_zero: fn(f64) -> Error) -> Error {
    let number = text.trim().strip_prefix('-').and_then(Decimal::parse);
    number.map_or_else(|| Error::Decimal(text.to_owned()), |number| below_zero(-number.value()))
}

impl FromStr for Alpha {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let decimal = Decimal::parse(text.trim()).ok_or_else(|| no_decimal(text, Error::Alpha))?;
        let inside =
            decimal.digits > 0 && 10u64.checked_pow(decimal.scale).is_none_or(|one| decimal.digits < one);
        inside.then_some(Self(decimal)).ok_or(Error::Alpha(decimal.value()))
    }
}

impl fmt::Display for Alpha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Alpha {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

/// Index of the entmax family, between 1 (softmax, log-margin) and 16; 1.5 is entmax15, 2 is sparsemax.
///
/// ```
/// use conformax::Gamma;
/// assert_eq!(Gamma::new(1.1)?.delta(), 10.0); // 1 / (1.1 − 1.0) in floating point is 9.999999999999991
/// assert_eq!(Gamma::new(1.0)?.delta(), f64::INFINITY);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gamma {
    value: f64,
    delta: f64,
    inverse_delta: f64,
}

impl Gamma {
    /// γ = 1: softmax, and as a score the log-margin.
    pub const SOFTMAX: Self = Self { value: 1.0, delta: f64::INFINITY, inverse_delta: 0.0 };
    /// γ = 1.5: entmax15, the default.
    pub const ENTMAX15: Self = Self { value: 1.5, delta: 2.0, inverse_delta: 0.5 };
    /// γ = 2: sparsemax.
    pub const SPARSEMAX: Self = Self { value: 2.0, delta: 1.0, inverse_delta: 1.0 };

    /// The index whose shortest decimal `gamma` is.
    pub fn new(gamma: f64) -> Result<Self> {
        if !(1.0..=16.0).contains(&gamma) {
            return Err(Error::Gamma(gamma));
        }
        Decimal::shortest(gamma).map(Self::of).ok_or(Error::Gamma(gamma))
    }

    /// Of a decimal between 1 and 16, whose scale is then at most 17.
    fn of(decimal: Decimal) -> Self {
        let Decimal { digits, scale } = decimal;
        let one = 10u64.pow(scale);
        let (delta, inverse_delta) = (ratio(one, digits - one), ratio(digits - one, one));
        Self { value: decimal.value(), delta, inverse_delta }
    }

    /// γ itself.
    pub fn value(self) -> f64 {
        self.value
    }

    /// `δ = 1/(γ − 1)`, the order of the norm in the score and the exponent of the activation; ∞ at γ = 1.
    pub fn delta(self) -> f64 {
        self.delta
    }

    /// `1/δ = γ − 1`, rounded once. Hidden, because only `conformax-cuda`, whose kernels are given both, has a use for
    /// it that [`delta`](Self::delta) does not serve.
    #[doc(hidden)]
    pub fn inverse_delta(self) -> f64 {
        self.inverse_delta
    }
}

impl Default for Gamma {
    fn default() -> Self {
        Self::ENTMAX15
    }
}

impl FromStr for Gamma {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let decimal = Decimal::parse(text.trim()).ok_or_else(|| no_decimal(text, Error::Gamma))?;
        match (1.0..=16.0).contains(&decimal.value()) && decimal >= (Decimal { digits: 1, scale: 0 }) {
            true => Ok(Self::of(decimal)),
            false => Err(Error::Gamma(decimal.value())),
        }
    }
}

impl fmt::Display for Gamma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Gamma {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value)
    }
}

/// A penalty or weight for each rank, as RAPS and SAPS have: finite and not negative.
///
/// ```
/// use conformax::Lambda;
/// assert_eq!(Lambda::new(0.01)?.value(), 0.01);
/// assert!(Lambda::new(-1.0).is_err() && Lambda::new(f64::NAN).is_err());
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lambda(f64);

impl Lambda {
    /// Checks the number.
    pub fn new(lambda: f64) -> Result<Self> {
        match (0.0..f64::INFINITY).contains(&lambda) {
            // + 0.0, since −0 would be printed and compared as another number.
            true => Ok(Self(lambda + 0.0)),
            false => Err(Error::Parameter { name: "lambda", wanted: "finite and not negative", got: lambda }),
        }
    }

    /// A number that is known to be sound when the crate is compiled.
    pub(crate) const fn known(lambda: f64) -> Self {
        assert!(lambda >= 0.0 && lambda < f64::INFINITY, "finite and not negative");
        Self(lambda)
    }

    /// λ itself.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Lambda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Lambda {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

/// Positive decimals that sum to one exactly.
pub(crate) struct Fractions {
    /// Cumulative sums over the common denominator.
    sums: Vec<u128>,
    denominator: u128,
}

impl Fractions {
    pub(crate) fn new(fractions: &[f64]) -> Result<Self> {
        if let Some(none) = fractions.iter().find(|fraction| !(**fraction > 0.0)) {
            return Err(Error::Fraction(*none));
        }
        let fault = Error::Fractions(fractions.iter().sum());
        let decimals: Option<Vec<Decimal>> =
            fractions.iter().map(|value| Decimal::shortest(*value)).collect();
        decimals.and_then(|decimals| Self::of(&decimals)).ok_or(fault)
    }

    /// `1 − fraction` and `fraction`.
    pub(crate) fn complement(fraction: f64) -> Option<Self> {
        let decimal = Decimal::shortest(fraction).filter(|decimal| decimal.scale <= 18)?;
        let rest = 10u64.pow(decimal.scale).checked_sub(decimal.digits)?;
        Self::of(&[Decimal { digits: rest, ..decimal }, decimal])
    }

    fn of(decimals: &[Decimal]) -> Option<Self> {
        let scale = decimals.iter().map(|decimal| decimal.scale).max().filter(|scale| *scale <= 18)?;
        let denominator = 10u128.pow(scale);
        let mut sums = Vec::with_capacity(decimals.len());
        let mut sum = 0;
        for decimal in decimals {
            sum += u128::from(decimal.digits) * 10u128.pow(scale - decimal.scale);
            sums.push(sum);
        }
        let sound = sum == denominator && decimals.iter().all(|decimal| decimal.digits > 0);
        sound.then_some(Self { sums, denominator })
    }

    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// `⌈(f₀ + … + f_last)·n⌉`.
    pub(crate) fn ceil_of_sum(&self, last: usize, n: u64) -> u64 {
        let rows = (self.sums[last] * u128::from(n)).div_ceil(self.denominator);
        u64::try_from(rows).expect("a fraction of n is at most n")
    }
}

/// The `f64` nearest to `numerator / denominator`; both below 2^60 here.
fn ratio(numerator: u64, denominator: u64) -> f64 {
    if denominator == 0 {
        return f64::INFINITY;
    }
    // A quotient of at least 64 bits whose last bit remembers any remainder rounds like the exact one.
    let shift = 124 - (64 - numerator.leading_zeros());
    let scaled = u128::from(numerator) << shift;
    let quotient = scaled / u128::from(denominator);
    let sticky = u128::from(!scaled.is_multiple_of(u128::from(denominator)));
    let power_of_two = f64::from_bits(u64::from(1023 - shift) << 52);
    (quotient | sticky) as f64 * power_of_two
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_float_as_its_shortest_decimal() {
        assert_eq!(Decimal::shortest(0.18), Some(Decimal { digits: 18, scale: 2 }));
        assert_eq!(Decimal::shortest(1e-300), Some(Decimal { digits: 1, scale: 300 }));
        assert_eq!(Decimal::shortest(16.0), Some(Decimal { digits: 16, scale: 0 }));
    }

    #[test]
    fn reads_text_exactly() {
        for text in ["0.1", ".1", "1e-1", "0.1000", "+0.10", "10E-2"] {
            assert_eq!(Decimal::parse(text), Some(Decimal { digits: 1, scale: 1 }), "{text}");
        }
        for text in ["", ".", "-0.1", "0.1x", "1e", "nan", "0.1234567890123456789", "e5", "1e999999999999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        assert_eq!(Decimal::parse("0.000"), Some(Decimal { digits: 0, scale: 0 }));
    }

    #[test]
    fn whole_numbers_keep_their_zeros() {
        for text in ["100", "1e2", "10E1", "100.0", "0.1e3"] {
            assert_eq!(Decimal::parse(text), Some(Decimal { digits: 100, scale: 0 }), "{text}");
        }
    }

    #[test]
    fn eighteen_digits_are_the_most() {
        let most = Decimal { digits: 999_999_999_999_999_999, scale: 0 };
        assert_eq!(Decimal::parse("999999999999999999"), Some(most));
        assert_eq!(Decimal::parse("1000000000000000000"), None);
    }

    #[test]
    fn shown_as_they_were_given() {
        let alpha = Alpha::new(0.05).unwrap();
        assert_eq!((alpha.value(), alpha.confidence(), alpha.to_string().as_str()), (0.05, 0.95, "0.05"));
        assert_eq!(alpha.0.to_string(), "0.05");
        // Beyond nineteen places one is no longer a power of ten in 64 bits.
        assert_eq!(Alpha::new(1e-30).unwrap().confidence(), 1.0);
        for text in ["0.1", "0.000000000000000001", "1e-19", "15e-401", "0.123456789012345678"] {
            assert_eq!(text.parse::<Alpha>().unwrap().to_string(), text);
        }
        assert_eq!("0.00100000000000000001".parse::<Alpha>().unwrap().confidence(), 0.999);
        assert_eq!(Gamma::new(1.25).unwrap().to_string(), "1.25");
    }

    #[test]
    fn zero_is_zero_whatever_its_exponent() {
        for text in ["0e2147483647", "0e-2147483648", "0.0e9"] {
            assert_eq!(Decimal::parse(text), Some(Decimal { digits: 0, scale: 0 }), "{text}");
        }
    }

    #[test]
    fn levels_are_ordered_as_numbers() {
        let rising = ["1e-400", "2e-400", "1e-30", "0.05", "0.0999999999999999999", "0.1", "0.11", "0.9"];
        let levels = rising.map(|text| text.parse::<Alpha>());
        for (place, level) in levels.iter().enumerate() {
            for (other_place, other) in levels.iter().enumerate() {
                let pair = (level.as_ref().unwrap(), other.as_ref().unwrap());
                assert_eq!(pair.0.cmp(pair.1), place.cmp(&other_place), "{} and {}", pair.0, pair.1);
            }
        }
    }

    #[test]
    fn indices_are_read_from_text_as_from_numbers() {
        for text in ["1", "1.1", "1.5", "2", "16", " 1.30 "] {
            assert_eq!(text.parse::<Gamma>().unwrap(), Gamma::new(text.trim().parse().unwrap()).unwrap());
        }
        for text in ["0.9999999999999999999", "0.99999999999999999", "16.1", "x", "", "-2", "17"] {
            assert!(text.parse::<Gamma>().is_err(), "{text}");
        }
    }

    #[test]
    fn complements_confidence_in_decimal() {
        for (confidence, alpha) in
            [(0.95, "0.05"), (0.9, "0.1"), (0.7, "0.3"), (0.999, "0.001"), (0.82, "0.18")]
        {
            assert_eq!(Alpha::from_confidence(confidence).unwrap(), alpha.parse().unwrap());
        }
    }

    #[test]
    fn delta_is_the_nearest_float_to_the_decimal_quotient() {
        for (gamma, delta) in [
            (1.1, 10.0),
            (1.2, 5.0),
            (1.25, 4.0),
            (1.02, 50.0),
            (3.0, 0.5),
            (1.3, 10.0 / 3.0),
            (16.0, 1.0 / 15.0),
        ] {
            assert_eq!(Gamma::new(gamma).unwrap().delta(), delta, "{gamma}");
        }
        assert_eq!(Gamma::new(1.0 + f64::EPSILON).unwrap().delta(), 5e15);
    }

    /// Quotients whose bits beyond the 53rd are a one and zeros, with a remainder after them: without it the last bit
    /// would be rounded the other way. Found by search, with exact fractions for the result.
    #[test]
    fn a_remainder_decides_what_looks_like_a_tie() {
        for (gamma, delta) in
            [(1.3492446390952564, 2.8633224051500767), (1.6579309672477711, 1.5199162978802436)]
        {
            assert_eq!(Gamma::new(gamma).unwrap().delta(), delta, "{gamma}");
        }
    }

    #[test]
    fn fractions_are_positive_and_sum_to_one() {
        let whole = Fractions::new(&[0.5, 0.25, 0.125, 0.125]).unwrap();
        let bounds: Vec<u64> = (0..4).map(|last| whole.ceil_of_sum(last, 80)).collect();
        assert_eq!(bounds, [40, 60, 70, 80]);
        for bad in [&[0.0, 1.0][..], &[0.5, 0.25], &[0.5, 0.75], &[1.5, -0.5], &[]] {
            assert!(Fractions::new(bad).is_err(), "{bad:?}");
        }
        assert!(Fractions::complement(0.0).is_none() && Fractions::complement(1.0).is_none());
        assert_eq!(Fractions::complement(0.375).unwrap().ceil_of_sum(0, 8), 5);
    }

    #[test]
    fn few_rows_are_counted_exactly() {
        assert_eq!("0.5".parse::<Alpha>().unwrap().rows_needed(), 1);
        assert_eq!("0.99".parse::<Alpha>().unwrap().rows_needed(), 1);
        assert_eq!(Alpha::new(1e-300).unwrap().rows_needed(), u64::MAX);
    }
}
