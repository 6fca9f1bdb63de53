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
        double own = (double)mass_of((Real)gap, root, index) * (double)share_of(root, index);
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
    each([&](Real g, u32 at) {
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
        Real g[CLASSES];
        Real top = -infinity();
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) {
            g[k] = held[threadIdx.x * PITCH + k];
            top = larger(top, g[k]);
        }
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) g[k] = gap_of(top, g[k], index);
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
// Gaps below 1 that a thread takes from the list; more in a row, and all of its gaps are gone through.
#define LISTED (KIND < 3 ? 2 : 4)

extern "C" __global__ void __launch_bounds__(THREADS) forward_held(Rows all) {
    typedef WarpTeam<LANES> Team;
    i64 row = (i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    bool mine = row < all.rows;
    if (!mine) row = all.rows - 1;
    const Stored *from = all.z + row * all.classes;
    Real g[VALUES];
    Real top = -infinity();
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        bool inside = at < all.classes;
        Pack pack;
        if (inside) pack = load_pack(from + at);
#pragma unroll
        for (int e = 0; e < VEC; ++e) g[i * VEC + e] = inside ? widen(pack.at[e]) : -infinity();
    }
#pragma unroll
    for (int i = 0; i < VALUES; ++i) top = larger(top, g[i]);
    top = Team::most(top);
    Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
#pragma unroll
    for (int i = 0; i < VALUES; ++i) g[i] = gap_of(top, g[i], index);

    Root root = {top, 0.0, 0.0, 0.0, 1.0};
#if KIND != 0
    __shared__ Real list[THREADS * LISTED];
    Real *own = list + threadIdx.x / LANES * (LANES * LISTED);
    int count = 0, listed;
#pragma unroll
    for (int i = 0; i < VALUES; ++i) count += g[i] < 1;
    int place = Team::before(count, listed);
    // Of softmax's rows every gap counts.
    bool fits = !Team::any(listed > LANES * LISTED || index.kind == 0);
    if (fits) {
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            if (g[i] < 1) own[place++] = g[i];
        }
        Team::sync();
        Real near[LISTED];
#pragma unroll
        for (int i = 0; i < LISTED; ++i) {
            int at = i * LANES + Team::rank();
            near[i] = at < listed ? own[at] : infinity();
        }
        solve<Team>(root, [&](auto f) {
#pragma unroll
            for (int i = 0; i < LISTED; ++i) f(near[i]);
        }, index);
    } else
#endif
    {
        solve<Team>(root, [&](auto f) {
#pragma unroll
            for (int i = 0; i < VALUES; ++i) f(g[i]);
        }, index);
    }
    add_loss<Team>(all, row, mine, root, index, [&](auto f) {
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            f(g[i], (u32)((i / VEC * LANES + Team::rank()) * VEC + i % VEC));
        }
    });
#if JOB == 0
    if (!mine) return;
    bool lost = is_lost(top, index);
    Real share = share_of(root, index);
    Stored *to = all.p + row * all.classes;
#pragma unroll
    for (int i = 0; i < VALUES / VEC; ++i) {
        u32 at = (i * LANES + Team::rank()) * VEC;
        Pack pack;
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            pack.at[e] = narrow(lost ? (Real)NOWHERE : mass_of(g[i * VEC + e], root, index) * share);
        }
        if (at < all.classes) store_pack(to + at, pack);
    }
#endif
}
#endif

#ifdef WIDE
// Packs a thread asks for before it looks at the first.
#define FLIGHT 4
#define LIST (DTYPE == 1 ? 2048 : 4096)

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

struct List {
    Real z[LIST];
    u32 at[LIST];
    int count;
    Key top;

