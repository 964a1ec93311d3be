/* Which level of the processor is used: the highest one that it and the binary have. */
#include "greedy.h"

typedef void search(const dgn_problem *, const dgn_result *);

search dgn_greedy_baseline;
#ifdef DGN_X86
search dgn_greedy_avx2, dgn_greedy_avx512;
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
