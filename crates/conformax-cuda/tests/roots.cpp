// The normalisers of the kernels (`root.h`) on the host, by one thread: reads rows from standard input, writes their
// probabilities to standard output, both as 64-bit words.
//
//   count, γ, scale, δ, logits…  → the probabilities
//
// KIND and DTYPE (0 f32, 1 f64) are defined as for the GPU. Its quick instructions are a few units in the last place off; so are
// these, to either side, and the last step has to make good for them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "both.h"

typedef long long i64;
#if DTYPE == 0
typedef float Real;
#else
typedef double Real;
#endif

static Real infinity() { return INFINITY; }
static Real positive(Real x) { return x > 0 ? x : (Real)0; }
static float product(float a, float b) { return a * b; }
static double product(double a, double b) { return a * b; }
static Real exp_of(Real x) { return std::exp(x); }
static double pow_of(double x, double y) { return std::pow(x, y); }

// Off by 2⁻²² of itself, up or down by its last bit.
static float bent(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return x * (1 + (bits & 1 ? 2.4e-7f : -2.4e-7f));
}
static float quick_ratio(float a, float b) { return bent(a / b); }
static double quick_ratio(double a, double b) { return a / b; }
static float quick_root(float x) { return bent(std::sqrt(x)); }
static double quick_root(double x) { return std::sqrt(x); }
static float quick_log2(float x) { return bent(std::log2(x)); }
static float quick_power(float x, float y) { return bent(std::exp2(y * quick_log2(x))); }
static double raised_by(double y, double sum) { return of_bits(bits_of(y) + (bits_of(sum) << 52)); }

#include "root.h"

struct OneThread {
    template <class T> static T sum(T x) { return x; }
    template <class T> static void sum_both(T &, T &) {}
    template <class T> static T least(T x) { return x; }
    static bool any(bool it) { return it; }
};

static bool read_word(std::uint64_t &word) { return std::fread(&word, sizeof word, 1, stdin) == 1; }

static double read_number() {
    std::uint64_t word = 0;
    if (!read_word(word)) std::fputs("the input ends inside a row\n", stderr);
    return of_bits(word);
}

int main() {
    for (std::uint64_t count; read_word(count);) {
        double gamma = read_number(), scale = read_number(), delta = read_number();
        std::vector<Real> z(count);
        for (Real &each : z) each = (Real)read_number();
        Index index = index_of(gamma, scale, delta, &gamma, 0, 0);
        Real top = *std::max_element(z.begin(), z.end());
        Root root = {top, 0.0, 0.0, 0.0, 1.0};
        solve<OneThread>(root, [&](auto f) {
            for (Real each : z) f(gap_of(top, each, index));
        }, index);
        for (Real each : z) {
            double p = is_lost(top, index) ? NAN : mass_of(gap_of(top, each, index), root, index) * share_of(root, index);
            std::fwrite(&p, sizeof p, 1, stdout);
        }
    }
    return 0;
}
