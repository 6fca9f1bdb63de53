// The fingerprint `conformax-row-1` of a row: four lanes take two of every eight values in turn, and are mixed at the end.
#ifdef __CUDACC__
__device__ __constant__
#else
static const
#endif
    unsigned long long ROOTS[8] = {
        0x6a09e667f3bcc908ull, 0xbb67ae8584caa73bull, 0x3c6ef372fe94f82bull, 0xa54ff53a5f1d36f1ull,
        0x510e527fade682d1ull, 0x9b05688c2b3e6c1full, 0x1f83d9abfb41bd6bull, 0x5be0cd19137e2179ull,
};

BOTH unsigned long long mix(unsigned long long a, unsigned long long b) { return (a * b) ^ high_product(a, b); }

// What a lane has become after all values: `at(k)` is value k in f64. −0 counts as +0, and +0 follows the last.
template <class At> BOTH unsigned long long lane_after(unsigned lane, unsigned classes, At at) {
    auto bits_at = [&](unsigned long long k) { return k < classes ? bits_of(at(k) + 0.0) : 0ull; };
    unsigned long long state = ROOTS[lane];
#ifdef __CUDACC__
#pragma unroll 4
#endif
    for (unsigned long long k = 2 * lane; k - 2 * lane < classes; k += 8) {
        state = mix(state ^ bits_at(k), bits_at(k + 1) ^ ROOTS[lane + 4]);
    }
    return state;
}

// The fingerprint from the lanes: `lane(i)` is what lane i has become.
template <class Lane> BOTH unsigned long long mixed_lanes(unsigned classes, Lane lane) {
    unsigned long long hash = classes;
    for (unsigned i = 0; i < 4; ++i) hash = mix(hash ^ lane(i), ROOTS[i]);
    return hash;
}
