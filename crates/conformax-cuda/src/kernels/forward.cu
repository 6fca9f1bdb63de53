// γ-entmax of every row (JOB 0), or the Fenchel–Young loss of a label in every row without writing p (JOB 1).
//
// Three layouts, by the number of classes: `narrow`, a thread a row through shared memory; `held`, LANES threads a row
// with VALUES logits each in registers; `wide`, a block a row that is read once, zeros written on the way, while the
// logits within reach of the maximum so far go to a list on which the root is found.

struct Rows {
    const Stored *z;
    Stored *p;              // JOB 0
    const i64 *labels;      // JOB 1
    Real *losses;           // JOB 1
    double *roots;          // JOB 1: six a row, what the backward pass needs
    i64 rows;
    u32 classes;
    double gamma, scale, delta;
    const double *gammas;   // KIND 5
    i64 stride;
};

#define ROOT 6

#if JOB == 1
// Below this mass of the other labels the closed form loses more digits than the series has terms to add.
#define CONFIDENT 0.05

// `rest²·Σ binom(γ − 2, n)(−rest)ⁿ/(n + 2)`, the label's own term where the others' mass is small.
__device__ double confident_term(double rest, double gamma) {
    double term = 1.0, sum = 0.5;
    for (int n = 0; n < 16; ++n) {
        term *= -rest * (gamma - 2.0 - n) / (n + 1.0);
        sum += term / (n + 3.0);
    }
    return rest * rest * sum;
}

// Called by one thread. `others` and `powers` are Σp_j and Σp_j·slack_j over the labels that are not the row's own.
__device__ void write_loss(const Rows &all, i64 row, const Root &root, const Index &index, double others,
                           double powers) {
    i64 label = all.labels[row];
    double *kept = all.roots + row * ROOT;
    kept[0] = root.top, kept[1] = root.a, kept[2] = root.b, kept[3] = root.mass, kept[4] = root.total;
    kept[5] = 0.0 - others;
    if (is_lost(root.top, index) || label < 0 || label >= all.classes) {
        all.losses[row] = (Real)NOWHERE;
        kept[0] = NOWHERE;
        return;
    }
    Real z = widen(all.z[row * all.classes + label]);
    if (z == -infinity()) {
        all.losses[row] = infinity();
        return;
    }
    double gap = ((double)root.top - (double)z) * index.scale;
    double loss;
    if (is_kind(index, 0)) {
        loss = others < CONFIDENT ? others + confident_term(others, 1.0) : log(root.total) + gap;
    } else {
        double slack = slack_of(gap, root, index), inner = slack > 0.0 ? slack : 0.0;
        double own = (double)mass_of((Gap)gap, root, index) * (double)share_of(root, index);
        double depth = is_kind(index, 3) ? root.a + gap : 1.0 - slack;
        depth = index.delta * (depth < 1.0 ? depth : 1.0);
        double term = others < CONFIDENT ? confident_term(others, index.gamma)
                                         : (depth - inner * (1.0 - own)) / index.gamma;
        loss = powers / index.gamma + term + (slack < 0.0 ? -slack * index.delta : 0.0);
    }
    all.losses[row] = (Real)loss;
}
#endif

// What a row's labels other than its own add to the loss; `each(f)` calls f with gap and label.
template <class Team, class Each>
__device__ void add_loss(const Rows &all, i64 row, bool mine, const Root &root, const Index &index, Each each) {
#if JOB == 1
    i64 label = all.labels[row];
    double others = 0.0, powers = 0.0, share = share_of(root, index);
    each([&](Gap g, u32 at) {
        Real mass = mass_of(g, root, index);
        if (mass > 0 && at != label) {
            double p = (double)mass * share;
            others += p;
            powers += p * slack_of(g, root, index);
        }
    });
    others = Team::sum(others);
    powers = Team::sum(powers);
    if (mine && Team::rank() == 0) write_loss(all, row, root, index, others, powers);
#endif
}

#ifdef NARROW
// Odd, so that threads that read down their rows meet different banks.
#define PITCH (CLASSES | 1)

