/* Which level of the processor is used: the highest one that it and the binary have. */
#include "facets.h"
#include "greedy.h"

typedef void search(const dgn_problem *, const dgn_result *);
typedef void some_gains(const dgn_problem *, const int64_t *, int64_t, int64_t, void *, void *);
typedef void lazy_search(const dgn_problem *, const dgn_result *, void *, int64_t *, int32_t *);
typedef void facets(const dgn_words *, const dgn_facet_weights *, const dgn_query *,
                    const dgn_facets_result *);

search dgn_greedy_baseline;
some_gains dgn_gains_baseline;
lazy_search dgn_lazy_baseline;
facets dgn_facets_baseline;
int64_t dgn_facets_work_baseline(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                                 int64_t);
#ifdef DGN_X86
search dgn_greedy_avx2, dgn_greedy_avx512;
some_gains dgn_gains_avx2, dgn_gains_avx512;
lazy_search dgn_lazy_avx2, dgn_lazy_avx512;
facets dgn_facets_avx2, dgn_facets_avx512;
#endif

/* 0 for the baseline, 1 for AVX2, 2 for AVX-512. */
int32_t dgn_highest_level(void) {
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

void dgn_greedy(int32_t level, const dgn_problem *problem, const dgn_result *result) {
#ifdef DGN_X86
    if (level == 2) {
        dgn_greedy_avx512(problem, result);
        return;
    }
    if (level == 1) {
        dgn_greedy_avx2(problem, result);
        return;
    }
#endif
    (void)level;
    dgn_greedy_baseline(problem, result);
}

/* `work` has room for 2 * width numbers. */
void dgn_gains(int32_t level, const dgn_problem *problem, const int64_t *rows, int64_t first,
               int64_t count, void *work, void *found) {
#ifdef DGN_X86
    if (level == 2) {
        dgn_gains_avx512(problem, rows, first, count, work, found);
        return;
    }
    if (level == 1) {
        dgn_gains_avx2(problem, rows, first, count, work, found);
        return;
    }
#endif
    (void)level;
    dgn_gains_baseline(problem, rows, first, count, work, found);
}

void dgn_lazy(int32_t level, const dgn_problem *problem, const dgn_result *result, void *ceilings,
              int64_t *heap, int32_t *stamps) {
#ifdef DGN_X86
    if (level == 2) {
        dgn_lazy_avx512(problem, result, ceilings, heap, stamps);
        return;
    }
    if (level == 1) {
        dgn_lazy_avx2(problem, result, ceilings, heap, stamps);
        return;
    }
#endif
    (void)level;
    dgn_lazy_baseline(problem, result, ceilings, heap, stamps);
}

/* The room that `dgn_facets` needs, in numbers. */
int64_t dgn_facets_work(int64_t tokens, int64_t count, int64_t distinct, int64_t passages,
                        int64_t titles, int64_t dimension, int64_t projected, int64_t units) {
    return dgn_facets_work_baseline(tokens, count, distinct, passages, titles, dimension, projected,
                                    units);
}

void dgn_facets(int32_t level, const dgn_words *words, const dgn_facet_weights *weights,
                const dgn_query *query, const dgn_facets_result *result) {
#ifdef DGN_X86
    if (level == 2) {
        dgn_facets_avx512(words, weights, query, result);
        return;
    }
    if (level == 1) {
        dgn_facets_avx2(words, weights, query, result);
        return;
    }
#endif
    (void)level;
    dgn_facets_baseline(words, weights, query, result);
}
