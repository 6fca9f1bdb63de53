// The product of a row's Jacobian with an upstream gradient, `s(u − ū)` with weights s = p^{2 − γ} on the support and ū the
// mean of u under them; with IN_GAMMA also `Σ dz·b` a row, b = −ln²p·∫₀¹ t·p^{(γ − 1)t} dt, the derivative in γ.
//
// Upstream is read only where p is not zero, which saves most of it. Above γ = 2 a vanishing mass has an unbounded weight,
// so everything is in f64 and relative to the upstream of the heaviest label: u − ū would cancel for that very label.

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

// `pairs(f)` calls f with p and upstream, p > 0; `put` is what a label gets.
template <class Team, class Pairs> struct Centre {
    Work origin, mean;

    __device__ Centre(Pairs pairs, const Index &index) {
        origin = 0;
#if KIND >= 4
        Work heaviest = 0;
        pairs([&](Work p, Work u) {
            Work weight = weight_of(p, index);
            heaviest = weight > heaviest ? weight : heaviest;
        });
        heaviest = -Team::least(-heaviest);
        // Of the heaviest any will do; the least of their upstreams is the same for every thread.
        Work least = (Work)__longlong_as_double(0x7ff0000000000000ll);
        pairs([&](Work p, Work u) { least = weight_of(p, index) == heaviest && u < least ? u : least; });
        origin = Team::least(least);
#endif
        Work total = 0, moment = 0;
        pairs([&](Work p, Work u) {
            Work weight = weight_of(p, index);
            total += weight;
            moment += weight * (u - origin);
        });
        total = Team::sum(total);
        moment = Team::sum(moment);
        mean = moment / total;
    }

    __device__ Work at(Work p, Work u, const Index &index) const {
        return weight_of(p, index) * ((u - origin) - mean);
    }
};

template <class Team, class Pairs>
__device__ __forceinline__ Centre<Team, Pairs> centre_of(Pairs pairs, const Index &index) {
    return Centre<Team, Pairs>(pairs, index);
}

template <class Team, class Pairs, class At>
__device__ void add_gamma(const Rows &all, i64 row, bool mine, const Index &index, Pairs pairs, At at) {
#ifdef IN_GAMMA
    double sum = 0.0;
    pairs([&](Work p, Work u) { sum += (double)at(p, u) * drift_of(p, index); });
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
                if (!(p[k] <= 0)) f((Work)p[k], (Work)u[k]);
            }
        };
        auto centre = centre_of<Team>(pairs, index);
        add_gamma<Team>(all, row, true, index, pairs, [&](Work p, Work u) { return centre.at(p, u, index); });
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) {
            held[threadIdx.x * PITCH + k] = p[k] <= 0 ? (Real)0 : (Real)centre.at(p[k], u[k], index);
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
extern "C" __global__ void __launch_bounds__(THREADS) backward_held(Rows all) {
    typedef WarpTeam<LANES> Team;
    i64 row = (i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    bool mine = row < all.rows;
    if (!mine) row = all.rows - 1;
    const Stored *masses = all.p + row * all.classes;
    const Stored *upstream = all.upstream + row * all.classes;
    Real p[VALUES], u[VALUES];
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        bool inside = at < all.classes;
        Pack pack;
        if (inside) pack = load_pack(masses + at);
#pragma unroll
        for (int e = 0; e < VEC; ++e) p[i * VEC + e] = inside ? widen(pack.at[e]) : (Real)0;
    }
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        bool any = false;
#pragma unroll
        for (int e = 0; e < VEC; ++e) any |= !(p[i * VEC + e] <= 0);
        Pack pack = {};
        if (any) pack = load_pack(upstream + (i * LANES + Team::rank()) * VEC);
#pragma unroll
        for (int e = 0; e < VEC; ++e) u[i * VEC + e] = widen(pack.at[e]);
    }
    Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
    auto pairs = [&](auto f) {
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            if (!(p[i] <= 0)) f((Work)p[i], (Work)u[i]);
        }
    };
    auto centre = centre_of<Team>(pairs, index);
    add_gamma<Team>(all, row, mine, index, pairs, [&](Work p, Work u) { return centre.at(p, u, index); });
    if (!mine) return;
    Stored *to = all.out + row * all.classes;
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        Pack pack;
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            Real own = p[i * VEC + e];
            pack.at[e] = narrow(own <= 0 ? (Real)0 : (Real)centre.at(own, u[i * VEC + e], index));
        }
        if (at < all.classes) store_pack(to + at, pack);
    }
}
#endif

#ifdef WIDE
#define FLIGHT 4
#define LIST 2048

