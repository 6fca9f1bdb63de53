// The product of a row's Jacobian with an upstream gradient, `s(u − ū)` with weights s = p^{2 − γ} on the support and ū
// the mean of u under them; with IN_GAMMA also `Σ dz·b` a row, b = −ln²p·∫₀¹ t·p^{(γ − 1)t} dt, the derivative in γ.
//
// Upstream is read only where p is not zero, which saves most of it. Above γ = 2 a vanishing mass has an unbounded
// weight, so everything is in f64 and relative to the upstream of the heaviest label: u − ū would cancel for that very
// label.

struct Rows {
    const Stored *p;
    const Stored *upstream;
    Stored *out;
    double *in_gamma;       // IN_GAMMA, one a row
    i64 rows;
    u32 classes;
    double gamma, scale, delta;
    const double *gammas;   // KIND 5
    i64 stride;
};

#if KIND >= 4
typedef double Work;
#else
typedef Real Work;
#endif
#define HEAVIEST (sizeof(Real) == 4 ? 1e30 : 1e300)

__device__ __forceinline__ Work weight_of(Work p, const Index &index) {
    if (is_kind(index, 0)) return p;
    if (is_kind(index, 1)) return p > 0 ? (Work)1 : (Work)0;
    if (is_kind(index, 2)) return root_of(p);
    if (!(p > 0)) return p;
    Work held = pow_of(p, (Work)(2.0 - index.gamma));
    return held < (Work)HEAVIEST ? held : (Work)HEAVIEST;
}

// `∫₀¹ t·e^{−xt} dt = (1 − (1 + x)e^{−x})/x²` for x ≥ 0, by its series where that cancels.
__device__ __noinline__ double moment(double x) {
    if (x > 1.0) return (1.0 - exp(-x) * (1.0 + x)) / (x * x);
    double sum = 0.0;
#pragma unroll 1
    for (int n = 17; n > 0; --n) sum = 1.0 / (n + 2.0) - x / (n + 1.0) * sum;
    return 0.5 - x * sum;
}

// `∂ ln p/∂γ` at a fixed normaliser, times p^{γ − 1}.
__device__ __noinline__ double drift_of(double p, const Index &index) {
    double log_p = log(p);
    return -log_p * log_p * moment(-(index.gamma - 1.0) * log_p);
}

// `pairs(f)` calls f with weight, upstream and p of each label that has mass.
template <class Team, class Pairs> struct Centre {
    Work origin, mean;

    __device__ Centre(Pairs pairs) {
        origin = 0;
#if KIND >= 4
        Work heaviest = 0;
        pairs([&](Work weight, Work, Work) { heaviest = weight > heaviest ? weight : heaviest; });
        heaviest = -Team::least(-heaviest);
        // Of the heaviest any will do; the least of their upstreams is the same for every thread.
        Work least = (Work)__longlong_as_double(0x7ff0000000000000ll);
        pairs([&](Work weight, Work u, Work) { least = weight == heaviest && u < least ? u : least; });
        origin = Team::least(least);
#endif
        Work total = 0, moment = 0;
        pairs([&](Work weight, Work u, Work) {
            total += weight;
            moment += weight * (u - origin);
        });
        Team::sum_both(total, moment);
        mean = moment / total;
    }

    __device__ Work at(Work weight, Work u) const { return weight * ((u - origin) - mean); }
};

template <class Team, class Pairs> __device__ __forceinline__ Centre<Team, Pairs> centre_of(Pairs pairs) {
    return Centre<Team, Pairs>(pairs);
}

template <class Team, class Pairs, class Middle>
__device__ void add_gamma(const Rows &all, i64 row, bool mine, const Index &index, Pairs pairs, const Middle &centre) {
#ifdef IN_GAMMA
    double sum = 0.0;
    pairs([&](Work weight, Work u, Work p) { sum += (double)centre.at(weight, u) * drift_of(p, index); });
    sum = Team::sum(sum);
    if (mine && Team::rank() == 0) all.in_gamma[row] = index.kind < 0 ? NOWHERE : sum;
#endif
}

#ifdef NARROW
#define PITCH (CLASSES | 1)

