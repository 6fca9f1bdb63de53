// The CPU's `exp`, `ln` and `pow`, to the bit: the same operations in the same order, in f64, none of them contracted.

#define ENDLESS (of_bits(0x7ff0000000000000ull))
#define NO_NUMBER (of_bits(0x7ff8000000000000ull))

// Adding it rounds to an integer and leaves that integer in the low bits of the sum: 1.5 · 2⁵².
#define ROUNDER 6755399441055744.0
#define LOG2_E (of_bits(0x3ff71547652b82feull))
#define LN_2_HI (of_bits(0x3fe62e42fefa3800ull))
#define LN_2_LO (of_bits(0x3d2ef35793c76730ull))
// `exp` is 0 below the first and ∞ above the second.
#define EXP_LEAST (-746.0)
#define EXP_MOST 710.0

struct Words {
    double hi, lo;
};

// How to multiply by 2ᵏ where k passes the exponents of one word: by 2ᵏ / rest, then by rest.
struct Scale {
    double rounder, rest;
};

BOTH Scale scale_by(int rest) {
    return {ROUNDER + (double)(1023 - rest), of_bits((unsigned long long)(1023 + rest) << 52)};
}
BOTH Scale scale_of(double x) { return x < 0.0 ? scale_by(-512) : scale_by(512); }

// The integer nearest to x / ln 2, and 2 to its power over `rest`.
BOTH double split(Scale scale, double x, double &power) {
    double sum = x * LOG2_E + scale.rounder;
    power = of_bits(bits_of(sum) << 52);
    return sum - scale.rounder;
}

BOTH double exp_tail(double r) {
    double r2 = r * r;
    double even = 0.16666666666666685 +
                  r2 * (0.008333333333313972 +
                        r2 * (0.00019841269904809328 + r2 * (2.755722616855143e-06 + r2 * 2.511506804102479e-08)));
    double odd = 0.04166666666660284 +
                 r2 * (0.0013888888927245054 + r2 * (2.4801508125290693e-05 + r2 * 2.7625404989207157e-07));
    return even + r * odd;
}

BOTH double ln_tail(double w) {
    double w2 = w * w;
    double even = 0.5999999999999996 +
                  w2 * (0.333333333263047 + w2 * (0.23076835306537682 + w2 * 0.1751222776353015));
    double odd = 0.4285714285716767 +
                 w2 * (0.2727272830547141 + w2 * (0.20004476127526183 + w2 * 0.17983519895729455));
    return even + w * odd;
}

// The leading bits of x.
BOTH double head(double x, int bits) { return of_bits(bits_of(x) & (~0ull << (53 - bits))); }

// a + b rounded, and what rounding took off it.
BOTH double two_sum(double a, double b, double &lost) {
    double sum = a + b;
    double part = sum - a;
    lost = (a - (sum - part)) + (b - part);
    return sum;
}

BOTH double exp_scaled(double x, Scale scale) {
    x = EXP_LEAST > x ? EXP_LEAST : x;
    double power;
    double k = split(scale, x, power);
    double hi = x - k * LN_2_HI;
    double lo = k * LN_2_LO;
    double r = hi - lo;
    double y = 1.0 + (hi + (r * r * (0.5 + r * exp_tail(r)) - lo));
    return y * power * scale.rest;
}

BOTH double our_exp(double x) {
    x = x > EXP_MOST ? EXP_MOST : x;
    return exp_scaled(x, scale_of(x));
}

BOTH double our_exp_nonpositive(double x) { return exp_scaled(x, scale_by(-512)); }

// e^x for |x| ≤ ln 2 / 2, as an exact part and a tail below a hundredth.
BOTH double exp_reduced(Words x, double &tail) {
    const double grid = ROUNDER / 33554432.0;
    double r = x.hi + x.lo;
    double g = (r + grid) - grid;
    double h = (x.hi - g) + x.lo;
    tail = h + (h * (g + 0.5 * h) + r * r * r * exp_tail(r));
    return 1.0 + (g + 0.5 * g * g);
}

BOTH double our_exp_m1(double x) {
    double bounded = x < -40.0 ? -40.0 : x;
    bounded = bounded > EXP_MOST ? EXP_MOST : bounded;
    Scale scale = scale_by(1);
    double half, tail, lost;
    double k = split(scale, bounded, half);
    Words reduced = {bounded - k * LN_2_HI, -k * LN_2_LO};
    double exact = exp_reduced(reduced, tail);
    double sum = two_sum(half * exact, -0.5, lost);
    double y = (sum + (half * tail + lost)) * scale.rest;
    return (x < 0.0 ? -x : x) < 1e-17 ? x : y;
}

