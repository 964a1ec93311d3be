"""Training claim facets: from plain claims to a selector that needs no torch."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import dgn
from dgn.cli.main import main
from dgn.data.batches import Position
from dgn.encoders import FacetSizes
from dgn.encoders.match_table import MatchTable
from dgn.errors import BrokenInput, InvalidInput
from dgn.evaluation.contenders import Questions
from dgn.evaluation.contenders.facets import ClaimFacets
from dgn.features import ExampleSource, FeatureOptions, MatchBatches
from dgn.training import RunConfig, pick_all, placed_on, train
from dgn.training.contender import open_contender
from dgn.training.facet_network import FacetNetwork
from dgn.training.networks import build_network
from dgn.unfolding import UnfoldedGreedy

SAMPLES = Path(__file__).parents[2] / "samples" / "claims.jsonl"


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
        out = folder / part.stem
        assert main(["data", "features", str(part), "--encoder", "facets", "--out", str(out)]) == 0
    return str(folder / "train"), str(folder / "dev")


def config(features: tuple[str, str], **settings: object) -> RunConfig:
    few = {"epochs": 3, "batch_size": 8, "layers": 3, "judged_at": [1, 3], "learning_rate": 0.003}
    sizes = {"encoder": "facets", "rank": 2, "compared": 3, "hidden": 5, "more_features": 4}
    data = {"train": [features[0]], "validation": features[1], "device": "cpu"}
    return RunConfig().with_settings({**few, **sizes, **data, "temperature": 1.0, **settings})


def test_a_run_learns_and_leaves_a_selector_with_the_same_picks(
    features: tuple[str, str], claims: tuple[Path, Path], tmp_path: Path
) -> None:
    result = train(config(features, epochs=8, learning_rate=0.01), tmp_path / "run")
    losses = [report.loss for report in result.reports[1:]]
    assert losses[-1] < 0.8 * losses[0]
    examples = tuple(ExampleSource(claims[1]).examples())
    batches = MatchBatches(MatchTable.load(features[1]), 8, 0, placed_on("cpu"))
    under_torch = pick_all(result.network, batches, 5)[0]
    contender = open_contender(tmp_path / "run")
    assert contender.parameters == sum(p.numel() for p in result.network.parameters())
    assert np.array_equal(contender.pick(Questions(examples), 5), under_torch)
    selector = dgn.Selector.from_pretrained(tmp_path / "run")
    first = examples[0]
    picked = selector.select(
        first.claim.text,
        [c.text for c in first.candidates],
        title=[c.page for c in first.candidates],
        k=5,
    )
    assert list(picked.indices) == [place for place in under_torch[0] if place >= 0]


def test_a_run_that_was_cut_off_goes_on_to_the_same_weights(
    features: tuple[str, str], tmp_path: Path
) -> None:
    class Enough(Exception):
        pass

    steps = 0

    def stop(_: object) -> None:
        nonlocal steps
        steps += 1
        if steps == 7:
            raise Enough

    soft = {"dropout": 0.2, "checkpoint_seconds": 0.0}
    whole = train(config(features, **soft), tmp_path / "whole")
    with pytest.raises(Enough):
        train(config(features, **soft), tmp_path / "cut", on_step=stop)
    again = train(config(features, **soft), tmp_path / "cut")
    assert again.resumed_at is not None
    for name, weight in whole.network.state_dict().items():
        assert torch.equal(weight, again.network.state_dict()[name])


def batch_of(folder: str, size: int = 6):
    batches = MatchBatches(MatchTable.load(folder), size, 0, placed_on("cpu"))
    return next(batches.from_position(Position()))[1]


def small_network(seed: int = 0) -> FacetNetwork:
    return FacetNetwork(FacetSizes(256, 2, 3, 4, 5), UnfoldedGreedy(3, 1.0), seed=seed)


def test_the_loss_of_a_batch_is_the_mean_of_its_claims(features: tuple[str, str]) -> None:
    batches = MatchBatches(MatchTable.load(features[0]), 6, 0, placed_on("cpu"))
    network = small_network()
    rows = np.arange(6)
    alone = [batches.batch(rows[i : i + 1]) for i in range(6)]
    together = batches.batch(rows)
    means = [network.loss(b.x, b.gold, b.mask).item() for b in alone]
    assert network.loss(together.x, together.gold, together.mask).item() == pytest.approx(
        np.mean(means), rel=1e-5
    )


def test_unlabelled_sentences_count_less_where_gold_is_incomplete(
    features: tuple[str, str], tmp_path: Path
) -> None:
    batch, network = batch_of(features[0]), small_network()
    losses = [
        network.loss(batch.x, batch.gold, batch.mask, torch.full(batch.mask.shape, weight)).item()
        for weight in (1.0, 0.3, 1e-9)
    ]
    assert losses[0] == pytest.approx(network.loss(batch.x, batch.gold, batch.mask).item())
    assert losses[0] > losses[1] > losses[2]
    settings = {"partial": [features[0]], "unlabelled": 0.3, "epochs": 1}
    result = train(config(features, **settings), tmp_path / "run")
    assert result.reports[-1].loss is not None


def test_soft_labels_pull_the_first_layer_to_the_teacher(features: tuple[str, str]) -> None:
    batch, network = batch_of(features[0]), small_network()
    plain = network.loss(batch.x, batch.gold, batch.mask)
    none = torch.full(batch.mask.shape, torch.nan)
    arguments = (batch.x, batch.gold, batch.mask, None)
    untaught = network.distilled_loss(*arguments, none, 0.7, 2.0)
    assert untaught.item() == pytest.approx(plain.item())
    own = network.unfold(batch.x).log_probs[:, 0].detach()
    agreeing = network.distilled_loss(*arguments, own, 1.0, 1.0)
    flat = network.distilled_loss(*arguments, torch.zeros_like(own), 1.0, 1.0)
    entropy = -(own.exp() * torch.where(batch.mask, own, 0.0)).sum(dim=1).mean()
    assert agreeing.item() == pytest.approx(entropy.item(), rel=1e-4)
    assert flat > agreeing
    # A teacher that thinks as the network does leaves it alone, also where rivals count less.
    rivals = torch.full(batch.mask.shape, 0.1)
    thoughts = network.unfold(batch.x).log_probs[:, 0].detach()
    loss = network.distilled_loss(batch.x, batch.gold, batch.mask, rivals, thoughts, 1.0, 1.0)
    gradients = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
    assert max(g.abs().max().item() for g in gradients if g is not None) < 1e-4


def test_the_network_starts_where_its_seed_says(features: tuple[str, str]) -> None:
    settings = config(features).network
    one, same, other = (build_network(settings, 256, seed) for seed in (0, 0, 1))
    assert isinstance(one, FacetNetwork)
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, same.state_dict()[name])
    assert not torch.equal(one.facets["hidden"], other.facets["hidden"])  # pyright: ignore


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"encoder": "pooled"}, "facets"),
        ({"model": "encoder"}, "dgn"),
        ({"distill": 1.5}, "0 to 1"),
        ({"distill": 0.5}, "dgn teach first"),
        ({"unlabelled": 0.0}, "above 0"),
        ({"rank": -1}, "0 or more"),
    ],
)
def test_mistakes_are_named(
    features: tuple[str, str], tmp_path: Path, settings: dict, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        train(config(features, **settings), tmp_path / "run")


def test_facets_take_the_default_vectors_only() -> None:
    with pytest.raises(InvalidInput, match="wordllama"):
        FeatureOptions("some.vec", encoder="facets")


def test_a_damaged_selector_is_refused(features: tuple[str, str], tmp_path: Path) -> None:
    train(config(features, epochs=1), tmp_path / "run")
    good = tmp_path / "run" / "selector"

    def broken(name: str) -> Path:
        copy = tmp_path / name
        shutil.copytree(good, copy)
        return copy

    cut = broken("cut")
    weights = (cut / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    resized = broken("resized")
    described = json.loads((resized / "config.json").read_text())
    described["sizes"]["rank"] = 3
    (resized / "config.json").write_text(json.dumps(described))
    other = broken("other")
    (other / "config.json").write_text(json.dumps({**described, "vectors": "wordllama:0"}))
    newer = broken("newer")
    (newer / "config.json").write_text(json.dumps({**described, "format": "dgn-facets-9"}))
    for folder in (cut, resized, other, newer):
        with pytest.raises(BrokenInput, match=folder.name):
            dgn.Selector.from_pretrained(folder)
    (good / "model.safetensors").unlink()
    with pytest.raises(InvalidInput, match="finished model"):
        dgn.Selector.from_pretrained(good)


def test_the_untrained_contender_has_learned_nothing() -> None:
    assert ClaimFacets.untrained().parameters == 0
    assert ClaimFacets.untrained(titles=False).name == "facets-untrained-no-title"
