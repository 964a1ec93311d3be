"""The transformer with 8-bit weights: the kernel is the definition, and texts are independent."""

from unittest.mock import patch

import numpy as np
import pytest

from dgn.core import native
from dgn.core.native import transformer
from dgn.core.native.transformer import Linear, Transformer, _gelu

WIDTH, WIDE, HEADS, LAYERS, WORDS, LONGEST = 64, 128, 4, 2, 50, 80

compiled = pytest.mark.skipif(not native.is_available(), reason="the kernels are not compiled")


def small(seed: int = 0) -> Transformer:
    random = np.random.default_rng(seed)

    def some(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": some(WORDS, WIDTH),
        "embeddings.position_embeddings.weight": some(LONGEST, WIDTH),
        "embeddings.token_type_embeddings.weight": some(2, WIDTH),
    }
    maps = {
        "attention.self.query": (WIDTH, WIDTH),
        "attention.self.key": (WIDTH, WIDTH),
        "attention.self.value": (WIDTH, WIDTH),
        "attention.output.dense": (WIDTH, WIDTH),
        "intermediate.dense": (WIDE, WIDTH),
        "output.dense": (WIDTH, WIDE),
    }
    norms = ["embeddings"]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        norms += [f"{name}.attention.output", f"{name}.output"]
        for part, (outputs, inputs) in maps.items():
            weights[f"{name}.{part}.weight"] = some(outputs, inputs) / np.float32(np.sqrt(inputs))
            weights[f"{name}.{part}.bias"] = 0.1 * some(outputs)
    for name in norms:
        weights[f"{name}.LayerNorm.weight"] = 1 + 0.1 * some(WIDTH)
        weights[f"{name}.LayerNorm.bias"] = 0.1 * some(WIDTH)
    return Transformer(weights, HEADS)


def texts_of(lengths: list[int], seed: int = 1) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.integers(0, WORDS, length).tolist() for length in lengths]


LENGTHS = [1, 2, 3, 7, 16, 17, 63, 64, 65, 80, 5]


@compiled
def test_the_kernel_computes_the_definition() -> None:
    model, texts = small(), texts_of(LENGTHS)
    kinds = [[position % 2 for position in range(len(text))] for text in texts]
    found = model(texts, kinds)
    with patch.object(transformer, "is_available", lambda: False):
        expected = model(texts, kinds)
    # A number that is nearly in the middle between two steps may be rounded to either of them.
    assert np.abs(found - expected).mean() < 1e-3
    assert np.abs(found - expected).max() < 0.1


@compiled
@pytest.mark.parametrize("isa", range(len(native.ISAS)))
def test_every_instruction_set_computes_the_definition(isa: int) -> None:
    if isa > native.highest_isa():
        pytest.skip("the processor does not have it")
    model, texts = small(), texts_of(LENGTHS)
    with patch.object(transformer, "highest_isa", lambda: isa):
        found = model(texts)
    with patch.object(transformer, "is_available", lambda: False):
        assert np.abs(found - model(texts)).mean() < 1e-3


@pytest.mark.parametrize("is_compiled", [pytest.param(True, marks=compiled), False])
@pytest.mark.parametrize("only_first", [False, True])
def test_a_text_does_not_depend_on_its_companions(is_compiled: bool, only_first: bool) -> None:
    model, texts = small(), texts_of(LENGTHS * 3)
    with patch.object(transformer, "is_available", lambda: is_compiled):
        together = model(texts, only_first=only_first)
        alone = np.concatenate([model([text], only_first=only_first) for text in texts])
    if is_compiled:
        np.testing.assert_array_equal(together, alone)
    else:  # NumPy's products of matrices depend on their shape, in the last digits
        assert np.abs(together - alone).mean() < 1e-3


@compiled
def test_the_first_tokens_alone() -> None:
    model, texts = small(), texts_of(LENGTHS)
    starts = np.cumsum([0, *map(len, texts)])[:-1]
    np.testing.assert_array_equal(model(texts, only_first=True), model(texts)[starts])


def test_rounding_loses_little() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(40, WIDTH)).astype(np.float32)
    weights = random.normal(size=(WIDE, WIDTH)).astype(np.float32)
    bias = random.normal(size=WIDE).astype(np.float32)
    weights[3], x[5] = 0, 0.25
    found, expected = Linear.of(weights, bias)(x), x @ weights.T + bias
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    np.testing.assert_allclose(found[:, 3], bias[3], rtol=1e-6)


def test_gelu_is_the_normal_distribution() -> None:
    from math import erf, sqrt

    x = np.linspace(-8, 8, 1001, dtype=np.float32)
    expected = [one * (1 + erf(one / sqrt(2))) / 2 for one in x.tolist()]
    np.testing.assert_allclose(_gelu(x), expected, atol=1e-6)
