// Numbers as they are stored and as they are computed with, and how a row is read and written.
//
// The host defines DTYPE (0 f32, 1 f64, 2 f16, 3 bf16) and VEC, the neighbours that a thread takes together: 16 bytes,
// or 1. Which labels a thread has decides the order of sums, so VEC never depends on where a row lies in memory. Where a
// row may begin elsewhere than on a boundary of 16 bytes the host defines UNALIGNED, and the same labels are read by
// other accesses.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#if DTYPE == 0
typedef float Stored;
typedef float Real;
#elif DTYPE == 1
typedef double Stored;
typedef double Real;
#else
typedef unsigned short Stored;
typedef float Real;
#endif

#define NOWHERE (__longlong_as_double(0x7ff8000000000000ll))

__device__ __forceinline__ Real widen(Stored x) {
#if DTYPE == 2
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
#elif DTYPE == 3
    return __uint_as_float((u32)x << 16);
#else
    return x;
#endif
}

__device__ __forceinline__ Stored narrow(Real x) {
#if DTYPE == 2
    Stored y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
#elif DTYPE == 3
#if __CUDA_ARCH__ >= 800
    Stored y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
#else
    // To the nearest, ties to even; the sum carries into the exponent as it should, and a NaN keeps a bit.
    u32 bits = __float_as_uint(x);
    if (x != x) return 0x7fff;
    return (Stored)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
#else
    return x;
#endif
}

struct alignas(sizeof(Stored) * VEC) Pack {
    Stored at[VEC];
};

// Without hints that a row is read or written only once: with them 128,256 classes took 4 % longer.
__device__ __forceinline__ Pack load_pack(const Stored *from) {
    Pack pack;
#if VEC == 1
    pack.at[0] = *from;
#else
    *reinterpret_cast<uint4 *>(&pack) = *reinterpret_cast<const uint4 *>(from);
#endif
    return pack;
}

__device__ __forceinline__ void store_pack(Stored *to, Pack pack) {
#if VEC == 1
    *to = pack.at[0];
#else
    *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<uint4 *>(&pack);
#endif
}

// A pack of a row that may begin anywhere. Outputs of torch begin on a boundary, whatever the inputs do.
__device__ __forceinline__ Pack load_dealt(const Stored *from) {
#ifdef UNALIGNED
    if ((u64)from % sizeof(Pack)) {
        Pack pack;
#pragma unroll
        for (int e = 0; e < VEC; ++e) pack.at[e] = from[e];
        return pack;
    }
#endif
    return load_pack(from);
}

__device__ __forceinline__ void store_dealt(Stored *to, Pack pack) {
#ifdef UNALIGNED
    if ((u64)to % sizeof(Pack)) {
#pragma unroll
        for (int e = 0; e < VEC; ++e) to[e] = pack.at[e];
        return;
    }
#endif
    store_pack(to, pack);
}

// Stores at an address of shared memory and moves on by STEP bytes if the value is above the bound: three instructions,
// where C++ takes five.
template <int STEP> __device__ __forceinline__ void store_and_step(u32 &address, float value, float bound) {
    asm volatile("{\n\t.reg .pred above;\n\tst.shared.f32 [%0], %1;\n\tsetp.gt.f32 above, %1, %2;\n\t"
                 "@above add.u32 %0, %0, %3;\n\t}"
                 : "+r"(address)
                 : "f"(value), "f"(bound), "n"(STEP)
                 : "memory");
}
template <int STEP> __device__ __forceinline__ void store_and_step(u32 &address, double value, double bound) {
    asm volatile("{\n\t.reg .pred above;\n\tst.shared.f64 [%0], %1;\n\tsetp.gt.f64 above, %1, %2;\n\t"
                 "@above add.u32 %0, %0, %3;\n\t}"
                 : "+r"(address)
                 : "d"(value), "d"(bound), "n"(STEP)
                 : "memory");
}

__device__ __forceinline__ Real infinity() { return (Real)__longlong_as_double(0x7ff0000000000000ll); }

// Unlike fmax, a NaN on either side stays.
__device__ __forceinline__ Real larger(Real a, Real b) {
#if DTYPE != 1 && __CUDA_ARCH__ >= 800
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
#else
    return !(a < b) ? (b != b ? b : a) : b;
#endif
}

__device__ __forceinline__ Real positive(Real x) { return x > 0 ? x : (Real)0; }

// A difference rounded down: less than `top`, however large that is, so that what is above it holds the top itself.
__device__ __forceinline__ float below(float top, float reach) { return __fsub_rd(top, reach); }
__device__ __forceinline__ double below(double top, double reach) { return __dsub_rd(top, reach); }

// Products and quotients of a step that the next one makes good; products that are never fused with a sum.
__device__ __forceinline__ float quick_ratio(float a, float b) { return __fdividef(a, b); }
__device__ __forceinline__ double quick_ratio(double a, double b) { return a / b; }
__device__ __forceinline__ float quick_root(float x) {
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ double quick_root(double x) { return sqrt(x); }
__device__ __forceinline__ float quick_log2(float x) {
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float quick_power(float x, float y) {
    float power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(y * quick_log2(x)));
    return power;
}
// y · 2ᵏ, with k in the low bits of `sum`.
__device__ __forceinline__ double raised_by(double y, double sum) {
    return __hiloint2double(__double2hiint(y) + (__double2loint(sum) << 20), __double2loint(y));
}
__device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double product(double a, double b) { return __dmul_rn(a, b); }

// Functions of the width of their argument. Where several formulas are compiled (KIND 5) they are not inlined: loops over
// registers are unrolled, and thirty copies of each take ten seconds to compile.
#if KIND == 5
#define HEAVY __noinline__
#else
#define HEAVY __forceinline__
#endif
__device__ __forceinline__ float root_of(float x) { return sqrtf(x); }
__device__ __forceinline__ double root_of(double x) { return sqrt(x); }
__device__ HEAVY float exp_of(float x) { return expf(x); }
__device__ HEAVY double exp_of(double x) { return exp(x); }
__device__ HEAVY float exp_m1_of(float x) { return expm1f(x); }
__device__ HEAVY double exp_m1_of(double x) { return expm1(x); }
__device__ HEAVY float log_of(float x) { return logf(x); }
__device__ HEAVY double log_of(double x) { return log(x); }
__device__ HEAVY float log_1p_of(float x) { return log1pf(x); }
__device__ HEAVY double log_1p_of(double x) { return log1p(x); }
__device__ __noinline__ float pow_of(float x, float y) { return powf(x, y); }
__device__ __noinline__ double pow_of(double x, double y) { return pow(x, y); }
