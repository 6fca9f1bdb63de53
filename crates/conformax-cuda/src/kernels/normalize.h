// From gaps to masses, as the CPU does it: `p_j = (1 − x − g_j)₊^δ` with x such that they sum to one.
//
// One thread does a whole set. Gaps are `(z_max − z)/q` in the order of the set; sums run over 16 lanes by place.
// `pool` is scratch of the same length. γ = 1 is softmax over the set and has its own function.
#define MOST_TRIES 200

// Which of the two formulas of other orders a program of the GPU holds; on the host both.
#ifdef KIND
#define HAS_POWER (KIND == 3)
#define HAS_ANCHOR (KIND == 4)
#else
#define HAS_POWER 1
#define HAS_ANCHOR 1
#endif
#define CONVERGED (1.0 + 2.0 * 2.220446049250313e-16)

BOTH double above_zero(double x) { return x > 0.0 ? x : 0.0; }
BOTH double least_of(double a, double b) { return a < b ? a : b; }
BOTH double most_of(double a, double b) { return a > b ? a : b; }

// Σ terms(g) in lanes.
template <class Terms> BOTH double lane_sum(const double *gaps, unsigned count, Terms terms) {
    double lanes[SUM_LANES] = {};
    for (unsigned i = 0; i < count; ++i) lanes[i % SUM_LANES] = lanes[i % SUM_LANES] + terms(gaps[i]);
    return sum_lanes(lanes);
}

// Keeps what satisfies `stays`, in order.
template <class Stays> BOTH unsigned retain(double *pool, unsigned count, Stays stays) {
    unsigned kept = 0;
    for (unsigned i = 0; i < count; ++i) {
        if (stays(pool[i])) pool[kept++] = pool[i];
    }
    return kept;
}

struct Masses {
    double *gaps;
    unsigned count;
    double *pool;
    unsigned held;
};

template <class Mass> BOTH void fill_masses(const Masses &all, double end, Mass mass, double total) {
    for (unsigned i = 0; i < all.count; ++i) {
        double gap = all.gaps[i];
        all.gaps[i] = gap < end ? mass(gap) / total : 0.0;
    }
}

BOTH double moment_sum(const Masses &all, double level, int which) {
    return lane_sum(all.pool, all.held, [=](double gap) {
        double slack = above_zero(level - gap);
        return which == 0 ? (slack > 0.0 ? 1.0 : 0.0) : which == 1 ? slack : slack * slack;
    });
}

WHOLE_CALL void normalize_linear(Masses all) {
    double level = 1.0;
    while (true) {
        double count = moment_sum(all, level, 0), first = moment_sum(all, level, 1);
        level -= (first - 1.0) / count;
        unsigned before = all.held;
        all.held = retain(all.pool, all.held, [=](double gap) { return gap < level; });
        if (all.held == before) break;
    }
    fill_masses(all, level, [=](double gap) { return above_zero(level - gap); }, moment_sum(all, level, 1));
}

WHOLE_CALL void normalize_square(Masses all) {
    double level = 1.0;
    for (int step = 0; step < MOST_TRIES; ++step) {
        double count = moment_sum(all, level, 0), first = moment_sum(all, level, 1);
        double second = moment_sum(all, level, 2);
        double excess = second - 1.0;
        // The root of Σ(b − t)² = 1, once it drops no label and its discriminant does not cancel.
        if (count * excess <= 0.75 * first * first) {
            double down = excess / (first + sqrt_of(first * first - count * excess));
            bool none = true;
            for (unsigned i = 0; i < all.held; ++i) none = none && down <= level - all.pool[i];
            if (none) {
                level -= down;
                break;
            }
        }
        double next = level - (second - sqrt_of(second)) / first;
        if (next >= level) break;
        level = next;
        all.held = retain(all.pool, all.held, [=](double gap) { return gap < level; });
    }
    auto mass = [=](double gap) {
        double slack = above_zero(level - gap);
        return slack * slack;
    };
    fill_masses(all, level, mass, moment_sum(all, level, 2));
}

// Without rounding 1 − w first: near γ = 1 that would lose w altogether.
WHOLE_CALL double power_mass(double depth, double delta, double gap) {
    double w = depth + gap;
    double mass = our_exp_nonpositive(delta * our_ln_1p(-w));
    return w < 1.0 ? mass : 0.0;
}

