/* A transformer with 8-bit weights: from the tokens of texts to their vectors. See transformer.c. */
#ifndef DGN_TRANSFORMER_H
#define DGN_TRANSFORMER_H

#include <stdint.h>

/* A linear map. `weights` are [outputs / 64, inputs / 4, 64, 4]: four inputs of 64 outputs are next to
 * each other, so that one instruction meets them with four numbers of a row.
 */
typedef struct {
    const int8_t *weights;
    const float *scales; /* [outputs], what a weight of 1 is worth */
    const float *sums;   /* [outputs], the sum of the weights of an output, as integers */
    const float *bias;   /* [outputs] */
    int64_t inputs, outputs;
} dgn_linear;

typedef struct {
    dgn_linear attention; /* query, key and value, one after the other */
    dgn_linear mixed;
    dgn_linear wide;
    dgn_linear narrow;
    const float *attention_norm; /* [2, width], the scale and the shift */
    const float *output_norm;    /* [2, width] */
} dgn_layer;

typedef struct {
    const float *words;     /* [vocabulary, width] */
    const float *positions; /* [longest, width] */
    const float *kinds;     /* [2, width] */
    const float *norm;      /* [2, width] */
    const dgn_layer *layers;
    int64_t layer_count, width, heads;
    float epsilon;
} dgn_transformer;

/* Some texts: the tokens of text i are tokens[start[i]] to tokens[start[i + 1]]. */
typedef struct {
    const int64_t *tokens;
    const uint8_t *kinds; /* 0 or 1 for each token */
    const int64_t *start; /* [texts + 1] */
    int64_t texts;
    int64_t only_first; /* whether only the vector of the first token of each text is wanted */
    float *vectors;     /* [tokens, width], or [texts, width] if only the first is wanted */
    float *work;        /* room for dgn_transform_work numbers */
} dgn_texts;

#endif
