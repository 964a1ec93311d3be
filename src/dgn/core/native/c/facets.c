/* Every word of a query against every word of its passages, and what follows from it.
 *
 * The formula is that of encoders/facets (matching.py and formula.py), which is the reference.
 */
#include "facets.h"
#include "isa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STATISTICS 28
#define RELATIVE 8
#define BASIC (STATISTICS - 2 * RELATIVE)
#define WIDTH (REGISTER / 4)
#define LANES 16

typedef float vector __attribute__((vector_size(REGISTER)));
typedef int32_t integers __attribute__((vector_size(REGISTER)));

static inline vector load(const float *from) {
    vector found;
    memcpy(&found, from, sizeof found);
    return found;
}

/* In 4 * LANES partial sums, so that no sum waits for the one before. */
static float dot(const float *a, const float *b, int64_t count) {
    enum { VECTORS = 4 * LANES / WIDTH };
    vector sums[VECTORS];
    for (int j = 0; j < VECTORS; j++)
        sums[j] = (vector){0};
    int64_t i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int j = 0; j < VECTORS; j++)
            sums[j] += load(a + i + j * WIDTH) * load(b + i + j * WIDTH);
    for (int j = VECTORS / 4; j < VECTORS; j++)
        sums[j % (VECTORS / 4)] += sums[j];
    float s[LANES], rest = 0;
    memcpy(s, sums, sizeof s);
    for (; i < count; i++)
        rest += a[i] * b[i];
    const float one = (s[0] + s[8]) + (s[4] + s[12]), two = (s[1] + s[9]) + (s[5] + s[13]);
    const float three = (s[2] + s[10]) + (s[6] + s[14]), four = (s[3] + s[11]) + (s[7] + s[15]);
    return (one + three) + (two + four) + rest;
}