__device__ __forceinline__ u32 place_of(u32 element) { return element / CLASSES * PITCH + element % CLASSES; }

extern "C" __global__ void __launch_bounds__(ROWS) forward_narrow(Rows all) {
    typedef WarpTeam<1> Team;
    __shared__ Real held[ROWS * PITCH];
    i64 first = (i64)blockIdx.x * ROWS;
    u32 here = all.rows - first < ROWS ? (u32)(all.rows - first) : ROWS;
    u32 elements = here * CLASSES, whole = elements / VEC;
    const Stored *from = all.z + first * CLASSES;
    for (u32 v = threadIdx.x; v < whole; v += ROWS) {
        Pack pack = load_pack(from + v * VEC);
#pragma unroll
        for (int e = 0; e < VEC; ++e) held[place_of(v * VEC + e)] = widen(pack.at[e]);
    }
    for (u32 e = whole * VEC + threadIdx.x; e < elements; e += ROWS) held[place_of(e)] = widen(from[e]);
    __syncthreads();
    i64 row = first + threadIdx.x;
    if (threadIdx.x < here) {
        Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
        Gap g[CLASSES];
        Real top = -infinity();
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) {
            g[k] = held[threadIdx.x * PITCH + k];
            top = larger(top, (Real)g[k]);
        }
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) g[k] = gap_of(top, (Real)g[k], index);
        Root root = {top, 0.0, 0.0, 0.0, 1.0};
        solve<Team>(root, [&](auto f) {
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) f(g[k]);
        }, index);
        add_loss<Team>(all, row, true, root, index, [&](auto f) {
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) f(g[k], (u32)k);
        });
#if JOB == 0
        bool lost = is_lost(top, index);
        Real share = share_of(root, index);
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) {
            held[threadIdx.x * PITCH + k] = lost ? (Real)NOWHERE : mass_of(g[k], root, index) * share;
        }
#endif
    }
#if JOB == 0
    __syncthreads();
    Stored *to = all.p + first * CLASSES;
    for (u32 v = threadIdx.x; v < whole; v += ROWS) {
        Pack pack;
#pragma unroll
        for (int e = 0; e < VEC; ++e) pack.at[e] = narrow(held[place_of(v * VEC + e)]);
        store_pack(to + v * VEC, pack);
    }
    for (u32 e = whole * VEC + threadIdx.x; e < elements; e += ROWS) to[e] = narrow(held[place_of(e)]);
#endif
}
#endif

#ifdef HELD
// Whether a row's registers are given up for a list of the logits within reach: powers are so much work that it pays to
// deal them out evenly, and to have more rows under way.
#define LISTED (SHORT_POWERS && JOB == 0)

// Gaps that a thread takes when they are dealt out evenly; of short rows a larger part is within reach.
#define DEALT (LISTED && LANES < 32 ? 8 : 4)

// Blocks a multiprocessor should have room for: more hide the wait for memory, fewer leave more registers.
#define HELD_BLOCKS (LISTED ? (LANES < 32 ? 5 : 7) : KIND < 3 && VALUES * sizeof(Real) <= 128 ? 8 : KIND == 3 ? 5 : 4)

#if LISTED
// Zeros, and over them the masses of the labels within reach, which are dealt out evenly.
__device__ __forceinline__ void write_listed(const Rows &all, i64 row, bool mine, const Real (&z)[VALUES], Root &root,
                                             const Index &index) {
    typedef WarpTeam<LANES> Team;
    __shared__ unsigned short places[THREADS * VALUES];
    unsigned short *own_at = places + threadIdx.x / LANES * (LANES * VALUES);
    const Real top = root.top, bound = below(top, quick_ratio((Real)1.000001, (Real)index.scale));
    const bool lost = is_lost(top, index);
    const Stored *from = all.z + row * all.classes;
    Stored *to = all.p + row * all.classes;
    u32 within = 0;
#pragma unroll
    for (int i = 0; i < VALUES; ++i) within |= z[i] > bound ? 1u << i : 0u;
    Pack none;
#pragma unroll
    for (int e = 0; e < VEC; ++e) none.at[e] = narrow(lost ? (Real)NOWHERE : (Real)0);
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 first = (i * LANES + Team::rank()) * VEC;
        if (mine && (i < FULL || first < all.classes)) store_dealt(to + first, none);
    }
    int listed;
    int place = Team::before(__popc(within), listed);
