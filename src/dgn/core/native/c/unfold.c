/* The unfolded greedy layers of coverage functions and their gradient, set by set.
 *
 * The gradient recomputes what the layers computed: between the two passes, only numbers of the size
 * [sets, layers, items] are kept. The level before a layer is the first level plus what had joined of
 * each item times its features.
 */
#include "unfold.h"
#include "greedy.h"
#include "isa.h"

#include <math.h>
#include <string.h>

#define REAL float
#define INTEGER int32_t
#define NATURAL uint32_t
#define LANES 16
#define SUFFIX(name) name##_f
#include "vector.h"

#define INLINE static inline __attribute__((always_inline))

/* One set, with rows that are filled up with zeros to a multiple of LANES. */
typedef struct {
    int64_t items, width; /* width: filled up */
    float *rows, *row_gradients;
    float *weights, *level, *ready, *level_gradient, *weight_gradient;
    float *outside, *inside, *log_outside, *scores, *member, *outside_gradient, *log_gradient;
} set_state;

static int64_t filled(int64_t count) {
    return (count + LANES - 1) / LANES * LANES;
}

/* The room that a set needs, in numbers; see `placed`. */
int64_t DGN_NAMED(dgn_unfold_work, DGN_ISA)(int64_t items, int64_t width) {
    return 2 * items * filled(width) + 5 * filled(width) + 7 * filled(items);
}

static set_state placed(const dgn_layers *layers, float *work) {
    set_state set = {.items = layers->items, .width = filled(layers->width)};
    float **const wide[] = {&set.weights, &set.level, &set.ready, &set.level_gradient,
                            &set.weight_gradient};
    float **const narrow[] = {&set.outside, &set.inside,           &set.log_outside, &set.scores,
                              &set.member,  &set.outside_gradient, &set.log_gradient};
    memset(work, 0, sizeof(float) * (size_t)DGN_NAMED(dgn_unfold_work, DGN_ISA)(layers->items, layers->width));
    set.rows = work;
    set.row_gradients = set.rows + set.items * set.width;
    work = set.row_gradients + set.items * set.width;
    for (size_t j = 0; j < sizeof wide / sizeof *wide; j++, work += set.width)
        *wide[j] = work;
    for (size_t j = 0; j < sizeof narrow / sizeof *narrow; j++, work += filled(set.items))
        *narrow[j] = work;
    return set;
}

static void copy_rows(float *to, int64_t to_width, const float *from, int64_t from_width, int64_t rows) {
    const int64_t width = to_width < from_width ? to_width : from_width;
    for (int64_t row = 0; row < rows; row++)
        memcpy(to + row * to_width, from + row * from_width, (size_t)width * sizeof(float));
}

static void load_set(const dgn_layers *layers, int64_t number, set_state *set) {
    const int64_t items = layers->items, width = layers->width;
    copy_rows(set->rows, set->width, layers->features + number * items * width, width, items);
    memcpy(set->weights, layers->weights + number * layers->weights_stride,
           (size_t)width * sizeof(float));
    memcpy(set->level, layers->level + number * layers->level_stride, (size_t)width * sizeof(float));
}

/* phi(m + s) - phi(m), and its derivatives by s and by m. `ready` is what `prepare` computed. The
 * derivatives are those of dgn.core.functions.concave, also where phi has none.
 */
typedef struct {
    VECTOR increase, by_step, by_level;
} growth;

INLINE VECTOR slope_of_power(VECTOR x, float exponent) {
    const VECTOR some = either_f(x > 0, x, (VECTOR){0} + 1.0f);
    return exponent * exp_f((exponent - 1) * log_f(some));
}