    __device__ void take(Real value, u32 place, Real bound) {
        if (value > bound) {
            int next = atomicAdd(&count, 1);
            if (next < LIST) z[next] = value, at[next] = place;
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) forward_wide(Rows all) {
    __shared__ List list;
    __shared__ Root found;
    i64 row = blockIdx.x;
    const Stored *from = all.z + row * all.classes;
#if JOB == 0
    Stored *to = all.p + row * all.classes;
#endif
    Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
    // A little more than the gap of 1, whatever rounding does.
    Real reach = (Real)(1.0000005 / index.scale);
    // A row may begin anywhere: single elements up to the first boundary and after the last.
    u32 head = VEC == 1 ? 0 : (u32)((0 - (u64)from / sizeof(Stored)) % VEC);
    head = head < all.classes ? head : all.classes;
    u32 packs = (all.classes - head) / VEC;
    u32 ends = all.classes - packs * VEC;

    Real top = -infinity(), run = -infinity();
#if KIND == 0
    Real sum = 0;
#endif
    if (threadIdx.x == 0) list.count = 0;
    for (u32 start = 0; start == 0 || start < packs; start += THREADS * FLIGHT) {
        Pack held[FLIGHT];
        Real most[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; ++i) {
            u32 v = start + i * THREADS + threadIdx.x;
            if (v < packs) held[i] = load_pack(from + head + v * VEC);
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; ++i) {
            u32 v = start + i * THREADS + threadIdx.x;
            most[i] = -infinity();
            if (v < packs) {
#pragma unroll
                for (int e = 0; e < VEC; ++e) most[i] = larger(most[i], widen(held[i].at[e]));
#if JOB == 0 && KIND != 0
                Pack zeros = {};
                store_pack(to + head + v * VEC, zeros);
#endif
            }
            top = larger(top, most[i]);
        }
        Real edge = -infinity();
        u32 edge_at = threadIdx.x < head ? threadIdx.x : threadIdx.x + packs * VEC;
        if (start == 0) {
            if (threadIdx.x < ends) {
                edge = widen(from[edge_at]);
                top = larger(top, edge);
#if JOB == 0 && KIND != 0
                to[edge_at] = narrow(0);
#endif
            }
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
                    for (int e = 0; e < VEC; ++e) sum += exp_of(widen(held[i].at[e]) - run);
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
        Real bound = run - reach;
        list.take(edge, edge_at, bound);
#pragma unroll
        for (int i = 0; i < FLIGHT; ++i) {
            if (most[i] > bound) {
                u32 at = head + (start + i * THREADS + threadIdx.x) * VEC;
#pragma unroll
                for (int e = 0; e < VEC; ++e) list.take(widen(held[i].at[e]), at + e, bound);
            }
        }
#endif
    }
    Real own = run;
    top = BlockTeam::most(top);
    __syncthreads();
    Root root = {top, 0.0, 0.0, 0.0, 1.0};
    bool lost = is_lost(top, index);
#if KIND == 0
    bool fits = false;
    root.total = BlockTeam::sum(own > -infinity() ? sum * exp_of(own - top) : (Real)0);
#else
    int count = list.count;
    bool fits = count <= LIST && index.kind != 0;
    if (fits) {
        if (threadIdx.x < 32) {
            solve<WarpTeam<32>>(root, [&](auto f) {
                for (int i = threadIdx.x; i < count; i += 32) f(gap_of(top, list.z[i], index));
            }, index);
            if (threadIdx.x == 0) found = root;
        }
        __syncthreads();
        root = found;
    } else {
        solve<BlockTeam>(root, [&](auto f) {
            for (u32 k = threadIdx.x; k < all.classes; k += THREADS) f(gap_of(top, widen(from[k]), index));
        }, index);
    }
    if (fits && !lost) {
        add_loss<BlockTeam>(all, row, true, root, index, [&](auto f) {
            for (int i = threadIdx.x; i < count; i += THREADS) f(gap_of(top, list.z[i], index), list.at[i]);
        });
#if JOB == 0
        Real share = share_of(root, index);
        for (int i = threadIdx.x; i < count; i += THREADS) {
            Real mass = mass_of(gap_of(top, list.z[i], index), root, index) * share;
            if (mass > 0) to[list.at[i]] = narrow(mass);
        }
#endif
        return;
    }
#endif
    add_loss<BlockTeam>(all, row, true, root, index, [&](auto f) {
        for (u32 k = threadIdx.x; k < all.classes; k += THREADS) f(gap_of(top, widen(from[k]), index), k);
    });
#if JOB == 0
    Real share = share_of(root, index);
    auto written = [&](Stored z) {
        return narrow(lost ? (Real)NOWHERE : mass_of(gap_of(top, widen(z), index), root, index) * share);
    };
    for (u32 v = threadIdx.x; v < packs; v += THREADS) {
        Pack pack = load_pack(from + head + v * VEC);
#pragma unroll
        for (int e = 0; e < VEC; ++e) pack.at[e] = written(pack.at[e]);
        store_pack(to + head + v * VEC, pack);
    }
    if (threadIdx.x < ends) {
        u32 at = threadIdx.x < head ? threadIdx.x : threadIdx.x + packs * VEC;
        to[at] = written(from[at]);
    }
#endif
}
#endif
