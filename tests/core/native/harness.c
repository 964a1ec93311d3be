/* Searches sets of odd sizes, each in memory of exactly its size: run under sanitizers. */
#include "facets.h"
#include "greedy.h"
#include "transformer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t dgn_highest_isa(void);
void dgn_greedy(int32_t isa, const dgn_input *input, const dgn_result *result);
int64_t dgn_facets_work(int64_t tokens, int64_t count, int64_t distinct, int64_t passages,
                        int64_t titles, int64_t dimension, int64_t projected, int64_t units);
void dgn_facets(int32_t isa, const dgn_words *words, const dgn_facet_weights *weights,
                const dgn_query *queries, const dgn_facets_result *results, int64_t count);

void dgn_constrained(int32_t isa, const dgn_input *input, const dgn_result *result,
                     const dgn_limits *limits);
void dgn_lazy(int32_t isa, const dgn_input *input, dgn_part *part);
void dgn_gains(int32_t isa, const dgn_input *input, const int64_t *rows, int64_t first,
               int64_t count, void *work, void *found);
int64_t dgn_transform_work(const dgn_transformer *model, const dgn_texts *texts);
void dgn_transform(int32_t isa, const dgn_transformer *model, const dgn_texts *texts);

static uint64_t state = 1;

static double number(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / (double)(1 << 24);
}

static void *filled(int64_t count, int is_double) {
    void *found = malloc((size_t)count * (is_double ? 8 : 4));
    for (int64_t i = 0; i < count; i++) {
        const double value = number() < 0.2 ? 0 : number();
        if (is_double)
            ((double *)found)[i] = value;
        else
            ((float *)found)[i] = (float)value;
    }
    return found;
}

