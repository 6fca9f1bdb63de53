// The kernels' shared headers on the host: reads 64-bit words from standard input, writes 64-bit words to standard
// output.
//
//   exp | exp_nonpositive | exp_m1 | ln | ln_1p   each word x                    → f(x)
//   pow | pow_unit                                each pair x, y                 → f(x, y)
//   norm        count, order, delta, inverse, max, pivot, logits…                → the score, label by label
//   list_norm   the same                                                         → the score, from a list
//   bytes       skip, four words                                                 → two words of the 16 bytes from there
//   normalize   count, order, delta, inverse, gaps…                              → the masses
//   fingerprint count, values…                                                   → the row's fingerprint
//   set | set_f32  count, order, delta, inverse, threshold, room, logits…        → the set's size and labels, best first, or
//               all ones where more labels are within reach than there is room for
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "both.h"

#include "arithmetic.h"
#include "bytes.h"
#include "fingerprint.h"
#include "norm.h"
#include "normalize.h"
#include "reach.h"

static bool read_word(std::uint64_t &word) { return std::fread(&word, sizeof word, 1, stdin) == 1; }

static double read_number() {
    std::uint64_t word = 0;
    if (!read_word(word)) std::fputs("the input ends inside a case\n", stderr);
    return of_bits(word);
}

static void write_number(double x) {
    std::uint64_t word = bits_of(x);
    std::fwrite(&word, sizeof word, 1, stdout);
}

static std::vector<double> read_numbers(std::uint64_t count) {
    std::vector<double> numbers(count);
    for (double &number : numbers) number = read_number();
    return numbers;
}

static Order read_order() {
    std::uint64_t kind = 0;
    read_word(kind);
    double delta = read_number();
    return {(int)kind, delta, read_number()};
}

static void write_word(std::uint64_t word) { std::fwrite(&word, sizeof word, 1, stdout); }

// Bounds are raised as often as this.
static const int ROUNDS = 12;

// The labels within reach as keys in the order of the tree, the bound raised while they are more than there is room for.
template <class Real>
static std::vector<unsigned> within_reach(const std::vector<Real> &z, Real top, double threshold, Order order, unsigned room) {
    Real slack = (Real)slack_of_reach(top, threshold), depth = (Real)threshold;
    Real bound = bound_below((Real)(top - threshold), slack);
    for (int round = 0;; ++round) {
        std::vector<unsigned> keys;
        for (unsigned k = 0; k < z.size(); ++k) {
            if (z[k] >= bound && is_within(top, z[k], threshold)) keys.push_back(tree_key(k));
        }
        std::sort(keys.begin(), keys.end());
        if (keys.size() <= room || round == ROUNDS || !can_be_raised(order, (Real)threshold)) return keys;
        Slacks sums = {0, 0, 0};
        for (Real each : z) add_slack(sums, top, each, depth, 1 / (Real)threshold);
        Real risen = raised_depth(order, sums, depth, (Real)threshold);
        if (!(risen < depth)) return keys;
        depth = risen;
        bound = bound_at_depth(top, depth, slack);
    }
}

// The set of a row as `find_sets` decides it.
template <class Real> static void write_set(unsigned count) {
    Order order = read_order();
    double threshold = read_number();
    std::uint64_t room = bits_of(read_number());
    std::vector<Real> z(count);
    for (Real &each : z) each = (Real)read_number();
    Real top = *std::max_element(z.begin(), z.end()) + (Real)0;
    std::vector<unsigned> keys = within_reach(z, top, threshold, order, (unsigned)room), labels;
    if (keys.size() > room) return write_word(~0ull);
    for (unsigned key : keys) {
        double score = list_norm((unsigned)keys.size(), top, z[label_of(key)], order, [&](unsigned i) { return keys[i]; },
                                 [&](unsigned i) { return (double)z[label_of(keys[i])]; });
        if (score <= threshold) labels.push_back(label_of(key));
    }
    std::sort(labels.begin(), labels.end(), [&](unsigned a, unsigned b) { return is_before(z[a], a, z[b], b); });
    write_word(labels.size());
    for (unsigned label : labels) write_word(label);
}

int main(int count, char **words) {
    std::string what = count > 1 ? words[1] : "";
    for (std::uint64_t word; read_word(word);) {
        double x = of_bits(word);
        if (what == "exp") write_number(our_exp(x));
        else if (what == "exp_nonpositive") write_number(our_exp_nonpositive(x));
        else if (what == "exp_m1") write_number(our_exp_m1(x));
        else if (what == "ln") write_number(our_ln(x));
        else if (what == "ln_1p") write_number(our_ln_1p(x));
        else if (what == "pow") write_number(our_pow(x, read_number()));
        else if (what == "pow_unit") write_number(our_pow_unit(x, read_number()));
        else if (what == "bytes") {
            unsigned words[8], held[4];
            for (int i = 0; i < 8; i += 2) {
                std::uint64_t pair = bits_of(read_number());
                words[i] = (unsigned)pair, words[i + 1] = (unsigned)(pair >> 32);
            }
            bytes_from(words, (unsigned)word, held);
            for (int i = 0; i < 4; i += 2) write_number(of_bits((std::uint64_t)held[i + 1] << 32 | held[i]));
        } else if (what == "norm") {
            Order order = read_order();
            double max = read_number(), pivot = read_number();
            std::vector<double> z = read_numbers(word);
            write_number(gap_norm((unsigned)word, max, pivot, order, [&](unsigned k) { return z[k]; }));
        } else if (what == "list_norm") {
            Order order = read_order();
            double max = read_number(), pivot = read_number();
            std::vector<double> z = read_numbers(word);
            std::vector<unsigned> keys;
            for (unsigned k = 0; k < word; ++k) {
                // Some that are not ahead too: they must not matter.
                if (z[k] > pivot || k % 3 == 0) keys.push_back(tree_key(k));
                if (label_of(tree_key(k)) != k) std::fputs("a key is not its label's\n", stderr);
            }
            std::sort(keys.begin(), keys.end());
            keys.push_back(0);
            write_number(list_norm((unsigned)keys.size() - 1, max, pivot, order, [&](unsigned i) { return keys[i]; },
                                   [&](unsigned i) { return z[label_of(keys[i])]; }));
        } else if (what == "normalize") {
            Order order = read_order();
            std::vector<double> gaps = read_numbers(word), pool(word);
            if (order.kind == ORDER_MAX) normalize_soft(gaps.data(), (unsigned)word);
            else normalize_gaps(gaps.data(), (unsigned)word, pool.data(), order);
            for (double mass : gaps) write_number(mass);
        } else if (what == "fingerprint") {
            std::vector<double> values = read_numbers(word);
            auto lane = [&](unsigned i) {
                return lane_after(i, (unsigned)word, [&](unsigned long long k) { return values[k]; });
            };
            write_word(mixed_lanes((unsigned)word, lane));
        } else if (what == "set") write_set<double>((unsigned)word);
        else if (what == "set_f32") write_set<float>((unsigned)word);
        else {
            std::fprintf(stderr, "there is no function %s\n", what.c_str());
            return 2;
        }
    }
    return 0;
}
