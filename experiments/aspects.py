r"""Can the layers learn from aspects? And what do copies and aspects cost and gain by breadth?

    python -m experiments.aspects vectors --out VECTORS       word vectors and MiniLM's, once
    python -m experiments.aspects study --vectors VECTORS --runs RUNS --dev
    python -m experiments.aspects choose                      the default breadth, on all rows
    python -m experiments.aspects breadth                     what it gains and costs, with peers

The study trains two set functions on claims with perspectives (Perspectrum), each through K greedy
layers, and to rank:

    paper       h_v = r(q, v) · ReLU(±W v), f(A) = Σ_u α_u log(1 + Σ_{v∈A} h_{v,u})
    facility    K(u, v) = max(0, cos(W u, W v))², f(A) = Σ_u r(q, u) max_{a∈A} K(u, a)

with r(q, v) = sigmoid(a · cos(U q, U v) + c), and W and U from the identity. The label of a layer
is any passage of an aspect that no earlier layer has covered. Claims that share a perspective (the
`group` of a row) are in one fold, and the distractors of a row are perspectives of claims of the
same fold, so that no text of a fold is in another one. In each outer fold, the next fold chooses
the number of epochs; the peers choose their settings on all training folds. Dev is read
once, by what was trained on all folds. What was measured is kept in --out as it comes, so that an
interrupted run resumes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import platform
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from dgn.core import greedy
from dgn.core.functions import FacilityLocation, FeatureCoverage, Items, SetFunction
from dgn.evaluation.metrics import holm_p_values, paired_comparison
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import relevance_loss
from experiments.made import made_by
from experiments.recall import document_of, limited_examples, windows_of

DATA = Path(__file__).parents[2] / "shared" / "data" / "aspects"
RESULTS = Path(__file__).parent / "results" / "aspects"
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "breadth.png"
KS = (3, 5, 8)
FOLDS, DISTRACTORS, BATCH = 5, 30, 16
RATE, EPOCHS = 1e-3, 3
TEMPERATURE_SHARE = 0.05
"""τ, as a share of the mean of the largest first gain before training."""

SYSTEMS = (
    *(("paper", form) for form in ("untrained", "rank", 1, 3, 5, 7)),
    *(("facility", form) for form in ("untrained", "rank", 5)),
)
Found = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim with its passages.

    Attributes:
        group: Claims with the same group share perspectives.
        query: Its text.
        passages: The texts of its perspectives, then of distractors.
        aspects: [aspects, passages], which passages say what.
    """

    group: str
    query: str
    passages: tuple[str, ...]
    aspects: NDArray[np.bool_]

    def recall(self, chosen: Sequence[int]) -> list[float]:
        """Aspect recall for each of KS."""
        covered = np.maximum.accumulate(self.aspects[:, list(chosen)], axis=1).sum(axis=0)
        return [float(covered[min(k, len(covered)) - 1] / min(k, len(self.aspects))) for k in KS]


