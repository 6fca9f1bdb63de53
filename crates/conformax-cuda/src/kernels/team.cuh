// Teams of threads that share a row: one thread, part of a warp, or a block.
//
// Every thread of a team calls its functions together. Teams that are parts of one warp stay in step: a loop goes on
// until the last of them is done.
#define WHOLE 0xffffffffu

// The largest of a warp.
__device__ __forceinline__ int warp_most(int x) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(WHOLE, x);
#else
    for (int step = 16; step > 0; step /= 2) {
        int other = __shfl_xor_sync(WHOLE, x, step, 32);
        x = other > x ? other : x;
    }
    return x;
#endif
}

template <int TEAM> struct WarpTeam {
    static constexpr int size = TEAM;
    __device__ static int rank() { return threadIdx.x % TEAM; }

    template <class T> __device__ static T sum(T x) {
#pragma unroll
        for (int step = TEAM / 2; step > 0; step /= 2) x += __shfl_xor_sync(WHOLE, x, step, 32);
        return x;
    }
    // Two sums at once: each half of the team adds up one of them, which takes 6 shuffles instead of 10.
    template <class T> __device__ static void sum_both(T &a, T &b) {
        bool upper = rank() & (TEAM / 2);
        T held = upper ? b : a;
        held += __shfl_xor_sync(WHOLE, upper ? a : b, TEAM / 2, 32);
#pragma unroll
        for (int step = TEAM / 4; step > 0; step /= 2) held += __shfl_xor_sync(WHOLE, held, step, 32);
        T other = __shfl_xor_sync(WHOLE, held, TEAM / 2, 32);
        a = upper ? other : held;
        b = upper ? held : other;
    }
    template <class T> __device__ static T least(T x) {
#pragma unroll
        for (int step = TEAM / 2; step > 0; step /= 2) {
            T other = __shfl_xor_sync(WHOLE, x, step, 32);
            x = other < x ? other : x;
        }
        return x;
    }
    __device__ static Real most(Real x) {
#pragma unroll
        for (int step = TEAM / 2; step > 0; step /= 2) x = larger(x, __shfl_xor_sync(WHOLE, x, step, 32));
        return x;
    }
    // Entries before this thread's in the team, and all of them.
    __device__ static int before(int count, int &all) {
        int sum = count;
#pragma unroll
        for (int step = 1; step < TEAM; step *= 2) {
            int other = __shfl_up_sync(WHOLE, sum, step, TEAM);
            if (rank() >= step) sum += other;
        }
        all = __shfl_sync(WHOLE, sum, TEAM - 1, TEAM);
        return sum - count;
    }
    __device__ static bool any(bool it) { return __any_sync(WHOLE, it); }
    __device__ static void sync() { __syncwarp(); }
};

template <> struct WarpTeam<1> {
    static constexpr int size = 1;
    __device__ static int rank() { return 0; }
    template <class T> __device__ static T sum(T x) { return x; }
    template <class T> __device__ static void sum_both(T &a, T &b) {}
    template <class T> __device__ static T least(T x) { return x; }
    __device__ static Real most(Real x) { return x; }
    __device__ static int before(int count, int &all) { all = count; return 0; }
    __device__ static bool any(bool it) { return it; }
    __device__ static void sync() {}
};

// A block, through 33 places of shared memory.
struct BlockTeam {
    static __device__ int rank() { return threadIdx.x; }
    static __device__ double *places() {
        __shared__ double held[33];
        return held;
    }
    template <class T, class F> static __device__ T fold(T x, F both) {
        T *held = reinterpret_cast<T *>(places());
#pragma unroll
        for (int step = 16; step > 0; step /= 2) x = both(x, __shfl_xor_sync(WHOLE, x, step, 32));
        __syncthreads();
        if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = x;
        __syncthreads();
        T folded = held[0];
        for (int warp = 1; warp < (int)blockDim.x / 32; ++warp) folded = both(folded, held[warp]);
        return folded;
    }
    template <class T> static __device__ T sum(T x) {
        return fold(x, [](T a, T b) { return a + b; });
    }
    template <class T> static __device__ void sum_both(T &a, T &b) {
        a = sum(a);
        b = sum(b);
    }
    template <class T> static __device__ T least(T x) {
        return fold(x, [](T a, T b) { return b < a ? b : a; });
    }
    static __device__ Real most(Real x) { return fold(x, larger); }
    static __device__ bool any(bool it) { return __syncthreads_or(it); }
};