/* With costs, with groups, or with both; sometimes nothing may be selected. */
static void within_limits(int isa, const dgn_input *input, int64_t items, int which) {
    const int64_t sets = input->sets, k = input->k, group_count = 1 + items / 2;
    const size_t size = input->is_double ? 8 : 4;
    double *costs = filled(sets * items, 1), *budgets = filled(sets, 1);
    double *divisors = filled(sets * items, 1);
    int64_t *counts = malloc((size_t)sets * sizeof *counts);
    int64_t *groups = malloc((size_t)(sets * items) * sizeof *groups);
    int64_t *quotas = malloc((size_t)(sets * group_count) * sizeof *quotas);
    for (int64_t i = 0; i < sets * items; i++) {
        costs[i] += 0.1;
        divisors[i] += 0.1;
        groups[i] = (int64_t)(number() * (double)group_count);
    }
    for (int64_t i = 0; i < sets * group_count; i++)
        quotas[i] = (int64_t)(number() * 3);
    for (int64_t set = 0; set < sets; set++)
        counts[set] = (int64_t)(number() * (double)(k + 1));
    const dgn_result result = {
        .indices = malloc((size_t)(sets * k) * sizeof(int64_t)),
        .gains = malloc((size_t)(sets * k) * sizeof(double)),
        .bounds = malloc((size_t)sets * sizeof(double)),
        .work = malloc((size_t)(4 * input->width + k + 2 * items) * size),
    };
    const dgn_limits limits = {
        .counts = counts,
        .costs = which & 1 ? costs : 0,
        .budgets = which & 1 ? budgets : 0,
        .divisors = which == 1 ? divisors : 0,
        .groups = which & 2 ? groups : 0,
        .quotas = which & 2 ? quotas : 0,
        .single = malloc((size_t)sets * sizeof(int64_t)),
        .single_gain = malloc((size_t)sets * sizeof(double)),
        .density = malloc((size_t)items * sizeof(double)),
        .order = malloc((size_t)(2 * items) * sizeof(int64_t)),
        .used = malloc((size_t)(2 * group_count) * sizeof(int64_t)),
        .group_count = group_count,
        .skipped_cover = (int)(number() * 2),
    };
    dgn_constrained(isa, input, &result, &limits);
    void *const owned[] = {costs,          budgets,        divisors,      counts,
                           groups,         quotas,         limits.single, limits.single_gain,
                           limits.density, limits.order,   limits.used,   result.indices,
                           result.gains,   result.bounds,  result.work};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

/* All steps of a lazy search in the second half of a set. */
static void search_lazily(int isa, const dgn_input *input, int64_t items) {
    const size_t size = input->is_double ? 8 : 4;
    const int64_t first = items / 2, own = items - first;
    _Atomic double floor = 0;
    dgn_part part = {
        .floor = &floor,
        .first = first,
        .items = own,
        .slack = input->columns || !input->is_double ? -1 : 1e-30,
        .ceilings = malloc((size_t)own * size),
        .ages = malloc((size_t)own * sizeof(int32_t)),
        .heap = malloc((size_t)own * sizeof(int64_t)),
        .work = malloc((size_t)(7 * input->width) * size),
    };
    int64_t *groups = malloc((size_t)items * sizeof *groups);
    uint8_t is_full[2] = {0, 0};
    for (int64_t a = 0; a < items; a++)
        groups[a] = a % 2;
    part.groups = items % 3 ? groups : 0;
    part.is_full = is_full;
    for (; part.step <= own; part.step++) {
        floor = 0;
        dgn_lazy(isa, input, &part);
        part.is_taken = part.best >= 0;
        is_full[1] = part.step > 0;
    }
    void *const owned[] = {part.ceilings, part.ages, part.heap, part.work, groups};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

/* A sparse set, every row of which has a different number of features. */
static void search_sparse(int isa, int form, int is_double, int64_t items, int64_t width) {
    const size_t size = is_double ? 8 : 4;
    int64_t *row_start = malloc((size_t)(items + 1) * sizeof *row_start), start[] = {0, items};
    row_start[0] = 0;
    for (int64_t a = 0; a < items; a++)
        row_start[a + 1] = row_start[a] + a % (width + 1);
    int32_t *columns = malloc((size_t)row_start[items] * sizeof *columns + 1);
    for (int64_t a = 0; a < items; a++)
        for (int64_t i = row_start[a]; i < row_start[a + 1]; i++)
            columns[i] = (int32_t)(width - 1 - (i - row_start[a]));
    const int64_t k = items < 4 ? items : 4;
    const dgn_input input = {
        .features = filled(row_start[items] + 1, is_double),
        .columns = columns,
        .row_start = row_start,
        .start = start,
        .level = filled(width, is_double),
        .weights = width % 2 ? filled(width, is_double) : 0,
        .sets = 1,
        .width = width,
        .k = k,
        .parameter = 0.7,
        .form = form,
        .is_double = is_double,
    };
    void *found = malloc((size_t)items * size), *work = malloc((size_t)(5 * width) * size);
    dgn_gains(isa, &input, 0, 0, items, work, found);
    search_lazily(isa, &input, items);
    dgn_input dense = input;
    dense.columns = 0;
    dense.features = filled(items * width, is_double);
    search_lazily(isa, &dense, items);
    free((void *)dense.features);
    const void *const owned[] = {row_start,   columns,       input.features, input.level,
                                 input.weights, found,       work};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free((void *)owned[i]);
}

/* A batch of sets, by one function, or by the sum of two if split is not 0. */
static void search(int isa, int form, int is_double, int64_t sets, int64_t items, int64_t width,
                   int64_t split) {
    const int64_t k = 1 + (items - 1) % 4, total = sets * items;
    const size_t size = is_double ? 8 : 4;
    int64_t *start = malloc((size_t)(sets + 1) * sizeof *start);
    for (int64_t set = 0; set <= sets; set++)
        start[set] = set * items;
    uint8_t *mask = malloc((size_t)total);
    for (int64_t a = 0; a < total; a++)
        mask[a] = number() < 0.8;
    const dgn_input input = {
        .features = filled(total * width, is_double),
        .start = start,
        .mask = items % 2 ? mask : 0,
        .weights = width % 2 ? filled(sets * width, is_double) : 0,
        .level = width % 3 ? 0 : filled(width, is_double),
        .weights_stride = width,
        .sets = sets,
        .items = items,
        .width = width,
        .k = k,
        .parameter = 0.7,
        .second_parameter = 0.3,
        .split = split,
        .second_form = (form + (int)items) % (DGN_POWER + 1),
        .form = form,
        .is_double = is_double,
    };
    const dgn_result result = {
        .indices = malloc((size_t)(sets * k) * sizeof(int64_t)),
        .gains = malloc((size_t)(sets * k) * size),
        .values = malloc((size_t)(sets * k) * size),
        .bounds = malloc((size_t)sets * size),
        .work = malloc((size_t)(3 * width + 2 * (k + items)) * size),
        .range = width % 4 ? malloc(sizeof(dgn_range)) : 0,
    };
    dgn_greedy(isa, &input, &result);
    for (int which = 0; which < 4; which++)
        within_limits(isa, &input, items, which);
    free((void *)input.features);
    free((void *)input.weights);
    free((void *)input.level);
    free(start);
    free(mask);
    free(result.indices);
    free(result.gains);
    free(result.values);
    free(result.range);
    free(result.bounds);
    free(result.work);
}

enum { WORDS = 40 };

static void compute_facets(int isa, int64_t tokens, int64_t passages, int64_t dimension,
                           int64_t projected, int64_t units) {
    const int64_t titles = 1 + passages % 3, texts = 1 + passages + titles;
    int64_t *start = malloc((size_t)(texts + 1) * sizeof *start);
    start[0] = 0;
    for (int64_t i = 0; i < texts; i++)
        start[i + 1] = start[i] + (i ? (int64_t)(number() * 9) : tokens);
    const int64_t count = start[texts], width = tokens + 2;
    int64_t *rows = malloc((size_t)count * sizeof *rows), *stem = malloc(WORDS * sizeof *stem);
    int64_t *title = malloc((size_t)passages * sizeof *title);
    uint8_t *flags = malloc((size_t)passages);
    for (int64_t i = 0; i < count; i++)
        rows[i] = (int64_t)(number() * WORDS);
    for (int64_t i = 0; i < WORDS; i++)
        stem[i] = i / 2;
    for (int64_t i = 0; i < passages; i++) {
        title[i] = i % titles;
        flags[i] = number() < 0.5;
    }
    const dgn_words words = {filled(WORDS * dimension, 0), filled(WORDS * 5, 0), stem, dimension};
    const dgn_facet_weights weights = {
        .word_weight = filled(dimension + 6, 0),
        .projection = filled(dimension * projected, 0),
        .hidden = filled((28 + 3 * projected) * units, 0),
        .hidden_bias = filled(units, 0),
        .output = filled(units, 0),
        .projected = projected,
        .units = units,
        .threshold = 0.3f,
        .scale = 12,
        .relevance = 0.2f,
        .spread_idf = 2,
        .title_from = 0.5f,
        .whole_scale = 3,
        .longest_query = 40,
    };
    const dgn_query query = {.rows = rows,
                             .start = start,
                             .title = title,
                             .position = filled(passages, 0),
                             .is_ordered = flags,
                             .follows = flags,
                             .passages = passages,
                             .titles = titles,
                             .distinct = count < WORDS ? count : WORDS};
    const int64_t room = dgn_facets_work(tokens, count, query.distinct, passages, titles, dimension,
                                         projected, units);
    const dgn_facets_result result = {.features = filled(passages * width, 0),
                                      .weights = filled(width, 0),
                                      .target = filled(width, 0),
                                      .work = malloc((size_t)room * sizeof(float)),
                                      .features_stride = width,
                                      .whole = tokens};
    dgn_facets(isa, &words, &weights, &query, &result, 1);
    const void *const owned[] = {start,
                                 rows,
                                 stem,
                                 title,
                                 flags,
                                 words.vectors,
                                 words.facts,
                                 weights.word_weight,
                                 weights.projection,
                                 weights.hidden,
                                 weights.hidden_bias,
                                 weights.output,
                                 query.position,
                                 result.features,
                                 result.weights,
                                 result.target,
                                 result.work};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free((void *)owned[i]);
}

static dgn_linear linear(int64_t inputs, int64_t outputs) {
    int8_t *weights = malloc((size_t)(inputs * outputs));
    for (int64_t i = 0; i < inputs * outputs; i++)
        weights[i] = (int8_t)(255 * number() - 127);
    return (dgn_linear){weights, filled(outputs, 0), filled(outputs, 0), filled(outputs, 0), inputs,
                        outputs};
}

static void free_linear(dgn_linear map) {
    free((void *)map.weights);
    free((void *)map.scales);
    free((void *)map.sums);
    free((void *)map.bias);
}

/* Texts of these many tokens and more, by a transformer with two layers. */
static void transform(int isa, int64_t shortest, int64_t count, int64_t only_first) {
    enum { SIZE = 64, WORDS = 9, LONGEST = 90 };
    float *tables[] = {filled(WORDS * SIZE, 0), filled(LONGEST * SIZE, 0), filled(2 * SIZE, 0),
                       filled(2 * SIZE, 0)};
    dgn_layer layers[2];
    for (int n = 0; n < 2; n++)
        layers[n] = (dgn_layer){linear(SIZE, 3 * SIZE), linear(SIZE, SIZE), linear(SIZE, 2 * SIZE),
                                linear(2 * SIZE, SIZE), tables[3], tables[3]};
    const dgn_transformer model = {tables[0], tables[1], tables[2], tables[3], layers, 2, SIZE, 2, 1e-6f};
    int64_t *start = malloc((size_t)(count + 1) * sizeof *start);
    start[0] = 0;
    for (int64_t t = 0; t < count; t++)
        start[t + 1] = start[t] + shortest + 5 * t % 17;
    int64_t *tokens = malloc((size_t)start[count] * sizeof *tokens);
    uint8_t *kinds = malloc((size_t)start[count]);
    for (int64_t i = 0; i < start[count]; i++) {
        tokens[i] = i % WORDS;
        kinds[i] = (uint8_t)(i % 2);
    }
    const size_t rows = (size_t)(only_first ? count : start[count]);
    dgn_texts texts = {tokens, kinds, start, count, only_first, 0, 0};
    texts.vectors = malloc(rows * SIZE * sizeof(float));
    texts.work = malloc((size_t)dgn_transform_work(&model, &texts) * sizeof(float));
    dgn_transform(isa, &model, &texts);
    for (size_t i = 0; i < rows * SIZE; i++)
        if (!(texts.vectors[i] == texts.vectors[i]))
            abort();
    free(texts.vectors);
    free(texts.work);
    free(start);
    free(tokens);
    free(kinds);
    for (int n = 0; n < 2; n++) {
        free_linear(layers[n].attention);
        free_linear(layers[n].mixed);
        free_linear(layers[n].wide);
        free_linear(layers[n].narrow);
    }
    for (int n = 0; n < 4; n++)
        free(tables[n]);
}

int main(void) {
    int searched = 0;
    for (int isa = 0; isa <= dgn_highest_isa(); isa++)
        for (int64_t tokens = 1; tokens < 40; tokens += 3)
            for (int64_t passages = 1; passages < 6; passages++)
                compute_facets(isa, tokens, passages, 70 + tokens, passages * 7 % 40, tokens * 5 % 90);
    for (int isa = 0; isa <= dgn_highest_isa(); isa++)
        for (int64_t shortest = 1; shortest < 70; shortest += 1 + shortest / 3)
            for (int64_t count = 1; count < 5; count++)
                transform(isa, shortest, count, count % 2);
    for (int isa = 0; isa <= dgn_highest_isa(); isa++)
        for (int form = DGN_LOG1P; form <= DGN_POWER; form++)
            for (int is_double = 0; is_double < 2; is_double++)
                for (int64_t width = 1; width < 36; width += 1 + width / 9)
                    for (int64_t items = 1; items < 8; items++, searched++) {
                        search(isa, form, is_double, 1 + items % 3, items, width, 0);
                        if (width > 1)
                            search(isa, form, is_double, 1 + items % 3, items, width,
                                   1 + items % (width - 1));
                        search_sparse(isa, form, is_double, items, width);
                    }
    printf("searched %d times\n", searched);
    return 0;
}