def read_claims(part: str) -> list[Claim]:
    """The claims of a part, without their distractors."""
    with lzma.open(DATA / f"perspectrum-{part}.jsonl.xz", "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return [_bare(row) for row in rows]


def _bare(row: Found) -> Claim:
    kept = sorted(set(itertools.chain.from_iterable(row["aspects"])))
    places = {old: new for new, old in enumerate(kept)}
    aspects = np.zeros((len(row["aspects"]), len(kept)), np.bool_)
    for number, members in enumerate(row["aspects"]):
        aspects[number, [places[member] for member in members]] = True
    return Claim(row["group"], row["query"], tuple(row["passages"][old] for old in kept), aspects)


def with_distractors(claims: Sequence[Claim], seed: int) -> list[Claim]:
    """Each claim with perspectives of other groups of these claims, in no aspect, shuffled in."""
    chooser = random.Random(seed)  # noqa: S311
    built: list[Claim] = []
    for claim in claims:
        others = {t for one in claims if one.group != claim.group for t in one.passages}
        pool = sorted(others.difference(claim.passages))
        added = chooser.sample(pool, min(DISTRACTORS, len(pool)))
        passages = [*claim.passages, *added]
        order = chooser.sample(range(len(passages)), len(passages))
        wider = np.pad(claim.aspects, ((0, 0), (0, len(added))))[:, order]
        built.append(Claim(claim.group, claim.query, tuple(passages[o] for o in order), wider))
    return built


def folds_of(claims: Sequence[Claim]) -> list[list[Claim]]:
    """The claims in FOLDS parts that share no group, each with distractors of its own."""
    groups = sorted({claim.group for claim in claims})
    random.Random(0).shuffle(groups)  # noqa: S311
    fold = {group: number % FOLDS for number, group in enumerate(groups)}
    return [
        with_distractors([claim for claim in claims if fold[claim.group] == number], number)
        for number in range(FOLDS)
    ]


class Vectors:
    """The vector of each text, of length 1."""

    def __init__(self, path: Path, kind: str) -> None:
        with np.load(path) as arrays:
            self._rows = {text: row for row, text in enumerate(arrays["texts"].tolist())}
            self._vectors = torch.tensor(arrays[kind])

    def of(self, texts: Iterable[str]) -> Tensor:
        """[texts, dimension]."""
        return self._vectors[[self._rows[text] for text in texts]]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some claims, padded.

    Attributes:
        query: [batch, dimension].
        passages: [batch, items, dimension].
        mask: [batch, items], False for padding.
        aspects: [batch, aspects, items], which passages say what.
    """

    query: Tensor
    passages: Tensor
    mask: Tensor
    aspects: Tensor

    @classmethod
    def of(cls, claims: Sequence[Claim], vectors: Vectors) -> Batch:
        """The batch of these claims."""
        longest = max(len(claim.passages) for claim in claims)
        most = max(len(claim.aspects) for claim in claims)
        query = vectors.of(claim.query for claim in claims)
        passages = torch.zeros(len(claims), longest, query.shape[1])
        aspects = torch.zeros(len(claims), most, longest, dtype=torch.bool)
        for row, claim in enumerate(claims):
            passages[row, : len(claim.passages)] = vectors.of(claim.passages)
            aspects[row, : len(claim.aspects), : len(claim.passages)] = torch.tensor(claim.aspects)
        lengths = torch.tensor([len(claim.passages) for claim in claims])
        return cls(query, passages, torch.arange(longest) < lengths[:, None], aspects)


class AspectNetwork(nn.Module):
    """Vectors of a query and of its passages to a set function; see the module.

    Args:
        kind: "paper" or "facility".
        dimension: That of the vectors.
    """

    def __init__(self, kind: str, dimension: int) -> None:
        super().__init__()
        self.kind = kind
        self.mapping = nn.Parameter(torch.eye(dimension))  # W
        self.relevance = nn.Parameter(torch.eye(dimension))  # U
        self.slope = nn.Parameter(torch.tensor([8.0, -3.0]))  # a and c
        if kind == "paper":
            self.log_scale = nn.Parameter(torch.tensor(30.0).log())
            self.alpha = nn.Parameter(torch.zeros(2 * dimension))
        self.temperature = 1.0

    def forward(self, batch: Batch) -> tuple[SetFunction, Items]:
        """The set functions of the claims, and their passages as items."""
        real = batch.mask[..., None].to(batch.passages.dtype)
        query = normalize(batch.query @ self.relevance, dim=-1)[:, None]
        near = (normalize(batch.passages @ self.relevance, dim=-1) * query).sum(dim=-1)
        relevance = torch.sigmoid(self.slope[0] * near + self.slope[1]) * real[..., 0]
        # Centered over the texts of the row: what they have in common tells none of them apart.
        count = 1 + real.sum(dim=1, keepdim=True)
        mean = (batch.query[:, None] + batch.passages.sum(dim=1, keepdim=True)) / count
        mapped = normalize((batch.passages - mean) * real, dim=-1) @ self.mapping
        if self.kind == "facility":
            units = normalize(mapped, dim=-1)
            similar = (units @ units.transpose(1, 2)).clamp(0, 1) ** 2
            return FacilityLocation(relevance), Items(similar * real, batch.mask)
        both = torch.cat([mapped, -mapped], dim=-1).relu() * self.log_scale.exp()
        return FeatureCoverage(softplus(self.alpha)), Items(relevance[..., None] * both, batch.mask)


def layer_loss(log_probs: Tensor, aspects: Tensor) -> Tensor:
    """−log of the probability that each layer gives to all passages of aspects not covered yet.

    Args:
        log_probs: [batch, layers, items].
        aspects: [batch, aspects, items].
    """
    left = aspects.any(dim=2)
    total = log_probs.new_zeros(())
    count = 0
    for log_p in log_probs.unbind(dim=1):
        wanted = (aspects & left[..., None]).any(dim=1)
        counted = wanted.any(dim=1)
        if not counted.any():
            break
        gold = torch.logsumexp(log_p.masked_fill(~wanted, -1e4), dim=1)
        total = total - gold[counted].sum()
        count += int(counted.sum())
        label = log_p.detach().masked_fill(~wanted, -torch.inf).argmax(dim=1)
        rows = torch.arange(len(label))
        left = left & ~aspects[rows, :, label]
    return total / max(count, 1)


def loss_of(network: AspectNetwork, form: str | int, batch: Batch) -> Tensor:
    """The loss of K layers, or that of a ranker."""
    objective, items = network(batch)
    if form == "rank":
        gains = objective.gains(items, objective.empty(items)) / network.temperature
        return relevance_loss(gains, batch.aspects.any(dim=1), batch.mask)
    layers = UnfoldedGreedy(layers=int(form), temperature=network.temperature)
    return layer_loss(layers(objective, items).log_probs, batch.aspects)


def recalls_of(
    network: AspectNetwork, claims: Sequence[Claim], vectors: Vectors, *, ranked: bool = False
) -> NDArray[np.float64]:
    """[claims, KS], the aspect recall of greedy, or of the items in the order of their gains."""
    found: list[list[float]] = []
    for start in range(0, len(claims), 4 * BATCH):
        some = claims[start : start + 4 * BATCH]
        with torch.no_grad():
            objective, items = network(Batch.of(some, vectors))
            if ranked:
                gains = objective.gains(items, objective.empty(items))
                gains = gains.masked_fill(~items.mask, -torch.inf)
                chosen = gains.argsort(dim=1, descending=True)[:, : max(KS)].tolist()
            else:
                selected: Any = greedy(objective, items, max(KS))
                chosen = [one.indices for one in selected]
        found += [claim.recall(own) for claim, own in zip(some, chosen, strict=True)]
    return np.array(found)


def train(
    kind: str,
    form: str | int,
    claims: Sequence[Claim],
    vectors: Vectors,
    *,
    epochs: int,
    seed: int,
    each: Callable[[AspectNetwork], None] = lambda _: None,
) -> AspectNetwork:
    """Train a network; `each` is called after every epoch."""
    torch.manual_seed(seed)
    network = AspectNetwork(kind, vectors.of([claims[0].query]).shape[1])
    with torch.no_grad():  # seeds differ by this noise and by the order of the claims
        for weight in (network.mapping, network.relevance):
            weight += 0.01 * torch.randn_like(weight)
        objective, items = network(Batch.of(claims[: 4 * BATCH], vectors))
        first = objective.gains(items, objective.empty(items)).amax(dim=1).mean()
    network.temperature = TEMPERATURE_SHARE * float(first)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    for _ in range(epochs):
        order = np.asarray(torch.randperm(len(claims)))
        for places in _alike([int(place) for place in order], claims):
            optimizer.zero_grad()
            batch = Batch.of([claims[place] for place in places], vectors)
            loss_of(network, form, batch).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
        each(network)
    return network


def _alike(order: Sequence[int], claims: Sequence[Claim]) -> Iterable[list[int]]:
    """Batches of claims with about as many passages, so that little is padding."""
    for start in range(0, len(order), 4 * BATCH):
        some = sorted(
            order[start : start + 4 * BATCH], key=lambda place: len(claims[place].passages)
        )
        yield from (some[at : at + BATCH] for at in range(0, len(some), BATCH))


def run_one(job: tuple[str, str, str, str | int, int, int]) -> tuple[str, Found]:
    """One system in one outer fold (−1 for dev): its recalls for every seed."""
    path, vector, kind, form, fold, seeds = job
    torch.set_num_threads(1)
    vectors = Vectors(Path(path), vector)
    claims = read_claims("train")
    folds = folds_of(claims)
    outside = [number for number in range(FOLDS) if number != fold]
    test = folds[fold] if fold >= 0 else with_distractors(read_claims("dev"), 0)
    inner = outside[fold % len(outside)] if fold >= 0 else 0
    found: Found = {"claims": len(test), "groups": [claim.group for claim in test]}
    if form == "untrained":
        network = AspectNetwork(kind, vectors.of([test[0].query]).shape[1])
        found["recalls"] = [recalls_of(network, test, vectors).tolist()]
        return _key(vector, kind, form, fold), found
    learning = [claim for number in outside if number != inner for claim in folds[number]]
    scores: list[float] = []

    def judge(network: AspectNetwork) -> None:
        recalls = recalls_of(network, folds[inner], vectors, ranked=form == "rank")
        scores.append(float(recalls.mean()))

    train(kind, form, learning, vectors, epochs=EPOCHS, seed=0, each=judge)
    found["epochs"] = epochs = 1 + scores.index(max(scores))
    everything = [claim for number in outside for claim in folds[number]]
    networks = [
        train(kind, form, everything, vectors, epochs=epochs, seed=seed) for seed in range(seeds)
    ]
    found["recalls"] = [recalls_of(one, test, vectors).tolist() for one in networks]
    if form == "rank":
        ranked = [recalls_of(one, test, vectors, ranked=True) for one in networks]
        found["ranked"] = [one.tolist() for one in ranked]
    return _key(vector, kind, form, fold), found


def run_peers(job: tuple[str, str, int]) -> tuple[str, Found]:
    """The peers in one outer fold, each with the setting that is best on the other folds."""
    path, vector, fold = job
    vectors = Vectors(Path(path), vector)
    folds = folds_of(read_claims("train"))
    test = folds[fold] if fold >= 0 else with_distractors(read_claims("dev"), 0)
    learning = [claim for number in range(FOLDS) if number != fold for claim in folds[number]]
    found: Found = {"claims": len(test), "groups": [claim.group for claim in test]}
    for name, settings in PEERS.items():
        means = {
            setting: np.mean(
                [claim.recall(_peer(name, setting, claim, vectors)) for claim in learning]
            )
            for setting in settings
        }
        best = max(means, key=lambda setting: float(means[setting]))
        recalls = [claim.recall(_peer(name, best, claim, vectors)) for claim in test]
        found[name] = {"setting": best, "recalls": [recalls]}
    return _key(vector, "peers", "", fold), found


PEERS: dict[str, tuple[float, ...]] = {
    "cosine": (0.0,),
    "MMR": (0.1, 0.2, 0.3, 0.4, 0.5),
    "MSD": (0.1, 0.2, 0.3, 0.4, 0.5),
    "DPP": (0.1, 0.3, 0.5, 0.7, 0.9),
    "apricot, facility location": (8.0, 12.0, 16.0, 24.0),
}
"""Settings of each peer: pyversity's diversity; for apricot, how many passages the cosine keeps."""


def _peer(name: str, setting: float, claim: Claim, vectors: Vectors) -> list[int]:
    """The passages that a peer selects."""
    query, passages = (vectors.of(texts).numpy() for texts in ([claim.query], claim.passages))
    cosines = passages @ query[0]
    order = np.argsort(-cosines, kind="stable")
    if name == "cosine":
        return order[: max(KS)].tolist()
    if name.startswith("apricot"):
        # What apricot.FacilityLocationSelection("precomputed") selects; dgn computes it.
        kept = order[: int(setting)]
        similar = np.clip(passages[kept] @ passages[kept].T, 0, None).astype(np.float64)
        selected: Any = greedy(FacilityLocation(), Items(similar), max(KS))
        return kept[list(selected.indices)].tolist()
    import pyversity

    chosen = pyversity.diversify(
        passages, cosines, max(KS), strategy=name.lower(), diversity=setting
    )
    return [int(place) for place in chosen.indices]


def _key(vector: str, kind: str, form: str | int, fold: int) -> str:
    return f"{vector}/{kind}/{form}/{'dev' if fold < 0 else fold}"


def study(options: argparse.Namespace) -> None:
    """Run what is missing, and write the table."""
    kept: Path = options.runs
    runs: Found = json.loads(kept.read_text()) if kept.exists() else {}
    path, folds = str(options.vectors), [*range(FOLDS), *([-1] if options.dev else [])]
    cases = list(itertools.product(folds, ("word", "minilm")))
    jobs: list[tuple[Any, Any]] = [
        (run_one, (path, vector, kind, form, fold, options.seeds))
        for (fold, vector), (kind, form) in itertools.product(cases, SYSTEMS)
        if _key(vector, kind, form, fold) not in runs
    ]
    jobs += [
        (run_peers, (path, vector, fold))
        for fold, vector in cases
        if _key(vector, "peers", "", fold) not in runs
    ]
    started = time.time()
    with get_context("spawn").Pool(options.jobs) as pool:
        for key, found in pool.imap_unordered(_run, jobs):
            runs[key] = found
            kept.write_text(json.dumps(runs))
            print(f"{time.time() - started:7.0f} s  {key}", flush=True)
    text, numbers = report(runs)
    about = {
        "made": made_by("experiments/aspects.py"),
        "command": "python -m experiments.aspects study --dev",
        "seeds": options.seeds,
        "data": f"perspectrum-train in {FOLDS} folds of components; perspectrum-dev once",
        "machine": f"{platform.machine()}, one thread, torch {torch.__version__}",
    }
    described = "".join(f"{name}: {value}\n" for name, value in about.items())
    options.out.with_suffix(".txt").write_text(described + text)
    options.out.with_suffix(".json").write_text(json.dumps(about | numbers, indent=1) + "\n")
    print(text)


def _run(job: tuple[Callable[[Any], tuple[str, Found]], Any]) -> tuple[str, Found]:
    return job[0](job[1])


def _gathered(runs: Found, vector: str, dev: bool) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """By system, [seeds, claims, KS] over all folds, and the group of each claim."""
    folds: list[Any] = ["dev"] if dev else [*range(FOLDS)]
    found: dict[str, NDArray[Any]] = {}
    groups: list[str] = []
    for fold in folds:
        groups += runs[f"{vector}/paper/untrained/{fold}"]["groups"]
    for kind, form in SYSTEMS:
        parts = [runs[f"{vector}/{kind}/{form}/{fold}"] for fold in folds]
        name = f"{kind}, {'K = ' if isinstance(form, int) else ''}{form}"
        found[name] = np.concatenate([np.array(one["recalls"]) for one in parts], axis=1)
        if form == "rank":
            ranked = [np.array(one["ranked"]) for one in parts]
            found[f"{name}, ranked"] = np.concatenate(ranked, axis=1)
    for name in PEERS:
        parts = [runs[f"{vector}/peers//{fold}"][name] for fold in folds]
        found[name] = np.concatenate([np.array(one["recalls"]) for one in parts], axis=1)
    return found, groups


COMPARED = (
    ("paper, K = 5", "paper, untrained"),
    ("paper, K = 5", "paper, rank, ranked"),
    ("paper, K = 5", "paper, K = 1"),
    ("facility, untrained", "paper, K = 5"),
    ("facility, K = 5", "facility, untrained"),
    ("facility, rank", "facility, untrained"),
    ("facility, untrained", "MMR"),
)
"""First against second: all of them are corrected together, over both vectors."""


def report(runs: Found) -> tuple[str, Found]:
    """The table of recalls, and the comparisons with p-values corrected by Holm."""
    lines: list[str] = []
    tables: Found = {}
    tests: list[tuple[str, Any]] = []
    parts = [False, *([True] if any(key.endswith("/dev") for key in runs) else [])]
    for vector, dev in itertools.product(("word", "minilm"), parts):
        found, groups = _gathered(runs, vector, dev)
        title = f"{vector} vectors, {'dev' if dev else 'outer folds'}"
        lines.append(
            f"\n{title}: aspect recall at 3, 5 and 8, and the spread of its mean over seeds"
        )
        tables[title] = {}
        for name, recalls in found.items():
            means = recalls.mean(axis=(0, 1))
            spread = recalls.mean(axis=(1, 2)).std(ddof=1) if len(recalls) > 1 else 0.0
            cells = "".join(f"{mean:8.3f}" for mean in means)
            lines.append(f"  {name:<28}{cells}" + (f"   ± {spread:.3f}" if spread else ""))
            tables[title][name] = [round(float(mean), 4) for mean in means]
        if dev:
            continue
        names = sorted(set(groups))
        member = np.array([[group == name for group in groups] for name in names], np.float64)
        member /= member.sum(axis=1, keepdims=True)
        for first, second in COMPARED:
            ours, theirs = (found[name].mean(axis=2) @ member.T for name in (first, second))
            tests.append((f"{vector}: {first} − {second}", paired_comparison(ours, theirs, seed=0)))
    corrected = holm_p_values([one.p_value for _, one in tests])
    lines.append("\nMeans over components of the recalls at 3, 5 and 8, outer folds; p after Holm")
    tables["comparisons"] = {}
    for (name, one), p_value in zip(tests, corrected.tolist(), strict=True):
        numbers = (one.difference.mean, one.difference.low, one.difference.high)
        lines.append(
            "  {:<52}{:+.3f} [{:+.3f}, {:+.3f}]  p = {:.4f}".format(name, *numbers, p_value)
        )
        tables["comparisons"][name] = [round(number, 4) for number in (*numbers, p_value)]
    return "\n".join(lines) + "\n", tables


def choose_breadth(options: argparse.Namespace) -> None:
    """What each breadth costs in recall of evidence at 5, on all rows of the training parts.

    The largest breadth is taken whose mean loss has a one-sided 95% bound below .005, over all
    kinds of text and over the English ones alone (the others are compared by their spelling, where
    breadth costs nothing), and that costs no kind more than .02 (after Holm's correction).
    """
    from dgn.selector import Limits, Selector

    selector = Selector.from_pretrained()
    lines = [made_by("experiments/aspects.py", "facets"), "command: aspects choose", ""]
    losses: dict[str, NDArray[np.float64]] = {}
    documents: dict[str, list[str]] = {}
    for kind, examples in _training_parts():
        recalls: list[list[float]] = []
        for example in examples:
            query, gold = example.query, np.array(example.gold)
            f, items = selector.encoder.encode([query])
            found: list[float] = []
            for breadth in CANDIDATES:
                limits = Limits(k=_AT, breadth=breadth)
                (one,) = selector.select_encoded([query], limits, f, items)
                found.append(float(gold[list(one.indices)].sum() / gold.sum()))
            recalls.append(found)
        losses[kind] = np.array(recalls)[:, :1] - np.array(recalls)
        documents[kind] = [document_of(example) for example in examples]
        print(kind, len(recalls), losses[kind].mean(axis=0).round(4), flush=True)
    total = sum(map(len, losses.values()))
    lines.append(f"{len(losses)} kinds, {total:,} rows; the loss of recall at {_AT} by breadth")
    chosen = 0.0
    for place, breadth in enumerate(CANDIDATES[1:], 1):
        tests: list[Any] = []
        resampled: dict[str, NDArray[np.float64]] = {}
        for kind, own in losses.items():
            _, number = np.unique(np.array(documents[kind]), return_inverse=True)
            sums = np.bincount(number, own[:, place])
            sizes = np.bincount(number)
            drawn = np.random.default_rng(0).integers(0, len(sums), (_RESAMPLES, len(sums)))
            means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
            resampled[kind] = means
            p_value = np.count_nonzero(means <= _MOST_OF_KIND) / _RESAMPLES
            tests.append((kind, float(own[:, place].mean()), p_value))
        groups = {"all": [*losses], "English": [k for k in losses if not k.startswith("xx-")]}
        means = {n: np.mean([losses[k][:, place].mean() for k in g]) for n, g in groups.items()}
        bounds = {
            name: np.quantile(np.mean([resampled[kind] for kind in group], axis=0), 0.95)
            for name, group in groups.items()
        }
        corrected = holm_p_values([p_value for _, _, p_value in tests])
        above = [tests[n][0] for n in range(len(tests)) if corrected[n] < 0.05]
        worst = max(tests, key=lambda test: test[1])
        is_allowed = max(bounds.values()) < _MOST_LOSS and not above
        chosen = breadth if is_allowed else chosen
        costs = "; ".join(f"{n}: mean {means[n]:.4f}, bound {bounds[n]:.4f}" for n in groups)
        lines.append(
            f"breadth {breadth:<5} {costs}; worst {worst[0]} {worst[1]:.4f}; surely above "
            f"{_MOST_OF_KIND}: {', '.join(above) or 'none'}{'' if is_allowed else '; not allowed'}"
        )
    lines.append(f"chosen: {chosen:g}")
    options.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _training_parts() -> Iterable[tuple[str, Sequence[Any]]]:
    """The examples with gold of the training part of every set, English or not."""
    from experiments.domains import DATA as EVIDENCE
    from experiments.domains import read_domain

    for folder in sorted((EVIDENCE / "evidence").iterdir()):
        if folder.is_dir() and next(folder.glob("train.jsonl*"), None):
            yield folder.name, read_domain(folder.name).train


CANDIDATES = (0.0, 0.05, 0.1, 0.2, 0.3)
_AT, _RESAMPLES, _MOST_LOSS, _MOST_OF_KIND = 5, 2000, 0.005, 0.02


def measure_breadth(options: argparse.Namespace) -> None:
    """Recall by breadth, next to peers: of aspects, of overlapping chunks, and of evidence."""
    from dgn.evaluation import Baseline, Bm25, Diversified, PooledTopK, SelectorBaseline
    from dgn.selector import Selector
    from dgn.text import WordLlamaVectors
    from experiments.transformer import MiniLMVectors

    cases = _cases(options.rows)
    vectors = {"word vectors": WordLlamaVectors(), "MiniLM": MiniLMVectors(in_torch=False)}
    systems: list[tuple[str, Baseline]] = [("BM25, stems", Bm25(stemmed=True))]
    for name, own in vectors.items():
        systems.append((f"cosine, {name}", PooledTopK(own)))
        systems += [
            (f"MMR {diversity:g}, {name}", Diversified("mmr", own, diversity))
            for diversity in DIVERSITIES
        ]
    for model in ("default", "minilm"):
        selector = Selector.from_pretrained(model)
        systems += [
            (f"{model}, breadth {breadth:g}", SelectorBaseline("", selector, breadth=breadth))
            for breadth in BREADTHS
        ]
    tables: Found = {}
    for name, baseline in systems:
        tables[name] = {}
        for case, own in cases.items():
            by_kind: dict[str, list[list[float]]] = {}
            for kind, query, recall in own:
                (chosen,) = baseline.select([query], max(KS))
                by_kind.setdefault(kind, []).append(recall([int(c) for c in chosen if c >= 0]))
            means = np.mean([np.mean(found, axis=0) for found in by_kind.values()], axis=0)
            tables[name][case] = means.round(4).tolist()
        cells = "   ".join("/".join(f"{m:.3f}" for m in of) for of in tables[name].values())
        print(f"{name:<24}{cells}", flush=True)
    about = {
        "made": made_by("experiments/aspects.py", "facets"),
        "command": f"python -m experiments.aspects breadth --rows {options.rows}",
        "queries": {case: len(own) for case, own in cases.items()},
    }
    text = json.dumps(about | {"recall at 3, 5 and 8": tables}, indent=1) + "\n"
    options.out.write_text(text)
    _draw(tables)


Case = tuple[str, Any, Callable[[list[int]], list[float]]]
"""The kind of text, the query, and the recall of what is selected."""


def _cases(rows: int) -> dict[str, list[Case]]:
    from dgn.text import Query
    from experiments.domains import english_sets

    cases: dict[str, list[Case]] = {}
    for name in ("perspectrum-dev", "argkp-train"):
        with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as stream:
            found = [json.loads(line) for line in stream]
        cases[name] = []
        for row in found:
            member = np.zeros((len(row["aspects"]), len(row["passages"])), np.bool_)
            for number, members in enumerate(row["aspects"]):
                member[number, members] = True
            claim = Claim("", row["query"], tuple(row["passages"]), member)
            cases[name].append((name, Query.of(claim.query, claim.passages), claim.recall))
    cases["chunks"], cases["evidence"] = [], []
    for kind in english_sets():
        for example in limited_examples(kind, rows, 100 * rows):
            gold, query = np.array(example.gold), example.query
            places = [np.array([place]) for place in range(len(gold))]
            cases["evidence"].append((kind, query, _recall_of(gold, places)))
            if (windows := windows_of(example)) is not None:
                chunks, places = windows
                cases["chunks"].append((kind, chunks, _recall_of(gold, places)))
    return cases


def _draw(tables: Found) -> None:
    """Evidence against aspects, for breadth from 0 to 1 and for the peers."""
    from matplotlib.figure import Figure

    from dgn.files import save_figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    at = KS.index(5)

    def points(names: Sequence[str]) -> tuple[list[float], list[float]]:
        rows = [tables[name] for name in names]
        return [r["evidence"][at] for r in rows], [r["perspectrum-dev"][at] for r in rows]

    for model, colour in (("default", "#1b6ca8"), ("minilm", "#14613a")):
        names = [f"{model}, breadth {breadth:g}" for breadth in BREADTHS]
        x, y = points(names)
        axes.plot(x, y, "o-", color=colour, label=f"dgn, {model}, by breadth", markersize=4)
        for breadth, right, up in zip(BREADTHS, x, y, strict=True):
            axes.annotate(
                f"{breadth:g}", (right, up), (5, 3), textcoords="offset points", fontsize=8
            )
    for vector, mark in (("word vectors", "s"), ("MiniLM", "^")):
        names = [f"cosine, {vector}", *(f"MMR {d:g}, {vector}" for d in DIVERSITIES)]
        axes.plot(
            *points(names), mark, color="#7a7a7a", markersize=5, label=f"cosine and MMR, {vector}"
        )
    axes.plot(*points(["BM25, stems"]), "x", color="#7a7a7a", label="BM25 with stems")
    axes.set_xlabel("recall of evidence at 5, mean of 32 kinds of text, dev")
    axes.set_ylabel("aspect recall at 5, Perspectrum, dev")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, FIGURE, dpi=150)


