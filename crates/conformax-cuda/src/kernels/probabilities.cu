// The probabilities of the labels of every set, packed as the sets are, with the CPU's bits: a thread a row.
struct Rows {
    const Stored *z;
    const i64 *offsets;
    const u32 *packed;
    double *p;
    double *pool;           // scratch of the size of p
    i64 rows;
    u32 classes;
    int order;
    double delta, inverse;
    double threshold;
};

extern "C" __global__ void __launch_bounds__(THREADS) probabilities(Rows all) {
    i64 row = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= all.rows) return;
    i64 first = all.offsets[row];
    u32 count = (u32)(all.offsets[row + 1] - first);
    if (count == 0) return;
    const Stored *from = all.z + row * all.classes;
    const u32 *labels = all.packed + first;
    double *p = all.p + first;
    Order order = {all.order, all.delta, all.inverse};
    // The first of a set is its best, and the row's maximum.
    double top = (double)widen(from[labels[0]]);
    if (KIND_OF(order) == ORDER_MAX) {
        for (u32 i = 0; i < count; ++i) p[i] = (double)widen(from[labels[i]]) - top;
        normalize_soft(p, count);
    } else if (all.threshold > 0.0 && all.threshold < ENDLESS) {
        for (u32 i = 0; i < count; ++i) p[i] = (top - (double)widen(from[labels[i]])) / all.threshold;
        normalize_gaps(p, count, all.pool + first, order);
    } else {
        // β = ∞ spreads the mass over the top label and its ties, which are the set; β = 0 over all that is possible.
        double possible = 0.0;
        for (u32 i = 0; i < count; ++i) possible += widen(from[labels[i]]) > -infinity() ? 1.0 : 0.0;
        for (u32 i = 0; i < count; ++i) p[i] = (widen(from[labels[i]]) > -infinity() ? 1.0 : 0.0) / possible;
    }
}
