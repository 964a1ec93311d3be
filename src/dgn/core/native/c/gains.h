/* The gain of a row of features, and how a row raises the level, for one type of number, REAL. */

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
static void SUFFIX(prepare_some)(int32_t form, double parameter, const REAL *restrict level,
                                 REAL *restrict prepared, int64_t width) {
    const REAL cap = (REAL)parameter;
    switch (form) {
    case DGN_LOG1P: FOR_FEATURES(prepared[u] = 1 / (1 + level[u]));
#ifdef UNIT_SCALE
    case DGN_LOG1P_UNIT: FOR_FEATURES(prepared[u] = UNIT_SCALE / (1 + level[u]));
#endif
    case DGN_SQRT: FOR_FEATURES(prepared[u] = sizeof(REAL) == 4 ? (REAL)sqrtf((float)level[u])
                                                                : (REAL)sqrt((double)level[u]));
    case DGN_SATURATED: FOR_FEATURES(prepared[u] = cap > level[u] ? cap - level[u] : 0);
    case DGN_ONE_MINUS_EXP: FOR_FEATURES(prepared[u] = (REAL)exp(-(double)level[u]));
    case DGN_POWER: FOR_FEATURES(prepared[u] = (REAL)pow((double)level[u], parameter));
    default: memcpy(prepared, level, (size_t)width * sizeof(REAL));
    }
}

static void SUFFIX(raise_some)(int32_t form, const REAL *restrict row, REAL *restrict level,
                               int64_t width) {
    switch (form) {
    case DGN_FACILITY: FOR_FEATURES(level[u] = row[u] > level[u] ? row[u] : level[u]);
    case DGN_PROBABILISTIC: FOR_FEATURES(level[u] *= 1 - row[u]);
    default: FOR_FEATURES(level[u] += row[u]);
    }
}

static REAL SUFFIX(gain_of)(int32_t form, double parameter, const REAL *row, const REAL *weights,
                            const REAL *prepared, const REAL *level, int64_t width) {
    const REAL p = (REAL)parameter;
    switch (form) {
    case DGN_LOG1P: return SUFFIX(log1p_gain)(row, weights, prepared, level, width, p);
    case DGN_SQRT: return SUFFIX(sqrt_gain)(row, weights, prepared, level, width, p);
    case DGN_LINEAR: return SUFFIX(linear_gain)(row, weights, prepared, level, width, p);
    case DGN_SATURATED: return SUFFIX(saturated_gain)(row, weights, prepared, level, width, p);
    case DGN_FACILITY: return SUFFIX(facility_gain)(row, weights, prepared, level, width, p);
    case DGN_ONE_MINUS_EXP:
        return SUFFIX(one_minus_exp_gain)(row, weights, prepared, level, width, p);
    case DGN_POWER: return SUFFIX(power_gain)(row, weights, prepared, level, width, p);
    default: return SUFFIX(product_gain)(row, weights, prepared, level, width, p);
    }
}

/* The same for a function that may be a sum of two, each on features of its own. */
static int64_t SUFFIX(first_width)(const dgn_input *input) {
    return input->split ? input->split : input->width;
}

static void SUFFIX(start)(const dgn_input *input, REAL *level) {
    const int64_t split = SUFFIX(first_width)(input);
    for (int64_t u = 0; u < input->width; u++)
        level[u] = (u < split ? input->form : input->second_form) == DGN_PROBABILISTIC ? 1 : 0;
}

static void SUFFIX(prepare)(const dgn_input *input, const REAL *level, REAL *prepared) {
    const int64_t split = SUFFIX(first_width)(input);
    SUFFIX(prepare_some)(input->form, input->parameter, level, prepared, split);
    if (split < input->width)
        SUFFIX(prepare_some)(input->second_form, input->second_parameter, level + split,
                             prepared + split, input->width - split);
}

static void SUFFIX(raise)(const dgn_input *input, const REAL *row, REAL *level) {
    const int64_t split = SUFFIX(first_width)(input);
    SUFFIX(raise_some)(input->form, row, level, split);
    if (split < input->width)
        SUFFIX(raise_some)(input->second_form, row + split, level + split, input->width - split);
}

static REAL SUFFIX(gain)(const dgn_input *input, const REAL *row, const REAL *weights,
                         const REAL *prepared, const REAL *level) {
    const int64_t split = SUFFIX(first_width)(input);
    const REAL first = SUFFIX(gain_of)(input->form, input->parameter, row, weights, prepared, level,
                                       split);
    if (split == input->width)
        return first;
    return first + SUFFIX(gain_of)(input->second_form, input->second_parameter, row + split,
                                   weights + split, prepared + split, level + split,
                                   input->width - split);
}
