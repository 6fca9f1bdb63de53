// The normaliser of a row: from gaps g = (γ − 1)(max z − z) to masses (level − g)₊^δ that sum to one.
//
// KIND says which formula: 0 softmax, 1 sparsemax, 2 entmax15, 3 other γ below 2, 4 γ above 2, 5 a γ for each row.
// Newton's steps from level 1 fall to the root without passing it for γ ≤ 2. In f32 they are made, with quick
// functions, until they are small, and a last step in f64 makes the root exact. Where 1 − depth would lose digits (KIND
// 3) the depth is kept instead of the level, and the masses are worked out in f64 too. Above γ = 2 the slope at the
// edge is infinite, so the unknown is the mass of the last label, in f64 throughout.
struct Index {
    double gamma, scale, delta; // scale = γ − 1 (1 at γ = 1), δ = 1/(γ − 1)
    int kind;
};

struct Root {
    Real top;      // the row's maximum
    double a, b;   // level in two words (1, 2); depth (3); last gap and its slack (4)
    double mass;   // of the last label (4)
    double total;  // sum of the masses before division
};

BOTH Index index_of(double gamma, double scale, double delta, const double *gammas,
                                          i64 stride, i64 row) {
#if KIND == 5
    double own = gammas[row * stride];
    if (!(own >= 1.0 && own <= 16.0)) return {own, 1.0, 1.0, -1};
    if (own == 1.0) return {1.0, 1.0, 0.0, 0};
    return {own, own - 1.0, 1.0 / (own - 1.0), own <= 2.0 ? 3 : 4};
#else
    return {gamma, scale, delta, KIND};
#endif
}

BOTH bool is_kind(const Index &index, int kind) {
#if KIND == 5
    // Rows of 1.5 and 2 are powers like any other.
    return kind != 1 && kind != 2 && index.kind == kind;
#else
    return KIND == kind;
#endif
}

// Above γ = 2 a rounding of a gap near the edge would be seen in the mass.
#if KIND >= 4
typedef double Gap;
#else
typedef Real Gap;
#endif

// Not fused with what comes after: a gap has the same bits wherever it is worked out.
BOTH Gap gap_of(Real top, Real z, const Index &index) {
    return product((Gap)top - (Gap)z, (Gap)index.scale);
}

// 2ˣ to 2e-10. The library's functions have seven digits more and take five times as long.
BOTH double short_exp2(double x) {
    // Rounds to an integer and leaves it in the low bits of the sum: 1.5 · 2⁵².
    const double rounder = 6755399441055744.0;
    x = x > -1000.0 ? x : -1000.0;
    double sum = x + rounder, f = x - (sum - rounder);
    double y = 1.3215486790144307e-6;
    y = y * f + 1.5252733804059841e-5;
    y = y * f + 1.5403530393381608e-4;
    y = y * f + 1.3333558146428443e-3;
    y = y * f + 9.618129107628477e-3;
    y = y * f + 5.5504108664821577e-2;
    y = y * f + 0.24022650695910072;
    y = y * f + 0.6931471805599453;
    y = y * f + 1.0;
    return raised_by(y, sum);
}

// slackᵟ for 0 < slack ≤ 1 and δ up to 256, to a part in 10⁹: a quick logarithm, whose error is measured and made good.
BOTH double short_power(double slack, double delta) {
    float near = quick_log2((float)slack);
    double error = slack * short_exp2(-(double)near) - 1.0;
    double rise = delta * error;
    return short_exp2(delta * (double)near) * (1.0 + rise * (1.0 + 0.5 * (rise - error)));
}

// Whether masses are better known than f32 can tell. Where γ is next to 1 (STEEP), δ is too large for that.
#if KIND == 3 && DTYPE != 1 && !defined(STEEP)
#define SHORT_POWERS 1
#else
#define SHORT_POWERS 0
#endif

// `(1 − w)₊^δ`.
WHOLE_CALL double power_mass(double w, double delta) {
#if SHORT_POWERS
    return w < 1.0 ? short_power(1.0 - w, delta) : 0.0;
#else
    // Without rounding 1 − w first.
    return w < 1.0 ? exp(delta * log1p(-w)) : 0.0;
#endif
}

// `1 − x − g`, whose power δ is the mass: negative outside the support.
BOTH double slack_of(double g, const Root &root, const Index &index) {
    if (is_kind(index, 0)) return 1.0;
    if (is_kind(index, 1) || is_kind(index, 2)) return (root.a - g) + root.b;
    if (is_kind(index, 3)) return 1.0 - (root.a + g);
    double slack = root.b + (root.a - g);
    return g <= root.a || slack < 0.0 ? slack : 0.0;
}

