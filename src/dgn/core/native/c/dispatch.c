/* Which instruction set is used: the highest one that the processor and the binary have. */
#include "facets.h"
#include "greedy.h"
#include "transformer.h"

#ifndef DGN_VERSION
#error "build.py defines DGN_VERSION, the checksum of the sources"
#endif

/* The checksum of the sources: a loader refuses a library that was made from others. */
uint32_t dgn_version(void) { return DGN_VERSION; }

/* The sizes of the structures that Python fills, in the order in which library.py names them. */
const int64_t dgn_sizes[] = {
    sizeof(dgn_input),         sizeof(dgn_result), sizeof(dgn_limits), sizeof(dgn_part),
    sizeof(dgn_tokens),        sizeof(dgn_words),
    sizeof(dgn_facet_weights), sizeof(dgn_query),  sizeof(dgn_facets_result),
    sizeof(dgn_similarity),
    sizeof(dgn_linear),        sizeof(dgn_layer),  sizeof(dgn_transformer), sizeof(dgn_texts),
};

typedef void search(const dgn_input *, const dgn_result *);
typedef void constrained_search(const dgn_input *, const dgn_result *, const dgn_limits *);
typedef void some_gains(const dgn_input *, const int64_t *, int64_t, int64_t, void *, void *);
typedef void lazy_search(const dgn_input *, dgn_part *);
typedef void describe(const dgn_tokens *, const int64_t *, const int64_t *, int64_t, float *,
                      float *);
typedef void facets(const dgn_words *, const dgn_facet_weights *, const dgn_query *,
                    const dgn_facets_result *);
typedef void similar(const dgn_words *, const dgn_similarity *);
typedef void transform(const dgn_transformer *, const dgn_texts *);

search dgn_greedy_baseline;
constrained_search dgn_constrained_baseline;
some_gains dgn_gains_baseline;
lazy_search dgn_lazy_baseline;
describe dgn_describe_baseline;
facets dgn_facets_baseline;
similar dgn_similar_baseline;
transform dgn_transform_baseline;
int64_t dgn_transform_work_baseline(const dgn_transformer *, const dgn_texts *);
int64_t dgn_facets_work_baseline(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                                 int64_t);
#ifdef DGN_X86
search dgn_greedy_avx2, dgn_greedy_avx512;
constrained_search dgn_constrained_avx2, dgn_constrained_avx512;
some_gains dgn_gains_avx2, dgn_gains_avx512;
lazy_search dgn_lazy_avx2, dgn_lazy_avx512;
describe dgn_describe_avx2, dgn_describe_avx512;
facets dgn_facets_avx2, dgn_facets_avx512;
similar dgn_similar_avx2, dgn_similar_avx512;
transform dgn_transform_avx2, dgn_transform_vnni;
#endif

/* 0 for the baseline, 1 for AVX2, 2 for AVX-512. */
int32_t dgn_highest_isa(void) {
#ifdef DGN_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 1;
#endif
    return 0;
}

void dgn_greedy(int32_t isa, const dgn_input *input, const dgn_result *result) {
#ifdef DGN_X86
    if (isa == 2) {
        dgn_greedy_avx512(input, result);
        return;
    }
    if (isa == 1) {
        dgn_greedy_avx2(input, result);
        return;
    }
#endif
    (void)isa;
    dgn_greedy_baseline(input, result);
}

void dgn_constrained(int32_t isa, const dgn_input *input, const dgn_result *result,
                     const dgn_limits *limits) {
#ifdef DGN_X86
    if (isa == 2) {
        dgn_constrained_avx512(input, result, limits);
        return;
    }
    if (isa == 1) {
        dgn_constrained_avx2(input, result, limits);
        return;
    }
#endif
    (void)isa;
    dgn_constrained_baseline(input, result, limits);
}

/* `work` has room for 5 * width numbers. */
void dgn_gains(int32_t isa, const dgn_input *input, const int64_t *rows, int64_t first,
               int64_t count, void *work, void *found) {
#ifdef DGN_X86
    if (isa == 2) {
        dgn_gains_avx512(input, rows, first, count, work, found);
        return;
    }
    if (isa == 1) {
        dgn_gains_avx2(input, rows, first, count, work, found);
        return;
    }
#endif
    (void)isa;
    dgn_gains_baseline(input, rows, first, count, work, found);
}

void dgn_lazy(int32_t isa, const dgn_input *input, dgn_part *part) {
#ifdef DGN_X86
    if (isa == 2) {
        dgn_lazy_avx512(input, part);
        return;
    }
    if (isa == 1) {
        dgn_lazy_avx2(input, part);
        return;
    }
#endif
    (void)isa;
    dgn_lazy_baseline(input, part);
}

void dgn_describe(int32_t isa, const dgn_tokens *tokens, const int64_t *rows, const int64_t *counts,
                  int64_t words, float *vectors, float *idf) {
#ifdef DGN_X86
    if (isa == 2) {
        dgn_describe_avx512(tokens, rows, counts, words, vectors, idf);
        return;
    }
    if (isa == 1) {
        dgn_describe_avx2(tokens, rows, counts, words, vectors, idf);
        return;
    }
#endif
    (void)isa;
    dgn_describe_baseline(tokens, rows, counts, words, vectors, idf);
}

/* The room that `dgn_facets` needs, in numbers. */
int64_t dgn_facets_work(int64_t tokens, int64_t count, int64_t distinct, int64_t passages,
                        int64_t titles, int64_t dimension, int64_t projected, int64_t units) {
    return dgn_facets_work_baseline(tokens, count, distinct, passages, titles, dimension, projected,
                                    units);
}

/* The facets of `count` queries. */
void dgn_facets(int32_t isa, const dgn_words *words, const dgn_facet_weights *weights,
                const dgn_query *queries, const dgn_facets_result *results, int64_t count) {
    facets *compute = dgn_facets_baseline;
#ifdef DGN_X86
    compute = isa == 2 ? dgn_facets_avx512 : isa == 1 ? dgn_facets_avx2 : compute;
#endif
    (void)isa;
    for (int64_t i = 0; i < count; i++)
        compute(words, weights, queries + i, results + i);
}

/* The room that `dgn_transform` needs, in numbers. */
int64_t dgn_transform_work(const dgn_transformer *model, const dgn_texts *texts) {
    return dgn_transform_work_baseline(model, texts);
}

/* AVX-512 is used if it has products of 8-bit numbers, AVX2 otherwise. */
void dgn_transform(int32_t isa, const dgn_transformer *model, const dgn_texts *texts) {
#ifdef DGN_X86
    __builtin_cpu_init();
    if (isa == 2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni")) {
        dgn_transform_vnni(model, texts);
        return;
    }
    if (isa >= 1) {
        dgn_transform_avx2(model, texts);
        return;
    }
#endif
    (void)isa;
    dgn_transform_baseline(model, texts);
}

void dgn_similar(int32_t isa, const dgn_words *words, const dgn_similarity *similarity) {
#ifdef DGN_X86
    if (isa == 2) {
        dgn_similar_avx512(words, similarity);
        return;
    }
    if (isa == 1) {
        dgn_similar_avx2(words, similarity);
        return;
    }
#endif
    (void)isa;
    dgn_similar_baseline(words, similarity);
}
