// 16 bytes out of 32.

// The four words that begin `skip` bytes (0 to 15, even) after the first of `words`, which is changed. Where `skip` is
// 0 the last four do not matter.
BOTH void bytes_from(unsigned (&words)[8], unsigned skip, unsigned (&held)[4]) {
    // By steps, since registers have no index.
    if (skip & 8) {
        for (int i = 0; i < 6; ++i) words[i] = words[i + 2];
    }
    if (skip & 4) {
        for (int i = 0; i < 5; ++i) words[i] = words[i + 1];
    }
    for (int i = 0; i < 4; ++i) {
        unsigned long long both = (unsigned long long)words[i + 1] << 32 | words[i];
        held[i] = (unsigned)(both >> (skip & 2 ? 16 : 0));
    }
}
