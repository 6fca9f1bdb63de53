// Scores of the entmax family and the sets they give, with the CPU's bits.
//
// Scores: sixteen threads share a row, and thread l owns the labels l, l + 16, l + 32, …: the labels of lane l in the
// order in which the CPU adds them. So each thread adds up its own lane, and four shuffles add the lanes in the CPU's
// tree.
//
// HELD rows stay in registers (VALUES a thread); others are read again. A row with NaN, +∞ or no finite logit is
// reported as `fault`, the least such row.
#define TEAM 16

struct Rows {
    const Stored *z;
    i64 rows;
    u32 classes;
    int order;
    double delta, inverse;
    double threshold;
    const i64 *labels;      // score_labels
    double *scores;         // score_labels: one a row; score_all: one a label
    u32 *sizes;             // find_sets: labels of each set, or TOO_MANY; pack_sets reads them
    u32 *found;             // find_sets: FOUND places a row, best first; pack_sets reads them
    i64 *offsets;           // pack_sets
    u32 *packed;            // pack_sets
    u64 places;             // pack_sets: labels that `packed` has room for
    u64 *sums;              // pack_sets: a counter, then a number for each block; zero before
    u64 *total;             // pack_sets: labels of all sets
    u64 *fault;             // least row at fault
    u64 *bad_label;         // score_labels: least row whose label is no class, or is masked where `never`;
                            // find_sets: least row with too many labels within reach
    int never;              // a masked label is in no set, and none is a row's own
    int top_label;          // an empty set gets the top label and its ties
};

#define FOUND 64
#define TOO_MANY 0xffffffffu

__device__ __forceinline__ u32 team_mask() { return 0xffffu << (threadIdx.x & 16); }
__device__ __forceinline__ int team_rank() { return threadIdx.x % TEAM; }

// A row in registers, or where it lies.
struct Row {
    const Stored *from;
    u32 classes;
#ifdef HELD
    Real held[VALUES];
#endif

    __device__ __forceinline__ void read(const Stored *row, u32 count) {
        from = row, classes = count;
#ifdef HELD
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            u32 k = i * TEAM + team_rank();
            held[i] = i < FULL || k < classes ? widen(from[k]) : -infinity();
        }
#endif
    }

    // Calls f with each of this thread's logits and its label, in rising order.
    template <class F> __device__ __forceinline__ void each(F f) const {
#ifdef HELD
#pragma unroll
        for (int i = 0; i < VALUES; ++i) f(held[i], (u32)(i * TEAM + team_rank()));
#else
#pragma unroll 8
        for (u32 k = team_rank(); k < classes; k += TEAM) f(widen(from[k]), k);
#endif
    }

    // The maximum; NaN where the row is at fault.
    __device__ Real top() const {
        Real most = -infinity();
        each([&](Real z, u32) { most = larger(most, z); });
#pragma unroll
        for (int step = TEAM / 2; step > 0; step /= 2) {
            most = larger(most, __shfl_xor_sync(team_mask(), most, step, TEAM));
        }
        return most < infinity() && most > -infinity() ? most + (Real)0 : (Real)NOWHERE;
    }
};

// Adds the lanes of a team in the tree of `sum_lanes`; the sum is right in every thread.
__device__ double team_sum(double lane) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step /= 2) {
        double other = __shfl_down_sync(team_mask(), lane, step, TEAM);
        lane = lane + other;
    }
    return __shfl_sync(team_mask(), lane, 0, TEAM);
}

// The score of a label whose logit is `pivot`, by the whole team.
template <class Each> __device__ double score_of(Order order, double max, double pivot, Each each) {
    if (pivot == -ENDLESS) return ENDLESS;
    Norm norm = norm_of(order, max, pivot);
    if (is_largest(order, norm.largest)) return norm.largest;
    double lane = 0.0;
    each([&](Real z) {
        if ((double)z > pivot) lane = lane + term_of(norm, (double)z);
    });
    return finish(norm, team_sum(lane));
}

__device__ __forceinline__ bool report(const Rows &all, i64 row, Real top) {
    if (top == top) return false;
    if (team_rank() == 0) atomicMin(all.fault, (u64)row);
    return true;
}

