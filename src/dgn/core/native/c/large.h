/* One large set, dense or sparse: gains of some items, and a lazy search; included by greedy.c. */

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
    return SUFFIX(gain_of)(input->form, input->parameter, features + first, scratch,
                           scratch + width, scratch + 2 * width, count);
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

/* A ceiling of the gain of an item: the gain itself, or for a dense set of double, a larger number that
 * is found in float, several times as fast. `floats` has the level, what is prepared and the weights in
 * float, and room for a row.
 */
static REAL SUFFIX(ceiling)(const dgn_input *input, const dgn_part *part, int64_t item,
                            const REAL *weights, const REAL *prepared, REAL *scratch,
                            float *floats) {
#ifdef IS_DOUBLE
    if (part->slack >= 0) {
        const int64_t width = input->width;
        const double *const row = (const double *)input->features + item * width;
        float *const own = floats + 3 * width;
        for (int64_t u = 0; u < width; u++)
            own[u] = (float)row[u];
        /* Far more than the rounding of numbers and of their sum. */
        return gain_of_f(input->form, input->parameter, own, floats + 2 * width, floats + width,
                         floats, width) *
                   (1 + 1e-7 * (double)(64 + width)) + part->slack;
    }
#endif
    (void)part, (void)floats;
    return SUFFIX(item_gain)(input, item, weights, prepared, input->level, scratch);
}

/* The largest gain in a part of a large set by old gains, which are ceilings of the current ones
 * (Minoux, 1978). The item with the largest ceiling gets a current ceiling first, and its exact gain if
 * it is still the first then.
 */
static void SUFFIX(lazy)(const dgn_input *input, dgn_part *part) {
    const int64_t width = input->width;
    REAL *const ceilings = part->ceilings, *const prepared = part->work;
    REAL *const ones = prepared + width, *const scratch = ones + width;
    float *const floats = (float *)(scratch + 3 * width);
    int64_t *const heap = part->heap;
    for (int64_t u = 0; u < width; u++)
        ones[u] = 1;
    const REAL *const weights = input->weights ? (const REAL *)input->weights : ones;
    SUFFIX(prepare)(input, input->level, prepared);
#ifdef IS_DOUBLE
    for (int64_t u = 0; u < width; u++) {
        floats[u] = (float)((const double *)input->level)[u];
        floats[width + u] = (float)prepared[u];
        floats[2 * width + u] = (float)weights[u];
    }
#endif
    const int32_t is_ceiling = (int32_t)(2 * part->step), is_exact = is_ceiling + 1;
    if (part->step == 0) {
        part->held = 0;
        for (int64_t a = 0; a < part->items; a++) {
            ceilings[a] = 0;
            if (input->mask && !input->mask[part->first + a])
                continue;
            ceilings[a] = SUFFIX(item_gain)(input, part->first + a, weights, prepared, input->level,
                                            scratch);
            part->ages[a] = is_exact;
            heap[part->held++] = a;
        }
        for (int64_t place = part->held / 2; place-- > 0;)
            SUFFIX(sift)(ceilings, heap, part->held, place);
    } else if (part->is_taken) {
        heap[0] = heap[--part->held];
        if (part->held)
            SUFFIX(sift)(ceilings, heap, part->held, 0);
    }
    part->is_taken = 0;
    part->best = -1;
    while (part->held && !(ceilings[heap[0]] < atomic_load(part->floor))) {
        const int64_t a = heap[0], item = part->first + a;
        if (part->groups && part->is_full[part->groups[item]]) {
            heap[0] = heap[--part->held];
            if (part->held)
                SUFFIX(sift)(ceilings, heap, part->held, 0);
            continue;
        }
        if (part->ages[a] == is_exact) {
            part->best = item;
            part->gain = ceilings[a];
            raise_floor(part->floor, part->gain);
            return;
        }
        const int is_known = part->ages[a] == is_ceiling || part->slack < 0;
        ceilings[a] =
            is_known ? SUFFIX(item_gain)(input, item, weights, prepared, input->level, scratch)
                     : SUFFIX(ceiling)(input, part, item, weights, prepared, scratch, floats);
        part->ages[a] = is_known ? is_exact : is_ceiling;
        SUFFIX(sift)(ceilings, heap, part->held, 0);
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
#undef DEFINE_SORT
#undef IS_LATER
#undef DEFINE_ROW_GAIN
