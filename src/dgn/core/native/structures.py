"""The structures of the C headers, as ctypes fills them; the names are those of the headers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any


def _fields(kind: Any, names: Iterable[str]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, kind) for name in names)


class Input(ctypes.Structure):
    """dgn_input of greedy.h: what is searched."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("features", "columns", "row_start", "start")),
        *_fields(ctypes.c_void_p, ("mask", "weights", "level")),
        *_fields(ctypes.c_int64, ("weights_stride", "level_stride", "sets", "items")),
        *_fields(ctypes.c_int64, ("width", "k")),
        *_fields(ctypes.c_double, ("parameter", "second_parameter")),
        *_fields(ctypes.c_int64, ("split",)),
        *_fields(ctypes.c_int32, ("form", "second_form", "is_double", "unused")),
    )


class Result(ctypes.Structure):
    """dgn_result of greedy.h: where the result goes."""

    _fields_ = _fields(ctypes.c_void_p, ("indices", "gains", "values", "bounds", "work", "range"))


class Limits(ctypes.Structure):
    """dgn_limits of greedy.h: what limits a search besides k."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("counts", "costs", "budgets", "divisors", "groups", "quotas")),
        *_fields(ctypes.c_void_p, ("single", "single_gain", "density", "order", "used")),
        *_fields(ctypes.c_int64, ("group_count", "skipped_cover")),
    )


class Part(ctypes.Structure):
    """dgn_part of greedy.h: a part of one large set in a lazy search."""

    _fields_ = (
        *_fields(ctypes.c_int64, ("first", "items", "step", "held", "is_taken", "best")),
        *_fields(ctypes.c_double, ("gain", "slack")),
        *_fields(ctypes.c_void_p, ("floor", "ceilings", "ages", "heap", "work")),
        *_fields(ctypes.c_void_p, ("groups", "is_full")),
    )


class Tokens(ctypes.Structure):
    """dgn_tokens of facets.h: the tokens of a vocabulary."""

    _fields_ = (*_fields(ctypes.c_void_p, ("vectors", "idf")), ("dimension", ctypes.c_int64))


class Words(ctypes.Structure):
    """dgn_words of facets.h: what is known about every word."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("vectors", "facts", "stem")),
        ("dimension", ctypes.c_int64),
    )


class FacetWeights(ctypes.Structure):
    """dgn_facet_weights of facets.h: the weights of the formula."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("word_weight", "projection", "hidden", "hidden_bias", "output")),
        *_fields(ctypes.c_int64, ("projected", "units")),
        *_fields(ctypes.c_float, ("threshold", "scale")),
        ("bonus", ctypes.c_float * 3),
        ("title", ctypes.c_float),
        ("neighbours", ctypes.c_float * 2),
        *_fields(ctypes.c_float, ("likeness", "likeness_from", "relevance", "output_bias")),
        *_fields(ctypes.c_float, ("middle_idf", "spread_idf", "same_stem", "some_number")),
        *_fields(ctypes.c_float, ("title_from", "function_share", "whole_scale", "longest_query")),
    )


class Query(ctypes.Structure):
    """dgn_query of facets.h: a query with its passages, as words."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("rows", "start", "title")),
        *_fields(ctypes.c_void_p, ("position", "is_ordered", "follows")),
        *_fields(ctypes.c_int64, ("passages", "titles", "distinct")),
    )


class FacetResult(ctypes.Structure):
    """dgn_facets_result of facets.h."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("features", "weights", "target", "work")),
        *_fields(ctypes.c_int64, ("features_stride", "whole")),
    )


class Similarity(ctypes.Structure):
    """dgn_similarity of facets.h: some texts, and where their similarities go."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("rows", "start", "signs", "work", "terms", "similar")),
        *_fields(ctypes.c_int64, ("texts", "first", "given")),
        *_fields(ctypes.c_float, ("function_share", "copy_from", "copy_to", "unused")),
    )


class Linear(ctypes.Structure):
    """dgn_linear of transformer.h: a linear map with 8-bit weights."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("weights", "scales", "sums", "bias")),
        *_fields(ctypes.c_int64, ("inputs", "outputs")),
    )


class TransformerLayer(ctypes.Structure):
    """dgn_layer of transformer.h."""

    _fields_ = (
        *_fields(Linear, ("attention", "mixed", "wide", "narrow")),
        *_fields(ctypes.c_void_p, ("attention_norm", "output_norm")),
    )


class Transformer(ctypes.Structure):
    """dgn_transformer of transformer.h: all weights of a transformer."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("words", "positions", "kinds", "norm", "layers")),
        *_fields(ctypes.c_int64, ("layer_count", "width", "heads")),
        ("epsilon", ctypes.c_float),
    )


class Texts(ctypes.Structure):
    """dgn_texts of transformer.h: the tokens of some texts, and where their vectors go."""

    _fields_ = (
        *_fields(ctypes.c_void_p, ("tokens", "kinds", "start")),
        *_fields(ctypes.c_int64, ("texts", "only_first")),
        *_fields(ctypes.c_void_p, ("vectors", "work")),
    )


STRUCTURES = (
    *(Input, Result, Limits, Part),
    *(Tokens, Words, FacetWeights, Query, FacetResult, Similarity),
    *(Linear, TransformerLayer, Transformer, Texts),
)
"""In the order of `dgn_sizes` of dispatch.c."""