__device__ __forceinline__ u32 place_of(u32 element) { return element / CLASSES * PITCH + element % CLASSES; }

__device__ void fill(Real *held, const Stored *from, u32 elements) {
    u32 whole = elements / VEC;
    for (u32 v = threadIdx.x; v < whole; v += ROWS) {
        Pack pack = load_pack(from + v * VEC);
#pragma unroll
        for (int e = 0; e < VEC; ++e) held[place_of(v * VEC + e)] = widen(pack.at[e]);
    }
    for (u32 e = whole * VEC + threadIdx.x; e < elements; e += ROWS) held[place_of(e)] = widen(from[e]);
}

extern "C" __global__ void __launch_bounds__(ROWS) backward_narrow(Rows all) {
    typedef WarpTeam<1> Team;
    __shared__ Real held[ROWS * PITCH];
    i64 first = (i64)blockIdx.x * ROWS;
    u32 here = all.rows - first < ROWS ? (u32)(all.rows - first) : ROWS;
    u32 elements = here * CLASSES;
    Real p[CLASSES], u[CLASSES];
    fill(held, all.p + first * CLASSES, elements);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) p[k] = threadIdx.x < here ? held[threadIdx.x * PITCH + k] : (Real)0;
    __syncthreads();
    fill(held, all.upstream + first * CLASSES, elements);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) u[k] = threadIdx.x < here ? held[threadIdx.x * PITCH + k] : (Real)0;
    i64 row = first + threadIdx.x;
    if (threadIdx.x < here) {
        Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
        auto pairs = [&](auto f) {
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) {
                if (!(p[k] <= 0)) f(weight_of(p[k], index), (Work)u[k], (Work)p[k]);
            }
        };
        auto centre = centre_of<Team>(pairs);
        add_gamma<Team>(all, row, true, index, pairs, centre);
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) {
            held[threadIdx.x * PITCH + k] = p[k] <= 0 ? (Real)0 : (Real)centre.at(weight_of(p[k], index), u[k]);
        }
    }
    __syncthreads();
    Stored *to = all.out + first * CLASSES;
    u32 whole = elements / VEC;
    for (u32 v = threadIdx.x; v < whole; v += ROWS) {
        Pack pack;
#pragma unroll
        for (int e = 0; e < VEC; ++e) pack.at[e] = narrow(held[place_of(v * VEC + e)]);
        store_pack(to + v * VEC, pack);
    }
    for (u32 e = whole * VEC + threadIdx.x; e < elements; e += ROWS) to[e] = narrow(held[place_of(e)]);
}
#endif

#ifdef HELD
extern "C" __global__ void __launch_bounds__(THREADS, KIND != 0 && KIND < 3 && VALUES * sizeof(Real) <= 128 ? 8 : 4)
    backward_held(Rows all) {
    typedef WarpTeam<LANES> Team;
    i64 row = (i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    bool mine = row < all.rows;
    if (!mine) row = all.rows - 1;
    const Stored *masses = all.p + row * all.classes;
    const Stored *upstream = all.upstream + row * all.classes;
    Stored *to = all.out + row * all.classes;
    Real p[VALUES];
    // All loads are under way before the first is looked at.
    Pack packs[VALUES / VEC];
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        packs[i] = load_dealt(masses + (i < FULL || at < all.classes ? at : 0));
    }
#if KIND == 0
    Pack weighed[VALUES / VEC];
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        weighed[i] = load_dealt(upstream + (i < FULL || at < all.classes ? at : 0));
    }
#endif
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        bool inside = i < FULL || (i * LANES + Team::rank()) * VEC < all.classes;
#pragma unroll
        for (int e = 0; e < VEC; ++e) p[i * VEC + e] = inside ? widen(packs[i].at[e]) : (Real)0;
    }
    Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
#if KIND == 0
    Real u[VALUES];