#pragma unroll 1
    for (; within; within &= within - 1, ++place) {
        int i = __ffs(within) - 1;
        own_at[place] = (i / VEC * LANES + Team::rank()) * VEC + i % VEC;
    }
    Team::sync();
    // Logits are read again, since registers have no index.
    if (Team::any(listed > LANES * DEALT)) {
        solve<Team>(root, [&](auto f) {
#pragma unroll 4
            for (int i = Team::rank(); i < listed; i += LANES) f(gap_of(top, widen(from[own_at[i]]), index));
        }, index);
        for (int i = Team::rank(); i < listed && mine && !lost; i += LANES) {
            u32 at = own_at[i];
            to[at] = narrow(mass_of(gap_of(top, widen(from[at]), index), root, index));
        }
        return;
    }
    Gap near[DEALT];
    u32 at[DEALT];
#pragma unroll
    for (int i = 0; i < DEALT; ++i) {
        int k = i * LANES + Team::rank();
        at[i] = k < listed ? own_at[k] : all.classes;
    }
#pragma unroll
    for (int i = 0; i < DEALT; ++i) near[i] = at[i] < all.classes ? (Gap)widen(from[at[i]]) : -infinity();
#pragma unroll
    for (int i = 0; i < DEALT; ++i) near[i] = gap_of(top, near[i], index);
    int most = warp_most(listed);
    auto in_near = [&](auto f) {
#pragma unroll
        for (int i = 0; i < DEALT; ++i) {
            if (i * LANES < most) f(near[i]);
        }
    };
    // The masses once: the last step is so small that its effect on each is a product.
    double depth = quick_depth<Team>(in_near, index), mass[DEALT], sum = 0.0;
    float steep[DEALT], slope = 0;
#pragma unroll
    for (int i = 0; i < DEALT; ++i) {
        mass[i] = 0.0, steep[i] = 0;
        if (i * LANES < most) {
            double slack = 1.0 - (depth + (double)near[i]);
            steep[i] = infinity();
            if (slack > 0.0) {
                mass[i] = short_power(slack, index.delta);
                steep[i] = (float)index.delta * quick_ratio(1.0f, (float)slack);
                sum += mass[i];
                slope += (float)mass[i] * steep[i];
            }
        }
    }
    sum = Team::sum(sum), slope = Team::sum(slope);
    double excess = sum - 1.0;
    float last = (float)excess / slope;
    bool close = !Team::any(!(fabs(excess) < 1e-4));
    if (!close) solve<Team>(root, in_near, index);
    Team::sync();
#pragma unroll
    for (int i = 0; i < DEALT; ++i) {
        float fall = steep[i] * last;
        Real left = (Real)(mass[i] - mass[i] * fall);
        // Beside the edge the step is not small: there it decides who is in.
        if (!(fabsf(fall) < 0.0625f)) {
            double slack = 1.0 - (depth + (double)near[i]) - last;
            left = slack > 0.0 ? quick_power((float)slack, (float)index.delta) : (Real)0;
        }
        if (!close) left = mass_of(near[i], root, index);
        if (mine && !lost && left > 0) to[at[i]] = narrow(left);
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, HELD_BLOCKS) forward_held(Rows all) {
    typedef WarpTeam<LANES> Team;
    i64 row = (i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    bool mine = row < all.rows;
    if (!mine) row = all.rows - 1;
    const Stored *from = all.z + row * all.classes;
    Real z[VALUES];
    Real top = -infinity();
    // All loads are under way before the first is looked at.
    Pack packs[VALUES / VEC];
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        packs[i] = load_dealt(from + (i < FULL || at < all.classes ? at : 0));
    }
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        bool inside = i < FULL || (i * LANES + Team::rank()) * VEC < all.classes;
#pragma unroll
        for (int e = 0; e < VEC; ++e) z[i * VEC + e] = inside ? widen(packs[i].at[e]) : -infinity();
    }