INLINE growth grown(int form, VECTOR s, VECTOR m, VECTOR ready, float parameter) {
    const VECTOR zero = {0};
    switch (form) {
    case DGN_LOG1P: {
        const VECTOR t = s * ready, by_step = ready / (1.0f + t);
        return (growth){log1p_f(t), by_step, -t * by_step};
    }
    case DGN_SQRT: {
        const VECTOR root = root_f(m + s), roots = root + ready;
        const BITS has_root = roots > 0;
        const VECTOR some_roots = either_f(has_root, roots, zero + 1.0f);
        const VECTOR half = 0.5f / either_f(root > 0, root, zero + 1.0f);
        const VECTOR at_level = 0.5f / either_f(ready > 0, ready, zero + 1.0f);
        const VECTOR increase = s / some_roots;
        return (growth){increase, half, either_f(has_root, -increase / some_roots * (half + at_level), zero)};
    }
    case DGN_SATURATED: {
        const VECTOR room = positive_f(ready);
        const VECTOR by_step = either_f(s < room, zero + 1.0f, either_f(s > room, zero, zero + 0.5f));
        const VECTOR by_room = either_f(ready > 0, zero + 1.0f, either_f(ready < 0, zero, zero + 0.5f));
        return (growth){either_f(s < room, s, room), by_step, (by_step - 1.0f) * by_room};
    }
    case DGN_ONE_MINUS_EXP: {
        const VECTOR increase = -ready * expm1_f(-s);
        return (growth){increase, ready - increase, -increase};
    }
    case DGN_POWER: {
        const VECTOR by_step = slope_of_power(m + s, parameter);
        return (growth){power_increase_f(s, m, ready, parameter), by_step,
                        by_step - slope_of_power(m, parameter)};
    }
    default: return (growth){s, zero + 1.0f, zero};
    }
}

INLINE void prepare(int form, set_state *set, float parameter) {
    for (int64_t u = 0; u < set->width; u += WIDTH) {
        const VECTOR m = load_f(set->level + u);
        VECTOR ready = m;
        switch (form) {
        case DGN_LOG1P: ready = 1.0f / (1.0f + m); break;
        case DGN_SQRT: ready = root_f(m); break;
        case DGN_SATURATED: ready = parameter - m; break;
        case DGN_ONE_MINUS_EXP: ready = exp_f(-m); break;
        case DGN_POWER: ready = raised_to_f(m, parameter); break;
        default: break;
        }
        memcpy(set->ready + u, &ready, sizeof ready);
    }
}

