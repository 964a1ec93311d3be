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
#if defined(__AVX512F__) && defined(IS_DOUBLE)
    return (VECTOR)_mm512_maskz_loadu_pd((__mmask8)(count < 8 ? (1u << count) - 1 : 0xff), from);
#elif defined(__AVX512F__)
    return (VECTOR)_mm512_maskz_loadu_ps((__mmask16)(count < 16 ? (1u << count) - 1 : 0xffff), from);
#else
    REAL filled[WIDTH] = {0};
    if (count > 0)
        memcpy(filled, from, (size_t)(count < WIDTH ? count : WIDTH) * sizeof(REAL));
    return SUFFIX(load)(filled);
#endif
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

/* Gains by logarithms of numbers up to 1, with half of the instructions. `prepared` is 15/16 of what
 * it is for log1p_gain: the nearest of 16 points x' to x is then known from the last bits of a sum, and
 *
 *     log(1 + x) = log(1 + x') + log(1 + r),   r = (x - x') / (1 + x'),   |r| < 1/29,
 *
 * where all that depends on x' is in three registers, and log(1 + r) is a polynomial of degree 4. r and
 * the sign are scaled so that its first coefficient is 1. The points are chosen, near n / 15, so that
 * float has all three numbers almost exactly. Relative error: below 2 eps (tested).
 */
#if defined(__AVX512F__) && !defined(IS_DOUBLE)
#define UNIT_SCALE 0.9375f
#define ROWS 4
static const float unit_tables[3][16] __attribute__((aligned(64))) = {
    {0.753677189f, 0.706664264f, 0.665124118f, 0.627971113f, 0.59500581f, 0.565111697f,
     0.538394034f, 0.513804495f, 0.491477072f, 0.470976651f, 0.452151597f, 0.434895337f,
     0.418818772f, 0.403740227f, 0.389715016f, 0.376828015f},
    {0, -0.0440746173f, -0.0830185041f, -0.117849447f, -0.148754418f, -0.176780149f,
     -0.201827958f, -0.224880651f, -0.24581261f, -0.265031755f, -0.282680243f, -0.298857987f,
     -0.313929766f, -0.328065902f, -0.341214538f, -0.353296101f},
    {0, -0.0644084662f, -0.124990478f, -0.182469979f, -0.236392975f, -0.287940741f,
     -0.336373448f, -0.383121312f, -0.427548856f, -0.470155627f, -0.510946631f, -0.549858749f,
     -0.587525845f, -0.624192476f, -0.659548402f, -0.693175256f},
};

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Add the terms of 16 features, or of some of them, to the sums of some rows. */
ALWAYS_INLINE void add_unit_terms(const float *const *rows, const int count, const float *weights,
                                  const float *prepared, int64_t u, __mmask16 some, __m512 *sums) {
    const __m512 slopes = _mm512_load_ps(unit_tables[0]), offsets = _mm512_load_ps(unit_tables[1]);
    const __m512 logs = _mm512_load_ps(unit_tables[2]);
    const __m512 now = _mm512_maskz_loadu_ps(some, prepared + u);
    const __m512 weight = _mm512_maskz_loadu_ps(some, weights + u);
#pragma GCC unroll 4
    for (int row = 0; row < count; row++) {
        const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(some, rows[row] + u), now);
        /* 1.5 * 2^19: numbers of this size are 1/16 apart. */
        const __m512 place = _mm512_add_ps(x, _mm512_set1_ps(786432.0f));
        const __m512i point = _mm512_castps_si512(place);
        const __m512 r = _mm512_fmadd_ps(x, _mm512_permutexvar_ps(point, slopes),
                                         _mm512_permutexvar_ps(point, offsets));
        __m512 q = _mm512_sub_ps(r, _mm512_set1_ps(0.9454422f));
        q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(1.00151384f));
        q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(-1.4152832f));
        q = _mm512_fmadd_ps(q, r, _mm512_permutexvar_ps(point, logs));
        sums[row] = _mm512_fmadd_ps(weight, q, sums[row]);
    }
}

/* The gains of some rows at once: what they share is read once, and none of them waits. */
ALWAYS_INLINE void unit_gains(const float *const *rows, const int count, const float *weights,
                              const float *prepared, int64_t width, float *found) {
    __m512 sums[ROWS];
#pragma GCC unroll 4
    for (int row = 0; row < count; row++)
        sums[row] = _mm512_setzero_ps();
    int64_t u = 0;
    for (; u + 16 <= width; u += 16)
        add_unit_terms(rows, count, weights, prepared, u, 0xffff, sums);
    if (u < width)
        add_unit_terms(rows, count, weights, prepared, u, (__mmask16)((1u << (width - u)) - 1), sums);
#pragma GCC unroll 4
    for (int row = 0; row < count; row++) {
        const VECTOR sum = (VECTOR)sums[row];
        found[row] = 0 - SUFFIX(total)(&sum);
    }
}