#pragma unroll
    for (int i = 0; i < VALUES; ++i) top = larger(top, z[i]);
    top = Team::most(top);
    Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
    Root root = {top, 0.0, 0.0, 0.0, 1.0};
#if LISTED
    write_listed(all, row, mine, z, root, index);
    return;
#elif KIND == 0
    solve<Team>(root, [&](auto f) {
#pragma unroll
        for (int i = 0; i < VALUES; ++i) f(gap_of(top, z[i], index));
    }, index);
#else
    // The few logits within reach go to the thread's own column of shared memory; of softmax's rows all do. Every logit
    // is stored and only those within reach move on to the next place: a store is cheaper than a branch.
    __shared__ Real columns[(VALUES + 1) * THREADS];
    Real *column = columns + threadIdx.x;
    Real bound = index.kind == 0 ? -infinity() : below(top, quick_ratio((Real)1.000001, (Real)index.scale));
    u32 begin = (u32)__cvta_generic_to_shared(column), next = begin;
#pragma unroll
    for (int i = 0; i < VALUES; ++i) store_and_step<THREADS * sizeof(Real)>(next, z[i], bound);
    u32 end = (next - begin) / sizeof(Real);
    // The same for all threads of a warp, so that they go through the columns together.
    u32 longest = warp_most(end);
    auto in_columns = [&](auto f) {
#pragma unroll 1
        for (u32 at = 0; at < longest; at += THREADS) f(gap_of(top, at < end ? column[at] : -infinity(), index));
    };
#if KIND < 3
    if (longest <= DEALT * THREADS) {
        Gap near[DEALT];
#pragma unroll
        for (int i = 0; i < DEALT; ++i) {
            near[i] = gap_of(top, i * THREADS < end ? column[i * THREADS] : -infinity(), index);
        }
        solve<Team>(root, [&](auto f) {
#pragma unroll
            for (int i = 0; i < DEALT; ++i) f(near[i]);
        }, index);
    } else {
        solve<Team>(root, in_columns, index);
    }
#else
    // Powers are dear: few of them are dealt out evenly.
    __shared__ Real even[THREADS * DEALT];
    Real *own = even + threadIdx.x / LANES * (LANES * DEALT);
    int listed;
    int place = Team::before(end / THREADS, listed);
    bool few = !Team::any(listed > LANES * DEALT);
    Real share = 1;
    if (few) {
        for (u32 at = 0; at < end; at += THREADS) own[place + at / THREADS] = column[at];
        Team::sync();
        Gap near[DEALT];
#pragma unroll
        for (int i = 0; i < DEALT; ++i) {
            int at = i * LANES + Team::rank();
            near[i] = gap_of(top, at < listed ? own[at] : -infinity(), index);
        }
        int most = warp_most(listed);
        auto in_near = [&](auto f) {
#pragma unroll
            for (int i = 0; i < DEALT; ++i) {
                if (i * LANES < most) f(near[i]);
            }
        };
        solve<Team>(root, in_near, index);
        share = share_of(root, index);
#if JOB == 0
        Team::sync();
#pragma unroll
        for (int i = 0; i < DEALT; ++i) {
            int at = i * LANES + Team::rank();
            if (at < listed) own[at] = mass_of(near[i], root, index) * share;
        }
        Team::sync();
        for (u32 at = 0; at < end; at += THREADS) column[at] = own[place + at / THREADS];
#endif
    } else {
        solve<Team>(root, in_columns, index);
        share = share_of(root, index);
#if JOB == 0
        for (u32 at = 0; at < end; at += THREADS) {
            column[at] = mass_of(gap_of(top, column[at], index), root, index) * share;
        }
#endif
    }
#endif
#endif
#if LISTED
#elif JOB == 1
    add_loss<Team>(all, row, mine, root, index, [&](auto f) {
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            f(gap_of(top, z[i], index), (u32)((i / VEC * LANES + Team::rank()) * VEC + i % VEC));
        }
    });