// x = 2ⁿ·m with m in [√½, √2).
BOTH double split_exponent(double x, double &n) {
    const unsigned long long one = 0x3ff0000000000000ull, sqrt_half = 0x3fe6a09e667f3bcdull;
    const double two_52 = 4503599627370496.0;
    bool subnormal = x < of_bits(0x0010000000000000ull);
    double normal = subnormal ? x * (4.0 * two_52) : x;
    double bias = subnormal ? two_52 + 1077.0 : two_52 + 1023.0;
    unsigned long long bits = bits_of(normal) + (one - sqrt_half);
    n = of_bits(bits_of(two_52) | (bits >> 52)) - bias;
    return of_bits((bits & 0x000fffffffffffffull) + sqrt_half);
}

// ln x for positive finite x, in two words.
BOTH Words ln_words(double x) {
    double n;
    double m = split_exponent(x, n);
    double f = m - 1.0;
    double inverse = 1.0 / (1.5 * (m + 1.0));
    double s = f * inverse;
    double s_hi = head(s, 24);
    double d_hi = head(m + 1.0, 24);
    double d_lo = m - (d_hi - 1.0);
    double s_lo = ((f - s_hi * (1.5 * d_hi)) - s_hi * (1.5 * d_lo)) * inverse;
    double w_hi = 2.25 * s_hi * s_hi;
    double w_lo = 2.25 * s_lo * (s_hi + s);
    double w = w_hi + w_lo;
    double rest = w * w * ln_tail(w) + w_lo;
    double t_hi = head(3.0 + (w_hi + rest), 26);
    double t_lo = rest - ((t_hi - 3.0) - w_hi);
    double p_hi = s_hi * t_hi;
    double p_lo = s_lo * t_hi + t_lo * s;
    double whole = n * LN_2_HI;
    double hi = whole + p_hi;
    return {hi, (p_hi - (hi - whole)) + (p_lo + n * LN_2_LO)};
}

// Puts what `ln` is at 0, ∞, NaN and below 0 in place of what the arithmetic made of them.
BOTH double ln_edges(double x, double y) {
    double outside = x == 0.0 ? -ENDLESS : NO_NUMBER;
    y = x > 0.0 ? y : outside;
    return x == ENDLESS ? x : y;
}

BOTH double our_ln(double x) {
    Words y = ln_words(x);
    return ln_edges(x, y.hi + y.lo);
}

BOTH double our_ln_1p(double x) {
    double lost;
    double sum = two_sum(1.0, x, lost);
    Words y = ln_words(sum);
    return ln_edges(sum, y.hi + (y.lo + lost / sum));
}

BOTH Words times(Words x, double y) {
    double a = head(x.hi, 26), b = head(y, 26);
    return {a * b, a * (y - b) + y * ((x.hi - a) + x.lo)};
}

BOTH double exp_of_words(Words x, Scale scale) {
    double power, tail;
    double k = split(scale, x.hi, power);
    Words reduced = {x.hi - k * LN_2_HI, x.lo - k * LN_2_LO};
    double exact = exp_reduced(reduced, tail);
    return (exact + tail) * power * scale.rest;
}

WHOLE_CALL double our_pow(double x, double y) {
    // At an exponent of 2⁷⁰ every x but 1 has gone to 0 or ∞.
    const double far = 1180591620717411303424.0;
    double bounded = y > far ? far : y;
    bounded = bounded < -far ? -far : bounded;
    Words z = times(ln_words(x), bounded);
    double power = exp_of_words(z, scale_of(z.hi));
    double size = x == 0.0 ? y * -ENDLESS : z.hi;
    size = x == ENDLESS ? y * ENDLESS : size;
    power = size < EXP_LEAST ? 0.0 : power;
    power = size > EXP_MOST ? ENDLESS : power;
    power = x >= 0.0 ? power : NO_NUMBER;
    power = y == 1.0 ? x : power;
    return y == 0.0 ? 1.0 : power;
}

// For 0 ≤ x ≤ 1 and 0 < y ≤ 2⁷⁰, with the bits of `our_pow`.
WHOLE_CALL double our_pow_unit(double x, double y) {
    Words z = times(ln_words(x), y);
    double power = exp_of_words(z, scale_by(-512));
    bool gone = (z.hi < EXP_LEAST) | (x == 0.0);
    power = gone ? 0.0 : power;
    return y == 1.0 ? x : power;
}
