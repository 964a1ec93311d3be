/* The search for one type of number, REAL; included by greedy.c for float and for double. */

#include "vector.h"

/* The increase of the coverage of a feature at some level by h. `now` is what `prepare` computed. */
#define TERM_LOG1P SUFFIX(log1p)(h * now)
#define TERM_SQRT h / (SUFFIX(either)(h + level > 0, SUFFIX(root)(h + level), (VECTOR){0} + 1) + now)
#define TERM_LINEAR h
#define TERM_SATURATED SUFFIX(either)(h < now, h, now)
#define TERM_FACILITY SUFFIX(positive)(h - level)
#define TERM_PRODUCT h * now
#define TERM_ONE_MINUS_EXP -now * SUFFIX(expm1)(-h)
#define TERM_POWER SUFFIX(power_increase)(h, level, now, parameter)

/* The last lanes of a row, filled up with zeros. */
static inline VECTOR SUFFIX(rest)(const REAL *from, int64_t count) {
    REAL filled[WIDTH] = {0};
    if (count > 0)
        memcpy(filled, from, (size_t)(count < WIDTH ? count : WIDTH) * sizeof(REAL));
    return SUFFIX(load)(filled);
}

static inline REAL SUFFIX(total)(const VECTOR *sums) {
    REAL lanes[LANES], found = 0;
    memcpy(lanes, sums, sizeof lanes);
    for (int lane = 0; lane < LANES; lane++)
        found += lanes[lane];
    return found;
}

#define DEFINE_ROW_GAIN(name, term)                                                                \
    static REAL SUFFIX(name)(const REAL *row, const REAL *weights, const REAL *prepared,           \
                             const REAL *levels, int64_t width, REAL parameter) {                  \
        (void)parameter;                                                                           \
        VECTOR sums[VECTORS];                                                                      \
        for (int j = 0; j < VECTORS; j++)                                                          \
            sums[j] = (VECTOR){0};                                                                 \
        int64_t u = 0;                                                                             \
        for (; u + LANES <= width; u += LANES)                                                     \
            for (int j = 0; j < VECTORS; j++) {                                                    \
                const int64_t at = u + j * WIDTH;                                                  \
                const VECTOR h = SUFFIX(load)(row + at), now = SUFFIX(load)(prepared + at);        \
                const VECTOR level = SUFFIX(load)(levels + at);                                    \
                (void)now, (void)level;                                                            \
                sums[j] += SUFFIX(load)(weights + at) * (term);                                    \
            }                                                                                      \
        for (int j = 0; u < width && j < VECTORS; j++) {                                           \
            const int64_t at = u + j * WIDTH, left = width - at;                                   \
            if (left <= 0)                                                                         \
                break;                                                                             \
            const VECTOR h = SUFFIX(rest)(row + at, left);                                         \
            const VECTOR now = SUFFIX(rest)(prepared + at, left);                                  \
            const VECTOR level = SUFFIX(rest)(levels + at, left);                                  \
            (void)now, (void)level;                                                                \
            sums[j] += SUFFIX(rest)(weights + at, left) * (term);                                  \
        }                                                                                          \
        return SUFFIX(total)(sums);                                                                \
    }

DEFINE_ROW_GAIN(log1p_gain, TERM_LOG1P)
DEFINE_ROW_GAIN(sqrt_gain, TERM_SQRT)
DEFINE_ROW_GAIN(linear_gain, TERM_LINEAR)
DEFINE_ROW_GAIN(saturated_gain, TERM_SATURATED)
DEFINE_ROW_GAIN(facility_gain, TERM_FACILITY)
DEFINE_ROW_GAIN(product_gain, TERM_PRODUCT)
DEFINE_ROW_GAIN(one_minus_exp_gain, TERM_ONE_MINUS_EXP)
DEFINE_ROW_GAIN(power_gain, TERM_POWER)

/* What the gains of all items have in common, feature by feature. */
static void SUFFIX(prepare)(const dgn_problem *problem, const REAL *level, REAL *prepared) {
    const REAL cap = (REAL)problem->parameter;
    for (int64_t u = 0; u < problem->width; u++) {
        const REAL m = level[u];
        switch (problem->form) {
        case DGN_LOG1P: prepared[u] = 1 / (1 + m); break;
        case DGN_SQRT: prepared[u] = (REAL)sqrt((double)m); break;
        case DGN_SATURATED: prepared[u] = cap > m ? cap - m : 0; break;
        case DGN_ONE_MINUS_EXP: prepared[u] = (REAL)exp(-(double)m); break;
        case DGN_POWER: prepared[u] = (REAL)pow((double)m, problem->parameter); break;
        default: prepared[u] = m;
        }
    }
}

