/* The facets of one query: from the words of texts to the features of passages. See facets.c. */
#ifndef DGN_FACETS_H
#define DGN_FACETS_H

#include <stdint.h>

/* The tokens of a vocabulary: row r is one token. */
typedef struct {
    const float *vectors; /* [tokens, dimension] */
    const float *idf;     /* [tokens] */
    int64_t dimension;
} dgn_tokens;

/* All words that were met: row r is one word. */
typedef struct {
    const float *vectors; /* [words, dimension], of length 1 */
    const float *facts;   /* [words, 5]: IDF; number, year, function word, question word */
    const int64_t *stem;  /* [words], equal for the forms of a word */
    int64_t dimension;
} dgn_words;

/* What was learned; the names are those of encoders/facets/weights.py, ready for use. */
typedef struct {
    const float *word_weight; /* [dimension + 6] */
    const float *projection;  /* [dimension, projected] */
    const float *hidden;      /* [28 + 3 * projected, units] */
    const float *hidden_bias; /* [units] */
    const float *output;      /* [units] */
    int64_t projected;
    int64_t units; /* 0 for no network */
    float threshold, scale;
    float bonus[3];
    float title;
    float neighbours[2];
    float likeness, likeness_from;
    float relevance; /* below 0: the relevance is not a feature */
    float output_bias;
    float middle_idf, spread_idf;
    float same_stem, some_number, title_from, function_share;
    float whole_scale, longest_query;
} dgn_facet_weights;

/* A query with its passages. Texts are the query, the passages, and their different titles; the words
 * of text i are rows[start[i]] to rows[start[i + 1]].
 */
typedef struct {
    const int64_t *rows;
    const int64_t *start;
    const int64_t *title; /* [passages], which title each has */
    const float *position;
    const uint8_t *is_ordered;
    const uint8_t *follows;
    int64_t passages;
    int64_t titles;
    int64_t distinct; /* how many different words there are, at most */
} dgn_query;

/* Where the result goes: rows of features are `features_stride` numbers apart, and what stands for
 * the passage as a whole begins at `whole`. `work` has room for `dgn_facets_work` numbers.
 */
typedef struct {
    float *features;
    float *weights;
    float *target;
    float *work;
    int64_t features_stride;
    int64_t whole;
} dgn_facets_result;

/* How similar texts are: the query (if `first` is 1), passages, and given texts. The words of text i are
 * rows[start[i]] to rows[start[i + 1]]. `signs` is [words, 5], what a word may contradict another text
 * with: see `WordTable.signs`. `similar` is [texts - first - given, texts - first]. `work` has room for
 * texts * (dimension + 4) + dimension numbers, and `terms` for 2 * words + 4 * texts.
 */
typedef struct {
    const int64_t *rows;
    const int64_t *start;
    const int64_t *signs;
    float *work;
    int64_t *terms;
    float *similar;
    int64_t texts;
    int64_t first;
    int64_t given;
    float function_share;
    float copy_from;
    float copy_to;
    float unused;
} dgn_similarity;

#endif