static void some_unit_gains(const float *const *rows, int count, const float *weights,
                            const float *prepared, int64_t width, float *found) {
    switch (count) {
    case 4: unit_gains(rows, 4, weights, prepared, width, found); break;
    case 3: unit_gains(rows, 3, weights, prepared, width, found); break;
    case 2: unit_gains(rows, 2, weights, prepared, width, found); break;
    default: unit_gains(rows, 1, weights, prepared, width, found);
    }
}
#endif

/* A loop over features inside the choice of the form, so that the compiler makes vectors of it. */
#define FOR_FEATURES(statement)                                                                    \
    for (int64_t u = 0; u < width; u++) {                                                          \
        statement;                                                                                 \
    }                                                                                              \
    break

/* What the gains of all items have in common, feature by feature. */
static void SUFFIX(prepare)(const dgn_input *input, const REAL *restrict level,
                            REAL *restrict prepared) {
    const int64_t width = input->width;
    const REAL cap = (REAL)input->parameter;
    switch (input->form) {
    case DGN_LOG1P: FOR_FEATURES(prepared[u] = 1 / (1 + level[u]));
#ifdef UNIT_SCALE
    case DGN_LOG1P_UNIT: FOR_FEATURES(prepared[u] = UNIT_SCALE / (1 + level[u]));
#endif
    case DGN_SQRT: FOR_FEATURES(prepared[u] = sizeof(REAL) == 4 ? (REAL)sqrtf((float)level[u])
                                                                : (REAL)sqrt((double)level[u]));
    case DGN_SATURATED: FOR_FEATURES(prepared[u] = cap > level[u] ? cap - level[u] : 0);
    case DGN_ONE_MINUS_EXP: FOR_FEATURES(prepared[u] = (REAL)exp(-(double)level[u]));
    case DGN_POWER: FOR_FEATURES(prepared[u] = (REAL)pow((double)level[u], input->parameter));
    default: memcpy(prepared, level, (size_t)width * sizeof(REAL));
    }
}

static void SUFFIX(raise)(const dgn_input *input, const REAL *restrict row,
                          REAL *restrict level) {
    const int64_t width = input->width;
    switch (input->form) {
    case DGN_FACILITY: FOR_FEATURES(level[u] = row[u] > level[u] ? row[u] : level[u]);
    case DGN_PROBABILISTIC: FOR_FEATURES(level[u] *= 1 - row[u]);
    default: FOR_FEATURES(level[u] += row[u]);
    }
}

