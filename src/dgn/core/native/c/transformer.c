/* A transformer (BERT) with 8-bit weights, text by text without padding.
 *
 * Each row that meets a linear map is rounded to 8 bits by itself, between its own least and its own
 * largest number: x = low + step * q. The products of integers are summed exactly. No number of a text
 * therefore depends on the texts that are read with it, nor on how they are divided among threads.
 * The reference is core/native/transformer.py.
 */
#include "transformer.h"
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
#define COLUMNS 64

typedef uint8_t bytes __attribute__((vector_size(WIDTH)));
typedef int32_t integers __attribute__((vector_size(REGISTER)));

/* Rows that were rounded to 8 bits. */
typedef struct {
    uint8_t *values; /* [rows, inputs] */
    float *low, *step;
} rounded;

INLINE void store(float *to, VECTOR x) { memcpy(to, &x, sizeof x); }

INLINE float sum_of(VECTOR x) {
    float lanes[WIDTH];
    memcpy(lanes, &x, sizeof lanes);
    for (int half = WIDTH / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            lanes[lane] += lanes[lane + half];
    return lanes[0];
}

INLINE VECTOR smaller(VECTOR x, VECTOR y) { return either_f(x < y, x, y); }
INLINE VECTOR larger(VECTOR x, VECTOR y) { return either_f(x > y, x, y); }

INLINE float largest_of(VECTOR x) {
    float lanes[WIDTH], found;
    memcpy(lanes, &x, sizeof lanes);
    found = lanes[0];
    for (int lane = 1; lane < WIDTH; lane++)
        found = lanes[lane] > found ? lanes[lane] : found;
    return found;
}

/* Round one row; `row` is its number among the rounded ones. */
static void round_row(const float *x, int64_t inputs, const rounded *to, int64_t row) {
    VECTOR least = load_f(x), most = least;
    for (int64_t i = WIDTH; i < inputs; i += WIDTH) {
        const VECTOR some = load_f(x + i);
        least = smaller(some, least);
        most = larger(some, most);
    }
    const float low = -largest_of(-least), range = largest_of(most) - low;
    const float inverse = range > 0 ? 255.0f / range : 0;
    uint8_t *const values = to->values + row * inputs;
    to->low[row] = low;
    to->step[row] = range / 255.0f;
    for (int64_t i = 0; i < inputs; i += WIDTH) {
        const VECTOR scaled = (load_f(x + i) - low) * inverse + 0.5f;
        const bytes found = __builtin_convertvector(__builtin_convertvector(scaled, integers), bytes);
        memcpy(values + i, &found, sizeof found);
    }
}

/* The products of some rows with COLUMNS outputs, as integers: [ROWS, COLUMNS]. */
#if defined(__AVX512VNNI__)
enum { ROWS = 6 };
INLINE void products(int rows, const uint8_t *a, int64_t inputs, const int8_t *w,
                     int32_t found[ROWS][COLUMNS]) {
    __m512i sums[ROWS][4];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 4; c++)
            sums[r][c] = _mm512_setzero_si512();
    for (int64_t i = 0; i < inputs; i += 4, w += 4 * COLUMNS) {
        __m512i own[4];
        for (int c = 0; c < 4; c++)
            own[c] = _mm512_loadu_si512(w + 64 * c);
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, a + r * inputs + i, 4);
            const __m512i all = _mm512_set1_epi32(four);
            for (int c = 0; c < 4; c++)
                sums[r][c] = _mm512_dpbusd_epi32(sums[r][c], all, own[c]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 4; c++)
            _mm512_storeu_si512(found[r] + 16 * c, sums[r][c]);
}
#elif defined(__AVX2__)
enum { ROWS = 2 };
INLINE void products(int rows, const uint8_t *a, int64_t inputs, const int8_t *w,
                     int32_t found[ROWS][COLUMNS]) {
    for (int first = 0; first < COLUMNS; first += 16) {
        __m256i sums[ROWS][4]; /* four outputs each, as two sums of two inputs */
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < 4; c++)
                sums[r][c] = _mm256_setzero_si256();
        const int8_t *own = w + 4 * first;
        for (int64_t i = 0; i < inputs; i += 4, own += 4 * COLUMNS) {
            __m256i all[ROWS];
            for (int r = 0; r < rows; r++) {
                int32_t four;
                memcpy(&four, a + r * inputs + i, 4);
                all[r] = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
            }
            for (int c = 0; c < 4; c++) {
                const __m256i some =
                    _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(own + 16 * c)));
                for (int r = 0; r < rows; r++)
                    sums[r][c] = _mm256_add_epi32(sums[r][c], _mm256_madd_epi16(some, all[r]));
            }
        }
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < 4; c++) {
                int32_t halves[8];
                memcpy(halves, &sums[r][c], sizeof halves);
                for (int j = 0; j < 4; j++)
                    found[r][first + 4 * c + j] = halves[2 * j] + halves[2 * j + 1];
            }
    }
}
#else
enum { ROWS = 2 };
INLINE void products(int rows, const uint8_t *a, int64_t inputs, const int8_t *w,
                     int32_t found[ROWS][COLUMNS]) {
    memset(found, 0, (size_t)rows * sizeof *found);
    for (int64_t i = 0; i < inputs; i += 4, w += 4 * COLUMNS)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < COLUMNS; c++) {
                int32_t sum = 0;
                for (int j = 0; j < 4; j++)
                    sum += (int32_t)a[r * inputs + i + j] * w[4 * c + j];
                found[r][c] += sum;
            }
}
#endif