#pragma unroll
    for (int i = 0; i < VALUES; ++i) u[i] = widen(weighed[i / VEC].at[i % VEC]);
    auto pairs = [&](auto f) {
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            if (!(p[i] <= 0)) f((Work)p[i], (Work)u[i], (Work)p[i]);
        }
    };
    auto centre = centre_of<Team>(pairs);
    add_gamma<Team>(all, row, mine, index, pairs, centre);
    if (!mine) return;
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        Pack pack;
#pragma unroll
        for (int e = 0; e < VEC; ++e) pack.at[e] = narrow((Real)centre.at(p[i * VEC + e], u[i * VEC + e]));
        if (i < FULL || at < all.classes) store_dealt(to + at, pack);
    }
#else
    // The few masses go to the thread's own column with their places; every one is stored and only positive ones move
    // on.
    __shared__ Real columns[(VALUES + 1) * THREADS];
    __shared__ unsigned char places[(VALUES + 1) * THREADS];
    Real *column = columns + threadIdx.x;
    unsigned char *place = places + threadIdx.x;
    u32 end = 0;
#pragma unroll
    for (int i = 0; i < VALUES; ++i) {
        column[end] = p[i];
        place[end] = (unsigned char)i;
        end += p[i] <= 0 ? 0 : THREADS;
    }
    u32 longest = warp_most(end);
    auto upstream_at = [&](u32 at) {
        u32 i = place[at];
        return (Work)widen(upstream[(i / VEC * LANES + Team::rank()) * VEC + i % VEC]);
    };
    // Of most rows a thread has at most this many, which then stay in registers.
#define NEAR 4
    Work weight[NEAR], u[NEAR];
#pragma unroll
    for (int i = 0; i < NEAR; ++i) u[i] = i * THREADS < end ? upstream_at(i * THREADS) : (Work)0;
#pragma unroll
    for (int i = 0; i < NEAR; ++i) {
        weight[i] = 0;
        if (i * THREADS < longest) {
            Work own = i * THREADS < end ? (Work)column[i * THREADS] : (Work)0;
            if (i * THREADS < end) weight[i] = weight_of(own, index);
        }
    }
    auto pairs = [&](auto f) {
#pragma unroll
        for (int i = 0; i < NEAR; ++i) {
            if (i * THREADS < end) f(weight[i], u[i], (Work)column[i * THREADS]);
        }
        for (u32 at = NEAR * THREADS; at < end; at += THREADS) {
            f(weight_of(column[at], index), upstream_at(at), (Work)column[at]);
        }
    };
    auto centre = centre_of<Team>(pairs);
    add_gamma<Team>(all, row, mine, index, pairs, centre);
    if (!mine) return;
    for (u32 at = NEAR * THREADS; at < end; at += THREADS) {
        column[at] = (Real)centre.at(weight_of(column[at], index), upstream_at(at));
    }
#pragma unroll
    for (int i = 0; i < NEAR; ++i) {
        if (i * THREADS < end) column[i * THREADS] = (Real)centre.at(weight[i], u[i]);
    }
    u32 taken = 0;
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        Pack pack;
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            bool none = p[i * VEC + e] <= 0;
            pack.at[e] = narrow(none ? (Real)0 : column[taken]);
            taken += none ? 0 : THREADS;
        }
        if (i < FULL || at < all.classes) store_dealt(to + at, pack);
    }
#endif
}
#endif

#ifdef WIDE
#ifdef UNALIGNED
#define FLIGHT 2
#else
#define FLIGHT 4
#endif
#define LIST 2048
#define WARPS (THREADS / 32)
#define REGION (LIST / WARPS)

