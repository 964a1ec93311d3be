"""The study of aspects: labels of the layers, recall, and folds that share no text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from experiments.aspects import (  # noqa: E402
    AspectNetwork,
    Batch,
    Claim,
    Vectors,
    layer_loss,
    loss_of,
    recalls_of,
    with_distractors,
)

ASPECTS = np.array([[True, True, False], [False, False, True]])
CLAIM = Claim("a", "query", ("one", "two", "three"), ASPECTS)


def test_recall_counts_an_aspect_once() -> None:
    assert CLAIM.recall([0, 1]) == [0.5, 0.5, 0.5]
    assert CLAIM.recall([0, 2, 1]) == [1.0, 1.0, 1.0]


def test_distractors_are_of_other_groups_and_in_no_aspect() -> None:
    other = Claim("b", "other", ("four", "one"), np.ones((1, 2), np.bool_))
    built = with_distractors([CLAIM, other], seed=0)[0]
    assert sorted(built.passages) == ["four", "one", "three", "two"]
    assert not built.aspects[:, built.passages.index("four")].any()
    assert built.aspects[:, built.passages.index("three")].tolist() == [False, True]


def test_a_layer_may_choose_any_passage_of_an_aspect_that_is_left() -> None:
    probs = torch.tensor([[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]])
    loss = layer_loss(probs.log(), torch.tensor(ASPECTS)[None])
    # The first layer may choose any of the three; the second one has the other aspect left.
    assert float(loss) == pytest.approx(-np.log(0.7) / 2)


@pytest.mark.parametrize("kind", ["paper", "facility"])
@pytest.mark.parametrize("form", ["rank", 2])
def test_both_networks_learn_and_select(tmp_path: Path, kind: str, form: str | int) -> None:
    file = tmp_path / "vectors.npz"
    texts = ["query", *CLAIM.passages]
    np.savez(file, texts=np.array(texts), word=np.eye(4, dtype=np.float32) + 0.1)
    vectors = Vectors(file, "word")
    network = AspectNetwork(kind, 4)
    loss_of(network, form, Batch.of([CLAIM], vectors)).backward()
    assert network.mapping.grad is not None
    assert network.mapping.grad.isfinite().all()
    assert recalls_of(network, [CLAIM], vectors).shape == (1, 3)