INLINE void some_rows(int rows, const dgn_linear *map, const rounded *from, int64_t row,
                      int64_t first, float *to, int64_t stride) {
    int32_t found[ROWS][COLUMNS];
    products(rows, from->values + row * map->inputs, map->inputs, map->weights + first * map->inputs,
             found);
    for (int r = 0; r < rows; r++) {
        const float step = from->step[row + r], low = from->low[row + r];
        for (int c = 0; c < COLUMNS; c += WIDTH) {
            integers sums;
            memcpy(&sums, found[r] + c, sizeof sums);
            const VECTOR product = __builtin_convertvector(sums, VECTOR) * step;
            const VECTOR whole = product + load_f(map->sums + first + c) * low;
            store(to + (row + r) * stride + first + c,
                  whole * load_f(map->scales + first + c) + load_f(map->bias + first + c));
        }
    }
}

/* Rows times a linear map; rows of `to` are `stride` numbers apart. */
static void apply(const dgn_linear *map, const rounded *from, int64_t rows, float *to,
                  int64_t stride) {
    for (int64_t first = 0; first < map->outputs; first += COLUMNS) {
        int64_t row = 0;
        for (; row + ROWS <= rows; row += ROWS)
            some_rows(ROWS, map, from, row, first, to, stride);
        switch (rows - row) {
#if defined(__AVX512VNNI__)
        case 5:
            some_rows(5, map, from, row, first, to, stride);
            break;
        case 4:
            some_rows(4, map, from, row, first, to, stride);
            break;
        case 3:
            some_rows(3, map, from, row, first, to, stride);
            break;
        case 2:
            some_rows(2, map, from, row, first, to, stride);
            break;
#endif
        case 1:
            some_rows(1, map, from, row, first, to, stride);
            break;
        default:
            break;
        }
    }
}

/* x - mean over its deviation, scaled and shifted; in place. */
static void normalize(float *x, const float *norm, int64_t width, float epsilon) {
    VECTOR sum = {0}, squares = {0};
    for (int64_t i = 0; i < width; i += WIDTH)
        sum += load_f(x + i);
    const float mean = sum_of(sum) / (float)width;
    for (int64_t i = 0; i < width; i += WIDTH) {
        const VECTOR apart = load_f(x + i) - mean;
        squares += apart * apart;
    }
    const float inverse = 1 / sqrtf(sum_of(squares) / (float)width + epsilon);
    for (int64_t i = 0; i < width; i += WIDTH)
        store(x + i, (load_f(x + i) - mean) * inverse * load_f(norm + i) + load_f(norm + width + i));
}

/* x * Phi(x), with the error function of Abramowitz and Stegun, 7.1.26 (error below 1.5e-7). */
static void gelu(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i += WIDTH) {
        const VECTOR value = load_f(x + i), z = larger(value, -value) * 0.70710678118654752f;
        const VECTOR t = 1.0f / (z * 0.3275911f + 1.0f);
        VECTOR q = t * 1.061405429f - 1.453152027f;
        q = q * t + 1.421413741f;
        q = q * t - 0.284496736f;
        q = q * t + 0.254829592f;
        const VECTOR tail = q * t * exp_f(-z * z) * 0.5f; /* of the normal distribution */
        store(x + i, value * either_f(value > 0, 1.0f - tail, tail));
    }
}

static int64_t filled(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

/* How many tokens ask together: what is loaded meets all of them. */
enum { QUERIES = 8 };

/* The products of some queries with AT_ONCE vectors of keys, [depth, padded]. */
INLINE void weigh_some(int rows, int at_once, const float *const query[QUERIES], const float *keys,
                       int64_t depth, int64_t padded, float *weights) {
    VECTOR sums[QUERIES][2];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < at_once; v++)
            sums[r][v] = (VECTOR){0};
    for (int64_t d = 0; d < depth; d++) {
        VECTOR own[2];
        for (int v = 0; v < at_once; v++)
            own[v] = load_f(keys + d * padded + v * WIDTH);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < at_once; v++)
                sums[r][v] += own[v] * query[r][d];
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < at_once; v++)
            store(weights + r * padded + v * WIDTH, sums[r][v]);
}

