// Scores of the entmax family and the sets they give, with the CPU's bits.
//
// Sixteen threads share a row, and thread l owns the labels l, l + 16, l + 32, …: the labels of lane l in the order in which
// the CPU adds them. So each thread adds up its own lane, and four shuffles add the lanes in the CPU's tree.
//
// HELD rows stay in registers (VALUES a thread); others are read again. A row with NaN, +∞ or no finite logit is reported
// as `fault`, the least such row.
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
    u32 *sizes;             // find_sets: labels of each set, or TOO_MANY
    u32 *found;             // find_sets: FOUND places a row, best first; pack_sets reads them
    const i64 *offsets;     // pack_sets
    u32 *packed;            // pack_sets
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

__device__ int team_count(int x) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step /= 2) x += __shfl_xor_sync(team_mask(), x, step, TEAM);
    return x;
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
// Labels within reach that a thread keeps; a row with more is left to `score_all`.
#define NEAR 8

// Whether (z, k) comes before (pivot, label): by falling logit, equal logits by label.
__device__ __forceinline__ bool is_before(Real z, u32 k, Real pivot, u32 label) {
    return z > pivot || (z == pivot && k < label);
}

#define ROUNDS 12

__device__ float team_total(float x) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step /= 2) x += __shfl_xor_sync(team_mask(), x, step, TEAM);
    return x;
}

// Newton's next depth below the maximum at which a norm no larger than the score's is the threshold: it falls from the
// threshold towards that depth without passing it. The Euclidean norm serves orders from 1 to 2, the sum those below; above 2
// only the largest gap is known to be no larger, and nothing is gained.
template <class R> __device__ Real raised(const R &own, Real top, Real depth, Real threshold, Order order) {
    bool square = KIND_OF(order) == ORDER_TWO || (KIND_OF(order) == ORDER_OTHER && order.delta > 1.0);
    if (KIND_OF(order) == ORDER_MAX || (KIND_OF(order) == ORDER_OTHER && order.delta > 2.0)) return depth;
    float first = 0, second = 0, count = 0;
    own.each([&](Real z, u32) {
        // In units of the threshold, so that squares are safe.
        float slack = (float)((depth - (top - z)) / threshold);
        if (slack > 0) first += slack, second += slack * slack, count += 1;
    });
    first = team_total(first), second = team_total(second), count = team_total(count);
    float norm = square ? sqrtf(second) : first;
    float slope = square ? first / norm : count;
    // A little less than the whole step: rounding must not carry it past the root.
    return depth - threshold * (Real)(0.9999f * (norm - 1) / slope);
}

extern "C" __global__ void __launch_bounds__(THREADS) find_sets(Rows all) {
    __shared__ Real near_z[NEAR][THREADS];
    __shared__ u32 near_k[NEAR][THREADS];
    i64 row = ((i64)blockIdx.x * THREADS + threadIdx.x) / TEAM;
    if (row >= all.rows) return;
    Row own;
    own.read(all.z + row * all.classes, all.classes);
    Real top = own.top();
    if (report(all, row, top)) return;
    double max = top, threshold = all.threshold;
    Order order = {all.order, all.delta, all.inverse};
    // No score is negative, and none is within a threshold that is no number; then only ties of the top are wanted, if any.
    bool none = !(threshold >= 0.0);
    double reach = none ? 0.0 : threshold;
    if (none && !all.top_label) {
        if (team_rank() == 0) all.sizes[row] = 0;
        return;
    }
    int count = 0, total = 0, most = 0;
    // In f32 first, with a bound no larger than the exact one: most logits end at this test.
    Real bound = (Real)(max - reach);
    // As far as rounding may carry the difference from the maximum, and the bound itself.
    Real slack = (Real)((max < 0.0 ? -max : max) * 1e-15 + reach * 1e-15);
    bound = bound - (bound < 0 ? -bound : bound) * (Real)(sizeof(Real) == 4 ? 2.4e-7 : 4.5e-16) - slack;
    // Labels within reach of the maximum may be many more than the set: then the bound is raised towards the logit at which
    // the norm is the threshold. It holds every member and, with each label, all that are ahead of it.
    Real depth = (Real)reach;
    for (int round = 0;; ++round) {
        count = 0;
        own.each([&](Real z, u32 k) {
            if (z >= bound && max - (double)z <= reach) {
                if (count < NEAR) near_z[count][threadIdx.x] = z, near_k[count][threadIdx.x] = k;
                ++count;
            }
        });
        most = count;
#pragma unroll
        for (int step = TEAM / 2; step > 0; step /= 2) {
            int other = __shfl_xor_sync(team_mask(), most, step, TEAM);
            most = other > most ? other : most;
        }
        total = team_count(count);
        if (most <= NEAR && total <= FOUND) break;
        Real risen = round < ROUNDS ? raised(own, top, depth, (Real)reach, order) : depth;
        if (!(risen < depth)) {
            if (team_rank() == 0) {
                all.sizes[row] = TOO_MANY;
                atomicMin(all.bad_label, (u64)row);
            }
            return;
        }
        depth = risen;
        bound = top - depth * (Real)1.00001;
        bound = bound - (bound < 0 ? -bound : bound) * (Real)(sizeof(Real) == 4 ? 2.4e-7 : 4.5e-16) - slack;
    }
    // Of one or two labels within reach every one is in: the second's only gap is its score.
    u32 members = (1u << count) - 1;
    if (total > 2 && !none && KIND_OF(order) != ORDER_MAX) {
        members = 0;
        for (int owner = 0; owner < TEAM; ++owner) {
            int theirs = __shfl_sync(team_mask(), count, owner, TEAM);
            for (int i = 0; i < theirs; ++i) {
                Real pivot = near_z[i][(threadIdx.x & ~(TEAM - 1)) + owner];
                double score = score_of(order, max, pivot, [&](auto f) {
                    for (int j = 0; j < count; ++j) f(near_z[j][threadIdx.x]);
                });
                if (owner == team_rank() && score <= threshold) members |= 1u << i;
            }
        }
    }
    int size = team_count(__popc(members));
    if (team_rank() == 0) all.sizes[row] = size;
    // The place of a member is the number of members before it.
    for (int owner = 0; owner < TEAM; ++owner) {
        u32 theirs = __shfl_sync(team_mask(), members, owner, TEAM);
        for (; theirs; theirs &= theirs - 1) {
            int i = __ffs(theirs) - 1, at = (threadIdx.x & ~(TEAM - 1)) + owner;
            Real pivot = near_z[i][at];
            u32 label = near_k[i][at];
            int before = 0;
            if (size > 1) {
                for (u32 mine = members; mine; mine &= mine - 1) {
                    int j = __ffs(mine) - 1;
                    before += is_before(near_z[j][threadIdx.x], near_k[j][threadIdx.x], pivot, label);
                }
                before = team_count(before);
            }
            if (team_rank() == 0) all.found[row * FOUND + before] = label;
        }
    }
}
#endif

#ifdef PACK_SETS
// From FOUND places a row to sets end to end; rows that were left to `score_all` are filled in by it.
extern "C" __global__ void __launch_bounds__(THREADS) pack_sets(Rows all) {
    i64 row = ((i64)blockIdx.x * THREADS + threadIdx.x) / TEAM;
    if (row >= all.rows) return;
    u32 size = all.sizes[row];
    if (size == TOO_MANY) return;
    for (u32 i = team_rank(); i < size; i += TEAM) all.packed[all.offsets[row] + i] = all.found[row * FOUND + i];
}
#endif
