/* Forward greedy: the gains of all items, k times. Compiled once for every instruction set.
 *
 * A row is summed in LANES partial sums whatever the width of a register is, in a fixed order, so
 * that a result does not depend on the batch or on where an item stands. Levels differ by the rounding
 * of products, which AVX2 and AVX-512 fuse with sums.
 */
#include "greedy.h"
#include "isa.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* What a cost leaves of an amount, never more: the error of a difference is known exactly. */
static double left_of(double amount, double cost) {
    const double left = amount - cost, taken = left - amount;
    const double error = (amount - (left - taken)) - (cost + taken);
    return error < 0 ? nextafter(left, -INFINITY) : left;
}

/* The power of 2 that scales a number to between 1/2 and 1, as far as there is one. */
static double power_below(double number) {
    int exponent;
    frexp(number, &exponent);
    return ldexp(1, exponent < -1022 ? 1022 : -exponent);
}

static void raise_floor(_Atomic double *floor, double gain) {
    double before = atomic_load(floor);
    while (before < gain && !atomic_compare_exchange_weak(floor, &before, gain))
        ;
}

#define REAL float
#define INTEGER int32_t
#define NATURAL uint32_t
#define LANES 16
#define SUFFIX(name) name##_f
#include "gains.h"
#include "search.h"
#include "large.h"
#undef REAL
#undef INTEGER
#undef NATURAL
#undef LANES
#undef SUFFIX

#define IS_DOUBLE 1
#define REAL double
#define INTEGER int64_t
#define NATURAL uint64_t
#define LANES 8
#define SUFFIX(name) name##_d
#include "gains.h"
#include "search.h"
#include "large.h"

void DGN_NAMED(dgn_greedy, DGN_ISA)(const dgn_input *input, const dgn_result *result) {
    if (input->is_double)
        search_d(input, result);
    else
        search_f(input, result);
}

void DGN_NAMED(dgn_constrained, DGN_ISA)(const dgn_input *input, const dgn_result *result,
                                           const dgn_limits *limits) {
    if (input->is_double)
        constrained_d(input, result, limits);
    else
        constrained_f(input, result, limits);
}

void DGN_NAMED(dgn_gains, DGN_ISA)(const dgn_input *input, const int64_t *rows,
                                     int64_t first, int64_t count, void *work, void *found) {
    if (input->is_double)
        gains_d(input, rows, first, count, work, found);
    else
        gains_f(input, rows, first, count, work, found);
}

void DGN_NAMED(dgn_lazy, DGN_ISA)(const dgn_input *input, dgn_part *part) {
    if (input->is_double)
        lazy_d(input, part);
    else
        lazy_f(input, part);
}