static inline float positive(float x) { return x > 0 ? x : 0; }
static inline float clipped(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static inline float softplus(float x) { return positive(x) + log1pf(expf(-fabsf(x))); }

enum { NUMBER = 1, YEAR = 2, FUNCTION = 3, QUESTION = 4 };


/* Every different word of the texts, compared with the words of the query once.
 *
 * `slots` has the place of each word of each text among the different ones. Rows of `near` and `same`
 * have `padded` numbers, a multiple of LANES, which are 0 after the words of the query.
 */
typedef struct {
    int32_t *slots, *table;
    float *near, *same, *nearest;
    int64_t padded;
} different;

/* The words of the query, [padded] each, filled up with words that resemble nothing.
 *
 * `vectors` are [dimension, padded]: one number of a word meets those of all words of the query.
 */
typedef struct {
    float *vectors, *is_word, *is_number, *is_year, *counts;
    int64_t *rows, *stems;
    int64_t padded;
} asked_words;

static void read_query(const dgn_words *words, const int64_t *query, int64_t tokens,
                       asked_words *asked) {
    const int64_t padded = asked->padded, dimension = words->dimension;
    int has_content = 0;
    for (int64_t t = 0; t < tokens; t++)
        has_content |= words->facts[5 * query[t] + FUNCTION] == 0;
    memset(asked->vectors, 0, (size_t)(dimension * padded) * sizeof(float));
    for (int64_t t = 0; t < padded; t++) {
        const int is_word = t < tokens;
        const float *const facts = words->facts + 5 * (is_word ? query[t] : 0);
        asked->is_word[t] = is_word ? 1 : 0;
        asked->is_number[t] = is_word && facts[NUMBER] > 0 ? 1 : 0;
        asked->is_year[t] = is_word && facts[YEAR] > 0 ? 1 : 0;
        asked->counts[t] = is_word && (facts[FUNCTION] == 0 || !has_content) ? 1 : 0;
        asked->rows[t] = is_word ? query[t] : -1;
        asked->stems[t] = is_word ? words->stem[query[t]] : -1;
        for (int64_t d = 0; is_word && d < dimension; d++)
            asked->vectors[d * padded + t] = words->vectors[query[t] * dimension + d];
    }
}

/* The products of TOGETHER vectors with those of all words of the query, [padded] each: a vector that
 * is loaded meets several others.
 */
enum { TOGETHER = 4 };
static void products(const float *const own[TOGETHER], const asked_words *asked, int64_t dimension,
                     float *const found[TOGETHER]) {
    enum { VECTORS = LANES / WIDTH };
    const int64_t padded = asked->padded;
    for (int64_t first = 0; first < padded; first += LANES) {
        vector sums[TOGETHER][VECTORS];
        memset(sums, 0, sizeof sums);
        for (int64_t d = 0; d < dimension; d++)
            for (int v = 0; v < VECTORS; v++) {
                const vector theirs = load(asked->vectors + d * padded + first + v * WIDTH);
                for (int j = 0; j < TOGETHER; j++)
                    sums[j][v] += own[j][d] * theirs;
            }
        for (int j = 0; j < TOGETHER; j++)
            memcpy(found[j] + first, sums[j], sizeof sums[j]);
    }
}

static inline vector either(integers which, vector yes, vector no) {
    return (vector)(((integers)yes & which) | ((integers)no & ~which));
}

/* From cosines, in `near`, to how near a word is; without branches, because which words are near is
 * different every time.
 */
static void compare_word(const dgn_words *words, const dgn_facet_weights *w,
                         const asked_words *asked, int64_t word, float *restrict near,
                         float *restrict same, float *restrict itself, float *nearest) {
    const float *const facts = words->facts + 5 * word;
    const int64_t stem = words->stem[word], padded = asked->padded;
    for (int64_t t = 0; t < padded; t++) {
        same[t] = asked->stems[t] == stem ? 1 : 0;
        itself[t] = asked->rows[t] == word ? 1 : 0;
    }
    const vector zero = {0}, one = zero + 1;
    const float is_text = facts[NUMBER] > 0 ? 0 : 1;
    /* Numbers are compared as wholes: their vectors only know their digits. */
    const vector like_year = zero + (facts[YEAR] > 0 ? w->some_number : 0);
    const vector like_number = zero + (facts[NUMBER] > 0 ? w->some_number : 0);
    vector most = zero;
    for (int64_t t = 0; t < padded; t += WIDTH) {
        const vector is_same = load(same + t), product = load(near + t);
        const vector below = either(product < 1, product, one);
        const vector cosine = is_text * either(below > 0, below, zero);
        const vector least = is_same * w->same_stem;
        const vector text = either(load(itself + t) > 0, one, either(cosine > least, cosine, least));
        const vector alike = either(load(asked->is_year + t) > 0, like_year, like_number);
        const vector number = either(is_same > 0, one, alike);
        const vector found =
            load(asked->is_word + t) * either(load(asked->is_number + t) > 0, number, text);
        const vector counted = found * load(asked->counts + t);
        most = either(counted > most, counted, most);
        memcpy(near + t, &found, sizeof found);
    }
    *nearest = 0;
    for (int lane = 0; lane < WIDTH; lane++)
        *nearest = most[lane] > *nearest ? most[lane] : *nearest;
}

/* `size` is the size of the hash table, a power of 2 that is larger than the number of words. */
static void compare_words(const dgn_words *words, const dgn_facet_weights *w,
                          const asked_words *asked, const int64_t *rows, int64_t count,
                          int64_t size, float *scratch, different *found) {
    int32_t *const first = found->table + size; /* where each different word stands */
    for (int64_t place = 0; place < size; place++)
        found->table[place] = -1;
    int32_t met = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t place = ((uint64_t)rows[i] * 0x9E3779B97F4A7C15u >> 32) & (uint64_t)(size - 1);
        while (found->table[place] >= 0 && rows[first[found->table[place]]] != rows[i])
            place = (place + 1) & (uint64_t)(size - 1);
        if (found->table[place] < 0) {
            first[met] = (int32_t)i;
            found->table[place] = met++;
        }
        found->slots[i] = found->table[place];
    }
    for (int32_t start = 0; start < met; start += TOGETHER) {
        const float *own[TOGETHER];
        float *near[TOGETHER];
        for (int j = 0; j < TOGETHER; j++) { /* the last one stands in for those that are missing */
            const int32_t word = start + j < met ? start + j : met - 1;
            own[j] = words->vectors + rows[first[word]] * words->dimension;
            near[j] = start + j < met ? found->near + word * found->padded : scratch + j * found->padded;
        }
        products(own, asked, words->dimension, near);
        for (int j = 0; j < TOGETHER && start + j < met; j++)
            compare_word(words, w, asked, rows[first[start + j]], near[j],
                         found->same + (start + j) * found->padded, scratch,
                         found->nearest + start + j);
    }
}