#else
    if (!mine) return;
    bool lost = is_lost(top, index);
    Stored *to = all.p + row * all.classes;
#if KIND == 0
    Real share = share_of(root, index);
#elif KIND < 3
    const Real scale = (Real)index.scale, level = lost ? (Real)NOWHERE : (Real)root.a, rest = (Real)root.b;
#else
    u32 taken = 0;
#endif
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        Pack pack;
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            Real logit = z[i * VEC + e];
#if KIND == 0
            Real mass = mass_of(gap_of(top, logit, index), root, index) * share;
#elif KIND < 3
            // A row without an answer has a level of NaN, which the comparison lets through.
            Real slack = (logit - top) * scale + level;
#if DTYPE < 2
            slack += rest;
#endif
            slack = slack < 0 ? (Real)0 : slack;
            Real mass = KIND == 1 ? slack : slack * slack;
#else
            // Masses come back from the column in the order in which their logits went there.
            Real mass = logit > bound ? column[taken] : (Real)0;
            taken += logit > bound ? THREADS : 0;
#endif
            pack.at[e] = narrow(lost && (KIND == 0 || KIND >= 3) ? (Real)NOWHERE : mass);
        }
        if (i < FULL || at < all.classes) store_dealt(to + at, pack);
    }
#endif
}
#endif

#ifdef WIDE
// Packs a thread asks for before it looks at the first. Those in two accesses take twice the registers; softmax's sums
// are rescaled between one flight and the next, so its flights are the same for all rows.
#if defined(UNALIGNED) && KIND != 0
#define FLIGHT 2
#else
#define FLIGHT 4
#endif
#define LIST (DTYPE == 1 ? 2048 : 256 * WARPS)

// Keys rise with the value, so that integers have its maximum.
__device__ __forceinline__ u32 key_of(float x) {
    u32 bits = __float_as_uint(x);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}
__device__ __forceinline__ float of_key(u32 key) {
    return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : 0xffffffffu));
}
__device__ __forceinline__ u64 key_of(double x) {
    u64 bits = __double_as_longlong(x);
    return bits ^ (bits >> 63 ? ~0ull : 1ull << 63);
}
__device__ __forceinline__ double of_key(u64 key) {
    return __longlong_as_double(key ^ (key >> 63 ? 1ull << 63 : ~0ull));
}
#if DTYPE == 1
typedef u64 Key;
#else
typedef u32 Key;
#endif

#define WARPS (THREADS / 32)
#define REGION (LIST / WARPS)
#define FEW (DTYPE == 1 ? 512 : 1024)

#if JOB == 0
// Reads the row once more and writes all of it.
__device__ void write_row(const Stored *from, Stored *to, u32 classes, const Root &root, const Index &index) {
    const Span span(to, classes);
    bool lost = is_lost(root.top, index);
    Real share = share_of(root, index);
    auto written = [&](Stored z) {
        return narrow(lost ? (Real)NOWHERE : mass_of(gap_of(root.top, widen(z), index), root, index) * share);
    };
    for (u32 v = threadIdx.x; v < span.packs; v += THREADS) {
        Pack pack = ask_now(from, span.head + v * VEC, classes);
#pragma unroll
        for (int e = 0; e < VEC; ++e) pack.at[e] = written(pack.at[e]);
        store_pack(to + span.head + v * VEC, pack);
    }
    if (threadIdx.x < span.ends) to[span.end_at()] = written(from[span.end_at()]);
}
#endif

// Every warp has a region of its own and fills it in the order in which it reads. What other warps have seen by then
// decides what else is in it, not which of the labels within reach of the final maximum are, nor their order.
struct List {
    Real z[LIST];
    u32 at[LIST];
    Key top;
};

// What the calling warp has set aside.
struct Region {
    Real *z;
    u32 *at;
    int count;

