// The norm of the gaps by which other labels are ahead, `‖(z − z_y)₊‖_δ`: the score of the entmax family.
//
// Sums run over 16 lanes, label k in lane k mod 16 in rising order, and the lanes are added in a fixed tree. A label
// that is not ahead adds an exact zero in its lane, so only those ahead are looked at, and who looks at them does not
// matter.
#define SUM_LANES 16

enum OrderKind { ORDER_MAX = 0, ORDER_ONE = 1, ORDER_TWO = 2, ORDER_OTHER = 3 };

struct Order {
    int kind;
    double delta, inverse;
};

// On the GPU a program is compiled for one order: the others' formulas would take longer to compile than to run.
#ifdef ORDER
#define KIND_OF(order) ORDER
#else
#define KIND_OF(order) ((order).kind)
#endif

// How the gaps of one pivot become terms, and their sum a norm.
struct Norm {
    Order order;
    double pivot, largest, scale, back;
};

// Whether the norm is the largest gap itself: the pivot is on top, the gap is beyond f64, or γ = 1.
BOTH bool is_largest(Order order, double largest) {
    return KIND_OF(order) == ORDER_MAX || largest == 0.0 || largest == ENDLESS;
}

BOTH Norm norm_of(Order order, double max, double pivot) {
    double largest = max - pivot, scale = 1.0, back = 1.0;
    // Squares of gaps beyond these would overflow, or lose digits as subnormals; a power of two changes no digit.
    if (KIND_OF(order) == ORDER_TWO && !(largest >= 1e-140 && largest < 1e145)) {
        double up = of_bits((1023ull + 700) << 52), down = of_bits((1023ull - 700) << 52);
        scale = largest < 1.0 ? up : down;
        back = largest < 1.0 ? down : up;
    }
    return {order, pivot, largest, scale, back};
}

// What a logit ahead of the pivot adds to its lane.
BOTH double term_of(const Norm &norm, double logit) {
    double gap = logit - norm.pivot;
    gap = gap > 0.0 ? gap : 0.0;
    if (KIND_OF(norm.order) == ORDER_ONE) return gap;
    if (KIND_OF(norm.order) == ORDER_TWO) return (gap * norm.scale) * (gap * norm.scale);
    return our_pow_unit(gap / norm.largest, norm.order.delta);
}

// The norm from the sum of the terms.
BOTH double finish(const Norm &norm, double sum) {
    if (KIND_OF(norm.order) == ORDER_ONE) return sum;
    if (KIND_OF(norm.order) == ORDER_TWO) return sqrt_of(sum) * norm.back;
    double value = norm.largest * our_pow(sum, norm.order.inverse);
    return value > norm.largest ? value : norm.largest;
}

// Adds the lanes in a fixed tree: upper half to lower half, until one is left.
BOTH double sum_lanes(double *lanes) {
    for (int width = SUM_LANES / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width; ++lane) lanes[lane] = lanes[lane] + lanes[lane + width];
    }
    return lanes[0];
}

// The whole score by one thread: what the parallel kernels are compared with.
template <class At> BOTH double gap_norm(unsigned count, double max, double pivot, Order order, At at) {
    Norm norm = norm_of(order, max, pivot);
    if (is_largest(order, norm.largest)) return norm.largest;
    double lanes[SUM_LANES] = {};
    for (unsigned k = 0; k < count; ++k) {
        if (at(k) > pivot) lanes[k % SUM_LANES] = lanes[k % SUM_LANES] + term_of(norm, at(k));
    }
    return finish(norm, sum_lanes(lanes));
}

// A number that sorts labels in the order of the tree: by lane with its four bits reversed, so that lanes that are
// added first lie side by side, and by label within a lane.
BOTH unsigned tree_key(unsigned label) {
    unsigned reversed = (label & 1) << 3 | (label & 2) << 1 | (label & 4) >> 1 | (label & 8) >> 3;
    return reversed << 28 | label >> 4;
}
BOTH unsigned label_of(unsigned key) { return key << 4 | tree_key(key >> 28) >> 28; }

// The score from a list in that order, which holds the labels ahead of the pivot and any others: `key(i)` and `at(i)`
// are the key and the logit of entry i.
template <class Key, class At>
BOTH double list_norm(unsigned count, double max, double pivot, Order order, Key key, At at) {
    Norm norm = norm_of(order, max, pivot);
    if (is_largest(order, norm.largest)) return norm.largest;
    // `waiting` are the sums of left halves of the tree, by their height, while their right halves are added.
    double lane = 0.0, waiting[4] = {};
    unsigned here = key(0) >> 28;
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (unsigned i = 0; i < count; ++i) {
        unsigned next = key(i) >> 28, changed = next ^ here;
        if (changed) {
            int height = changed & 8 ? 3 : changed & 4 ? 2 : changed & 2 ? 1 : 0;
#ifdef __CUDACC__
#pragma unroll
#endif
            for (int h = 0; h < 4; ++h) {
                if (h < height) lane = waiting[h] + lane, waiting[h] = 0.0;
                else if (h == height) waiting[h] = lane;
            }
            lane = 0.0, here = next;
        }
        if (at(i) > pivot) lane = lane + term_of(norm, at(i));
    }
    for (int h = 0; h < 4; ++h) lane = waiting[h] + lane;
    return finish(norm, lane);
}