#ifdef SCORE_LABELS
extern "C" __global__ void __launch_bounds__(THREADS) score_labels(Rows all) {
    i64 row = ((i64)blockIdx.x * THREADS + threadIdx.x) / TEAM;
    if (row >= all.rows) return;
    Row own;
    i64 label = all.labels[row];
    bool outside = label < 0 || label >= all.classes;
    const Stored *from = all.z + row * all.classes;
    Real pivot = outside ? (Real)0 : widen(from[label]);
    own.read(from, all.classes);
    Real top = own.top();
    if (outside || (all.never && pivot == -infinity())) {
        if (team_rank() == 0) atomicMin(all.bad_label, (u64)row);
    }
    if (report(all, row, top)) return;
    Order order = {all.order, all.delta, all.inverse};
    double score = score_of(order, top, pivot, [&](auto f) { own.each([&](Real z, u32) { f(z); }); });
    if (team_rank() == 0) all.scores[row] = score;
}
#endif

#ifdef SCORE_ALL
// Every label's score; +∞ for labels further below the maximum than the threshold, which no set at it holds.
extern "C" __global__ void __launch_bounds__(THREADS) score_all(Rows all) {
    // A block a row: its teams take labels in turn.
    i64 row = blockIdx.x;
    const Stored *from = all.z + row * all.classes;
    Row own;
    own.read(from, all.classes);
    Real top = own.top();
    if (report(all, row, top)) return;
    Order order = {all.order, all.delta, all.inverse};
    for (u32 k = threadIdx.x / TEAM; k < all.classes; k += THREADS / TEAM) {
        double pivot = widen(from[k]);
        double score = ENDLESS;
        if (!((double)top - pivot > all.threshold)) {
            score = score_of(order, top, pivot, [&](auto f) { own.each([&](Real z, u32) { f(z); }); });
        }
        if (team_rank() == 0) all.scores[row * all.classes + k] = score;
    }
}
#endif

#ifdef FIND_SETS
// A warp a row: who finds the labels within reach of the maximum does not matter, only the order in which they are
// added.
//
// Those labels go to a list in the order of the sum's tree (`tree_key`), from which each thread scores a label on its
// own.
#define WARPS (THREADS / 32)
#define WHOLE 0xffffffffu
// Labels that a list holds; a row with more within reach, or with more than FOUND in its set, is left to `score_all`.
#define NEAR 128
#define ROUNDS 12
// Blocks a multiprocessor should have room for, to hide the wait for memory.
#define FIND_BLOCKS 8

struct List {
    Real z[NEAR];
    u32 key[NEAR];
};

__device__ __forceinline__ int lane_of_warp() { return threadIdx.x % 32; }

// A row dealt out to a warp: VALUES logits a thread in registers, or where it lies.
struct WarpRow {
    const Stored *from;
    u32 classes;
#ifdef HELD
    Real held[VALUES];
#endif

    __device__ __forceinline__ u32 label_at(int i) const { return (i / VEC * 32 + lane_of_warp()) * VEC + i % VEC; }

    __device__ __forceinline__ void read(const Stored *row, u32 count) {
        from = row, classes = count;
#ifdef HELD
        Pack packs[VALUES / VEC];
#pragma unroll
        for (int i = 0; i < VALUES / VEC; ++i) {
            packs[i] = load_pack(from + (i < FULL || label_at(i * VEC) < classes ? label_at(i * VEC) : 0));
        }
#pragma unroll
        for (int i = 0; i < VALUES; ++i) {
            held[i] = i / VEC < FULL || label_at(i) < classes ? widen(packs[i / VEC].at[i % VEC]) : -infinity();
        }
#endif
    }

    // Calls f with each of this thread's logits.
    template <class F> __device__ __forceinline__ void each(F f) const {
#ifdef HELD
#pragma unroll
        for (int i = 0; i < VALUES; ++i) f(held[i]);
#else
        each_in(from, classes, f);
#endif
    }

    template <class F> __device__ static __forceinline__ void each_in(const Stored *from, u32 classes, F f) {
#pragma unroll 4
        for (u32 v = lane_of_warp(); v < classes / VEC; v += 32) {
            Pack pack = load_pack(from + v * VEC);
#pragma unroll
            for (int e = 0; e < VEC; ++e) f(widen(pack.at[e]));
        }
    }

    // Calls f(z, label) with each logit that is at least `bound`, all threads together; f(−∞, …) where a thread has
    // none.
    template <class F> __device__ __forceinline__ void each_above(Real bound, F f) const {
#ifdef HELD
        u32 above = 0;
#pragma unroll
        for (int i = 0; i < VALUES; ++i) above |= held[i] >= bound ? 1u << i : 0u;
#pragma unroll 1
        while (__any_sync(WHOLE, above != 0)) {
            u32 label = above ? label_at(__ffs(above) - 1) : classes;
            above &= above - 1;
            // Read again, since registers have no index.
            f(label < classes ? widen(from[label]) : -infinity(), label);
        }
#else
        each_above_in(from, classes, bound, f);
#endif
    }