// The mass of a gap, to be divided by the total.
BOTH Real mass_of(Gap g, const Root &root, const Index &index) {
    if (is_kind(index, 0)) return exp_of(-(Real)g);
    if (is_kind(index, 1)) return positive(((Real)root.a - (Real)g) + (Real)root.b);
    if (is_kind(index, 2)) {
        Real slack = positive(((Real)root.a - (Real)g) + (Real)root.b);
        return slack * slack;
    }
    if (is_kind(index, 3)) {
        double w = root.a + (double)g;
        return w < 1.0 ? (Real)power_mass(w, index.delta) : (Real)0;
    }
    double above = root.a - (double)g;
    if (above < 0.0) return 0;
    return (Real)(above > 0.0 ? pow_of(root.b + above, index.delta) : root.mass);
}

// What the masses are multiplied by.
BOTH Real share_of(const Root &root, const Index &index) {
    return is_kind(index, 0) || is_kind(index, 4) ? (Real)(1.0 / root.total) : (Real)1;
}

// A step that is this part of the level leaves an error that the last step in f64 makes good.
#define SMALL (sizeof(Real) == 4 ? (Real)1e-3 : (Real)1e-9)
#define MOST_STEPS 200

BOTH void set_level(Root &root, double level) {
    root.a = (Real)level;
    root.b = level - root.a;
    root.total = 1.0;
}

// `gaps(f)` calls f for every gap this thread holds.
template <class Team, class Gaps> ANY_CALL void solve_linear(Root &root, Gaps gaps) {
    Real level = 1, held = infinity();
    for (int step = 0; step < MOST_STEPS; ++step) {
        Real sum = 0, count = 0;
        gaps([&](Gap g) {
            bool in = (Real)g < level;
            sum += in ? (Real)g : (Real)0;
            count += in ? (Real)1 : (Real)0;
        });
        Team::sum_both(sum, count);
        // Where these labels make up the support. A quotient of what only adds: of a million equal logits the level is
        // a millionth, which no difference from 1 would tell from 0. With the same labels in, the next one would be
        // equal.
        bool same = !(count < held);
        if (!same) {
            level = (1 + sum) / count;
            held = count;
        }
        if (!Team::any(!same)) break;
    }
    double exact = level, sum = 0;
    gaps([&](Gap g) {
        double slack = exact - (double)g;
        sum += slack > 0.0 ? slack : 0.0;
    });
    sum = Team::sum(sum);
    set_level(root, exact - (double)((Real)(sum - 1.0) / held));
}

template <class Team, class Gaps> ANY_CALL void solve_square(Root &root, Gaps gaps) {
    Real level = 1, slope = 1;
    bool done = false;
    for (int step = 0; step < MOST_STEPS; ++step) {
        Real first = 0, second = 0;
        gaps([&](Gap g) {
            Real slack = positive(level - (Real)g);
            first += slack;
            second += slack * slack;
        });
        Team::sum_both(first, second);
        // On the norm √Σ, which is nearly straight.
        Real next = level - quick_ratio(second - quick_root(second), first);
        bool small = !(next < level - SMALL * level);
        if (!done) level = next, slope = first;
        done = done || small;
        if (!Team::any(!done)) break;
    }
    double exact = level, second = 0;
    gaps([&](Gap g) {
        double slack = exact - (double)g;
        second += slack > 0.0 ? slack * slack : 0.0;
    });
    second = Team::sum(second);
    set_level(root, exact - (double)((Real)(second - 1.0) / (2 * slope)));
}

// The depth up to the errors of quick functions.
template <class Team, class Gaps> ANY_CALL float quick_depth(Gaps gaps, const Index &index) {
    float quick = 0;
    const float delta = (float)index.delta, scale = (float)index.scale;
    bool done = false;
    for (int step = 0; step < MOST_STEPS; ++step) {
        float sum = 0, slope = 0;
        gaps([&](Gap g) {
            float slack = 1 - (quick + (float)g);
            if (slack > 0) {
                float power = quick_power(slack, delta - 1);
                sum += power * slack;
                slope += power;
            }
        });
        Team::sum_both(sum, slope);
        // Newton on the norm S^{1/δ}: nearly straight in the depth.
        float next = quick + quick_ratio(sum * (1 - quick_power(sum, -scale)), slope);
        bool small = !(delta * (next - quick) > 2e-3f);
        if (!done && next > quick) quick = next;
        done = done || small;
        if (!Team::any(!done)) break;
    }
    return quick;
}

