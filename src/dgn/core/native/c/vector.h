/* Vectors of one type of number, REAL, as wide as a register; included for float and for double. */

#define VECTORS (LANES * (int)sizeof(REAL) / REGISTER)
#define WIDTH (REGISTER / (int)sizeof(REAL))
#define VECTOR SUFFIX(vector)
#define BITS SUFFIX(bits)
#define NATURALS SUFFIX(naturals)

typedef REAL VECTOR __attribute__((vector_size(REGISTER)));
typedef INTEGER BITS __attribute__((vector_size(REGISTER)));
typedef NATURAL NATURALS __attribute__((vector_size(REGISTER)));

static inline VECTOR SUFFIX(load)(const REAL *from) {
    VECTOR found;
    memcpy(&found, from, sizeof found);
    return found;
}

static inline VECTOR SUFFIX(either)(BITS which, VECTOR yes, VECTOR no) {
    return (VECTOR)(((BITS)yes & which) | ((BITS)no & ~which));
}

static inline VECTOR SUFFIX(positive)(VECTOR x) {
    return SUFFIX(either)(x > 0, x, (VECTOR){0});
}

/* The sum of LANES numbers: lane j and lane j + LANES / 2, and so on, at every level in the same order.
 */
#if defined(__AVX2__) && !defined(IS_DOUBLE)
static inline REAL SUFFIX(total)(const VECTOR *sums) {
#ifdef __AVX512F__
    const __m512d all = (__m512d)sums[0];
    const __m256 eight = (__m256)_mm512_castpd512_pd256(all) + (__m256)_mm512_extractf64x4_pd(all, 1);
#else
    const __m256 eight = (__m256)(sums[0] + sums[1]);
#endif
    const __m128 four = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1);
    const __m128 two = four + _mm_movehl_ps(four, four);
    return two[0] + two[1];
}
#elif defined(__AVX2__)
static inline REAL SUFFIX(total)(const VECTOR *sums) {
#ifdef __AVX512F__
    const __m512d all = (__m512d)sums[0];
    const __m256d four = _mm512_castpd512_pd256(all) + _mm512_extractf64x4_pd(all, 1);
#else
    const __m256d four = (__m256d)(sums[0] + sums[1]);
#endif
    const __m128d two = _mm256_castpd256_pd128(four) + _mm256_extractf128_pd(four, 1);
    return two[0] + two[1];
}
#else
static inline REAL SUFFIX(total)(const VECTOR *sums) {
    REAL lanes[LANES];
    memcpy(lanes, sums, sizeof lanes);
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++)
            lanes[lane] += lanes[lane + half];
    return lanes[0];
}
#endif

/* log(1 + x) for x >= 0; the one for float also takes x from -0.5.
 *
 * 1 + x = 2^e * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); for e = 0, f is x itself, so that small
 * x keep all their digits. log(1 + f) is a polynomial (float) or a series in f / (2 + f) (double).
 * Relative error over the whole range: below 2 eps for float, below 3 eps for double (tested).
 */
#ifndef IS_DOUBLE
static inline VECTOR SUFFIX(log_of)(BITS e, VECTOR f) {
    VECTOR q = f * 0.08734811097383499f - 0.14307507872581482f;
    q = q * f + 0.14917978644371033f;
    q = q * f - 0.1657050997018814f;
    q = q * f + 0.19962072372436523f;
    q = q * f - 0.25001755356788635f;
    q = q * f + 0.33333951234817505f;
    q = q * f - 0.49999991059303284f;
    const VECTOR found = q * (f * f) + f;
    return __builtin_convertvector(e, VECTOR) * 0.693147180559945f + found;
}

static inline VECTOR SUFFIX(log1p)(VECTOR x) {
    const BITS bits = (BITS)(x + 1.0f);
    const BITS e = (bits - 0x3f3504f3) >> 23;
    return SUFFIX(log_of)(e, SUFFIX(either)(e == 0, x, (VECTOR)(bits - (e << 23)) - 1.0f));
}

static inline VECTOR SUFFIX(log_of_normal)(VECTOR x) {
    const BITS e = ((BITS)x - 0x3f3504f3) >> 23;
    return SUFFIX(log_of)(e, (VECTOR)((BITS)x - (e << 23)) - 1.0f);
}
#else
static inline VECTOR SUFFIX(log_of)(BITS e, VECTOR f) {
    const VECTOR exponent = __builtin_convertvector(e, VECTOR);
    const VECTOR s = f / (f + 2.0), t = s * s;
    /* 2 * atanh(s) / s - 2, divided by t: 2/3 + 2/5 t + 2/7 t^2 + ...; t is below 0.0295. */
    VECTOR q = t * (2.0 / 23) + 2.0 / 21;
    q = q * t + 2.0 / 19;
    q = q * t + 2.0 / 17;
    q = q * t + 2.0 / 15;
    q = q * t + 2.0 / 13;
    q = q * t + 2.0 / 11;
    q = q * t + 2.0 / 9;
    q = q * t + 2.0 / 7;
    q = q * t + 2.0 / 5;
    q = q * t + 2.0 / 3;
    const VECTOR half = 0.5 * (f * f);
    /* f - (half - s * (half + t * q)), which keeps the digits of small f. */
    const VECTOR found = f - (half - s * (half + t * q));
    const VECTOR low = exponent * 1.90821492927058770002e-10;
    return found + low + exponent * 6.93147180369123816490e-01;
}

static inline VECTOR SUFFIX(log1p)(VECTOR x) {
    const BITS bits = (BITS)(x + 1.0);
    const BITS e = (bits - 0x3fe6a09e667f3bcd) >> 52;
    return SUFFIX(log_of)(e, SUFFIX(either)(e == 0, x, (VECTOR)(bits - (e << 52)) - 1.0));
}