INLINE void weigh(int rows, const float *const query[QUERIES], const float *keys, int64_t depth,
                  int64_t padded, float *weights) {
    int64_t first = 0;
    for (; first + 2 * WIDTH <= padded; first += 2 * WIDTH)
        weigh_some(rows, 2, query, keys + first, depth, padded, weights + first);
    if (first < padded)
        weigh_some(rows, 1, query, keys + first, depth, padded, weights + first);
}

/* exp(x - largest) over its sum; 0 after `count`. */
static void softmax(float *x, int64_t count, int64_t padded, float scale) {
    for (int64_t j = count; j < padded; j++)
        x[j] = -INFINITY;
    VECTOR most = load_f(x), sum = {0};
    for (int64_t j = WIDTH; j < padded; j += WIDTH)
        most = larger(load_f(x + j), most);
    const float largest = largest_of(most);
    for (int64_t j = 0; j < padded; j += WIDTH) {
        const VECTOR found = exp_f((load_f(x + j) - largest) * scale);
        sum += found;
        store(x + j, found);
    }
    const float inverse = 1 / sum_of(sum);
    for (int64_t j = 0; j < padded; j += WIDTH)
        store(x + j, load_f(x + j) * inverse);
}

INLINE void mix_some(int rows, int at_once, const float *weights, int64_t padded,
                     const float *values, int64_t stride, int64_t count, int64_t first,
                     float *const to[QUERIES]) {
    VECTOR sums[QUERIES][2];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < at_once; v++)
            sums[r][v] = (VECTOR){0};
    for (int64_t j = 0; j < count; j++) {
        VECTOR own[2];
        for (int v = 0; v < at_once; v++)
            own[v] = load_f(values + j * stride + first + v * WIDTH);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < at_once; v++)
                sums[r][v] += own[v] * weights[r * padded + j];
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < at_once; v++)
            store(to[r] + first + v * WIDTH, sums[r][v]);
}

INLINE void mix(int rows, const float *weights, int64_t padded, const float *values, int64_t stride,
                int64_t count, int64_t depth, float *const to[QUERIES]) {
    int64_t first = 0;
    for (; first + 2 * WIDTH <= depth; first += 2 * WIDTH)
        mix_some(rows, 2, weights, padded, values, stride, count, first, to);
    if (first < depth)
        mix_some(rows, 1, weights, padded, values, stride, count, first, to);
}

INLINE void some_queries(int rows, const float *states, int64_t row, int64_t width, int64_t head,
                         int64_t depth, int64_t count, int64_t padded, const float *keys,
                         float *weights, float *seen) {
    const float *query[QUERIES];
    float *to[QUERIES];
    for (int r = 0; r < rows; r++) {
        query[r] = states + (row + r) * 3 * width + head * depth;
        to[r] = seen + (row + r) * width + head * depth;
    }
    weigh(rows, query, keys, depth, padded, weights);
    for (int r = 0; r < rows; r++)
        softmax(weights + r * padded, count, padded, 1 / sqrtf((float)depth));
    mix(rows, weights, padded, states + 2 * width + head * depth, 3 * width, count, depth, to);
}

/* What the first `queries` tokens of one text see of all of its `count` tokens. */
static void attend(const float *states, int64_t count, int64_t queries, int64_t width, int64_t heads,
                   float *work, float *seen) {
    const int64_t depth = width / heads, padded = filled(count);
    float *const keys = work, *const weights = work + depth * padded;
    memset(keys, 0, sizeof(float) * (size_t)(depth * padded));
    for (int64_t head = 0; head < heads; head++) {
        for (int64_t j = 0; j < count; j++)
            for (int64_t d = 0; d < depth; d++)
                keys[d * padded + j] = states[j * 3 * width + width + head * depth + d];
        int64_t row = 0;
        for (; row + QUERIES <= queries; row += QUERIES)
            some_queries(QUERIES, states, row, width, head, depth, count, padded, keys, weights, seen);
        if (row + QUERIES / 2 <= queries) {
            some_queries(QUERIES / 2, states, row, width, head, depth, count, padded, keys, weights,
                         seen);
            row += QUERIES / 2;
        }
        for (; row < queries; row++)
            some_queries(1, states, row, width, head, depth, count, padded, keys, weights, seen);
    }
}