WHOLE_CALL void normalize_power(Masses all, Order order) {
    double depth = 0.0, delta = order.delta, total, slope;
    auto look = [&]() {
        total = lane_sum(all.pool, all.held, [=](double gap) { return power_mass(depth, delta, gap); });
        slope = lane_sum(all.pool, all.held, [=](double gap) {
            double w = depth + gap;
            return w < 1.0 ? power_mass(depth, delta, gap) / (1.0 - w) : 0.0;
        });
    };
    look();
    for (int step = 0; step < MOST_TRIES; ++step) {
        double next = depth - total * our_exp_m1(-order.inverse * our_ln(total)) / slope;
        if (total <= CONVERGED || next <= depth) break;
        depth = next;
        all.held = retain(all.pool, all.held, [=](double gap) { return next + gap < 1.0; });
        look();
    }
    fill_masses(all, 1.0, [=](double gap) { return power_mass(depth, delta, gap); }, total);
}

// Moves what satisfies `first` to the front and returns how many do.
template <class First> BOTH unsigned partition(double *values, unsigned count, First first) {
    unsigned found = 0;
    for (unsigned i = 0; i < count; ++i) {
        if (first(values[i])) {
            double swapped = values[found];
            values[found] = values[i];
            values[i] = swapped;
            ++found;
        }
    }
    return found;
}

BOTH double mass_ahead(const double *pool, unsigned count, double pivot, double delta) {
    return lane_sum(pool, count, [=](double gap) { return our_pow(above_zero(pivot - gap), delta); });
}

// Moves the support to the front and returns its size: label i is in it when Σ(g_i − g_j)₊^δ < 1.
WHOLE_CALL unsigned select_support(double *pool, unsigned count, double delta) {
    unsigned inside = 0, end = count;
    while (inside < end) {
        const double *open = pool + inside;
        unsigned length = end - inside;
        double a = open[0], b = open[length / 2], c = open[length - 1];
        double pivot = most_of(least_of(a, b), least_of(most_of(a, b), c));
        if (mass_ahead(pool, end, pivot, delta) < 1.0) {
            inside += partition(pool + inside, end - inside, [=](double gap) { return gap <= pivot; });
        } else {
            end = inside + partition(pool + inside, end - inside, [=](double gap) { return gap < pivot; });
        }
    }
    return inside;
}

WHOLE_CALL void normalize_anchored(Masses all, Order order) {
    double delta = order.delta;
    all.held = select_support(all.pool, all.held, delta);
    double last = 0.0;
    for (unsigned i = 0; i < all.held; ++i) last = most_of(last, all.pool[i]);
    double mass = least_of(1.0 - mass_ahead(all.pool, all.held, last, delta), 1.0 / (double)all.held);
    double slack = our_pow(mass, order.inverse), total, slope;
    // The last mass is not recomputed from a slack that may have underflowed.
    auto own = [&](double gap) {
        double above = last - gap;
        double held = our_pow(slack + above_zero(above), delta);
        return above > 0.0 ? held : mass;
    };
    auto look = [&]() {
        total = lane_sum(all.pool, all.held, [&](double gap) { return last - gap >= 0.0 ? own(gap) : 0.0; });
        slope = lane_sum(all.pool, all.held, [&](double gap) {
            double above = last - gap;
            double ratio = slack / (slack + above_zero(above));
            double rise = above > 0.0 ? own(gap) / mass * ratio : 1.0;
            return above >= 0.0 ? rise : 0.0;
        });
    };
    look();
    for (int step = 0; step < MOST_TRIES; ++step) {
        double next = mass - (total - 1.0) / slope;
        if (total <= CONVERGED || next >= mass || next <= 0.0) break;
        mass = next;
        slack = our_pow(mass, order.inverse);
        look();
    }
    fill_masses(all, of_bits(bits_of(last) + 1), own, total);
}

// Replaces the gaps by masses that sum to one. At least one gap is 0; +∞ is allowed.
WHOLE_CALL void normalize_gaps(double *gaps, unsigned count, double *pool, Order order) {
    Masses all = {gaps, count, pool, 0};
    for (unsigned i = 0; i < count; ++i) {
        if (gaps[i] < 1.0) pool[all.held++] = gaps[i];
    }
    if (KIND_OF(order) == ORDER_ONE) normalize_linear(all);
    else if (KIND_OF(order) == ORDER_TWO) normalize_square(all);
    else if (HAS_POWER && order.delta > 1.0) normalize_power(all, order);
    else if (HAS_ANCHOR) normalize_anchored(all, order);
}

// Softmax over a set whose gaps `z − z_top` are not positive.
WHOLE_CALL void normalize_soft(double *gaps, unsigned count) {
    double sum = 0.0;
    for (unsigned i = 0; i < count; ++i) {
        gaps[i] = our_exp_nonpositive(gaps[i]);
        sum = sum + gaps[i];
    }
    for (unsigned i = 0; i < count; ++i) gaps[i] = gaps[i] / sum;
}
