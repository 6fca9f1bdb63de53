// The norm of the gaps by which other labels are ahead, `‖(z − z_y)₊‖_δ`: the score of the entmax family.
//
// Sums run over 16 lanes, label k in lane k mod 16 in rising order, and the lanes are added in a fixed tree. A label that
// is not ahead adds an exact zero in its lane, so only those ahead are looked at, and who looks at them does not matter.
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