static void SUFFIX(raise)(const dgn_problem *problem, const REAL *row, REAL *level) {
    for (int64_t u = 0; u < problem->width; u++) {
        if (problem->form == DGN_FACILITY)
            level[u] = row[u] > level[u] ? row[u] : level[u];
        else if (problem->form == DGN_PROBABILISTIC)
            level[u] *= 1 - row[u];
        else
            level[u] += row[u];
    }
}

static REAL SUFFIX(gain)(const dgn_problem *problem, const REAL *row, const REAL *weights,
                         const REAL *prepared, const REAL *level) {
    const int64_t width = problem->width;
    const REAL parameter = (REAL)problem->parameter;
    switch (problem->form) {
    case DGN_LOG1P: return SUFFIX(log1p_gain)(row, weights, prepared, level, width, parameter);
    case DGN_SQRT: return SUFFIX(sqrt_gain)(row, weights, prepared, level, width, parameter);
    case DGN_LINEAR: return SUFFIX(linear_gain)(row, weights, prepared, level, width, parameter);
    case DGN_SATURATED: return SUFFIX(saturated_gain)(row, weights, prepared, level, width, parameter);
    case DGN_FACILITY: return SUFFIX(facility_gain)(row, weights, prepared, level, width, parameter);
    case DGN_ONE_MINUS_EXP:
        return SUFFIX(one_minus_exp_gain)(row, weights, prepared, level, width, parameter);
    case DGN_POWER: return SUFFIX(power_gain)(row, weights, prepared, level, width, parameter);
    default: return SUFFIX(product_gain)(row, weights, prepared, level, width, parameter);
    }
}

/* The sum of the k largest gains; those of selected items and of padding are 0. `largest` is sorted. */
static double SUFFIX(largest_sum)(const REAL *gains, int64_t items, int64_t k, REAL *largest) {
    int64_t held = 0;
    for (int64_t a = 0; a < items; a++) {
        const REAL gain = gains[a] > 0 ? gains[a] : 0;
        if (held == k && gain <= largest[k - 1])
            continue;
        int64_t place = held < k ? held++ : k - 1;
        for (; place > 0 && largest[place - 1] < gain; place--)
            largest[place] = largest[place - 1];
        largest[place] = gain;
    }
    double found = 0;
    for (int64_t j = held; j-- > 0;)
        found += largest[j];
    return found;
}

static void SUFFIX(search)(const dgn_problem *problem, const dgn_result *result) {
    const int64_t width = problem->width, k = problem->k;
    REAL *const level = result->work, *const prepared = level + width;
    REAL *const ones = prepared + width, *const largest = ones + width, *const gains = largest + k;
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    for (int64_t set = 0; set < problem->sets; set++) {
        const int64_t first = problem->start[set], items = problem->start[set + 1] - first;
        const REAL *const rows = (const REAL *)problem->features + first * width;
        const uint8_t *const mask = problem->mask ? problem->mask + first : 0;
        const REAL *const weights =
            problem->weights ? (const REAL *)problem->weights + set * problem->weights_stride : ones;
        int64_t *const chosen = result->indices + set * k;
        REAL *const added = (REAL *)result->gains + set * k;
        if (problem->level)
            memcpy(level, (const REAL *)problem->level + set * problem->level_stride,
                   (size_t)width * sizeof(REAL));
        else
            for (int64_t u = 0; u < width; u++)
                level[u] = problem->form == DGN_PROBABILISTIC ? 1 : 0;
        for (int64_t j = 0; j < k; j++) {
            chosen[j] = -1;
            added[j] = 0;
        }
        for (int64_t a = 0; a < items; a++)
            gains[a] = mask && !mask[a] ? -1 : 0; /* below 0: not to be selected, or selected */
        double value = 0, bound = INFINITY, enough = 0;
        for (int64_t step = 0;; step++) {
            int64_t best = -1;
            SUFFIX(prepare)(problem, level, prepared);
            for (int64_t a = 0; a < items; a++) {
                if (gains[a] < 0)
                    continue;
                gains[a] = SUFFIX(gain)(problem, rows + a * width, weights, prepared, level);
                if (best < 0 || gains[a] > gains[best])
                    best = a;
            }
            const double reachable = value + SUFFIX(largest_sum)(gains, items, k, largest);
            if (reachable < bound)
                bound = reachable;
            if (step == 0 && best >= 0)
                enough = (REAL)problem->stop_share * gains[best];
            if (step == k || best < 0 || gains[best] < (REAL)enough)
                break;
            chosen[step] = best;
            added[step] = gains[best];
            value += gains[best];
            gains[best] = -1;
            SUFFIX(raise)(problem, rows + best * width, level);
        }
        ((REAL *)result->bounds)[set] = (REAL)bound;
    }
}

