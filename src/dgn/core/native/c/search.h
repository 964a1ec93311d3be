/* Greedy on many small sets, within k or within other limits; included by greedy.c for float and double. */

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
            SUFFIX(start)(input, level);
        for (int64_t j = 0; j < k; j++) {
            chosen[j] = -1;
            added[j] = 0;
        }
        if (set == 0 || input->weights_stride)
            all_count = SUFFIX(widen_weights)(weights, width, &range);
        const REAL highest = SUFFIX(widen)(rows, items, width, weights, all_count, &range);
        dgn_input own = *input;
#ifdef UNIT_SCALE
        /* By its bits, -0 is higher than all other numbers and would hide them. */
        if (input->form == DGN_LOG1P && !input->split && highest <= 1 && !signbit(highest))
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

/* Sort items by a number of each, the largest first. `order` is that of the last call, in which most
 * items still stand in their places; before the first one, the items in their own order, which a heap
 * sorts with the same result (the lower index first among equals).
 */
#define DEFINE_SORT(name, NUMBER)                                                                  \
    static void SUFFIX(name##_sift)(const NUMBER *numbers, int64_t *heap, int64_t held,            \
                                    int64_t place) {                                               \
        const int64_t item = heap[place];                                                          \
        for (int64_t child; (child = 2 * place + 1) < held; place = child) {                       \
            if (child + 1 < held && IS_LATER(numbers, heap[child + 1], heap[child]))               \
                child++;                                                                           \
            if (!IS_LATER(numbers, heap[child], item))                                             \
                break;                                                                             \
            heap[place] = heap[child];                                                             \
        }                                                                                          \
        heap[place] = item;                                                                        \
    }                                                                                              \
    static void SUFFIX(name)(const NUMBER *numbers, int64_t items, int64_t *order, int is_first) { \
        if (is_first && items > 32) {                                                              \
            for (int64_t place = items / 2; place-- > 0;)                                          \
                SUFFIX(name##_sift)(numbers, order, items, place);                                 \
            for (int64_t held = items; held-- > 1;) {                                              \
                const int64_t last = order[0];                                                     \
                order[0] = order[held];                                                            \
                order[held] = last;                                                                \
                SUFFIX(name##_sift)(numbers, order, held, 0);                                      \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 1; i < items; i++) {                                                      \
            const int64_t item = order[i];                                                         \
            int64_t place = i;                                                                     \
            for (; place > 0 && numbers[order[place - 1]] < numbers[item]; place--)                \
                order[place] = order[place - 1];                                                   \
            order[place] = item;                                                                   \
        }                                                                                          \
    }

/* Whether item a comes after item b: the smaller number, then the higher index. */
#define IS_LATER(numbers, a, b)                                                                    \
    ((numbers)[a] < (numbers)[b] || ((numbers)[a] == (numbers)[b] && (a) > (b)))

DEFINE_SORT(sort_by_density, double)
DEFINE_SORT(sort_by_gain, REAL)

/* What the budget buys at most if items could be divided, by the gain per cost. */
static double SUFFIX(divisible)(const double *costs, const REAL *gains, double budget, int64_t items,
                                const double *density, int64_t *order, int is_first) {
    SUFFIX(sort_by_density)(density, items, order, is_first);
    double found = 0, spent = 0;
    for (int64_t i = 0; i < items && density[order[i]] > 0 && spent < budget; i++) {
        const int64_t item = order[i];
        const double share = (budget - spent) / costs[item];
        found += (double)gains[item] * (share < 1 ? share : 1);
        spent += costs[item];
    }
    return found;
}

/* The sum of the k largest gains of which no group has more than its quota. */
static double SUFFIX(largest_in_groups)(const REAL *gains, int64_t items, int64_t k,
                                        const int64_t *groups, const int64_t *quotas,
                                        int64_t group_count, int64_t *used, int64_t *order,
                                        int is_first, REAL *largest) {
    int64_t held = 0;
    memset(used, 0, (size_t)group_count * sizeof *used);
    SUFFIX(sort_by_gain)(gains, items, order, is_first);
    for (int64_t i = 0; i < items && held < k && gains[order[i]] > 0; i++)
        if (used[groups[order[i]]]++ < quotas[groups[order[i]]])
            largest[held++] = gains[order[i]];
    double found = 0;
    while (held-- > 0)
        found += largest[held];
    return found;
}

/* Greedy by gain, or by gain per cost, within limits, and the best single item; see constrained.py.
 * Densities are those of gains that are scaled to about 1, so that neither the tiniest gains nor the
 * largest ones leave the range of numbers.
 */
static void SUFFIX(constrained)(const dgn_input *input, const dgn_result *result,
                                const dgn_limits *limits) {
    const int64_t width = input->width, k = input->k, items = input->items;
    const int64_t group_count = limits->group_count;
    REAL *const level = result->work, *const prepared = level + width;
    REAL *const ones = prepared + width, *const largest = ones + width, *const gains = largest + k;
    REAL *const kept = gains + items, *const payable = kept + width;
    double *const density = limits->density;
    int64_t *const by_density = limits->order, *const by_gain = by_density + items;
    int64_t *const selected = limits->used + group_count; /* of every group, how many */
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    for (int64_t set = 0; set < input->sets; set++) {
        const REAL *const rows = (const REAL *)input->features + set * items * width;
        const uint8_t *const mask = input->mask ? input->mask + set * items : 0;
        const double *const costs = limits->costs ? limits->costs + set * items : 0;
        const double *const divisors = limits->divisors ? limits->divisors + set * items : 0;
        const int64_t *const groups = limits->groups ? limits->groups + set * items : 0;
        const int64_t *const quotas = limits->groups ? limits->quotas + set * group_count : 0;
        const REAL *const weights =
            input->weights ? (const REAL *)input->weights + set * input->weights_stride : ones;
        const int64_t count = limits->counts[set];
        const int skips = costs && limits->skipped_cover;
        int64_t *const chosen = result->indices + set * k;
        double *const added = (double *)result->gains + set * k;
        double left = costs ? limits->budgets[set] : 0, value = 0, bound = INFINITY, scale = 1;
        if (input->level)
            memcpy(level, (const REAL *)input->level + set * input->level_stride,
                   (size_t)width * sizeof(REAL));
        else
            SUFFIX(start)(input, level);
        if (skips)
            memcpy(kept, level, (size_t)width * sizeof(REAL));
        for (int64_t j = 0; j < k; j++) {
            chosen[j] = -1;
            added[j] = 0;
        }
        for (int64_t a = 0; a < items; a++) {
            by_density[a] = by_gain[a] = a;
            /* Below 0: not to be selected, or selected. What is not allowed bounds nothing either. */
            gains[a] = (mask && !mask[a]) || (costs && !skips && !(costs[a] <= left)) ||
                               (groups && quotas[groups[a]] < 1)
                           ? -1
                           : 0;
        }
        limits->single[set] = -1;
        limits->single_gain[set] = -INFINITY;
        ((double *)result->bounds)[set] = 0;
        if (!count)
            continue;
        if (groups)
            memset(selected, 0, (size_t)group_count * sizeof *selected);
        int64_t taken = 0;
        int has_skipped = 0;
        for (int64_t step = 0;; step++) {
            int64_t best = -1;
            int can_add = 0;
            double highest = -INFINITY;
            SUFFIX(prepare)(input, level, prepared);
            for (int64_t a = 0; a < items; a++) {
                if (gains[a] < 0)
                    continue;
                gains[a] = SUFFIX(gain)(input, rows + a * width, weights, prepared, level);
                if (step == 0 && gains[a] > limits->single_gain[set] &&
                    (!costs || costs[a] <= left)) {
                    limits->single[set] = a;
                    limits->single_gain[set] = gains[a];
                }
            }
            if (step == 0 && limits->single_gain[set] > 0)
                scale = power_below(limits->single_gain[set]);
            for (int64_t a = 0; a < items; a++) {
                const double scaled = gains[a] > 0 ? (double)gains[a] * scale : 0;
                const double score = divisors ? scaled / divisors[a] : scaled;
                density[a] = costs ? scaled / costs[a] : 0;
                if (skips) { /* what can never be paid bounds nothing */
                    payable[a] = costs[a] <= limits->budgets[set] ? gains[a] : -1;
                    density[a] = payable[a] > 0 ? density[a] : 0;
                }
                if (gains[a] < 0 || (costs && !(scaled > 0)) ||
                    (groups && selected[groups[a]] == quotas[groups[a]]))
                    continue;
                const int fits = !costs || costs[a] <= left;
                can_add |= fits;
                if (!(score > highest) || !(fits || skips))
                    continue;
                best = a;
                highest = score;
            }
            const REAL *const bounded = skips ? payable : gains;
            double reachable =
                groups ? SUFFIX(largest_in_groups)(bounded, items, count, groups, quotas, group_count,
                                                   limits->used, by_gain, step == 0, largest)
                       : SUFFIX(largest_sum)(bounded, items, count, largest);
            if (costs) {
                const double by_cost = SUFFIX(divisible)(costs, bounded, limits->budgets[set], items,
                                                         density, by_density, step == 0);
                reachable = by_cost < reachable ? by_cost : reachable;
            }
            reachable += value;
            bound = reachable < bound ? reachable : bound;
            if (taken == count || !can_add)
                break;
            const REAL *const row = rows + best * width;
            value += gains[best]; /* of the set with what was skipped, whose gains these are */
            if (costs && !(costs[best] <= left)) {
                has_skipped = 1;
            } else {
                chosen[taken] = best;
                added[taken] = gains[best];
                if (has_skipped) {
                    SUFFIX(prepare)(input, kept, prepared);
                    added[taken] = SUFFIX(gain)(input, row, weights, prepared, kept);
                }
                taken++;
                left = costs ? left_of(left, costs[best]) : 0;
                if (groups)
                    selected[groups[best]]++;
                if (skips)
                    SUFFIX(raise)(input, row, kept);
            }
            gains[best] = -1;
            SUFFIX(raise)(input, row, level);
        }
        ((double *)result->bounds)[set] = bound;
    }
}