static int64_t widest(const dgn_transformer *model) {
    int64_t found = 3 * model->width;
    for (int64_t n = 0; n < model->layer_count; n++)
        found = model->layers[n].wide.outputs > found ? model->layers[n].wide.outputs : found;
    return found;
}

/* The room that texts need, in numbers. */
int64_t DGN_NAMED(dgn_transform_work, DGN_ISA)(const dgn_transformer *model, const dgn_texts *texts) {
    int64_t longest = 0;
    for (int64_t t = 0; t < texts->texts; t++) {
        const int64_t length = texts->start[t + 1] - texts->start[t];
        longest = length > longest ? length : longest;
    }
    const int64_t rows = texts->start[texts->texts] - texts->start[0], wide = widest(model);
    const int64_t by_row = 2 * model->width + wide + wide / 4 + 2;
    return rows * by_row + (model->width / model->heads + QUERIES) * filled(longest) + 64;
}

static void read_tokens(const dgn_transformer *model, const dgn_texts *texts, float *x) {
    const int64_t width = model->width, before = texts->start[0];
    for (int64_t t = 0; t < texts->texts; t++)
        for (int64_t at = texts->start[t]; at < texts->start[t + 1]; at++) {
            const float *const word = model->words + texts->tokens[at] * width;
            const float *const place = model->positions + (at - texts->start[t]) * width;
            const float *const kind = model->kinds + texts->kinds[at] * width;
            float *const row = x + (at - before) * width;
            for (int64_t i = 0; i < width; i += WIDTH)
                store(row + i, load_f(word + i) + load_f(place + i) + load_f(kind + i));
            normalize(row, model->norm, width, model->epsilon);
        }
}

/* Add what was seen to each row, and normalize it. */
static void add_rows(float *x, const float *added, int64_t rows, const float *norm,
                     const dgn_transformer *model) {
    const int64_t width = model->width;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = row * width; i < (row + 1) * width; i += WIDTH)
            store(x + i, load_f(x + i) + load_f(added + i));
        normalize(x + row * width, norm, width, model->epsilon);
    }
}

void DGN_NAMED(dgn_transform, DGN_ISA)(const dgn_transformer *model, const dgn_texts *texts) {
    const int64_t width = model->width, before = texts->start[0], wide = widest(model);
    int64_t rows = texts->start[texts->texts] - before;
    float *const x = texts->work, *const seen = x + rows * width, *const states = seen + rows * width;
    rounded few = {.low = states + rows * wide};
    few.step = few.low + rows;
    float *const work = few.step + rows;
    int64_t longest = 0;
    for (int64_t t = 0; t < texts->texts; t++) {
        const int64_t length = texts->start[t + 1] - texts->start[t];
        longest = length > longest ? length : longest;
    }
    few.values = (uint8_t *)(work + (width / model->heads + QUERIES) * filled(longest));
    read_tokens(model, texts, x);
    for (int64_t n = 0; n < model->layer_count; n++) {
        const dgn_layer *const layer = model->layers + n;
        const int is_short = texts->only_first && n + 1 == model->layer_count;
        for (int64_t row = 0; row < rows; row++)
            round_row(x + row * width, width, &few, row);
        apply(&layer->attention, &few, rows, states, 3 * width);
        for (int64_t t = 0; t < texts->texts; t++) {
            const int64_t first = texts->start[t] - before, count = texts->start[t + 1] - before - first;
            attend(states + first * 3 * width, count, is_short ? 1 : count, width, model->heads, work,
                   seen + first * width);
        }
        if (is_short) { /* nothing else of the last layer is needed of the other tokens */
            for (int64_t t = 0; t < texts->texts; t++) {
                const int64_t first = texts->start[t] - before;
                memmove(x + t * width, x + first * width, sizeof(float) * (size_t)width);
                memmove(seen + t * width, seen + first * width, sizeof(float) * (size_t)width);
            }
            rows = texts->texts;
        }
        for (int64_t row = 0; row < rows; row++)
            round_row(seen + row * width, width, &few, row);
        apply(&layer->mixed, &few, rows, seen, width);
        add_rows(x, seen, rows, layer->attention_norm, model);
        for (int64_t row = 0; row < rows; row++)
            round_row(x + row * width, width, &few, row);
        apply(&layer->wide, &few, rows, states, layer->wide.outputs);
        gelu(states, rows * layer->wide.outputs);
        for (int64_t row = 0; row < rows; row++)
            round_row(states + row * layer->wide.outputs, layer->wide.outputs, &few, row);
        apply(&layer->narrow, &few, rows, seen, width);
        add_rows(x, seen, rows, layer->output_norm, model);
    }
    memcpy(texts->vectors, x, sizeof(float) * (size_t)(rows * width));
}