static inline VECTOR SUFFIX(log_of_normal)(VECTOR x) {
    const BITS e = ((BITS)x - 0x3fe6a09e667f3bcd) >> 52;
    return SUFFIX(log_of)(e, (VECTOR)((BITS)x - (e << 52)) - 1.0);
}
#endif

static inline VECTOR SUFFIX(root)(VECTOR x) {
    REAL lanes[WIDTH];
    memcpy(lanes, &x, sizeof lanes);
    for (int lane = 0; lane < WIDTH; lane++)
        lanes[lane] = sizeof(REAL) == 4 ? (REAL)sqrtf((float)lanes[lane]) : (REAL)sqrt(lanes[lane]);
    return SUFFIX(load)(lanes);
}

/* log(x) for x > 0. */
static inline VECTOR SUFFIX(log)(VECTOR x) {
    /* Subnormal numbers are scaled by 2^64 first. */
    const BITS is_tiny = x < (sizeof(REAL) == 4 ? (REAL)1.17549435e-38 : (REAL)2.2250738585072014e-308);
    const VECTOR scaled = SUFFIX(either)(is_tiny, x * (REAL)18446744073709551616.0, x);
    const VECTOR found = SUFFIX(log_of_normal)(scaled);
    return SUFFIX(either)(is_tiny, found - (REAL)44.361419555836499802, found);
}

/* exp(x) = 2^n * (1 + rest), with |rest| below 0.42. x is cut off at the smallest and the largest
 * number that have a normal exponential; 2^n is returned as 2 * half.
 */
#ifndef IS_DOUBLE
#define LEAST_EXPONENT -87.3f
static inline VECTOR SUFFIX(exp_rest)(VECTOR x, VECTOR *half) {
    const float middle = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = SUFFIX(either)(x > LEAST_EXPONENT, x, (VECTOR){0} + LEAST_EXPONENT);
    x = SUFFIX(either)(x < 88.72f, x, (VECTOR){0} + 88.72f);
    const VECTOR shifted = x * 1.44269504088896341f + middle, whole = shifted - middle;
    *half = (VECTOR)(((BITS)shifted - 0x4b400000 + 126) << 23);
    const VECTOR r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    VECTOR q = r * 1.9875691500e-4f + 1.3981999507e-3f;
    q = q * r + 8.3334519073e-3f;
    q = q * r + 4.1665795894e-2f;
    q = q * r + 1.6666665459e-1f;
    q = q * r + 5.0000001201e-1f;
    return q * (r * r) + r;
}
#else
#undef LEAST_EXPONENT
#define LEAST_EXPONENT -708.3
static inline VECTOR SUFFIX(exp_rest)(VECTOR x, VECTOR *half) {
    const double middle = 6755399441055744.0; /* 1.5 * 2^52 */
    x = SUFFIX(either)(x > LEAST_EXPONENT, x, (VECTOR){0} + LEAST_EXPONENT);
    x = SUFFIX(either)(x < 709.78, x, (VECTOR){0} + 709.78);
    const VECTOR shifted = x * 1.4426950408889634074 + middle, whole = shifted - middle;
    *half = (VECTOR)(((BITS)shifted - 0x4338000000000000 + 1022) << 52);
    const VECTOR r = x - whole * 6.93147180369123816490e-01 - whole * 1.90821492927058770002e-10;
    VECTOR q = r * (1.0 / 6227020800) + 1.0 / 479001600; /* 1/13! and 1/12! */
    q = q * r + 1.0 / 39916800;
    q = q * r + 1.0 / 3628800;
    q = q * r + 1.0 / 362880;
    q = q * r + 1.0 / 40320;
    q = q * r + 1.0 / 5040;
    q = q * r + 1.0 / 720;
    q = q * r + 1.0 / 120;
    q = q * r + 1.0 / 24;
    q = q * r + 1.0 / 6;
    q = q * r + 0.5;
    return q * (r * r) + r;
}
#endif

/* exp(x); 0 where it would be subnormal. */
static inline VECTOR SUFFIX(exp)(VECTOR x) {
    VECTOR half;
    const VECTOR rest = SUFFIX(exp_rest)(x, &half), found = (half * rest + half) * 2;
    return SUFFIX(either)(x < LEAST_EXPONENT, (VECTOR){0}, found);
}

/* exp(x) - 1, which keeps the digits of small x. */
static inline VECTOR SUFFIX(expm1)(VECTOR x) {
    VECTOR half;
    const VECTOR rest = SUFFIX(exp_rest)(x, &half);
    return (half * rest + (half - (REAL)0.5)) * 2;
}

/* x to some power, for x >= 0. */
static inline VECTOR SUFFIX(raised_to)(VECTOR x, REAL exponent) {
    const VECTOR some = SUFFIX(either)(x > 0, x, (VECTOR){0} + 1);
    return SUFFIX(either)(x > 0, SUFFIX(exp)(exponent * SUFFIX(log)(some)), (VECTOR){0});
}

/* (m + h)^e - m^e, where `now` is m^e: most h as m^e * ((1 + h/m)^e - 1), which does not cancel. */
static inline VECTOR SUFFIX(power_increase)(VECTOR h, VECTOR m, VECTOR now, REAL exponent) {
    const BITS is_small = ((REAL)1e-3 * h <= m) & (m > 0);
    const VECTOR base = SUFFIX(either)(m > 0, m, (VECTOR){0} + 1);
    const VECTOR growth = SUFFIX(either)(is_small, h, (VECTOR){0}) / base;
    const VECTOR by_ratio = now * SUFFIX(expm1)(exponent * SUFFIX(log1p)(growth));
    return SUFFIX(either)(is_small, by_ratio, SUFFIX(raised_to)(m + h, exponent) - now);
}
