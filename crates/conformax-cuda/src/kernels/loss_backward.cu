// The gradient of the loss in the logits, `upstream·(p − e_y)`, from the logits and what the forward pass kept of each
// row.
struct Rows {
    const Stored *z;
    Stored *out;
    const i64 *labels;
    const Real *upstream;   // one a row, `spread` apart; 0 where all rows share one
    const double *roots;    // six a row
    i64 rows;
    u32 classes;
    double gamma, scale, delta;
    const double *gammas;   // KIND 5
    i64 stride;
    i64 spread;
};

#define ROOT 6

// A thread takes packs of any row, in turn: rows may be short.
extern "C" __global__ void __launch_bounds__(THREADS) loss_backward(Rows all) {
    u64 packs = (u64)all.rows * all.classes / VEC;
    u32 per_row = all.classes / VEC;
    for (u64 v = (u64)blockIdx.x * THREADS + threadIdx.x; v < packs; v += (u64)gridDim.x * THREADS) {
        u64 row = packs >> 32 ? v / per_row : (u64)((u32)v / per_row);
        u32 at = (u32)(v - row * per_row) * VEC;
        Pack pack = load_pack(all.z + v * VEC);
        Index index = index_of(all.gamma, all.scale, all.delta, all.gammas, all.stride, row);
        const double *kept = all.roots + row * ROOT;
        Root root = {(Real)kept[0], kept[1], kept[2], kept[3], kept[4]};
        Real upstream = all.upstream[row * all.spread], share = share_of(root, index);
        bool lost = is_lost(root.top, index);
        u32 label = (u32)all.labels[row];
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
            Real slope = mass_of(gap_of(root.top, widen(pack.at[e]), index), root, index) * share;
            if (at + e == label) slope = (Real)kept[5];
            pack.at[e] = narrow(lost ? (Real)NOWHERE : slope * upstream);
        }
        store_pack(all.out + v * VEC, pack);
    }
}
