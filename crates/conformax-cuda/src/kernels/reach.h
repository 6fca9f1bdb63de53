// Which labels of a row a set at a threshold may hold: those whose gap to the maximum is within it, since no score is less
// than that gap. Logits are looked at in their own type first, and most end at that test.

// As far as rounding may carry the difference from the maximum, and the bound itself.
BOTH double slack_of_reach(double max, double reach) { return (max < 0.0 ? -max : max) * 1e-15 + reach * 1e-15; }

// No larger than any logit from `least` on, whatever rounding did to it.
template <class Real> BOTH Real bound_below(Real least, Real slack) {
    return least - (least < 0 ? -least : least) * (Real)(sizeof(Real) == 4 ? 2.4e-7 : 4.5e-16) - slack;
}

// Whether a logit from the bound on is within reach.
BOTH bool is_within(double max, double z, double reach) { return max - z <= reach; }

// Where more labels are within reach than a list holds, the bound is raised towards the logit at which a norm no larger
// than the score's is the threshold: it holds every member and, with each label, all that are ahead of it. The Euclidean
// norm serves orders from 1 to 2, the sum those below; above 2 only the largest gap is known to be no larger, and nothing
// is gained.
template <class Real> BOTH bool can_be_raised(Order order, Real threshold) {
    if (KIND_OF(order) == ORDER_MAX || (KIND_OF(order) == ORDER_OTHER && order.delta > 2.0)) return false;
    return threshold > (Real)1e-30;
}

// Sums over labels, of what they are ahead of a depth below the maximum, in units of the threshold so that squares are
// safe.
struct Slacks {
    float first, second, count;
};

template <class Real> BOTH void add_slack(Slacks &sums, Real top, Real z, Real depth, Real unit) {
    float slack = (float)((depth - (top - z)) * unit);
    if (slack > 0) sums.first += slack, sums.second += slack * slack, sums.count += 1;
}

// Newton's next depth: it falls from the threshold towards the root without passing it.
template <class Real> BOTH Real raised_depth(Order order, const Slacks &sums, Real depth, Real threshold) {
    bool square = KIND_OF(order) == ORDER_TWO || (KIND_OF(order) == ORDER_OTHER && order.delta > 1.0);
    float norm = square ? sqrtf(sums.second) : sums.first;
    float slope = square ? sums.first / norm : sums.count;
    // A little less than the whole step: rounding must not carry it past the root.
    return depth - threshold * (Real)(0.9999f * (norm - 1) / slope);
}

// The bound at that depth, which is a little deeper than what rounding has left of it.
template <class Real> BOTH Real bound_at_depth(Real top, Real depth, Real slack) {
    return bound_below(top - depth * (Real)1.00001, slack);
}

// By falling logit, equal logits by label.
template <class Real> BOTH bool is_before(Real z, unsigned label, Real other, unsigned other_label) {
    return z > other || (z == other && label < other_label);
}
