/* Greedy on coverage functions, for NumPy arrays. See greedy.c. */
#ifndef DGN_GREEDY_H
#define DGN_GREEDY_H

#include <stdint.h>

/* How the coverage of a feature grows with its level; the numbers are those of searches.py. */
enum {
    DGN_LOG1P = 0,          /* log(1 + m) */
    DGN_SQRT = 1,           /* sqrt(m) */
    DGN_LINEAR = 2,         /* m */
    DGN_SATURATED = 3,      /* min(m, parameter) */
    DGN_FACILITY = 4,       /* the largest h */
    DGN_PROBABILISTIC = 5,  /* 1 - the product of 1 - h */
    DGN_ONE_MINUS_EXP = 6,  /* 1 - exp(-m) */
    DGN_POWER = 7,          /* m to the power of parameter */
    DGN_LOG1P_UNIT = 8,     /* log(1 + m), no feature above 1; the kernels alone know it */
};

/* What is searched. Rows of features are items; the items of set b are rows start[b] to start[b + 1],
 * or, if start is NULL, all sets have the same number of items.
 *
 * One large set may be sparse: then `features` has the numbers of all rows end to end, `columns` their
 * features, and row a has the numbers from row_start[a] to row_start[a + 1], each feature at most once.
 *
 * If split is not 0, the function is a sum of two: the first `split` features have one form, the others
 * have the second one.
 *
 * weights and level have one row per set, or one for all sets (stride 0). mask has one byte per
 * item, 0 for an item that must not be selected; NULL if there are none of these.
 */
typedef struct {
    const void *features;
    const int32_t *columns;
    const int64_t *row_start;
    const int64_t *start;
    const uint8_t *mask;
    const void *weights;
    const void *level;
    int64_t weights_stride;
    int64_t level_stride;
    int64_t sets;
    int64_t items;
    int64_t width;
    int64_t k;
    double parameter;
    double second_parameter;
    int64_t split;
    int32_t form;
    int32_t second_form;
    int32_t is_double;
    int32_t unused;
} dgn_input;

/* What the features and weights of some sets are like. A feature counts if its weight is not 0. */
typedef struct {
    double is_bad;   /* 1 if a number is NaN, below 0, or -0 */
    double largest;  /* the largest feature */
    double least;    /* the smallest, over sets, of the largest feature that counts, if it is not 0 */
    double lightest; /* the smallest weight that is not 0 */
    double heaviest; /* the largest weight */
} dgn_range;

/* Where the result goes: indices, gains and values are [sets, k], -1 and 0 where nothing was selected;
 * bounds is [sets]. `work` has room for 3 * width + 2 * k numbers, and twice as many as the largest
 * set has items. range may be NULL.
 */
typedef struct {
    int64_t *indices;
    void *gains;
    void *values;
    void *bounds;
    void *work;
    dgn_range *range;
} dgn_result;

/* What limits a search besides k: how many items of each set may be selected, [sets], at most k of the
 * input. If there are costs, [sets, items], and a budget for each set, items without a gain are not
 * selected, and gains are compared after a division by `divisors`, [sets, items] (NULL for 1): powers
 * of the costs. If there are groups, [sets, items], numbers from 0 on, at most quotas[set, group] items
 * of each are selected. costs and groups may be NULL.
 *
 * The best single item of each set, with its gain, is a result, too; -1 if none is allowed. `density`
 * has room for every item of a set, `order` for twice as many, and `used` for twice as many numbers as
 * there are groups. The gains and bounds of the result are double, and it has no values.
 */
typedef struct {
    const int64_t *counts;
    const double *costs;
    const double *budgets;
    const double *divisors;
    const int64_t *groups;
    const int64_t *quotas;
    int64_t *single;
    double *single_gain;
    double *density;
    int64_t *order;
    int64_t *used;
    int64_t group_count;
    int64_t skipped_cover;
} dgn_limits;

/* A part of one large set in a lazy search, and what is known about its items: ceilings of their gains,
 * 2 * the step of each ceiling (and 1 if it is the gain itself), and a heap of the items by ceilings.
 * `work` has room for 7 * width numbers. If slack is not below 0, ceilings of double are found in float,
 * which loses at most this much apart from rounding. At step 0 all of it is made; later, `is_taken`
 * says that the best item was selected. The result is the best item of the part and its gain; -1 if
 * there is none that reaches `floor`, a gain that some item of the set is known to have, which all
 * parts share. If `groups` is not NULL, it has the group of every item of the set, and items of a group
 * g with is_full[g] are dropped.
 */
typedef struct {
    int64_t first;
    int64_t items;
    int64_t step;
    int64_t held;
    int64_t is_taken;
    int64_t best;
    double gain;
    double slack;
    _Atomic double *floor;
    void *ceilings;
    int32_t *ages;
    int64_t *heap;
    void *work;
    const int64_t *groups;
    const uint8_t *is_full;
} dgn_part;

#endif