    template <class F>
    __device__ static __forceinline__ void each_above_in(const Stored *from, u32 classes, Real bound, F f) {
        for (u32 first = 0; first < classes / VEC; first += 32) {
            u32 v = first + lane_of_warp();
            bool inside = v < classes / VEC, any = false;
            Pack pack = {};
            if (inside) pack = load_pack(from + v * VEC);
#pragma unroll
            for (int e = 0; e < VEC; ++e) any = any || widen(pack.at[e]) >= bound;
            if (__any_sync(WHOLE, inside && any)) {
#pragma unroll
                for (int e = 0; e < VEC; ++e) f(inside ? widen(pack.at[e]) : -infinity(), v * VEC + e);
            }
        }
    }
};

template <class T> __device__ T warp_total(T x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(WHOLE, x, step, 32);
    return x;
}

__device__ Real raised(const Stored *from, u32 classes, Real top, Real depth, Real threshold, Order order) {
    if (!can_be_raised(order, threshold)) return depth;
    Slacks sums = {0, 0, 0};
    const Real unit = 1 / threshold;
    WarpRow::each_in(from, classes, [&](Real z) { add_slack(sums, top, z, depth, unit); });
    sums = {warp_total(sums.first), warp_total(sums.second), warp_total(sums.count)};
    return raised_depth(order, sums, depth, threshold);
}

// What is within reach of a row's maximum, and how many labels that are.
struct Reach {
    Real top, bound, slack;
    double reach;
    List *list;
    u32 count;

    // Called by all threads of the warp.
    __device__ __forceinline__ void take(Real z, u32 label) {
        bool in = z >= bound && is_within(top, z, reach);
        u32 who = __ballot_sync(WHOLE, in), place = count + __popc(who & ((1u << lane_of_warp()) - 1));
        if (in && place < NEAR) list->z[place] = z, list->key[place] = tree_key(label);
        count += __popc(who);
    }
};

// Labels within reach of the maximum may be many more than the set: then the bound is raised. Few rows come here, so the
// row is read again: registers for it would be missing everywhere else.
__device__ __noinline__ u32 take_fewer(const Stored *from, u32 classes, Reach near, Order order) {
    Real depth = (Real)near.reach;
    for (int round = 0; round < ROUNDS && near.count > NEAR; ++round) {
        Real risen = raised(from, classes, near.top, depth, (Real)near.reach, order);
        if (!(risen < depth)) break;
        depth = risen;
        near.bound = bound_at_depth(near.top, depth, near.slack);
        near.count = 0;
        // The list is written anew, by other threads than before.
        __syncwarp();
        WarpRow::each_above_in(from, classes, near.bound, [&](Real z, u32 label) { near.take(z, label); });
    }
    return near.count;
}

__device__ __forceinline__ double score_in(const List &list, u32 count, Order order, double max, u32 i) {
    return list_norm(count, max, list.z[i], order, [&](u32 j) { return list.key[j]; },
                     [&](u32 j) { return (double)list.z[j]; });
}