INLINE float total(VECTOR sums) {
    float lanes[WIDTH];
    memcpy(lanes, &sums, sizeof lanes);
    for (int half = WIDTH / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            lanes[lane] += lanes[lane + half];
    return lanes[0];
}

INLINE void add_to(float *place, VECTOR more) {
    const VECTOR sum = load_f(place) + more;
    memcpy(place, &sum, sizeof sum);
}

INLINE float row_gain(int form, const set_state *set, int64_t item, float parameter) {
    const float *const row = set->rows + item * set->width;
    const float outside = set->outside[item];
    VECTOR sums[2] = {{0}, {0}}; /* two, because an addition waits for the one before it */
    for (int64_t u = 0; u < set->width; u += 2 * WIDTH)
        for (int j = 0; j < 2 && u + j * WIDTH < set->width; j++) {
            const int64_t at = u + j * WIDTH;
            const growth found = grown(form, outside * load_f(row + at), load_f(set->level + at),
                                       load_f(set->ready + at), parameter);
            sums[j] += load_f(set->weights + at) * found.increase;
        }
    return total(sums[0] + sums[1]);
}

/* The gradients that come through the gain of an item, which has this gradient itself. */
INLINE void row_slope(int form, set_state *set, int64_t item, float gradient, float parameter) {
    const float *const row = set->rows + item * set->width;
    float *const by_row = set->row_gradients + item * set->width;
    const float outside = set->outside[item];
    VECTOR by_outside = {0};
    for (int64_t u = 0; u < set->width; u += WIDTH) {
        const VECTOR h = load_f(row + u), by_term = gradient * load_f(set->weights + u);
        const growth found =
            grown(form, outside * h, load_f(set->level + u), load_f(set->ready + u), parameter);
        const VECTOR by_step = by_term * found.by_step;
        add_to(by_row + u, by_step * outside);
        add_to(set->level_gradient + u, by_term * found.by_level);
        add_to(set->weight_gradient + u, gradient * found.increase);
        by_outside += by_step * h;
    }
    set->outside_gradient[item] += total(by_outside);
}

#define FOR_FORM(form, act)                                                                        \
    switch (form) {                                                                                \
    case DGN_LOG1P: act(DGN_LOG1P); break;                                                         \
    case DGN_SQRT: act(DGN_SQRT); break;                                                           \
    case DGN_SATURATED: act(DGN_SATURATED); break;                                                 \
    case DGN_ONE_MINUS_EXP: act(DGN_ONE_MINUS_EXP); break;                                         \
    case DGN_POWER: act(DGN_POWER); break;                                                         \
    default: act(DGN_LINEAR);                                                                      \
    }

static void find_gains(const dgn_layers *layers, const uint8_t *mask, set_state *set) {
#define FIND(form)                                                                                 \
    prepare(form, set, layers->parameter);                                                         \
    for (int64_t a = 0; a < set->items; a++)                                                       \
        set->scores[a] = mask[a] ? row_gain(form, set, a, layers->parameter) : 0
    FOR_FORM(layers->form, FIND)
}

static void add_slopes(const dgn_layers *layers, const uint8_t *mask, set_state *set,
                       const float *gradients) {
#define ADD(form)                                                                                  \
    prepare(form, set, layers->parameter);                                                         \
    for (int64_t a = 0; a < set->items; a++)                                                       \
        if (mask[a])                                                                               \
            row_slope(form, set, a, gradients[a], layers->parameter)
    FOR_FORM(layers->form, ADD)
}

static int64_t largest_of(const float *values, int64_t count) {
    int64_t best = 0;
    for (int64_t a = 1; a < count; a++)
        if (values[a] > values[best])
            best = a;
    return best;
}

/* log of the sum of exp(values), without one of them, which counts as `lowest`. */
static float log_sum_exp(const float *values, int64_t count, int64_t without, float lowest) {
    float top = lowest;
    for (int64_t a = 0; a < count; a++)
        if (a != without && values[a] > top)
            top = values[a];
    float lanes[LANES], sum = 0;
    for (int64_t a = 0; a < count; a += WIDTH) {
        const int64_t here = count - a < WIDTH ? count - a : WIDTH;
        for (int64_t lane = 0; lane < WIDTH; lane++)
            lanes[lane] = lane >= here          ? -1e30f
                          : a + lane == without ? lowest - top
                                                : values[a + lane] - top;
        const VECTOR found = exp_f(load_f(lanes));
        sum += total(found);
    }
    return top + logf(sum);
}

/* log p and log(1 - p) for p = softmax(scores); returns the item with the largest score. */
static int64_t soft_choice(const float *scores, int64_t items, float lowest, float *log_probs,
                           float *log_others) {
    const int64_t best = largest_of(scores, items);
    for (int64_t a = 0; a < items; a++)
        log_probs[a] = scores[a] - scores[best];
    const float sum = log_sum_exp(log_probs, items, -1, 2 * lowest);
    for (int64_t a = 0; a < items; a++)
        log_probs[a] -= sum;
    for (int64_t a = 0; a < items; a += WIDTH) {
        const int64_t here = items - a < WIDTH ? items - a : WIDTH;
        VECTOR log_p = {0};
        memcpy(&log_p, log_probs + a, (size_t)here * sizeof(float));
        /* Only the largest p exceeds one half; it has its own logarithm below. */
        const VECTOR p = exp_f(either_f(log_p < -0.69f, log_p, (VECTOR){0} - 0.69f));
        const VECTOR others = log1p_f(-p);
        memcpy(log_others + a, &others, (size_t)here * sizeof(float));
    }
    log_others[best] = log_sum_exp(log_probs, items, best, lowest);
    return best;
}

static void set_members(const float *log_probs, int64_t items, int64_t only, float *member) {
    for (int64_t a = 0; a < items; a += WIDTH) {
        const int64_t here = items - a < WIDTH ? items - a : WIDTH;
        VECTOR p = {0};
        memcpy(&p, log_probs + a, (size_t)here * sizeof(float));
        p = exp_f(p);
        memcpy(member + a, &p, (size_t)here * sizeof(float));
    }
    for (int64_t a = 0; only >= 0 && a < items; a++)
        member[a] = a == only;
}

/* The level: where the set began, and what joined it since. */
static void set_level(const dgn_layers *layers, int64_t number, set_state *set) {
    memcpy(set->level, layers->level + number * layers->level_stride,
           (size_t)layers->width * sizeof(float));
    for (int64_t a = 0; a < set->items; a++) {
        const float *const row = set->rows + a * set->width;
        if (set->inside[a] != 0)
            for (int64_t u = 0; u < set->width; u += WIDTH)
                add_to(set->level + u, set->inside[a] * load_f(row + u));
    }
}

void DGN_NAMED(dgn_unfold, DGN_ISA)(const dgn_layers *layers, const dgn_choices *choices,
                                      float *work) {
    const int64_t items = layers->items;
    const size_t row_size = (size_t)items * sizeof(float);
    set_state set = placed(layers, work);
    for (int64_t number = 0; number < layers->sets; number++) {
        const uint8_t *const mask = layers->mask + number * items;
        load_set(layers, number, &set);
        memcpy(set.log_outside, layers->log_prior + number * items, row_size);
        for (int64_t a = 0; a < items; a++) {
            set.outside[a] = 1;
            set.inside[a] = 0;
        }
        for (int64_t layer = 0; layer < layers->layers; layer++) {
            const int64_t at = (number * layers->layers + layer) * items;
            float *const log_probs = choices->log_probs + at;
            float *const log_others = choices->log_others + at;
            memcpy(choices->outside + at, set.outside, row_size);
            memcpy(choices->inside + at, set.inside, row_size);
            find_gains(layers, mask, &set);
            for (int64_t a = 0; a < items; a++) {
                const float noise = layers->noise ? layers->noise[at + a] : 0;
                set.scores[a] = (set.scores[a] + noise) / layers->temperature +
                                (mask[a] ? set.log_outside[a] : layers->lowest);
            }
            const int64_t best =
                soft_choice(set.scores, items, layers->lowest, log_probs, log_others);
            set_members(log_probs, items, layers->is_hard ? best : -1, set.member);
            for (int64_t a = 0; a < items; a++) {
                const float hard = a == best ? layers->lowest : 0;
                const float left = set.log_outside[a] + (layers->is_hard ? hard : log_others[a]);
                set.log_outside[a] = left < layers->lowest ? layers->lowest : left;
                set.inside[a] += set.outside[a] * set.member[a];
                set.outside[a] *= 1 - set.member[a];
            }
            set_level(layers, number, &set);
        }
        memcpy(choices->outside_after + number * items, set.outside, row_size);
        copy_rows(choices->level_after + number * layers->width, layers->width, set.level, set.width,
                  1);
    }
}

/* Whether log(1 - membership) stayed above `lowest` in a layer, where it is cut off. */
static int is_kept(const dgn_layers *layers, const dgn_choices *choices, int64_t number,
                   int64_t layer, int64_t item) {
    float log_outside = layers->log_prior[number * layers->items + item];
    for (int64_t before = 0;; before++) {
        const int64_t at = (number * layers->layers + before) * layers->items;
        float left = choices->log_others[at + item];
        if (layers->is_hard) /* an item that joined has nothing outside any more */
            left = largest_of(choices->log_probs + at, layers->items) == item ? layers->lowest : 0;
        if (before == layer)
            return log_outside + left >= layers->lowest;
        log_outside = log_outside + left < layers->lowest ? layers->lowest : log_outside + left;
    }
}

/* From the gradients of log p and log(1 - p) to those of the scores, in `by_log_p`. */
static void softmax_slope(const float *log_probs, const float *log_others, const float *by_log_other,
                          int64_t items, float *by_log_p) {
    const int64_t best = largest_of(log_probs, items);
    float sum = 0;
    for (int64_t a = 0; a < items; a++) {
        if (a != best) {
            const float p = expf(log_probs[a]);
            by_log_p[a] += by_log_other[best] * expf(log_probs[a] - log_others[best]);
            by_log_p[a] -= by_log_other[a] * p / (1 - p);
        }
        sum += by_log_p[a];
    }
    for (int64_t a = 0; a < items; a++)
        by_log_p[a] -= expf(log_probs[a]) * sum;
}

void DGN_NAMED(dgn_unfold_slope, DGN_ISA)(const dgn_layers *layers, const dgn_choices *choices,
                                            const dgn_gradients *gradients, float *work) {
    const int64_t items = layers->items, width = layers->width;
    const size_t row_size = (size_t)items * sizeof(float);
    set_state set = placed(layers, work);
    float *const by_score = set.scores, *const by_log_other = set.log_outside;
    for (int64_t number = 0; number < layers->sets; number++) {
        const uint8_t *const mask = layers->mask + number * items;
        load_set(layers, number, &set);
        memset(set.row_gradients, 0, (size_t)(items * set.width) * sizeof(float));
        memset(set.weight_gradient, 0, (size_t)set.width * sizeof(float));
        memset(set.log_gradient, 0, row_size);
        memcpy(set.outside_gradient, gradients->outside_after + number * items, row_size);
        memset(set.level_gradient, 0, (size_t)set.width * sizeof(float));
        memcpy(set.level_gradient, gradients->level_after + number * width,
               (size_t)width * sizeof(float));
        for (int64_t layer = layers->layers; layer-- > 0;) {
            const int64_t at = (number * layers->layers + layer) * items;
            const float *const log_probs = choices->log_probs + at;
            const float *const log_others = choices->log_others + at;
            memcpy(set.outside, choices->outside + at, row_size);
            memcpy(set.inside, choices->inside + at, row_size);
            memcpy(by_score, gradients->log_probs + at, row_size);
            memcpy(by_log_other, gradients->log_others + at, row_size);
            set_members(log_probs, items,
                        layers->is_hard ? largest_of(log_probs, items) : -1, set.member);
            for (int64_t a = 0; a < items; a++) {
                if (!is_kept(layers, choices, number, layer, a))
                    set.log_gradient[a] = 0;
                if (!layers->is_hard)
                    by_log_other[a] += set.log_gradient[a];
                if (!mask[a])
                    continue;
                const float *const row = set.rows + a * set.width;
                float *const by_row = set.row_gradients + a * set.width;
                const float outside = set.outside[a], member = set.member[a];
                VECTOR sum = {0};
                for (int64_t u = 0; u < set.width; u += WIDTH) {
                    const VECTOR by_level = load_f(set.level_gradient + u);
                    sum += by_level * load_f(row + u);
                    add_to(by_row + u, outside * member * by_level);
                }
                const float by_joining = total(sum), by_outside = set.outside_gradient[a];
                by_score[a] += (by_joining - by_outside) * outside * expf(log_probs[a]);
                set.outside_gradient[a] = by_joining * member + by_outside * (1 - member);
            }
            softmax_slope(log_probs, log_others, by_log_other, items, by_score);
            for (int64_t a = 0; a < items; a++) {
                set.log_gradient[a] += mask[a] ? by_score[a] : 0;
                by_score[a] /= layers->temperature;
            }
            set_level(layers, number, &set);
            add_slopes(layers, mask, &set, by_score);
        }
        copy_rows(gradients->features + number * items * width, width, set.row_gradients, set.width,
                  items);
        copy_rows(gradients->weights + number * width, width, set.weight_gradient, set.width, 1);
        copy_rows(gradients->level + number * width, width, set.level_gradient, set.width, 1);
        memcpy(gradients->log_prior + number * items, set.log_gradient, row_size);
    }
}
