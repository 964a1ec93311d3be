"""Training facets, from claims to a selector that needs no torch."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import dgn
from dgn.data import Batch, Dataset, Position
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn import RunConfig, build_network, parameter_count, select_all, to_device, train
from dgn.learn.families import FeatureOptions
from dgn.learn.families.facets import FacetFamily
from dgn.learn.families.facets_table import MatchBatches, MatchTable
from dgn.learn.families.modules import FacetModule
from dgn.learn.features import build_features
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import Distillation, LayerwiseCrossEntropy
from dgn.learn.networks import DifferentiableGreedyNetwork
from dgn.text.facets.formula import FacetSizes

SAMPLES = Path(__file__).parents[3] / "samples" / "claims.jsonl"


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("claims")
    lines = SAMPLES.read_text(encoding="utf-8").splitlines()
    parts = folder / "train.jsonl", folder / "dev.jsonl"
    for part, rows in zip(parts, (lines[::2][:40], lines[1::2][:20]), strict=True):
        part.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return parts


@pytest.fixture(scope="module")
def features(
    claims: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("matches")
    for part in claims:
        options = FeatureOptions(encoder="facets")
        assert build_features(Dataset(part), folder / part.stem, options).made
    return str(folder / "train"), str(folder / "dev")


def config(features: tuple[str, str], **settings: object) -> RunConfig:
    few = {"epochs": 3, "batch_size": 8, "layers": 3, "eval_ks": [1, 3], "learning_rate": 0.003}
    sizes = {"encoder": "facets", "projection": 2, "hidden": 5, "learns": "all"}
    data = {"train": [features[0]], "validation": features[1], "device": "cpu"}
    return RunConfig().with_settings({**few, **sizes, **data, "temperature": 1.0, **settings})


def batch_of(folder: str, size: int = 6) -> Batch:
    batches = MatchBatches(MatchTable.load(folder), size, 0, to_device("cpu"))
    _, rows = next(batches.rows_from(Position()))
    return batches.batch(rows)


def small_network(distillation: Distillation | None = None) -> DifferentiableGreedyNetwork:
    module = FacetModule(FacetSizes(256, 2, 5))
    greedy, criterion = UnfoldedGreedy(3, 1.0), LayerwiseCrossEntropy("set")
    return DifferentiableGreedyNetwork(module, greedy, criterion, distillation)


def test_selector_selects_the_same_as_the_network(
    features: tuple[str, str], claims: tuple[Path, Path], tmp_path: Path
) -> None:
    result = train(config(features, epochs=8, learning_rate=0.01), tmp_path / "run")
    losses = [report.loss for report in result.reports[1:]]
    assert losses[-1] < 0.98 * losses[0]
    examples = list(Dataset(claims[1]).examples())
    batches = MatchBatches(MatchTable.load(features[1]), 8, 0, to_device("cpu"))
    by_torch = select_all(result.network, batches, 5)[0]
    selector = dgn.Selector.from_pretrained(tmp_path / "run")
    assert selector.encoder.parameters == parameter_count(result.network)
    selected = selector.select_queries([example.query for example in examples], dgn.Limits(k=5))
    for one, expected in zip(selected, by_torch, strict=True):
        assert list(one.indices) == [index for index in expected if index >= 0]
    documents: dict[str, list[str]] = {}
    for passage in examples[0].query.passages:
        documents.setdefault(passage.title, []).append(passage.text)
    alone = selector.select(
        examples[0].query.text,
        documents=[{"title": t, "sentences": s} for t, s in documents.items()],
        k=5,
    )
    assert alone.indices == selected[0].indices


def test_resumed_run_has_the_same_weights(features: tuple[str, str], tmp_path: Path) -> None:
    steps = 0

    def stop(_: object) -> None:
        nonlocal steps
        steps += 1
        if steps == 7:
            raise Stopped

    soft = {"dropout": 0.2, "checkpoint_seconds": 0.0}
    whole = train(config(features, **soft), tmp_path / "whole")
    with pytest.raises(Stopped):
        train(config(features, **soft), tmp_path / "parts", on_step=stop)
    again = train(config(features, **soft), tmp_path / "parts")
    assert again.resumed_at is not None
    for name, weight in whole.network.state_dict().items():
        assert torch.equal(weight, again.network.state_dict()[name])


def test_card_of_a_run_is_about_the_words_of_the_query(
    features: tuple[str, str], tmp_path: Path
) -> None:
    result = train(config(features, epochs=1), tmp_path / "run")
    card = (tmp_path / "run" / "README.md").read_text()
    assert "on facets features" in card
    assert "The features are the words of the query" in card
    assert "mean word vectors" not in card
    assert f"{parameter_count(result.network):,} learned parameters" in card
    assert "[facets]" in card
    assert dgn.Selector.from_pretrained(tmp_path / "run").card == card


def test_loss_of_a_batch_is_the_mean_over_its_claims(features: tuple[str, str]) -> None:
    batches = MatchBatches(MatchTable.load(features[0]), 6, 0, to_device("cpu"))
    network = small_network()
    rows = np.arange(6)
    alone = [batches.batch(rows[i : i + 1]) for i in range(6)]
    together = batches.batch(rows)
    means = [network.loss(b.x, b.gold, b.mask).item() for b in alone]
    assert network.loss(together.x, together.gold, together.mask).item() == pytest.approx(
        np.mean(means), rel=1e-5
    )


def test_other_passages_count_less_where_gold_is_incomplete(
    features: tuple[str, str], tmp_path: Path
) -> None:
    batch, network = batch_of(features[0]), small_network()
    losses = [
        network.loss(batch.x, batch.gold, batch.mask, torch.full(batch.mask.shape, weight)).item()
        for weight in (1.0, 0.3, 1e-9)
    ]
    assert losses[0] == pytest.approx(network.loss(batch.x, batch.gold, batch.mask).item())
    assert losses[0] > losses[1] > losses[2]
    settings = {"partial": [features[0]], "negative_weight": 0.3, "epochs": 1}
    result = train(config(features, **settings), tmp_path / "run")
    assert result.reports[-1].loss is not None


def test_teacher_pulls_the_first_layer(features: tuple[str, str]) -> None:
    batch = batch_of(features[0])
    data = (batch.x, batch.gold, batch.mask)
    plain = small_network().loss(*data)
    without = torch.full(batch.mask.shape, torch.nan)
    untaught = small_network(Distillation(0.7, 2.0)).loss(*data, None, without)
    assert untaught.item() == pytest.approx(plain.item())
    network = small_network(Distillation(1.0, 1.0))
    own = network.unfold(batch.x).log_probs[:, 0].detach()
    agreeing = network.loss(*data, None, own)
    flat = network.loss(*data, None, torch.zeros_like(own))
    entropy = -(own.exp() * torch.where(batch.mask, own, 0.0)).sum(dim=1).mean()
    assert agreeing.item() == pytest.approx(entropy.item(), rel=1e-4)
    assert flat > agreeing


def test_teacher_that_agrees_has_no_gradient(features: tuple[str, str]) -> None:
    # Also where other passages count less: both have the same prior.
    batch, network = batch_of(features[0]), small_network(Distillation(1.0, 1.0))
    negative_weight = torch.full(batch.mask.shape, 0.1)
    own = network.unfold(batch.x).log_probs[:, 0].detach()
    loss = network.loss(batch.x, batch.gold, batch.mask, negative_weight, own)
    gradients = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
    assert max(g.abs().max().item() for g in gradients if g is not None) < 1e-4


def test_teacher_logits_of_a_folder_are_used(features: tuple[str, str], tmp_path: Path) -> None:
    taught = tmp_path / "taught"
    shutil.copytree(features[0], taught)
    count = len(MatchTable.load(taught).gold)
    logits = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    np.save(taught / "teacher_logits.npy", logits)
    settings = {"train": [str(taught)], "epochs": 1, "distill_weight": 0.5}
    with_teacher = train(config(features, **settings), tmp_path / "with")
    without = train(config(features, **{**settings, "distill_weight": 0.0}), tmp_path / "without")
    assert with_teacher.reports[1].loss != without.reports[1].loss
    np.save(taught / "teacher_logits.npy", logits[:-1])
    with pytest.raises(BrokenInput, match=r"teacher_logits\.npy: expected"):
        train(config(features, **settings), tmp_path / "broken")


def test_seed_determines_the_start(features: tuple[str, str]) -> None:
    one, same, other = (build_network(config(features, seed=seed), 256) for seed in (0, 0, 1))
    assert isinstance(one.encoder, FacetModule)
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, same.state_dict()[name])
    assert not torch.equal(one.encoder.hidden, other.encoder.hidden)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "pooled"}, "is a setting of the encoder facets; this run uses pooled"),
        ({"architecture": "encoder"}, "has no encoder architecture; use dgn"),
        ({"distill_weight": 1.5}, "distill_weight must be from 0 to 1; got 1.5"),
        ({"distill_weight": 0.5}, "The features have no teacher logits"),
        ({"negative_weight": 0.0}, "negative_weight must be greater than 0; got 0.0"),
        ({"hidden": -1}, "hidden must be at least 0; got -1"),
    ],
)
def test_settings_that_are_not_allowed(
    features: tuple[str, str], tmp_path: Path, settings: dict, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        train(config(features, **settings), tmp_path / "run")


def test_features_for_facets_are_refused_for_pooled(
    features: tuple[str, str], tmp_path: Path
) -> None:
    pooled = RunConfig().with_settings({"train": [features[0]], "validation": features[1]})
    with pytest.raises(InvalidInput, match="features for the encoder facets, not pooled"):
        train(pooled, tmp_path / "run")


def test_facets_are_made_with_the_default_vectors_only() -> None:
    for options in (FeatureOptions("some.vec", encoder="facets"), FeatureOptions(unit=True)):
        with pytest.raises(InvalidInput, match="wordllama vectors as they are"):
            FacetFamily().check_options(options)


def test_damaged_model_is_refused(features: tuple[str, str], tmp_path: Path) -> None:
    good = tmp_path / "run"
    train(config(features, epochs=1), good)
    described = json.loads((good / "config.json").read_text())

    def changed(name: str, **encoder: object) -> Path:
        copy = tmp_path / name
        shutil.copytree(good, copy)
        content = {**described, "encoder": {**described["encoder"], **encoder}}
        (copy / "config.json").write_text(json.dumps(content))
        return copy

    truncated = changed("truncated")
    weights = (truncated / "model.safetensors").read_bytes()
    (truncated / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    resized = changed("resized", sizes={**described["encoder"]["sizes"], "hidden": 3})
    other = changed("other", vectors="wordllama:0")
    unknown = changed("unknown", code="import os")
    newer = changed("newer")
    (newer / "config.json").write_text(json.dumps({**described, "format": "dgn-model-9"}))
    for folder in (truncated, resized, other, unknown, newer):
        with pytest.raises(BrokenInput, match=folder.name):
            dgn.Selector.from_pretrained(folder)
    (good / "model.safetensors").unlink()
    with pytest.raises(BrokenInput, match="it is not finished: run the same command again"):
        dgn.Selector.from_pretrained(good)


def test_untrained_facets_have_no_parameters() -> None:
    assert dgn.Selector.from_pretrained("untrained").encoder.parameters == 0