    // Called by all threads of the warp.
    __device__ __forceinline__ void take(bool in, Real value, u32 place) {
        u32 who = __ballot_sync(WHOLE, in);
        int next = count + __popc(who & ((1u << threadIdx.x % 32) - 1));
        if (in && next < REGION) z[next] = value, at[next] = place;
        count += __popc(who);
    }

    // Leaves what is within reach of the final maximum, in order.
    __device__ void filter(Real top, const Index &index) {
        __syncwarp();
        int kept = 0;
        for (int first = 0; first < count; first += 32) {
            int i = first + threadIdx.x % 32;
            Real value = i < count ? z[i] : -infinity();
            u32 place = i < count ? at[i] : 0;
            bool in = gap_of(top, value, index) < 1;
            u32 who = __ballot_sync(WHOLE, in);
            int next = kept + __popc(who & ((1u << threadIdx.x % 32) - 1));
            // A vote waits for the others, but not for what they read.
            __syncwarp();
            if (in) z[next] = value, at[next] = place;
            kept += __popc(who);
            __syncwarp();
        }
        count = kept;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) forward_wide(Rows all) {
    __shared__ List list;
    __shared__ Root found;
    __shared__ int counts[WARPS];
    const int warp = threadIdx.x / 32;
    Region region = {list.z + warp * REGION, list.at + warp * REGION, 0};
    i64 row = blockIdx.x;
    const Stored *from = all.z + row * all.classes;
#if JOB == 0
    Stored *to = all.p + row * all.classes;
    const Span target(to, all.classes);
#endif
    Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
    // A little more than the gap of 1, whatever rounding does.
    Real reach = (Real)(1.0000005 / index.scale);
    const Deal deal(all.classes);
    const u32 packs = deal.packs, ends = deal.ends;

    Real top = -infinity(), run = -infinity();
#if KIND == 0
    Real sum = 0;
#endif
    for (u32 start = 0; start == 0 || start < packs; start += THREADS * FLIGHT) {
        Asked asked[FLIGHT];
        Real most[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; ++i) {
            u32 v = start + i * THREADS + threadIdx.x;
            if (v < packs) asked[i].ask(from, v * VEC, all.classes);
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; ++i) {
            u32 v = start + i * THREADS + threadIdx.x;
            most[i] = -infinity();
            if (v < packs) {
                asked[i].settle();
#pragma unroll
                for (int e = 0; e < VEC; ++e) most[i] = larger(most[i], widen(asked[i].held.at[e]));
            }
#if JOB == 0 && KIND != 0
            if (v < target.packs) {
                Pack zeros = {};
                store_pack(to + target.head + v * VEC, zeros);
            }
#endif
            top = larger(top, most[i]);
        }
        Real edge = -infinity();
        u32 edge_at = deal.end_at();
        if (start == 0) {
            if (threadIdx.x < ends) {
                edge = widen(from[edge_at]);
                top = larger(top, edge);
            }
#if JOB == 0 && KIND != 0
            if (threadIdx.x < target.ends) to[target.end_at()] = narrow(0);
#endif
#if KIND != 0
            run = BlockTeam::most(top);
            if (threadIdx.x == 0) list.top = key_of(run);
            __syncthreads();
#endif
        }
#if KIND == 0
        // Sums relative to the maximum so far, rescaled when that rises.
        if (top > run) {
            sum = run > -infinity() ? sum * exp_of(run - top) : (Real)0;
            run = top;
        }
        if (run > -infinity()) {
#pragma unroll
            for (int i = 0; i < FLIGHT; ++i) {
                if (most[i] > -infinity()) {
#pragma unroll
                    for (int e = 0; e < VEC; ++e) sum += exp_of(widen(asked[i].held.at[e]) - run);
                }
            }
            if (edge > -infinity()) sum += exp_of(edge - run);
        }
#else
        Real shared = of_key(*(volatile Key *)&list.top);
        run = shared > run ? shared : run;
#pragma unroll
        for (int i = 0; i < FLIGHT; ++i) {
            if (most[i] > run) {
                run = most[i];
                atomicMax(&list.top, key_of(run));
            }
        }
        Real bound = below(run, reach);
        if (start == 0) region.take(edge > bound, edge, edge_at);
        Real highest = most[0];
#pragma unroll
        for (int i = 1; i < FLIGHT; ++i) highest = most[i] > highest ? most[i] : highest;
        if (!__any_sync(WHOLE, highest > bound)) continue;
#pragma unroll
        for (int i = 0; i < FLIGHT; ++i) {
            if (__any_sync(WHOLE, most[i] > bound)) {
                u32 at = (start + i * THREADS + threadIdx.x) * VEC;
                bool reaches = most[i] > bound;
#pragma unroll
                for (int e = 0; e < VEC; ++e) {
                    Real value = reaches ? widen(asked[i].held.at[e]) : -infinity();
                    region.take(value > bound, value, at + e);
                }
            }
        }
#endif
    }
    Real own = run;
    top = BlockTeam::most(top);
    __syncthreads();
    Root root = {top, 0.0, 0.0, 0.0, 1.0};
#if KIND == 0
    bool fits = false;
    root.total = BlockTeam::sum(own > -infinity() ? sum * exp_of(own - top) : (Real)0);
#else
    bool fits = index.kind != 0 && !is_lost(top, index);
    if (__syncthreads_or(region.count > REGION) && fits) {
        // Listed again, by the final maximum: what is left of a region that was long enough, in the same order.
        region.count = 0;
        for (u32 start = 0; start == 0 || start < packs; start += THREADS) {
            if (start == 0) {
                Real edge = threadIdx.x < ends ? widen(from[deal.end_at()]) : -infinity();
                region.take(gap_of(top, edge, index) < 1, edge, deal.end_at());
            }
            u32 v = start + threadIdx.x;
            Pack pack = {};
            if (v < packs) pack = ask_now(from, v * VEC, all.classes);
#pragma unroll
            for (int e = 0; e < VEC; ++e) {
                Real value = v < packs ? widen(pack.at[e]) : -infinity();
                region.take(gap_of(top, value, index) < 1, value, v * VEC + e);
            }
        }
        fits = !__syncthreads_or(region.count > REGION);
    }
    int before = 0, total = 0;
    if (fits) {
        region.filter(top, index);
        if (threadIdx.x % 32 == 0) counts[warp] = region.count;
        __syncthreads();
        for (int w = 0; w < WARPS; ++w) {
            before += w < warp ? counts[w] : 0;
            total += counts[w];
        }
    }
#endif
    // The labels that take part: those of the list, or all. One loop for both: every step of every formula has it
    // inlined, and a first call waits for the compiler.
    auto each = [&](auto f) {
        u32 end = fits ? region.count : all.classes, step = fits ? 32 : THREADS;
        for (u32 at = threadIdx.x % step; at < end; at += step) {
            f(gap_of(top, fits ? region.z[at] : widen(from[at]), index), fits ? region.at[at] : at);
        }
    };
#if KIND != 0
    if (KIND < 3 && fits && total <= FEW) {
        // One warp is enough for a few, and has not to wait for the others at every step.
        __shared__ Gap few[FEW];
        for (int i = threadIdx.x % 32; i < region.count; i += 32) few[before + i] = gap_of(top, region.z[i], index);
        __syncthreads();
        if (warp == 0) {
            solve<WarpTeam<32>>(root, [&](auto f) {
                for (int i = threadIdx.x; i < total; i += 32) f(few[i]);
            }, index);
            if (threadIdx.x == 0) found = root;
        }
        __syncthreads();
        root = found;
    } else {
        solve<BlockTeam>(root, [&](auto f) {
            each([&](Gap g, u32) { f(g); });
        }, index);
    }
#endif
    add_loss<BlockTeam>(all, row, true, root, index, each);
#if JOB == 0
    if (fits) {
        Real share = share_of(root, index);
        for (int i = threadIdx.x % 32; i < region.count; i += 32) {
            Real mass = mass_of(gap_of(top, region.z[i], index), root, index) * share;
            if (mass > 0) to[region.at[i]] = narrow(mass);
        }
        return;
    }
    write_row(from, to, all.classes, root, index);
#endif
}
#endif
