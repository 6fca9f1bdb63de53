// The fingerprint `conformax-row-1` of every row: four threads a row, one for each lane of the hash.
struct Rows {
    const Stored *z;
    u64 *out;
    i64 rows;
    u32 classes;
};

__device__ __constant__ u64 ROOTS[8] = {
    0x6a09e667f3bcc908ull, 0xbb67ae8584caa73bull, 0x3c6ef372fe94f82bull, 0xa54ff53a5f1d36f1ull,
    0x510e527fade682d1ull, 0x9b05688c2b3e6c1full, 0x1f83d9abfb41bd6bull, 0x5be0cd19137e2179ull,
};

__device__ __forceinline__ u64 mix(u64 a, u64 b) { return (a * b) ^ __umul64hi(a, b); }

// −0 counts as +0.
__device__ __forceinline__ u64 bits_at(const Stored *from, u64 k, u32 classes) {
    return k < classes ? (u64)__double_as_longlong((double)widen(from[k]) + 0.0) : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS) fingerprints(Rows all) {
    i64 row = ((i64)blockIdx.x * THREADS + threadIdx.x) / 4;
    u32 lane = threadIdx.x % 4;
    bool mine = row < all.rows;
    if (!mine) row = all.rows - 1;
    const Stored *from = all.z + row * all.classes;
    u64 state = ROOTS[lane];
#pragma unroll 4
    for (u64 k = 2 * lane; k - 2 * lane < all.classes; k += 8) {
        state = mix(state ^ bits_at(from, k, all.classes), bits_at(from, k + 1, all.classes) ^ ROOTS[lane + 4]);
    }
    u64 hash = all.classes;
    for (u32 i = 0; i < 4; ++i) hash = mix(hash ^ __shfl_sync(0xffffffffu, state, i, 4), ROOTS[i]);
    if (mine && lane == 0) all.out[row] = hash;
}