/* What one text says of each word of the query, [padded] each. */
typedef struct {
    float *similarity, *exact, *pair;
    float precision, numbers;
} comparison;

static void compare(const dgn_words *words, const dgn_facet_weights *w, const different *known,
                    const int64_t *text, const int32_t *slots, int64_t length, comparison *found) {
    const int64_t padded = known->padded;
    memset(found->similarity, 0, (size_t)padded * sizeof(float));
    memset(found->exact, 0, (size_t)padded * sizeof(float));
    memset(found->pair, 0, (size_t)padded * sizeof(float));
    float total = 0, about = 0, numeric = 0;
    for (int64_t i = 0; i < length; i++) {
        const float *const facts = words->facts + 5 * text[i];
        const float *const near = known->near + slots[i] * padded;
        const float *const same = known->same + slots[i] * padded;
        for (int64_t t = 0; t < padded; t++) {
            found->similarity[t] = near[t] > found->similarity[t] ? near[t] : found->similarity[t];
            found->exact[t] = same[t] > found->exact[t] ? same[t] : found->exact[t];
        }
        if (i) {
            const float *const before = known->same + slots[i - 1] * padded;
            for (int64_t t = 1; t < padded; t++) {
                const float both = same[t] * before[t - 1];
                found->pair[t] = both > found->pair[t] ? both : found->pair[t];
            }
        }
        const float weight = facts[0] * (facts[FUNCTION] > 0 ? w->function_share : 1);
        total += weight;
        about += weight * known->nearest[slots[i]];
        numeric += facts[NUMBER] > 0 ? weight : 0;
    }
    total = total > 1e-6f ? total : 1e-6f;
    found->precision = about / total;
    found->numbers = numeric / total;
}

/* out = start + x @ matrix; start may be NULL. */
static void multiply(const float *x, const float *matrix, int64_t inputs, int64_t outputs,
                     const float *start, float *out) {
    enum { BLOCK = 4 };
    int64_t o = 0;
    for (; o + BLOCK * WIDTH <= outputs; o += BLOCK * WIDTH) {
        vector sums[BLOCK];
        for (int j = 0; j < BLOCK; j++)
            sums[j] = start ? load(start + o + j * WIDTH) : (vector){0};
        for (int64_t i = 0; i < inputs; i++)
            for (int j = 0; j < BLOCK; j++)
                sums[j] += x[i] * load(matrix + i * outputs + o + j * WIDTH);
        memcpy(out + o, sums, sizeof sums);
    }
    for (; o + WIDTH <= outputs; o += WIDTH) {
        /* One vector of outputs: four sums over the inputs, so that none waits for the last. */
        vector sums[BLOCK] = {start ? load(start + o) : (vector){0}};
        int64_t i = 0;
        for (; i + BLOCK <= inputs; i += BLOCK)
            for (int j = 0; j < BLOCK; j++)
                sums[j] += x[i + j] * load(matrix + (i + j) * outputs + o);
        for (; i < inputs; i++)
            sums[0] += x[i] * load(matrix + i * outputs + o);
        const vector sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        memcpy(out + o, &sum, sizeof sum);
    }
    for (; o < outputs; o++) {
        float sum = start ? start[o] : 0;
        for (int64_t i = 0; i < inputs; i++)
            sum += x[i] * matrix[i * outputs + o];
        out[o] = sum;
    }
}