template <class Team, class Gaps> ANY_CALL void solve_power(Root &root, Gaps gaps, const Index &index) {
    bool done = false;
    double depth = quick_depth<Team>(gaps, index);
    for (int step = 0; step < MOST_STEPS; ++step) {
        double sum = 0.0, slope = 0.0;
        gaps([&](Gap g) {
            double w = depth + (double)g;
            if (w < 1.0) {
                double mass = power_mass(w, index.delta);
                sum += mass;
                slope += mass / (1.0 - w);
            }
        });
        Team::sum_both(sum, slope);
        double excess = sum - 1.0;
        // What is left after this step is of the order of its square.
        if (!done) depth += excess / (index.delta * slope);
        done = done || !(fabs(excess) > (sizeof(Real) == 4 ? 1e-4 : 1e-9)) || !(slope > 0.0);
        if (!Team::any(!done)) break;
    }
    root.a = depth;
    root.total = 1.0;
}

template <class Team, class Gaps> ANY_CALL void solve_anchored(Root &root, Gaps gaps, const Index &index) {
    // A label is in the support when Σ(g − g_j)₊^δ < 1, which grows with g: one pivot settles all on its side.
    double inside = 0.0, open = 1.0;
    while (true) {
        double middle = inside + (open - inside) / 2, above = 2.0, below = 2.0;
        gaps([&](Gap held) {
            double g = held;
            if (g > inside && g < open) {
                if (g >= middle) above = g < above ? g : above;
                else below = -g < below ? -g : below;
            }
        });
        above = Team::least(above);
        below = Team::least(below);
        bool none = above == 2.0 && below == 2.0;
        double pivot = above < 2.0 ? above : -below;
        double ahead = 0.0;
        if (!none) gaps([&](Gap g) { ahead += pivot > (double)g ? pow_of(pivot - (double)g, index.delta) : 0.0; });
        ahead = Team::sum(ahead);
        if (!none) {
            if (ahead < 1.0) inside = pivot;
            else open = pivot;
        }
        if (!Team::any(!none)) break;
    }
    root.a = inside;
    double ahead = 0.0, count = 0.0;
    gaps([&](Gap g) {
        if ((double)g <= inside) {
            count += 1.0;
            if ((double)g < inside) ahead += pow_of(inside - (double)g, index.delta);
        }
    });
    ahead = Team::sum(ahead);
    count = Team::sum(count);
    // The sum's slope in the last mass is at least 1 and every mass at least it: both bound the root from above.
    double mass = 1.0 - ahead < 1.0 / count ? 1.0 - ahead : 1.0 / count;
    double slack = pow_of(mass, index.scale), total = 1.0;
    bool done = false;
    for (int step = 0; step < MOST_STEPS; ++step) {
        double sum = 0.0, slope = 0.0;
        gaps([&](Gap g) {
            double rise = inside - (double)g;
            if (rise >= 0.0) {
                double own = rise > 0.0 ? pow_of(slack + rise, index.delta) : mass;
                sum += own;
                slope += rise > 0.0 ? own / mass * (slack / (slack + rise)) : 1.0;
            }
        });
        sum = Team::sum(sum);
        slope = Team::sum(slope);
        total = done ? total : sum;
        double next = mass - (sum - 1.0) / slope;
        done = done || !(sum > 1.0 + 4.5e-16) || !(next < mass) || !(next > 0.0);
        if (!done) {
            mass = next;
            slack = pow_of(mass, index.scale);
        }
        if (!Team::any(!done)) break;
    }
    root.b = slack;
    root.mass = mass;
    root.total = total;
}

template <class Team, class Gaps> ANY_CALL void solve_soft(Root &root, Gaps gaps) {
    // In f64: a thread alone may add up dozens.
    double sum = 0.0;
    gaps([&](Gap g) { sum += (double)exp_of(-(Real)g); });
    root.total = Team::sum(sum);
}

template <class Team, class Gaps> ANY_CALL void solve(Root &root, Gaps gaps, const Index &index) {
    if (is_kind(index, 0)) solve_soft<Team>(root, gaps);
    else if (is_kind(index, 1)) solve_linear<Team>(root, gaps);
    else if (is_kind(index, 2)) solve_square<Team>(root, gaps);
    else if (is_kind(index, 3)) solve_power<Team>(root, gaps, index);
    else if (is_kind(index, 4)) solve_anchored<Team>(root, gaps, index);
}

// A row without a finite maximum, or an index out of range, has no answer.
BOTH bool is_lost(Real top, const Index &index) {
    return !(top < infinity() && top > -infinity()) || index.kind < 0;
}
