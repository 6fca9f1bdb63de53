// The normaliser of a row: from gaps g = (γ − 1)(max z − z) to masses (level − g)₊^δ that sum to one.
//
// KIND says which formula: 0 softmax, 1 sparsemax, 2 entmax15, 3 other γ below 2, 4 γ above 2, 5 a γ for each row.
// Newton's steps from level 1 fall to the root without passing it for γ ≤ 2. In f32 they are made until they are small,
// and one last step in f64 makes the level exact; where 1 − depth would lose digits (KIND 3) the depth is kept instead
// and the masses are divided by their sum. Above γ = 2 the slope at the edge is infinite, so the unknown is the mass
// of the last label, in f64 throughout.
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

__device__ __forceinline__ Index index_of(double gamma, double scale, double delta, const double *gammas,
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

__device__ __forceinline__ bool is_kind(const Index &index, int kind) {
#if KIND == 5
    return index.kind == kind;
#else
    return KIND == kind;
#endif
}

__device__ __forceinline__ Real gap_of(Real top, Real z, const Index &index) { return (top - z) * (Real)index.scale; }

// `1 − x − g`, whose power δ is the mass: negative outside the support.
__device__ __forceinline__ double slack_of(double g, const Root &root, const Index &index) {
    if (is_kind(index, 0)) return 1.0;
    if (is_kind(index, 1) || is_kind(index, 2)) return (root.a - g) + root.b;
    if (is_kind(index, 3)) return 1.0 - (root.a + g);
    double slack = root.b + (root.a - g);
    return g <= root.a || slack < 0.0 ? slack : 0.0;
}

// The mass of a gap, to be divided by the total.
__device__ __forceinline__ Real mass_of(Real g, const Root &root, const Index &index) {
    if (is_kind(index, 0)) return exp_of(-g);
    if (is_kind(index, 1)) return positive(((Real)root.a - g) + (Real)root.b);
    if (is_kind(index, 2)) {
        Real slack = positive(((Real)root.a - g) + (Real)root.b);
        return slack * slack;
    }
    if (is_kind(index, 3)) {
        Real w = (Real)root.a + g;
        return w < 1 ? exp_of((Real)index.delta * log_1p_of(-w)) : (Real)0;
    }
    double above = root.a - (double)g;
    if (above < 0.0) return 0;
    return (Real)(above > 0.0 ? pow_of(root.b + above, index.delta) : root.mass);
}

// Whether the masses of this kind must be divided by their total.
__device__ __forceinline__ Real share_of(const Root &root, const Index &index) {
    return is_kind(index, 1) || is_kind(index, 2) ? (Real)1 : (Real)(1.0 / root.total);
}

// Steps after which Newton's next error is below what the last step in f64 makes good.
#define SMALL (sizeof(Real) == 4 ? (Real)2e-4 : (Real)1e-9)
#define MOST_STEPS 200

// `gaps(f)` calls f for every gap this thread holds.
template <class Team, class Gaps> __device__ void solve_linear(Root &root, Gaps gaps) {
    Real level = 1;
    Real held = infinity();
    for (int step = 0; step < MOST_STEPS; ++step) {
        Real first = 0, count = 0;
        gaps([&](Real g) {
            Real slack = positive(level - g);
            first += slack;
            count += slack > 0 ? (Real)1 : (Real)0;
        });
        first = Team::sum(first);
        count = Team::sum(count);
        // With the same labels in, the step after this one would be zero.
        bool same = !(count < held);
        held = count;
        if (!same) level -= (first - 1) / count;
        if (!Team::any(!same)) break;
    }
    double exact = level, sum = 0, count = 0;
    gaps([&](Real g) {
        double slack = exact - (double)g;
        if (slack > 0.0) sum += slack, count += 1.0;
    });
    sum = Team::sum(sum);
    count = Team::sum(count);
    exact -= (sum - 1.0) / count;
    root.a = (Real)exact;
    root.b = exact - root.a;
    root.total = 1.0;
}

template <class Team, class Gaps> __device__ void solve_square(Root &root, Gaps gaps) {
    Real level = 1;
    bool done = false;
    for (int step = 0; step < MOST_STEPS; ++step) {
        Real first = 0, second = 0;
        gaps([&](Real g) {
            Real slack = positive(level - g);
            first += slack;
            second += slack * slack;
        });
        first = Team::sum(first);
        second = Team::sum(second);
        Real next = level - (second - root_of(second)) / first;
        bool small = !(next < level - SMALL);
        level = done ? level : next;
        done = done || small;
        if (!Team::any(!done)) break;
    }
    double exact = level, first = 0, second = 0;
    gaps([&](Real g) {
        double slack = exact - (double)g;
        if (slack > 0.0) first += slack, second += slack * slack;
    });
    first = Team::sum(first);
    second = Team::sum(second);
    exact -= (second - sqrt(second)) / first;
    root.a = (Real)exact;
    root.b = exact - root.a;
    root.total = 1.0;
}

template <class Team, class Gaps> __device__ void solve_power(Root &root, Gaps gaps, const Index &index) {
    const Real converged = 1 + (sizeof(Real) == 4 ? (Real)2.4e-7 : (Real)4.5e-16);
    Real depth = 0, total = 1;
    bool done = false;
    for (int step = 0; step < MOST_STEPS; ++step) {
        Real sum = 0, slope = 0;
        gaps([&](Real g) {
            Real w = depth + g;
            if (w < 1) {
                Real mass = exp_of((Real)index.delta * log_1p_of(-w));
                sum += mass;
                slope += mass / (1 - w);
            }
        });
        sum = Team::sum(sum);
        slope = Team::sum(slope);
        total = done ? total : sum;
        // Newton on the norm S^{1/δ}: nearly straight in the depth.
        Real next = depth - sum * exp_m1_of(-(Real)index.scale * log_of(sum)) / slope;
        done = done || !(sum > converged) || !(next > depth);
        depth = done ? depth : next;
        if (!Team::any(!done)) break;
    }
    root.a = depth;
    root.total = total;
}

template <class Team, class Gaps> __device__ void solve_anchored(Root &root, Gaps gaps, const Index &index) {
    // A label is in the support when Σ(g − g_j)₊^δ < 1, which grows with g: one pivot settles all on its side.
    double inside = 0.0, open = 1.0;
    while (true) {
        double middle = inside + (open - inside) / 2, above = 2.0, below = 2.0;
        gaps([&](Real held) {
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
        if (!none) gaps([&](Real g) { ahead += pivot > (double)g ? pow_of(pivot - (double)g, index.delta) : 0.0; });
        ahead = Team::sum(ahead);
        if (!none) {
            if (ahead < 1.0) inside = pivot;
            else open = pivot;
        }
        if (!Team::any(!none)) break;
    }
    root.a = inside;
    double ahead = 0.0, count = 0.0;
    gaps([&](Real g) {
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
        gaps([&](Real g) {
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

template <class Team, class Gaps> __device__ void solve_soft(Root &root, Gaps gaps) {
    Real sum = 0;
    gaps([&](Real g) { sum += exp_of(-g); });
    root.total = Team::sum(sum);
}

template <class Team, class Gaps> __device__ void solve(Root &root, Gaps gaps, const Index &index) {
    if (is_kind(index, 0)) solve_soft<Team>(root, gaps);
    else if (is_kind(index, 1)) solve_linear<Team>(root, gaps);
    else if (is_kind(index, 2)) solve_square<Team>(root, gaps);
    else if (is_kind(index, 3)) solve_power<Team>(root, gaps, index);
    else if (is_kind(index, 4)) solve_anchored<Team>(root, gaps, index);
}

// A row without a finite maximum, or an index out of range, has no answer.
__device__ __forceinline__ bool is_lost(Real top, const Index &index) {
    return !(top < infinity() && top > -infinity()) || index.kind < 0;
}