/* The gains of some rows of one set at the level of the problem: rows[0] to rows[count - 1], or the
 * first `count` rows from `first` on if rows is NULL. Those that must not be selected have 0.
 */
static void SUFFIX(gains)(const dgn_problem *problem, const int64_t *rows, int64_t first,
                          int64_t count, REAL *prepared, REAL *found) {
    const int64_t width = problem->width;
    const REAL *const features = problem->features, *const level = problem->level;
    REAL *const ones = prepared + width;
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    const REAL *const weights = problem->weights ? (const REAL *)problem->weights : ones;
    SUFFIX(prepare)(problem, level, prepared);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = rows ? rows[i] : first + i;
        found[i] = problem->mask && !problem->mask[row]
                       ? 0
                       : SUFFIX(gain)(problem, features + row * width, weights, prepared, level);
    }
}

/* Whether item a comes before item b: the larger ceiling, then the lower index. */
static inline int SUFFIX(before)(const REAL *ceilings, int64_t a, int64_t b) {
    return ceilings[a] > ceilings[b] || (ceilings[a] == ceilings[b] && a < b);
}

static void SUFFIX(sift)(const REAL *ceilings, int64_t *heap, int64_t held, int64_t place) {
    const int64_t item = heap[place];
    for (;;) {
        int64_t child = 2 * place + 1;
        if (child >= held)
            break;
        if (child + 1 < held && SUFFIX(before)(ceilings, heap[child + 1], heap[child]))
            child++;
        if (SUFFIX(before)(ceilings, item, heap[child]))
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = item;
}

/* Greedy on one set by old gains, which are ceilings of the current ones (Minoux, 1978).
 *
 * `ceilings` has the gains at the level of the problem. `heap` and `stamps` have room for every item.
 * At the end, the level of the selection is the first `width` numbers of `work`.
 */
static void SUFFIX(lazy)(const dgn_problem *problem, const dgn_result *result, REAL *ceilings,
                         int64_t *heap, int32_t *stamps) {
    const int64_t width = problem->width, k = problem->k, items = problem->start[1];
    REAL *const level = result->work, *const prepared = level + width;
    REAL *const ones = prepared + width, *const added = result->gains;
    const REAL *const features = problem->features;
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    const REAL *const weights = problem->weights ? (const REAL *)problem->weights : ones;
    memcpy(level, problem->level, (size_t)width * sizeof(REAL));
    int64_t held = 0;
    for (int64_t a = 0; a < items; a++) {
        stamps[a] = 0;
        if (!problem->mask || problem->mask[a])
            heap[held++] = a;
    }
    for (int64_t place = held / 2; place-- > 0;)
        SUFFIX(sift)(ceilings, heap, held, place);
    for (int64_t j = 0; j < k; j++) {
        result->indices[j] = -1;
        added[j] = 0;
    }
    REAL enough = 0;
    for (int32_t step = 0; step < k && held; step++) {
        SUFFIX(prepare)(problem, level, prepared);
        while (stamps[heap[0]] != step) {
            const int64_t item = heap[0];
            ceilings[item] =
                SUFFIX(gain)(problem, features + item * width, weights, prepared, level);
            stamps[item] = step;
            SUFFIX(sift)(ceilings, heap, held, 0);
        }
        const int64_t best = heap[0];
        if (step == 0)
            enough = (REAL)problem->stop_share * ceilings[best];
        if (ceilings[best] < enough)
            break;
        result->indices[step] = best;
        added[step] = ceilings[best];
        heap[0] = heap[--held];
        if (held)
            SUFFIX(sift)(ceilings, heap, held, 0);
        SUFFIX(raise)(problem, features + best * width, level);
    }
}

#undef VECTORS
#undef WIDTH
#undef VECTOR
#undef BITS
#undef TERM_LOG1P
#undef TERM_SQRT
#undef TERM_LINEAR
#undef TERM_SATURATED
#undef TERM_FACILITY
#undef TERM_PRODUCT
#undef DEFINE_ROW_GAIN
