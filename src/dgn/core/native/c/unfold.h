/* The unfolded greedy layers and their gradient, for float. See unfold.c. */
#ifndef DGN_UNFOLD_H
#define DGN_UNFOLD_H

#include <stdint.h>

/* Where sets of the same number of items are searched softly.
 *
 * features are [sets, items, width]; mask is [sets, items], 0 for padding; log_prior is [sets, items].
 * weights and level have one row per set, or one for all sets (stride 0). noise is [sets, layers,
 * items], or NULL. form and parameter are those of greedy.h. With is_hard, the item with the largest
 * p joins the set; its gradient is that of p.
 */
typedef struct {
    const float *features;
    const uint8_t *mask;
    const float *log_prior;
    const float *weights;
    const float *level;
    const float *noise;
    int64_t weights_stride;
    int64_t level_stride;
    int64_t sets;
    int64_t items;
    int64_t width;
    int64_t layers;
    float temperature;
    float parameter;
    float lowest; /* stands for log 0 */
    int32_t form;
    int32_t is_hard;
} dgn_layers;

/* What the layers chose: [sets, layers, items], but for the last two. outside and inside say how much
 * of an item is outside the set before each layer, and how much joined it.
 */
typedef struct {
    float *log_probs;
    float *log_others;
    float *outside;
    float *inside;
    float *outside_after; /* [sets, items] */
    float *level_after;   /* [sets, width] */
} dgn_choices;

/* The gradients of what the layers return, and those of what they take. */
typedef struct {
    const float *log_probs;     /* [sets, layers, items] */
    const float *log_others;    /* [sets, layers, items] */
    const float *outside_after; /* [sets, items] */
    const float *level_after;   /* [sets, width] */
    float *features;            /* [sets, items, width] */
    float *weights;             /* [sets, width] */
    float *level;               /* [sets, width] */
    float *log_prior;           /* [sets, items] */
} dgn_gradients;

#endif
