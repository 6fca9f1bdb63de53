// The fingerprint of every row: four threads a row, one for each lane of the hash.
struct Rows {
    const Stored *z;
    u64 *out;
    i64 rows;
    u32 classes;
};

extern "C" __global__ void __launch_bounds__(THREADS) fingerprints(Rows all) {
    i64 row = ((i64)blockIdx.x * THREADS + threadIdx.x) / 4;
    u32 lane = threadIdx.x % 4;
    bool mine = row < all.rows;
    if (!mine) row = all.rows - 1;
    const Stored *from = all.z + row * all.classes;
    u64 state = lane_after(lane, all.classes, [&](u64 k) { return (double)widen(from[k]); });
    u64 hash = mixed_lanes(all.classes, [&](u32 i) { return __shfl_sync(0xffffffffu, state, i, 4); });
    if (mine && lane == 0) all.out[row] = hash;
}