/* The mean of the words of a text, rare words counting more, of length 1. */
static void pool(const dgn_words *words, const int64_t *text, int64_t length, float *whole) {
    const int64_t dimension = words->dimension;
    memset(whole, 0, (size_t)dimension * sizeof(float));
    for (int64_t i = 0; i < length; i++) {
        const float idf = words->facts[5 * text[i]];
        const float *const vector = words->vectors + text[i] * dimension;
        for (int64_t d = 0; d < dimension; d++)
            whole[d] += idf * vector[d];
    }
    const float norm = sqrtf(dot(whole, whole, dimension));
    for (int64_t d = 0; norm > 0 && d < dimension; d++)
        whole[d] /= norm;
}

/* The vectors and the IDF of words that consist of tokens: a word is the mean of its tokens, each of
 * length 1, rare ones counting more; then it has length 1 itself. Its IDF is that of its rarest token.
 */
void DGN_NAMED(dgn_describe, DGN_ISA)(const dgn_tokens *tokens, const int64_t *rows,
                                        const int64_t *counts, int64_t words, float *vectors,
                                        float *idf) {
    const int64_t dimension = tokens->dimension;
    for (int64_t word = 0; word < words; word++) {
        float *const vector = vectors + word * dimension;
        float rarest = 0;
        memset(vector, 0, (size_t)dimension * sizeof(float));
        for (int64_t i = 0; i < counts[word]; i++, rows++) {
            const float *const token = tokens->vectors + *rows * dimension;
            const float length = sqrtf(dot(token, token, dimension)), rare = tokens->idf[*rows];
            const float share = rare / (length > 1e-6f ? length : 1e-6f);
            for (int64_t d = 0; d < dimension; d++)
                vector[d] += share * token[d];
            rarest = rare > rarest ? rare : rarest;
        }
        const float length = sqrtf(dot(vector, vector, dimension));
        for (int64_t d = 0; d < dimension; d++)
            vector[d] /= length > 1e-6f ? length : 1e-6f;
        idf[word] = rarest;
    }
}

/* The logit of one passage. `seen` is what the network sees, `units` is room for its hidden units. */
static float relevance_of(const float *seen, const dgn_facet_weights *w, float *units) {
    multiply(seen, w->hidden, STATISTICS + 3 * w->projected, w->units, w->hidden_bias, units);
    float logit = w->output_bias;
    for (int64_t u = 0; u < w->units; u++)
        logit += positive(units[u]) * w->output[u];
    return logit;
}

static int64_t padded_to_lanes(int64_t tokens) { return (tokens + LANES - 1) / LANES * LANES; }

static int64_t table_size(int64_t words) {
    int64_t size = 16;
    while (size < 2 * words)
        size *= 2;
    return size;
}

/* The room that `dgn_facets` needs for a query of this size; `count` is the number of all words. */
int64_t DGN_NAMED(dgn_facets_work, DGN_ISA)(int64_t tokens, int64_t count, int64_t distinct,
                                              int64_t passages, int64_t titles,
                                              int64_t dimension, int64_t projected,
                                              int64_t units) {
    const int64_t padded = padded_to_lanes(tokens);
    return padded * (1 + TOGETHER + 5 * passages + titles + 2 * distinct + dimension + 8) + 3 * count + table_size(count) +
           2 * dimension + passages * (STATISTICS + projected + 3) + 4 * projected + STATISTICS +
           units + RELATIVE;
}

