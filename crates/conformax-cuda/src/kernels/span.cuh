// How a block goes through a row of many classes.
//
// Threads take packs counted from the row's first class, wherever it lies: then the order of all sums, and with it
// every bit of a result, depends on the row alone. A row that begins beside a boundary has each pack in two accesses of 16
// bytes, of which the second finds its bytes in the cache. What is written in the same place whoever writes it goes by
// packs on the boundaries of the output (`Span`).

// The packs of a row and the classes after the last.
struct Deal {
    u32 packs, ends;

    __device__ __forceinline__ explicit Deal(u32 classes) : packs(classes / VEC), ends(classes % VEC) {
#ifndef UNALIGNED
        ends = 0; // Rows that all begin on boundaries are made of packs.
#endif
    }
    // The single class of a thread below `ends`.
    __device__ __forceinline__ u32 end_at() const { return threadIdx.x + packs * VEC; }
};

// An output from its first boundary of 16 bytes to its last: single elements before and after, packs in between.
struct Span {
    u32 head, packs, ends;

    __device__ __forceinline__ Span(const Stored *at, u32 classes) {
#ifdef UNALIGNED
        head = (u32)((0 - (u64)at / sizeof(Stored)) % VEC);
        head = head < classes ? head : classes;
#else
        head = 0;
#endif
        packs = (classes - head) / VEC;
#ifdef UNALIGNED
        ends = classes - packs * VEC;
#else
        ends = 0;
#endif
    }
    // The single element of a thread below `ends`.
    __device__ __forceinline__ u32 end_at() const {
        return threadIdx.x < head ? threadIdx.x : threadIdx.x + packs * VEC;
    }
};

// A pack that was asked for and may be on its way still.
#ifdef UNALIGNED
struct Asked {
    Pack held;
    uint4 high;
    u32 skip; // bytes of `held` before the pack, until it is settled

    // `first` is the pack's first class in the row; nothing outside the row is read.
    __device__ __forceinline__ void ask(const Stored *row, u32 first, u32 classes) {
        const Stored *from = row + first;
        skip = (u32)((u64)from % 16);
        const uint4 *boundary = reinterpret_cast<const uint4 *>((u64)from - skip);
        u64 begin = (u64)first * sizeof(Stored), end = (u64)classes * sizeof(Stored);
        if (skip == 0) {
            held = load_pack(from);
        } else if (begin >= skip && begin - skip + 32 <= end) {
            *reinterpret_cast<uint4 *>(&held) = boundary[0], high = boundary[1];
        } else {
#pragma unroll
            for (int e = 0; e < VEC; ++e) held.at[e] = from[e];
            skip = 0;
        }
    }
    // Waits for it; then `held` is the pack.
    __device__ __forceinline__ void settle() {
        uint4 low = *reinterpret_cast<uint4 *>(&held);
        u32 words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}, four[4];
        bytes_from(words, skip, four);
        *reinterpret_cast<uint4 *>(&held) = {four[0], four[1], four[2], four[3]};
    }
};
#else
struct Asked {
    Pack held;

    __device__ __forceinline__ void ask(const Stored *row, u32 first, u32) { held = load_pack(row + first); }
    __device__ __forceinline__ void settle() {}
};
#endif

// One at once.
__device__ __forceinline__ Pack ask_now(const Stored *row, u32 first, u32 classes) {
    Asked asked;
    asked.ask(row, first, classes);
    asked.settle();
    return asked.held;
}
