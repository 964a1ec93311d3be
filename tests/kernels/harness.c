/* Searches sets of odd sizes, each in memory of exactly its size: run under sanitizers. */
#include "greedy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t dgn_highest_level(void);
void dgn_greedy(int32_t level, const dgn_problem *problem, const dgn_result *result);

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

static void search(int level, int form, int is_double, int64_t sets, int64_t items, int64_t width) {
    const int64_t k = 1 + (items - 1) % 4, total = sets * items;
    const size_t size = is_double ? 8 : 4;
    int64_t *start = malloc((size_t)(sets + 1) * sizeof *start);
    for (int64_t set = 0; set <= sets; set++)
        start[set] = set * items;
    uint8_t *mask = malloc((size_t)total);
    for (int64_t a = 0; a < total; a++)
        mask[a] = number() < 0.8;
    const dgn_problem problem = {
        .features = filled(total * width, is_double),
        .start = start,
        .mask = items % 2 ? mask : 0,
        .weights = width % 2 ? filled(sets * width, is_double) : 0,
        .level = width % 3 ? 0 : filled(width, is_double),
        .weights_stride = width,
        .sets = sets,
        .width = width,
        .k = k,
        .parameter = 0.7,
        .form = form,
        .is_double = is_double,
    };
    const dgn_result result = {
        .indices = malloc((size_t)(sets * k) * sizeof(int64_t)),
        .gains = malloc((size_t)(sets * k) * size),
        .bounds = malloc((size_t)sets * size),
        .work = malloc((size_t)(3 * width + k + items) * size),
    };
    dgn_greedy(level, &problem, &result);
    free((void *)problem.features);
    free((void *)problem.weights);
    free((void *)problem.level);
    free(start);
    free(mask);
    free(result.indices);
    free(result.gains);
    free(result.bounds);
    free(result.work);
}

int main(void) {
    int searched = 0;
    for (int level = 0; level <= dgn_highest_level(); level++)
        for (int form = DGN_LOG1P; form <= DGN_PROBABILISTIC; form++)
            for (int is_double = 0; is_double < 2; is_double++)
                for (int64_t width = 1; width < 36; width += 1 + width / 9)
                    for (int64_t items = 1; items < 8; items++, searched++)
                        search(level, form, is_double, 1 + items % 3, items, width);
    printf("searched %d times\n", searched);
    return 0;
}