BREADTHS = (0, 0.1, 0.2, 0.3, 0.6, 1)
DIVERSITIES = (0.1, 0.3, 0.5, 0.7)


def _recall_of(
    gold: NDArray[np.bool_], windows: Sequence[NDArray[np.int64]]
) -> Callable[[list[int]], list[float]]:
    """The recall of gold sentences of passages that are these windows of sentences."""

    def recall(chosen: list[int]) -> list[float]:
        tops = [np.unique(np.concatenate([windows[c] for c in chosen[:k]])) for k in KS]
        return [float(gold[top].sum() / gold.sum()) for top in tops]

    return recall


def write_vectors(options: argparse.Namespace) -> None:
    """The vectors of all texts, of length 1."""
    from dgn.selector import Selector
    from dgn.text.facets.matching import static_vectors
    from experiments.transformer import MiniLMVectors

    claims = [*read_claims("train"), *read_claims("dev")]
    texts = sorted({t for claim in claims for t in (claim.query, *claim.passages)})
    encoder: Any = Selector.from_pretrained().encoder
    rows, table = encoder.reader.read(texts, ["en"] * len(texts))
    word = static_vectors([np.array(own, np.int64) for own in rows], table).wholes
    minilm = np.asarray(MiniLMVectors(in_torch=False).pooled(texts), np.float32)
    minilm /= np.linalg.norm(minilm, axis=1, keepdims=True)
    np.savez(options.out, texts=np.array(texts), word=word, minilm=minilm)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; see the module."""
    parser = argparse.ArgumentParser(prog="python -m experiments.aspects", description=__doc__)
    commands = parser.add_subparsers(required=True)
    vectors = commands.add_parser("vectors")
    vectors.add_argument("--out", type=Path, required=True)
    vectors.set_defaults(run=write_vectors)
    studied = commands.add_parser("study")
    studied.add_argument("--vectors", type=Path, required=True)
    studied.add_argument("--runs", type=Path, required=True)
    studied.add_argument("--out", type=Path, default=RESULTS, help="without a suffix")
    studied.add_argument("--seeds", type=int, default=5)
    studied.add_argument("--jobs", type=int, default=1)
    studied.add_argument("--dev", action="store_true", help="measure on dev, too, once")
    studied.set_defaults(run=study)
    chosen = commands.add_parser("choose")
    chosen.add_argument("--out", type=Path, default=RESULTS.with_name("aspects-choice.txt"))
    chosen.set_defaults(run=choose_breadth)
    measured = commands.add_parser("breadth")
    measured.add_argument("--rows", type=int, default=15, help="of each kind of evidence")
    measured.add_argument("--out", type=Path, default=RESULTS.with_name("aspects-breadth.json"))
    measured.set_defaults(run=measure_breadth)
    options = parser.parse_args(arguments)
    options.run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