extern "C" __global__ void __launch_bounds__(THREADS) backward_wide(Rows all) {
    __shared__ Real list_p[LIST], list_u[LIST];
    __shared__ u32 list_at[LIST];
    i64 row = blockIdx.x;
    const Stored *masses = all.p + row * all.classes;
    const Stored *upstream = all.upstream + row * all.classes;
    Stored *to = all.out + row * all.classes;
    Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
    const Deal deal(all.classes);
    const Span target(to, all.classes);
    const u32 packs = deal.packs, ends = deal.ends;
    // Every warp has a region of its own and fills it in the order in which it reads: sums come out the same each time.
    const int first = threadIdx.x / 32 * REGION;
    int count = 0;
    auto take = [&](Real p, u32 at) {
        bool in = !(p <= 0);
        u32 who = __ballot_sync(WHOLE, in);
        int next = count + __popc(who & ((1u << threadIdx.x % 32) - 1));
        if (in && next < REGION) list_p[first + next] = p, list_at[first + next] = at;
        count += __popc(who);
    };
    // Softmax has mass everywhere: its rows are read twice instead.
    bool fits = !is_kind(index, 0);
    if (fits) {
        for (u32 start = 0; start < packs; start += THREADS * FLIGHT) {
            Asked asked[FLIGHT];
#pragma unroll
            for (int i = 0; i < FLIGHT; ++i) {
                u32 v = start + i * THREADS + threadIdx.x;
                if (v < packs) asked[i].ask(masses, v * VEC, all.classes);
            }
#pragma unroll
            for (int i = 0; i < FLIGHT; ++i) {
                u32 v = start + i * THREADS + threadIdx.x;
                bool any = false;
                if (v < packs) {
                    asked[i].settle();
#pragma unroll
                    for (int e = 0; e < VEC; ++e) any |= !(widen(asked[i].held.at[e]) <= 0);
                }
                if (v < target.packs) {
                    Pack zeros = {};
                    store_pack(to + target.head + v * VEC, zeros);
                }
                if (__any_sync(WHOLE, any)) {
#pragma unroll
                    for (int e = 0; e < VEC; ++e) take(any ? widen(asked[i].held.at[e]) : (Real)0, v * VEC + e);
                }
            }
        }
        if (threadIdx.x < target.ends) to[target.end_at()] = narrow(0);
        u32 edge = deal.end_at();
        take(threadIdx.x < ends ? widen(masses[edge]) : (Real)0, edge);
        fits = !__syncthreads_or(count > REGION);
    }
    if (fits) {
        for (int i = threadIdx.x % 32; i < count; i += 32) list_u[first + i] = widen(upstream[list_at[first + i]]);
        auto pairs = [&](auto f) {
            for (int i = first + threadIdx.x % 32; i < first + count; i += 32) {
                f(weight_of(list_p[i], index), (Work)list_u[i], (Work)list_p[i]);
            }
        };
        auto centre = centre_of<BlockTeam>(pairs);
        add_gamma<BlockTeam>(all, row, true, index, pairs, centre);
        for (int i = first + threadIdx.x % 32; i < first + count; i += 32) {
            to[list_at[i]] = narrow((Real)centre.at(weight_of(list_p[i], index), list_u[i]));
        }
        return;
    }
    auto pairs = [&](auto f) {
        for (u32 v = threadIdx.x; v < packs; v += THREADS) {
            Pack held = ask_now(masses, v * VEC, all.classes), weighed = ask_now(upstream, v * VEC, all.classes);
#pragma unroll
            for (int e = 0; e < VEC; ++e) {
                Real p = widen(held.at[e]);
                if (!(p <= 0)) f(weight_of(p, index), (Work)widen(weighed.at[e]), (Work)p);
            }
        }
        if (threadIdx.x < ends) {
            u32 at = deal.end_at();
            Real p = widen(masses[at]);
            if (!(p <= 0)) f(weight_of(p, index), (Work)widen(upstream[at]), (Work)p);
        }
    };
    auto centre = centre_of<BlockTeam>(pairs);
    add_gamma<BlockTeam>(all, row, true, index, pairs, centre);
    auto written = [&](Stored p, Stored u) {
        return narrow(widen(p) <= 0 ? (Real)0 : (Real)centre.at(weight_of(widen(p), index), widen(u)));
    };
    for (u32 v = threadIdx.x; v < target.packs; v += THREADS) {
        u32 first = target.head + v * VEC;
        Pack held = ask_now(masses, first, all.classes), weighed = ask_now(upstream, first, all.classes);
#pragma unroll
        for (int e = 0; e < VEC; ++e) held.at[e] = written(held.at[e], weighed.at[e]);
        store_pack(to + first, held);
    }
    if (threadIdx.x < target.ends) {
        u32 at = target.end_at();
        to[at] = written(masses[at], upstream[at]);
    }
}
#endif