extern "C" __global__ void __launch_bounds__(THREADS) backward_wide(Rows all) {
    __shared__ Real list_p[LIST], list_u[LIST];
    __shared__ u32 list_at[LIST];
    __shared__ int listed;
    i64 row = blockIdx.x;
    const Stored *masses = all.p + row * all.classes;
    const Stored *upstream = all.upstream + row * all.classes;
    Stored *to = all.out + row * all.classes;
    Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
    u32 head = VEC == 1 ? 0 : (u32)((0 - (u64)masses / sizeof(Stored)) % VEC);
    head = head < all.classes ? head : all.classes;
    u32 packs = (all.classes - head) / VEC;
    u32 ends = all.classes - packs * VEC;
    if (threadIdx.x == 0) listed = 0;
    __syncthreads();
    auto take = [&](Stored stored, u32 at) {
        Real p = widen(stored);
        if (p <= 0) return;
        int next = atomicAdd(&listed, 1);
        if (next < LIST) list_p[next] = p, list_u[next] = widen(upstream[at]), list_at[next] = at;
    };
    // Softmax has mass everywhere: its rows are read twice instead.
    bool fits = !is_kind(index, 0);
    if (fits) {
        for (u32 start = 0; start < packs; start += THREADS * FLIGHT) {
            Pack held[FLIGHT];
#pragma unroll
            for (int i = 0; i < FLIGHT; ++i) {
                u32 v = start + i * THREADS + threadIdx.x;
                if (v < packs) held[i] = load_pack(masses + head + v * VEC);
            }
#pragma unroll
            for (int i = 0; i < FLIGHT; ++i) {
                u32 v = start + i * THREADS + threadIdx.x;
                if (v >= packs) continue;
                Pack zeros = {};
                store_pack(to + head + v * VEC, zeros);
                bool any = false;
#pragma unroll
                for (int e = 0; e < VEC; ++e) any |= !(widen(held[i].at[e]) <= 0);
                if (any) {
#pragma unroll
                    for (int e = 0; e < VEC; ++e) take(held[i].at[e], head + v * VEC + e);
                }
            }
        }
        if (threadIdx.x < ends) {
            u32 at = threadIdx.x < head ? threadIdx.x : threadIdx.x + packs * VEC;
            to[at] = narrow(0);
            take(masses[at], at);
        }
        __syncthreads();
        fits = listed <= LIST;
    }
    if (fits) {
        int count = listed;
        auto pairs = [&](auto f) {
            for (int i = threadIdx.x; i < count; i += THREADS) f((Work)list_p[i], (Work)list_u[i]);
        };
        auto centre = centre_of<BlockTeam>(pairs, index);
        add_gamma<BlockTeam>(all, row, true, index, pairs, [&](Work p, Work u) { return centre.at(p, u, index); });
        for (int i = threadIdx.x; i < count; i += THREADS) {
            to[list_at[i]] = narrow((Real)centre.at(list_p[i], list_u[i], index));
        }
        return;
    }
    auto pairs = [&](auto f) {
        for (u32 v = threadIdx.x; v < packs; v += THREADS) {
            Pack held = *reinterpret_cast<const Pack *>(masses + head + v * VEC);
            Pack weighed = *reinterpret_cast<const Pack *>(upstream + head + v * VEC);
#pragma unroll
            for (int e = 0; e < VEC; ++e) {
                Real p = widen(held.at[e]);
                if (!(p <= 0)) f((Work)p, (Work)widen(weighed.at[e]));
            }
        }
        if (threadIdx.x < ends) {
            u32 at = threadIdx.x < head ? threadIdx.x : threadIdx.x + packs * VEC;
            Real p = widen(masses[at]);
            if (!(p <= 0)) f((Work)p, (Work)widen(upstream[at]));
        }
    };
    auto centre = centre_of<BlockTeam>(pairs, index);
    add_gamma<BlockTeam>(all, row, true, index, pairs, [&](Work p, Work u) { return centre.at(p, u, index); });
    auto written = [&](Stored p, Stored u) {
        return narrow(widen(p) <= 0 ? (Real)0 : (Real)centre.at(widen(p), widen(u), index));
    };
    for (u32 v = threadIdx.x; v < packs; v += THREADS) {
        Pack held = load_pack(masses + head + v * VEC), weighed = load_pack(upstream + head + v * VEC);
#pragma unroll
        for (int e = 0; e < VEC; ++e) held.at[e] = written(held.at[e], weighed.at[e]);
        store_pack(to + head + v * VEC, held);
    }
    if (threadIdx.x < ends) {
        u32 at = threadIdx.x < head ? threadIdx.x : threadIdx.x + packs * VEC;
        to[at] = written(masses[at], upstream[at]);
    }
}
#endif