static REAL SUFFIX(gain_of)(const dgn_input *input, const REAL *row, const REAL *weights,
                            const REAL *prepared, const REAL *level, int64_t width) {
    const REAL parameter = (REAL)input->parameter;
    switch (input->form) {
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

static REAL SUFFIX(gain)(const dgn_input *input, const REAL *row, const REAL *weights,
                         const REAL *prepared, const REAL *level) {
    return SUFFIX(gain_of)(input, row, weights, prepared, level, input->width);
}

/* The gain of an item of one large set. `scratch` has room for 3 * width numbers. */
static REAL SUFFIX(item_gain)(const dgn_input *input, int64_t item, const REAL *weights,
                              const REAL *prepared, const REAL *level, REAL *scratch) {
    const REAL *const features = input->features;
    const int64_t width = input->width;
    if (!input->columns)
        return SUFFIX(gain)(input, features + item * width, weights, prepared, level);
    /* What the features of this row have, side by side. */
    const int64_t first = input->row_start[item], count = input->row_start[item + 1] - first;
    const int32_t *const columns = input->columns + first;
    for (int64_t i = 0; i < count; i++) {
        scratch[i] = weights[columns[i]];
        scratch[width + i] = prepared[columns[i]];
        scratch[2 * width + i] = level[columns[i]];
    }
    return SUFFIX(gain_of)(input, features + first, scratch, scratch + width, scratch + 2 * width,
                           count);
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

static inline NATURALS SUFFIX(higher)(NATURALS x, NATURALS y) {
    const NATURALS which = (NATURALS)(x > y);
    return (x & which) | (y & ~which);
}

/* The largest of some numbers by their bits: the order of numbers from 0 up; those below 0 and NaN come
 * after infinity, -0 too. Where `weights` are given, numbers with a weight of 0 do not count.
 */
static REAL SUFFIX(largest_bits)(const REAL *rows, int64_t items, int64_t width,
                                 const REAL *weights) {
    NATURALS highest = {0};
    for (int64_t a = 0; a < items; a++) {
        const REAL *const row = rows + a * width;
        int64_t u = 0;
        for (; u + WIDTH <= width; u += WIDTH) {
            NATURALS bits = (NATURALS)SUFFIX(load)(row + u);
            if (weights)
                bits &= (NATURALS)(SUFFIX(load)(weights + u) > 0);
            highest = SUFFIX(higher)(bits, highest);
        }
        if (u < width) {
            NATURALS bits = (NATURALS)SUFFIX(rest)(row + u, width - u);
            if (weights)
                bits &= (NATURALS)(SUFFIX(rest)(weights + u, width - u) > 0);
            highest = SUFFIX(higher)(bits, highest);
        }
    }
    NATURAL lanes[WIDTH], found = 0;
    memcpy(lanes, &highest, sizeof lanes);
    for (int lane = 0; lane < WIDTH; lane++)
        found = lanes[lane] > found ? lanes[lane] : found;
    REAL largest;
    memcpy(&largest, &found, sizeof largest);
    return largest;
}

/* Widen a range by the features of a set, which have these weights; returns the largest of them. */
static REAL SUFFIX(widen)(const REAL *rows, int64_t items, int64_t width, const REAL *weights,
                          int all_count, dgn_range *range) {
    const REAL largest = SUFFIX(largest_bits)(rows, items, width, 0);
    const REAL counted = all_count ? largest : SUFFIX(largest_bits)(rows, items, width, weights);
    range->is_bad = largest >= 0 && !signbit(largest) ? range->is_bad : 1; /* -0 hides NaN */
    range->largest = largest > range->largest ? largest : range->largest;
    range->least = counted > 0 && counted < range->least ? counted : range->least;
    return largest;
}

/* Widen a range by weights; returns whether none of them is 0. */
static int SUFFIX(widen_weights)(const REAL *weights, int64_t width, dgn_range *range) {
    int all_count = 1;
    REAL lightest = INFINITY, heaviest = SUFFIX(largest_bits)(weights, 1, width, 0);
    for (int64_t u = 0; u < width; u++) {
        const REAL w = weights[u];
        all_count &= w != 0;
        lightest = w > 0 && w < lightest ? w : lightest;
    }
    range->is_bad = heaviest >= 0 && !signbit(heaviest) ? range->is_bad : 1;
    range->heaviest = heaviest > range->heaviest ? heaviest : range->heaviest;
    range->lightest = lightest < range->lightest ? lightest : range->lightest;
    return all_count;
}

/* Old gains are ceilings of the current ones, up to the rounding of a sum. */
#define MARGIN (1 + 64 * (sizeof(REAL) == 4 ? (REAL)1.2e-7 : (REAL)2.3e-16))

#ifndef ROWS
#define ROWS 1
#endif

/* Put an item among the k largest gains, which are sorted, the lower index first among equals. */
static inline int64_t SUFFIX(rank)(REAL gain, int64_t item, REAL *largest, INTEGER *items,
                                   int64_t held, int64_t k) {
    if (held == k && !(gain > largest[k - 1] || (gain == largest[k - 1] && item < items[k - 1])))
        return held;
    int64_t place = held < k ? held++ : k - 1;
    for (; place > 0 && (largest[place - 1] < gain ||
                         (largest[place - 1] == gain && items[place - 1] > item));
         place--) {
        largest[place] = largest[place - 1];
        items[place] = items[place - 1];
    }
    largest[place] = gain;
    items[place] = (INTEGER)item;
    return held;
}

/* A search of one set. */
typedef struct {
    const dgn_input *input;
    const REAL *rows, *weights;
    REAL *level, *prepared;
    REAL *gains;      /* of every item, current or older; below 0: not to be selected, or selected */
    INTEGER *stamps;  /* of every item, the last step for which its gain was asked */
    REAL *largest;    /* the k largest gains of this step */
    INTEGER *leaders; /* and their items */
    int64_t held;     /* how many of them there are */
    int64_t step;
} SUFFIX(search_state);

/* Compute the gains of some items, at most ROWS, and put them among the largest. */
static void SUFFIX(evaluate)(SUFFIX(search_state) *search, const int64_t *items, int count) {
    const int64_t width = search->input->width;
    REAL found[ROWS];
#ifdef UNIT_SCALE
    if (search->input->form == DGN_LOG1P_UNIT) {
        const REAL *rows[ROWS];
        for (int i = 0; i < count; i++)
            rows[i] = search->rows + items[i] * width;
        some_unit_gains(rows, count, search->weights, search->prepared, width, found);
    } else
#endif
        for (int i = 0; i < count; i++)
            found[i] = SUFFIX(gain)(search->input, search->rows + items[i] * width, search->weights,
                                    search->prepared, search->level);
    for (int i = 0; i < count; i++) {
        search->gains[items[i]] = found[i];
        search->held = SUFFIX(rank)(found[i], items[i], search->largest, search->leaders,
                                    search->held, search->input->k);
    }
}

/* Ask for the gain of an item, which is computed when ROWS of them wait; returns how many do. */
static inline int SUFFIX(ask)(SUFFIX(search_state) *search, int64_t item, int64_t *waiting,
                              int count) {
    search->stamps[item] = (INTEGER)search->step;
    waiting[count++] = item;
    if (count < ROWS)
        return count;
    SUFFIX(evaluate)(search, waiting, count);
    return 0;
}

/* Greedy on one set. At every step the k largest gains are computed again, for the choice and for the
 * bound of this prefix; others only where the last one is not below them, because gains never grow.
 * The bound is that of a search with all gains, and nothing here depends on padding.
 */
static double SUFFIX(search_set)(SUFFIX(search_state) *search, int64_t items, const uint8_t *mask,
                                 int64_t *chosen, REAL *added) {
    const dgn_input *const input = search->input;
    const int64_t width = input->width, k = input->k;
    REAL *const gains = search->gains, *const largest = search->largest;
    double value = 0, bound = INFINITY;
    int64_t waiting[ROWS], before = 0;
    for (int64_t a = 0; a < items; a++) {
        gains[a] = mask && !mask[a] ? -1 : INFINITY;
        search->stamps[a] = -1;
    }
    for (search->step = 0;; search->step++) {
        const int64_t step = search->step;
        int count = 0;
        SUFFIX(prepare)(input, search->level, search->prepared);
        /* Those that were largest are likely to be so again, and save the others. */
        search->held = 0;
        for (int64_t j = 1; j < before; j++)
            count = SUFFIX(ask)(search, search->leaders[j], waiting, count);
        for (int64_t a = 0; a < items; a++)
            if (!(gains[a] < 0) && search->stamps[a] != step &&
                !(search->held == k && gains[a] * MARGIN < largest[k - 1]))
                count = SUFFIX(ask)(search, a, waiting, count);
        if (count)
            SUFFIX(evaluate)(search, waiting, count);
        double reachable = 0;
        for (int64_t j = search->held; j-- > 0;)
            reachable += largest[j];
        reachable += value;
        bound = reachable < bound ? reachable : bound;
        if (step == k || !search->held)
            return bound;
        const int64_t best = search->leaders[0];
        before = search->held;
        chosen[step] = best;
        added[step] = gains[best];
        value += gains[best];
        gains[best] = -1;
        SUFFIX(raise)(input, search->rows + best * width, search->level);
    }
}

static void SUFFIX(search)(const dgn_input *input, const dgn_result *result) {
    const int64_t width = input->width, k = input->k;
    REAL *const level = result->work, *const ones = level + width, *const work = ones + width;
    dgn_range range = {0, 0, INFINITY, INFINITY, 0};
    int all_count = 1;
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    for (int64_t set = 0; set < input->sets; set++) {
        const int64_t first = input->start ? input->start[set] : set * input->items;
        const int64_t items = input->start ? input->start[set + 1] - first : input->items;
        const REAL *const rows = (const REAL *)input->features + first * width;
        const uint8_t *const mask = input->mask ? input->mask + first : 0;
        const REAL *const weights =
            input->weights ? (const REAL *)input->weights + set * input->weights_stride : ones;
        int64_t *const chosen = result->indices + set * k;
        REAL *const added = (REAL *)result->gains + set * k;
        REAL *const values = (REAL *)result->values + set * k;
        if (input->level)
            memcpy(level, (const REAL *)input->level + set * input->level_stride,
                   (size_t)width * sizeof(REAL));
        else
            for (int64_t u = 0; u < width; u++)
                level[u] = input->form == DGN_PROBABILISTIC ? 1 : 0;
        for (int64_t j = 0; j < k; j++) {
            chosen[j] = -1;
            added[j] = 0;
        }
        if (set == 0 || input->weights_stride)
            all_count = SUFFIX(widen_weights)(weights, width, &range);
        const REAL highest = SUFFIX(widen)(rows, items, width, weights, all_count, &range);
        dgn_input own = *input;
#ifdef UNIT_SCALE
        if (input->form == DGN_LOG1P && highest <= 1)
            own.form = DGN_LOG1P_UNIT;
#endif
        (void)highest;
        REAL *const gains = work + width, *const best_gains = gains + items;
        INTEGER *const leaders = (INTEGER *)(best_gains + k), *const stamps = leaders + k;
        SUFFIX(search_state) state = {&own,  rows,   weights,    level,   work, gains,
                                      stamps, best_gains, leaders, 0,     0};
        const double bound = SUFFIX(search_set)(&state, items, mask, chosen, added);
        ((REAL *)result->bounds)[set] = (REAL)bound;
        double value = 0;
        for (int64_t j = 0; j < k; j++) {
            value += added[j];
            values[j] = (REAL)value;
        }
    }
    if (result->range)
        *result->range = range;
}

/* What the budget buys at most if items could be divided, by the gain per cost. `order` is that of the
 * last call, in which most items still stand in their places.
 */
static double SUFFIX(divisible)(const double *costs, const REAL *gains, double budget, int64_t items,
                                const double *density, int64_t *order) {
    for (int64_t i = 1; i < items; i++) {
        const int64_t item = order[i];
        int64_t place = i;
        for (; place > 0 && density[order[place - 1]] < density[item]; place--)
            order[place] = order[place - 1];
        order[place] = item;
    }
    double found = 0, spent = 0;
    for (int64_t i = 0; i < items && density[order[i]] > 0 && spent < budget; i++) {
        const int64_t item = order[i];
        const double share = (budget - spent) / costs[item];
        found += (double)gains[item] * (share < 1 ? share : 1);
        spent += costs[item];
    }
    return found;
}

/* Greedy by gain per cost within a budget, and the best single item; see budgeted.py. Densities are
 * those of gains that are scaled to about 1, so that neither the tiniest gains nor the largest ones
 * leave the range of numbers.
 */
static void SUFFIX(budgeted)(const dgn_input *input, const dgn_result *result,
                             const dgn_budget *budget) {
    const int64_t width = input->width, k = input->k, items = input->items;
    REAL *const level = result->work, *const prepared = level + width;
    REAL *const ones = prepared + width, *const largest = ones + width, *const gains = largest + k;
    double *const density = budget->density;
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    for (int64_t set = 0; set < input->sets; set++) {
        const REAL *const rows = (const REAL *)input->features + set * items * width;
        const uint8_t *const mask = input->mask ? input->mask + set * items : 0;
        const double *const costs = budget->costs + set * items;
        const REAL *const weights =
            input->weights ? (const REAL *)input->weights + set * input->weights_stride : ones;
        int64_t *const chosen = result->indices + set * k;
        double *const added = (double *)result->gains + set * k;
        double left = budget->budgets[set], value = 0, bound = INFINITY, scale = 1;
        if (input->level)
            memcpy(level, (const REAL *)input->level + set * input->level_stride,
                   (size_t)width * sizeof(REAL));
        else
            for (int64_t u = 0; u < width; u++)
                level[u] = input->form == DGN_PROBABILISTIC ? 1 : 0;
        for (int64_t j = 0; j < k; j++) {
            chosen[j] = -1;
            added[j] = 0;
        }
        for (int64_t a = 0; a < items; a++) {
            budget->order[a] = a;
            /* Below 0: not to be selected, or selected. What cannot be paid bounds nothing either. */
            gains[a] = (mask && !mask[a]) || !(costs[a] <= left) ? -1 : 0;
        }
        budget->single[set] = -1;
        budget->single_gain[set] = -INFINITY;
        for (int64_t step = 0;; step++) {
            int64_t best = -1;
            SUFFIX(prepare)(input, level, prepared);
            for (int64_t a = 0; a < items; a++) {
                if (gains[a] < 0)
                    continue;
                gains[a] = SUFFIX(gain)(input, rows + a * width, weights, prepared, level);
                if (step == 0 && gains[a] > budget->single_gain[set]) {
                    budget->single[set] = a;
                    budget->single_gain[set] = gains[a];
                }
            }
            if (step == 0 && budget->single_gain[set] > 0)
                scale = power_below(budget->single_gain[set]);
            for (int64_t a = 0; a < items; a++) {
                density[a] = gains[a] > 0 ? (double)gains[a] * scale / costs[a] : 0;
                if (density[a] > 0 && costs[a] <= left && (best < 0 || density[a] > density[best]))
                    best = a;
            }
            const double by_cost = SUFFIX(divisible)(costs, gains, budget->budgets[set], items,
                                                     density, budget->order);
            const double by_count = SUFFIX(largest_sum)(gains, items, k, largest);
            const double reachable = value + (by_cost < by_count ? by_cost : by_count);
            bound = reachable < bound ? reachable : bound;
            if (step == k || best < 0)
                break;
            chosen[step] = best;
            added[step] = gains[best];
            value += gains[best];
            left = left_of(left, costs[best]);
            gains[best] = -1;
            SUFFIX(raise)(input, rows + best * width, level);
        }
        ((double *)result->bounds)[set] = bound;
    }
}

/* Add an item of one large set to the level. */
static void SUFFIX(raise_by)(const dgn_input *input, int64_t item, REAL *level) {
    const REAL *const features = input->features;
    if (!input->columns) {
        SUFFIX(raise)(input, features + item * input->width, level);
        return;
    }
    for (int64_t i = input->row_start[item]; i < input->row_start[item + 1]; i++) {
        REAL *const m = level + input->columns[i];
        if (input->form == DGN_FACILITY)
            *m = features[i] > *m ? features[i] : *m;
        else if (input->form == DGN_PROBABILISTIC)
            *m *= 1 - features[i];
        else
            *m += features[i];
    }
}

/* The gains of some rows of one set at the level of the input: rows[0] to rows[count - 1], or the
 * first `count` rows from `first` on if rows is NULL. Those that must not be selected have 0.
 */
static void SUFFIX(gains)(const dgn_input *input, const int64_t *rows, int64_t first,
                          int64_t count, REAL *prepared, REAL *found) {
    const int64_t width = input->width;
    const REAL *const level = input->level;
    REAL *const ones = prepared + width, *const scratch = ones + width;
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    const REAL *const weights = input->weights ? (const REAL *)input->weights : ones;
    SUFFIX(prepare)(input, level, prepared);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = rows ? rows[i] : first + i;
        found[i] = input->mask && !input->mask[row]
                       ? 0
                       : SUFFIX(item_gain)(input, row, weights, prepared, level, scratch);
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
 * `ceilings` has the gains at the level of the input. `heap` and `stamps` have room for every item.
 * At the end, the level of the selection is the first `width` numbers of `work`.
 */
static void SUFFIX(lazy)(const dgn_input *input, const dgn_result *result, REAL *ceilings,
                         int64_t *heap, int32_t *stamps) {
    const int64_t width = input->width, k = input->k, items = input->start[1];
    REAL *const level = result->work, *const prepared = level + width;
    REAL *const ones = prepared + width, *const scratch = ones + width, *const added = result->gains;
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    const REAL *const weights = input->weights ? (const REAL *)input->weights : ones;
    memcpy(level, input->level, (size_t)width * sizeof(REAL));
    int64_t held = 0;
    for (int64_t a = 0; a < items; a++) {
        stamps[a] = 0;
        if (!input->mask || input->mask[a])
            heap[held++] = a;
    }
    for (int64_t place = held / 2; place-- > 0;)
        SUFFIX(sift)(ceilings, heap, held, place);
    for (int64_t j = 0; j < k; j++) {
        result->indices[j] = -1;
        added[j] = 0;
    }
    for (int32_t step = 0; step < k && held; step++) {
        SUFFIX(prepare)(input, level, prepared);
        while (stamps[heap[0]] != step) {
            const int64_t item = heap[0];
            ceilings[item] =
                SUFFIX(item_gain)(input, item, weights, prepared, level, scratch);
            stamps[item] = step;
            SUFFIX(sift)(ceilings, heap, held, 0);
        }
        const int64_t best = heap[0];
        result->indices[step] = best;
        added[step] = ceilings[best];
        heap[0] = heap[--held];
        if (held)
            SUFFIX(sift)(ceilings, heap, held, 0);
        SUFFIX(raise_by)(input, best, level);
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
#undef TERM_ONE_MINUS_EXP
#undef TERM_POWER
#undef MARGIN
#undef FOR_FEATURES
#undef UNIT_SCALE
#undef ROWS
#undef DEFINE_ROW_GAIN
