// What the GPU's compiler and the host's call by different names, before any other header.
//
// Headers ending in .h compile for the GPU, and for the host, where tests hold them to the Rust functions. Those with the
// CPU's bits are not contracted: `--fmad=false` there, `-ffp-contract=off` here.
#ifdef __CUDACC__
#define BOTH __device__ __forceinline__
#define WHOLE_CALL __device__ __noinline__
#define ANY_CALL __device__
BOTH unsigned long long bits_of(double x) { return (unsigned long long)__double_as_longlong(x); }
BOTH double of_bits(unsigned long long bits) { return __longlong_as_double((long long)bits); }
BOTH double sqrt_of(double x) { return __dsqrt_rn(x); }
BOTH unsigned long long high_product(unsigned long long a, unsigned long long b) { return __umul64hi(a, b); }
#else
#include <cmath>
#include <cstring>
#define BOTH static inline
#define WHOLE_CALL static
#define ANY_CALL static
BOTH unsigned long long bits_of(double x) {
    unsigned long long bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
BOTH double of_bits(unsigned long long bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
BOTH double sqrt_of(double x) { return std::sqrt(x); }
BOTH unsigned long long high_product(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
#endif