extern "C" __global__ void __launch_bounds__(THREADS, FIND_BLOCKS) find_sets(Rows all) {
    __shared__ List unsorted[WARPS], lists[WARPS];
    __shared__ u32 members_of[WARPS][NEAR / 32];
    const int lane = lane_of_warp(), warp = threadIdx.x / 32;
    List &raw = unsorted[warp], &list = lists[warp];
    i64 row = (i64)blockIdx.x * WARPS + warp;
    if (row >= all.rows) return;
    WarpRow own;
    own.read(all.z + row * all.classes, all.classes);
    Real top = -infinity();
    own.each([&](Real z) { top = larger(top, z); });
#pragma unroll
    for (int step = 16; step > 0; step /= 2) top = larger(top, __shfl_xor_sync(WHOLE, top, step, 32));
    if (!(top < infinity() && top > -infinity())) {
        if (lane == 0) {
            all.sizes[row] = 0;
            atomicMin(all.fault, (u64)row);
        }
        return;
    }
    top = top + (Real)0;
    double max = top, threshold = all.threshold;
    Order order = {all.order, all.delta, all.inverse};
    // No score is negative, and none is within a threshold that is no number; then only ties of the top are wanted, if
    // any.
    bool none = !(threshold >= 0.0);
    double reach = none ? 0.0 : threshold;
    if (none && !all.top_label) {
        if (lane == 0) all.sizes[row] = 0;
        return;
    }
    Reach near = {top, 0, 0, reach, &raw, 0};
    near.slack = (Real)slack_of_reach(max, reach);
    near.bound = bound_below((Real)(max - reach), near.slack);
    own.each_above(near.bound, [&](Real z, u32 label) { near.take(z, label); });
    u32 count = near.count;
    if (count > NEAR) count = take_fewer(own.from, own.classes, near, order);
    __syncwarp();
    u32 size = 0;
    if (count == 1) {
        // The top label alone, whose score is 0.
        size = 1;
        if (lane == 0) all.found[row * FOUND] = label_of(raw.key[0]);
    } else if (count <= NEAR) {
        for (u32 i = lane; i < count; i += 32) {
            u32 key = raw.key[i], place = 0;
#pragma unroll 1
            for (u32 j = 0; j < count; ++j) place += raw.key[j] < key;
            list.key[place] = key, list.z[place] = raw.z[i];
        }
        __syncwarp();
        bool all_in = none || KIND_OF(order) == ORDER_MAX;
        for (u32 first = 0; first < count; first += 32) {
            u32 i = first + lane;
            bool in = i < count && (all_in || score_in(list, count, order, max, i) <= threshold);
            u32 who = __ballot_sync(WHOLE, in);
            members_of[warp][first / 32] = who;
            size += __popc(who);
        }
        __syncwarp();
        for (u32 i = lane; i < count && size <= FOUND; i += 32) {
            if (!(members_of[warp][i / 32] >> i % 32 & 1)) continue;
            Real z = list.z[i];
            u32 label = label_of(list.key[i]), place = 0;
            // What is ahead of a member and within the list is a member, or equal to it.
#pragma unroll 1
            for (u32 j = 0; j < count; ++j) {
                bool member = members_of[warp][j / 32] >> j % 32 & 1;
                place += member && is_before(list.z[j], label_of(list.key[j]), z, label);
            }
            all.found[row * FOUND + place] = label;
        }
    }
    if (lane == 0) {
        bool fits = count <= NEAR && size <= FOUND;
        all.sizes[row] = fits ? size : TOO_MANY;
        if (!fits) atomicMin(all.bad_label, (u64)row);
    }
}
#endif

#ifdef PACK_SETS
// From FOUND places a row to sets end to end, with their offsets: a thread a row.
//
// A block adds up its sizes, makes the sum known, and adds up those of the blocks before it from the nearest back,
// until it meets one that knows its offset already. Blocks take numbers in the order in which they start, so that none
// waits for one that has not. Rows that were left to `score_all` count as empty, or have a size by now and get their
// labels from it; sets beyond `places` are not written.
#define KNOWN_SUM (1ull << 62)
#define KNOWN_OFFSET (2ull << 62)
#define VALUE (KNOWN_SUM - 1)

extern "C" __global__ void __launch_bounds__(THREADS) pack_sets(Rows all) {
    __shared__ u32 ends[THREADS / 32];
    __shared__ u64 start;
    __shared__ u32 number;
    if (threadIdx.x == 0) number = (u32)atomicAdd(all.sums, 1ull);
    __syncthreads();
    i64 row = (i64)number * THREADS + threadIdx.x;
    u32 size = row < all.rows ? all.sizes[row] : 0;
    if (size == TOO_MANY) size = 0;
    u32 end = size;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        u32 other = __shfl_up_sync(0xffffffffu, end, step, 32);
        if (threadIdx.x % 32 >= step) end += other;
    }
    if (threadIdx.x % 32 == 31) ends[threadIdx.x / 32] = end;
    __syncthreads();
    u32 before = 0, sum = 0;
    for (int warp = 0; warp < THREADS / 32; ++warp) {
        before += warp < threadIdx.x / 32 ? ends[warp] : 0;
        sum += ends[warp];
    }
    if (threadIdx.x == 0) {
        volatile u64 *sums = all.sums + 1;
        u64 offset = 0;
        if (number > 0) {
            sums[number] = KNOWN_SUM | sum;
            for (u32 other = number; other-- > 0;) {
                u64 known = 0;
                while ((known = sums[other]) == 0) {}
                offset += known & VALUE;
                if (known & KNOWN_OFFSET) break;
            }
        }
        sums[number] = KNOWN_OFFSET | (offset + sum);
        start = offset;
        if (number + 1 == gridDim.x) *all.total = offset + sum;
    }
    __syncthreads();
    u64 first = start + before + end - size;
    if (row >= all.rows) return;
    all.offsets[row + 1] = (i64)(first + size);
    if (row == 0) all.offsets[0] = 0;
    if (size > FOUND || first + size > all.places) return;
    for (u32 i = 0; i < size; ++i) all.packed[first + i] = all.found[row * FOUND + i];
}
#endif