void DGN_NAMED(dgn_facets, DGN_ISA)(const dgn_words *words, const dgn_facet_weights *w,
                                      const dgn_query *q, const dgn_facets_result *result) {
    const int64_t *const query = q->rows + q->start[0];
    const int64_t tokens = q->start[1] - q->start[0], items = q->passages;
    const int64_t dimension = words->dimension, padded = padded_to_lanes(tokens);
    const int64_t count = q->start[1 + items + q->titles], size = table_size(count);
    float *room = result->work;
#define TAKE(numbers) (room += (numbers), room - (numbers))
    float *const alpha = TAKE(padded), *const scratch = TAKE(TOGETHER * padded);
    float *const similarity = TAKE(items * padded), *const exact = TAKE(items * padded);
    float *const pair = TAKE(items * padded), *const own = TAKE(items * padded);
    float *const titled = TAKE(items * padded), *const by_title = TAKE(q->titles * padded);
    /* First what has to be aligned to 8 bytes: the numbers so far are multiples of LANES. */
    asked_words words_asked = {.padded = padded};
    words_asked.rows = (int64_t *)TAKE(2 * padded);
    words_asked.stems = (int64_t *)TAKE(2 * padded);
    words_asked.vectors = TAKE(dimension * padded);
    words_asked.is_word = TAKE(padded);
    words_asked.is_number = TAKE(padded);
    words_asked.is_year = TAKE(padded);
    words_asked.counts = TAKE(padded);
    different known = {.padded = padded};
    known.near = TAKE(q->distinct * padded);
    known.same = TAKE(q->distinct * padded);
    known.nearest = TAKE(count);
    known.slots = (int32_t *)TAKE(count);
    known.table = (int32_t *)TAKE(size + count);
    float *const about = TAKE(dimension), *const whole = TAKE(dimension);
    float *const statistics = TAKE(items * STATISTICS), *const projected = TAKE(items * w->projected);
    float *const likeness = TAKE(items), *const precision = TAKE(items), *const numbers = TAKE(items);
    float *const asked = TAKE(w->projected);
    float *const seen = TAKE(STATISTICS + 3 * w->projected), *const units = TAKE(w->units);
    float *const best_of = TAKE(RELATIVE);
#undef TAKE

    /* How much each word weighs. */
    float sum = 0, asks = 0, most_titled = 0;
    for (int64_t t = 0; t < tokens; t++) {
        const float *const facts = words->facts + 5 * query[t];
        float logit = w->word_weight[dimension + 5];
        logit += dot(words->vectors + query[t] * dimension, w->word_weight, dimension);
        logit += (facts[0] - w->middle_idf) / w->spread_idf * w->word_weight[dimension];
        for (int kind = NUMBER; kind <= QUESTION; kind++)
            logit += facts[kind] * w->word_weight[dimension + kind];
        alpha[t] = softplus(logit);
        sum += alpha[t];
    }
    for (int64_t t = 0; t < tokens; t++) {
        alpha[t] /= sum > 1e-9f ? sum : 1e-9f;
        if (words->facts[5 * query[t] + QUESTION] > 0 && alpha[t] > 0)
            asks = 1;
    }

    /* What the passages and the titles say of each word. */
    read_query(words, query, tokens, &words_asked);
    compare_words(words, w, &words_asked, q->rows, count, size, scratch, &known);
    for (int64_t a = 0; a < items + q->titles; a++) {
        const int64_t start = q->start[1 + a], length = q->start[2 + a] - start;
        const int is_title = a >= items;
        comparison found = {is_title ? by_title + (a - items) * padded : similarity + a * padded,
                            is_title ? scratch : exact + a * padded,
                            is_title ? scratch + padded : pair + a * padded, 0, 0};
        compare(words, w, &known, q->rows + start, known.slots + start, length, &found);
        if (is_title) {
            for (int64_t t = 0; t < tokens; t++) {
                const float near = (found.similarity[t] - w->title_from) / (1 - w->title_from);
                found.similarity[t] = found.exact[t] > 0 ? 1 : clipped(near);
            }
        } else {
            precision[a] = found.precision;
            numbers[a] = found.numbers;
        }
    }
    pool(words, query, tokens, about);
    multiply(about, w->projection, dimension, w->projected, 0, asked);
    for (int64_t a = 0; a < items; a++) {
        pool(words, q->rows + q->start[1 + a], q->start[2 + a] - q->start[1 + a], whole);
        likeness[a] = positive(dot(whole, about, dimension));
        multiply(whole, w->projection, dimension, w->projected, 0, projected + a * w->projected);
    }

    /* What each passage covers, by itself and with its title. */
    const float full = w->scale * (1 + w->bonus[0]), best = log1pf(full);
    for (int64_t a = 0; a < items; a++) {
        const int is_filled = q->start[2 + a] > q->start[1 + a];
        const float *const told = by_title + q->title[a] * padded;
        float share_told = 0;
        for (int64_t t = 0; t < tokens; t++) {
            const int64_t at = a * padded + t;
            const float next = t + 1 < tokens ? pair[at + 1] : 0;
            const float said =
                w->scale * (positive(similarity[at] - w->threshold) / (1 - w->threshold) +
                            w->bonus[0] * exact[at] + w->bonus[1] * pair[at] + w->bonus[2] * next);
            const float kept = expf(-w->title * told[t]);
            own[at] = is_filled ? said : 0;
            titled[at] = is_filled ? said * kept + full * (1 - kept) : 0;
            share_told += told[t] * alpha[t];
        }
        if (share_told > most_titled)
            most_titled = share_told;
    }

    /* The features of the words, and what the network sees besides the texts as wholes. */
    memset(best_of, 0, RELATIVE * sizeof(float));
    for (int64_t a = 0; a < items; a++) {
        const int64_t length = q->start[2 + a] - q->start[1 + a];
        const float *const told = by_title + q->title[a] * padded;
        const int has_above = a > 0 && q->follows[a], has_below = a + 1 < items && q->follows[a + 1];
        float *const row = result->features + a * result->features_stride;
        float *const basic = statistics + a * STATISTICS, *const relative = basic + BASIC;
        float above_share = 0, below_share = 0, asked_numbers = 0, left = 0;
        float covered = 0, exactly = 0, untold_share = 0, untold_exact = 0, pairs = 0;
        for (int64_t t = 0; t < tokens; t++) {
            const int64_t at = a * padded + t;
            const float above = has_above ? titled[at - padded] : 0;
            const float below = has_below ? titled[at + padded] : 0;
            row[t] = length ? titled[at] + w->neighbours[0] * above + w->neighbours[1] * below : 0;
            if (!w->units)
                continue;
            const float untold = alpha[t] * (1 - told[t]);
            if (above > 0)
                above_share += log1pf(above) / best * alpha[t];
            if (below > 0)
                below_share += log1pf(below) / best * alpha[t];
            if (words->facts[5 * query[t] + NUMBER] > 0)
                asked_numbers += similarity[at] * alpha[t];
            left += untold;
            covered += log1pf(titled[at]) / best * alpha[t];
            exactly += exact[at] * alpha[t];
            untold_share += log1pf(own[at]) / best * untold;
            untold_exact += exact[at] * untold;
            pairs += pair[at] * alpha[t];
        }
        if (!w->units)
            continue;
        left = left > 0.05f ? left : 0.05f;
        const float order = q->is_ordered[a] ? 1 : 0;
        const float told_words = (float)tokens < w->longest_query ? (float)tokens : w->longest_query;
        const float values[BASIC + RELATIVE] = {
            log1pf((float)length) / 3 - 1,
            q->position[a] == 0 ? order : 0,
            order,
            log1pf(q->position[a]) / 2 * order,
            asked_numbers,
            numbers[a] > 0 ? 1 : 0,
            left,
            above_share,
            below_share,
            asks,
            told_words / 20,
            most_titled,
            covered,
            exactly,
            untold_share / left,
            untold_exact / left,
            pairs,
            likeness[a],
            precision[a],
            numbers[a],
        };
        memcpy(basic, values, sizeof values);
        /* A line of numbers alone, such as "17", says nothing about the others. */
        for (int r = 0; length && numbers[a] < 1 && r < RELATIVE; r++)
            if (relative[r] > best_of[r])
                best_of[r] = relative[r];
    }

    /* The passage as a whole: how like the query it is, and how relevant. */
    for (int64_t a = 0; a < items; a++) {
        float *const row = result->features + a * result->features_stride + result->whole;
        const int is_filled = q->start[2 + a] > q->start[1 + a];
        const float like = positive(likeness[a] - w->likeness_from) / (1 - w->likeness_from);
        row[0] = is_filled ? w->whole_scale * like : 0;
        if (w->relevance < 0)
            continue;
        float logit = 0;
        if (w->units) {
            const float *const own_words = projected + a * w->projected;
            memcpy(seen, statistics + a * STATISTICS, (BASIC + RELATIVE) * sizeof(float));
            for (int r = 0; r < RELATIVE; r++)
                seen[BASIC + RELATIVE + r] = -positive(best_of[r] - seen[BASIC + r]);
            for (int64_t p = 0; p < w->projected; p++) {
                seen[STATISTICS + p] = asked[p];
                seen[STATISTICS + w->projected + p] = own_words[p];
                seen[STATISTICS + 2 * w->projected + p] = 4 * asked[p] * own_words[p];
            }
            logit = relevance_of(seen, w, units);
        }
        row[1] = is_filled ? w->whole_scale * 0.5f * (tanhf(0.5f * logit) + 1) : 0;
    }

    const float whole_weight = 1 / log1pf(w->whole_scale);
    for (int64_t t = 0; t < tokens; t++) {
        result->weights[t] = alpha[t] / best;
        result->target[t] = full;
    }
    result->weights[result->whole] = w->likeness * whole_weight;
    if (w->relevance >= 0)
        result->weights[result->whole + 1] = w->relevance * whole_weight;
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The different stems of a text with the heaviest weight of each, as numbers: a stem, then the weight as
 * a float in the bits of the second one. Returns how many there are. Their weights have length 1.
 */
static int64_t terms_of(const dgn_words *words, const int64_t *text, int64_t length, float share,
                        int64_t *terms) {
    for (int64_t i = 0; i < length; i++) {
        const float *const facts = words->facts + 5 * text[i];
        const float weight = facts[0] * (facts[3] > 0 ? share : 1);
        uint32_t bits;
        memcpy(&bits, &weight, sizeof bits);
        /* Weights are not below 0, so that their bits have their order. */
        terms[i] = (int64_t)((uint64_t)words->stem[text[i]] << 32 | bits);
    }
    if (length > 64)
        qsort(terms, (size_t)length, sizeof *terms, by_number);
    else
        for (int64_t i = 1; i < length; i++) {
            const int64_t term = terms[i];
            int64_t place = i;
            for (; place > 0 && terms[place - 1] > term; place--)
                terms[place] = terms[place - 1];
            terms[place] = term;
        }
    int64_t count = 0;
    for (int64_t i = 0; i < length; i++)
        if (i + 1 == length || terms[i] >> 32 != terms[i + 1] >> 32)
            terms[count++] = terms[i];
    return count;
}

static float weight_of(int64_t term) {
    const uint32_t bits = (uint32_t)term;
    float weight;
    memcpy(&weight, &bits, sizeof weight);
    return weight;
}

static float shared_terms(const int64_t *a, int64_t count_a, const int64_t *b, int64_t count_b) {
    float sum = 0;
    for (int64_t i = 0, j = 0; i < count_a && j < count_b;) {
        const int64_t x = a[i] >> 32, y = b[j] >> 32;
        if (x == y)
            sum += weight_of(a[i]) * weight_of(b[j]);
        i += x <= y;
        j += y <= x;
    }
    return sum;
}

/* What a text may contradict another one with. */
typedef struct {
    int64_t first, second, negates, numbers;
} text_signs;

static text_signs signs_of(const int64_t *signs, const int64_t *rows, int64_t all,
                           const int64_t *text, int64_t length, int64_t *numbers) {
    text_signs found = {0, 0, 0, 0};
    for (int64_t i = 0; i < length; i++) {
        const int64_t *const sign = signs + 5 * text[i];
        found.first |= sign[1];
        found.second |= sign[2];
        found.negates |= sign[3];
        for (int64_t j = 0; sign[4] && !found.negates && j < all; j++)
            found.negates |= rows[j] + 1 == sign[4];
        int64_t place = 0;
        while (sign[0] && place < found.numbers && numbers[place] != sign[0])
            place++;
        if (sign[0] && place == found.numbers)
            numbers[found.numbers++] = sign[0];
    }
    /* A text that has both sides takes none. */
    const int64_t both = found.first & found.second;
    found.first &= ~both;
    found.second &= ~both;
    return found;
}

/* Whether the first text has a number that the second one lacks. */
static int has_more(const int64_t *a, int64_t count_a, const int64_t *b, int64_t count_b) {
    for (int64_t i = 0; i < count_a; i++) {
        int64_t j = 0;
        while (j < count_b && b[j] != a[i])
            j++;
        if (j == count_b)
            return 1;
    }
    return 0;
}

/* See `Contents.similarities` of similarity.py, the plain form. */
void DGN_NAMED(dgn_similar, DGN_ISA)(const dgn_words *words, const dgn_similarity *s) {
    const int64_t dimension = words->dimension, texts = s->texts, counted = texts - s->given;
    const int64_t columns = texts - s->first, passages = counted - s->first;
    float *const vectors = s->work, *const mean = vectors + texts * dimension;
    float *const on_mean = mean + dimension, *const centred = on_mean + texts;
    float *const lengths = centred + texts, *const counts = lengths + texts;
    const int64_t all = s->start[texts];
    int64_t *const numbers = s->terms + all;
    text_signs *const signs = (text_signs *)(numbers + all);
    int64_t filled = 0;
    memset(mean, 0, (size_t)dimension * sizeof(float));
    for (int64_t i = 0; i < texts; i++) {
        const int64_t start = s->start[i], length = s->start[i + 1] - start;
        float *const vector = vectors + i * dimension;
        pool(words, s->rows + start, length, vector);
        const int is_filled = dot(vector, vector, dimension) > 0.5f;
        if (!is_filled)
            memset(vector, 0, (size_t)dimension * sizeof(float));
        centred[i] = is_filled;
        if (is_filled && i < counted) {
            filled++;
            for (int64_t d = 0; d < dimension; d++)
                mean[d] += vector[d];
        }
        int64_t *const terms = s->terms + start;
        const int64_t count = terms_of(words, s->rows + start, length, s->function_share, terms);
        float square = 0;
        for (int64_t t = 0; t < count; t++)
            square += weight_of(terms[t]) * weight_of(terms[t]);
        lengths[i] = square > 0 ? 1 / sqrtf(square) : 0;
        counts[i] = (float)count;
        signs[i] = signs_of(s->signs, s->rows, all, s->rows + start, length, numbers + start);
    }
    for (int64_t d = 0; d < dimension; d++)
        mean[d] /= filled ? (float)filled : 1;
    const float square = dot(mean, mean, dimension);
    for (int64_t i = 0; i < texts; i++) {
        on_mean[i] = dot(vectors + i * dimension, mean, dimension);
        const float left = 1 - 2 * on_mean[i] + square;
        centred[i] = centred[i] > 0 && left > 1e-12f ? 1 / sqrtf(left) : 0;
    }
    for (int64_t u = 0; u < passages; u++)
        for (int64_t v = 0; v < columns; v++) {
            float *const found = s->similar + u * columns + v;
            const int64_t i = s->first + u, j = s->first + v;
            if (u == v) {
                *found = 1;
                continue;
            }
            if (v < u) {
                *found = s->similar[v * columns + u];
                continue;
            }
            const float cosine = dot(vectors + i * dimension, vectors + j * dimension, dimension);
            const float beside =
                positive((cosine - on_mean[i] - on_mean[j] + square) * centred[i] * centred[j]);
            const float shared = shared_terms(s->terms + s->start[i], (int64_t)counts[i],
                                              s->terms + s->start[j], (int64_t)counts[j]);
            const int64_t *const a = numbers + s->start[i], *const b = numbers + s->start[j];
            const int differ =
                signs[i].negates != signs[j].negates ||
                (signs[i].first & signs[j].second) | (signs[i].second & signs[j].first) ||
                (s->first && has_more(a, signs[i].numbers, b, signs[j].numbers) &&
                 has_more(b, signs[j].numbers, a, signs[i].numbers));
            const float share = differ ? 0.5f : 1;
            const float like = 0.5f * (positive(cosine) + shared * lengths[i] * lengths[j]);
            const float copied = clipped((share * like - s->copy_from) / (s->copy_to - s->copy_from));
            const float similar = share * beside * beside;
            *found = clipped(similar > copied ? similar : copied);
        }
}
