r"""Train the contextual model: MiniLM under the facets, end to end through the greedy layers.

    python -m experiments.minilm pack FOLDER                             # texts as tokens, words
    python -m experiments.minilm train FOLDER OUT --teacher LOGITS       # 8 minutes on an H200
    python -m experiments.minilm train FOLDER OUT/fold-2 --fold 2        # without these kinds
    python -m experiments.minilm measure OUT/fold-* --ways 1 .5          # recall on kinds left out
    python -m experiments.minilm ship OUT MODEL --way .4 --function .5   # a model folder

A kind of text is drawn by the square root of its size. A step sees windows of documents, with and
without order and titles. The vectors of words are MiniLM's; its linear maps change by matrices of
low rank. The loss is that of the unfolded greedy search and that of the relevance of each passage.
A share of both comes from the logits of a teacher, if there are any; those of the shipped model
came from two cross-encoders, each of which judged the documents that the other learned from
(experiments/read_pairs.py at d973326). A teacher that knows a kind of text may not teach in a fold
that leaves it out.

What is learned on known kinds of text is partly wrong on others. So every step goes a random share
of the way from MiniLM as it was published, and recall on kinds left out, on their training parts,
chooses which share is shipped, of the transformer and of the function. Dev reports.

`train` writes a checkpoint every three minutes, and the same command resumes from it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from dgn.core import top_k
from dgn.core.functions import FeatureCoverage, Items, Power
from dgn.core.numerics import lowest_log
from dgn.data import Example
from dgn.files import write_atomically
from dgn.learn.facets import FacetModule
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.minilm.encoder import DIMENSION, MiniLMEncoder
from dgn.minilm.package import END, START, WordPieces, read_weights
from dgn.minilm.reading import map_names
from dgn.selector import Limits, Selector
from dgn.text.encoder import DEFAULT_BREADTH
from dgn.text.facets.encoder import default_vectors
from dgn.text.facets.formula import (
    Facets,
    FacetSizes,
    FacetWeights,
    positive,
    start_weights,
)
from dgn.text.facets.matching import (
    FUNCTION_WORD_SHARE,
    SAME_STEM,
    SOME_NUMBER,
    TITLE_FROM,
    Matches,
)
from dgn.text.facets.reading import order_of
from dgn.text.spelling import normalized, title_text
from dgn.text.vectors import token_idf
from dgn.text.vocabulary import WordReader
from dgn.text.words import word_spans
from experiments.domains import FOLDS, KINDS, read_domain
from experiments.made import made_by
from experiments.recall import KS, limited_examples, recall_at
from experiments.transformer import transform

_MASK, _LONGEST, _NO_WORD = 103, 254, 255
_BINARY_SHARE, _SMOOTHING = 0.3, 0.05
_TITLES_KEPT, _ORDER_KEPT = 0.7, 0.6
_MOST_PAIRS, _MOST_TOKENS = 6_000_000, 120_000
_NETWORK = ("projection", "hidden", "hidden_bias", "output", "output_bias", "relevance_weight")
_MINUTES = 3.0
_BREADTHS = (0.0, DEFAULT_BREADTH)


@dataclass(frozen=True)
class Settings:
    """How the model is trained.

    Attributes:
        passages: The most passages of a query in a step.
        rank: Of the changes of the linear maps.
        learning_rate: Of the transformer; the network has `head_rate`, the function .3 of it.
        hidden: Hidden units of the network that judges relevance.
        masked: The share of tokens that are masked.
        unseen: The share of the words of a query that a passage seems not to contain.
        least_way: The least share of the way that a step goes.
        teacher_share: The share of the teacher in the loss of the relevance.
        layer_teacher: The share of the teacher in the loss of the first layer.
        function: "set"; "ranker" for a sum over passages, which ranks them by what each is worth.
        trained: "layers", or "alone": each passage by itself.
    """

    steps: int = 4000
    batch: int = 24
    passages: int = 18
    rank: int = 32
    learning_rate: float = 8e-4
    head_rate: float = 2e-3
    hidden: int = 96
    projection: int = 48
    dropout: float = 0.1
    head_dropout: float = 0.3
    masked: float = 0.1
    unseen: float = 0.1
    least_way: float = 0.5
    layers: int = 4
    temperature: float = 0.2
    greedy_share: float = 2.0
    teacher_share: float = 0.5
    layer_teacher: float = 0.5
    function: str = "set"
    trained: str = "layers"
    seed: int = 0


def pack(folder: Path) -> None:
    """Write the texts of all kinds as tokens and words: 28 MB."""
    pieces, selector = WordPieces(), Selector.from_pretrained("untrained")
    texts: dict[str, int] = {"": 0}

    def number(text: str) -> int:
        return texts.setdefault(normalized(text), len(texts))

    names = ("queries", "passages", "titles", "gold", "hard", "domain", "is_dev", "counts")
    columns: dict[str, list[Any]] = {
        name: [] for name in (*names, "position", "ordered", "follows")
    }
    for place, name in enumerate(KINDS):
        domain = read_domain(name)
        for is_dev, part in enumerate((domain.train, domain.dev)):
            for example in part:
                query = example.query
                chosen: tuple[int, ...] = ()
                if not is_dev:
                    chosen = selector.select_queries([query], Limits(k=16))[0].indices
                for column, value in {
                    "queries": [number(query.text)],
                    "counts": [len(query.passages)],
                    "domain": [place],
                    "is_dev": [is_dev],
                    "passages": [number(text) for text in query.texts],
                    "titles": [number(title_text(p.title)) for p in query.passages],
                    "gold": example.gold,
                    "hard": [i in chosen and not g for i, g in enumerate(example.gold)],
                    **dict(
                        zip(
                            ("position", "ordered", "follows"),
                            order_of(query.passages),
                            strict=True,
                        )
                    ),
                }.items():
                    columns[column].extend(value)
    rows, table = WordReader(default_vectors(), token_idf()).read(list(texts), forgets=False)
    tokens: list[int] = []
    words: list[int] = []
    lengths: list[tuple[int, int]] = []
    known: list[int] = []
    for text, own in zip(texts, rows, strict=True):
        spans, located = word_spans(text), pieces.located(text, _LONGEST)
        ends = np.array([end for _, end in spans])
        for token, begin in located:
            word = int(np.searchsorted(ends, begin, side="right"))
            inside = word < min(len(spans), _NO_WORD) and begin >= spans[word][0]
            words.append(word if inside else _NO_WORD)
            tokens.append(token)
        last = located[-1][1] if len(located) == _LONGEST else len(text)
        count = min(sum(begin <= last for begin, _ in spans), _NO_WORD, len(own))
        lengths.append((len(located), count))
        known += own[:count]
    used = max(known) + 1
    arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
    arrays |= {
        "names": np.array(KINDS),
        "tokens": np.array(tokens, np.uint16),
        "words": np.array(words, np.uint8),
        "lengths": np.array(lengths, np.int32),
        "word_rows": np.array(known, np.int32),
        "facts": table.facts[:used],
        "stem": table.stem[:used],
    }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "examples.npz", **arrays)


class Pack:
    """The queries of all kinds of text, in flat arrays; texts are on the device."""

    def __init__(self, folder: Path, device: str, teacher: Path | None = None) -> None:
        found: dict[str, Any] = dict(np.load(folder / "examples.npz"))
        self.device = device
        self.names: list[str] = found["names"].tolist()
        self.ends: Any = np.concatenate([[0], np.cumsum(found["counts"].astype(np.int64))])
        self.columns = {name: found[name] for name in ("gold", "position", "ordered", "follows")}
        self.queries, self.passages, self.titles = (
            found[name].astype(np.int64) for name in ("queries", "passages", "titles")
        )
        self.hard: Any = found["hard"]
        self.teacher = np.full(len(self.hard), np.nan, np.float32)
        if teacher is not None:
            self.teacher[:] = np.load(teacher)["logits"]
        self.rows = {
            (name, part): np.flatnonzero((found["domain"] == number) & (found["is_dev"] == dev))
            for number, name in enumerate(self.names)
            for dev, part in enumerate(("train", "dev"))
        }
        self.lengths, self.word_counts = found["lengths"].astype(np.int64).T
        self.token_starts: Any = np.cumsum(self.lengths) - self.lengths
        self.word_starts: Any = np.cumsum(self.word_counts) - self.word_counts

        def moved(name: str, kind: Any) -> Tensor:
            return torch.from_numpy(found[name].astype(kind)).to(device)

        self.tokens, self.words = moved("tokens", np.int32), moved("words", np.uint8)
        self.word_rows = moved("word_rows", np.int32)
        self.facts, self.stem = moved("facts", np.float32), moved("stem", np.int64)

    def count(self, row: int) -> int:
        """The number of passages of a query."""
        return int(self.ends[row + 1] - self.ends[row])

    def window(self, row: int, most: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Some passages of a query; all of them if there are few."""
        inside = slice(self.ends[row], self.ends[row + 1])
        gold, hard, count = self.columns["gold"][inside], self.hard[inside], self.count(row)
        if count <= most:
            return np.arange(count)
        if random.random() < 0.35:  # a part of the document
            size = int(random.integers(min(8, most), most + 1))
            middle = int(random.choice(np.flatnonzero(gold)))
            first = int(np.clip(middle - random.integers(0, size), 0, count - size))
            return np.arange(first, first + size)
        third = most // 3
        kept = [random.permutation(np.flatnonzero(some))[:third] for some in (gold, hard)]
        others = random.permutation(np.flatnonzero(~gold & ~hard))
        return np.unique(np.concatenate([*kept, others[: most - sum(map(len, kept))]]))


@dataclass(frozen=True, eq=False)
class Windows:
    """Some passages of some queries, padded: numbers of texts, and what is known of each passage.

    Attributes:
        queries: [batch].
        passages: [batch, items]; padding is text 0, which is empty.
        titles: [batch, items].
        columns: gold, position, ordered and follows, [batch, items] each.
        teacher: [batch, items], logits, or NaN.
        mask: [batch, items].
    """

    queries: NDArray[np.int64]
    passages: NDArray[np.int64]
    titles: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]
    teacher: NDArray[np.float32]
    mask: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        pack: Pack,
        rows: Sequence[int],
        places: Sequence[NDArray[np.int64]],
        random: np.random.Generator | None = None,
    ) -> Windows:
        """These passages of these queries; in training, some without titles and order."""
        shape = len(rows), max(map(len, places))
        columns = {name: np.zeros(shape, own.dtype) for name, own in pack.columns.items()}
        passages, titles = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        mask, teacher = np.zeros(shape, np.bool_), np.full(shape, np.nan, np.float32)
        for number, (row, own) in enumerate(zip(rows, places, strict=True)):
            at, inside = pack.ends[row] + own, (number, slice(len(own)))
            passages[inside], mask[inside], teacher[inside] = (
                pack.passages[at],
                True,
                pack.teacher[at],
            )
            columns["gold"][inside] = pack.columns["gold"][at]
            if random is None or random.random() < _TITLES_KEPT:
                titles[inside] = pack.titles[at]
            if random is None or random.random() < _ORDER_KEPT:
                for name in ("position", "ordered"):
                    columns[name][inside] = pack.columns[name][at]
                is_next = own[1:] == own[:-1] + 1
                columns["follows"][number, 1 : len(own)] = pack.columns["follows"][at[1:]] & is_next
        return cls(pack.queries[list(rows)], passages, titles, columns, teacher, mask)


class Model(nn.Module):
    """The facets with the vectors of a transformer whose linear maps are W + way · up · down."""

    def __init__(self, settings: Settings, way: float = 1.0) -> None:
        super().__init__()
        self.settings, self.way = settings, way
        self.base = {name: torch.from_numpy(w) for name, w in read_weights().items()}
        self.rounded: dict[str, Tensor] = {}
        self.updates = nn.ParameterDict()
        for name in map_names():
            outputs, inputs = self.base[f"{name}.weight"].shape
            down = torch.randn(settings.rank, inputs) / math.sqrt(inputs)
            self.updates[f"{name}.down".replace(".", "/")] = nn.Parameter(down)
            up = torch.zeros(outputs, settings.rank)
            self.updates[f"{name}.up".replace(".", "/")] = nn.Parameter(up)
        self.facets = FacetModule(begin(settings), settings.head_dropout)
        self.dropout = nn.Dropout(settings.dropout)

    def moved(self, device: str) -> Model:
        """The model on a device, with MiniLM's weights."""
        self.base = {name: weight.to(device) for name, weight in self.base.items()}
        return self.to(device)

    def weights(self) -> dict[str, Tensor]:
        """The transformer's weights as they are now; in training on a GPU, with 16 bits."""
        found = self.base
        is_half = self.training and self.facets.get_parameter("threshold").is_cuda
        if is_half:
            self.rounded = self.rounded or {name: w.bfloat16() for name, w in found.items()}
            found = self.rounded
        found = dict(found)
        for name in map_names():
            down, up = (self.updates[f"{name}.{part}".replace(".", "/")] for part in ("down", "up"))
            weight = self.base[f"{name}.weight"] + self.way * (up @ down)
            found[f"{name}.weight"] = weight.bfloat16() if is_half else weight
        return found

    def read(self, pack: Pack, numbers: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """[texts, words, width] and [texts, width], the vectors of the words of texts, and theirs.

        They have length 1, or 0 where there is no word.
        """
        counts, device = pack.word_counts[numbers], pack.device
        most = max(1, int(counts.max()))
        order = np.argsort(pack.lengths[numbers], kind="stable")
        lengths = pack.lengths[numbers][order]
        weights = self.weights()
        hidden: list[Tensor] = []
        places: list[Tensor] = []
        wholes: list[Tensor] = []
        for some in np.split(np.arange(len(order)), _cuts(lengths)):
            own = order[some]
            table = np.stack([pack.lengths[numbers[own]], own, pack.token_starts[numbers[own]]])
            length, text, token = torch.from_numpy(table).to(device)
            width = max(1, int(lengths[some].max()))
            place = torch.arange(width, device=device)
            inside = place < length[:, None]
            rows = ((token[:, None] + place) * inside).clamp(max=len(pack.tokens) - 1)
            tokens = pack.tokens[rows].long() * inside
            if self.training and self.settings.masked:
                is_masked = torch.rand(tokens.shape, device=device) < self.settings.masked
                tokens = torch.where(is_masked & inside, _MASK, tokens)
            full = functional.pad(tokens, (1, 1))
            full[:, 0] = START
            full.scatter_(1, length[:, None] + 1, END)
            mask = torch.arange(width + 2, device=device) < length[:, None] + 2
            is_mixed = device == "cuda" and not self.training
            with torch.autocast(device, torch.bfloat16, enabled=is_mixed):
                vectors = transform(weights, full, mask, drop=self.dropout)
            vectors = vectors.float()
            wholes.append((vectors * mask[..., None]).sum(1))
            word = pack.words[rows].long()
            used = inside & (word != _NO_WORD)
            places.append(torch.where(used, text[:, None] * most + word, -1).reshape(-1))
            hidden.append(vectors[:, 1:-1].reshape(-1, DIMENSION))
        at = torch.cat(places)
        vectors = torch.cat(hidden) * (at >= 0)[:, None]
        sums = torch.zeros(len(numbers) * most, DIMENSION, device=device)
        words = functional.normalize(sums.index_add(0, at.clamp(min=0), vectors), dim=1)
        back = torch.from_numpy(np.argsort(order)).to(device)
        whole = functional.normalize(torch.cat(wholes)[back], dim=1)
        has_words = torch.from_numpy(counts > 0).to(device)
        return words.view(len(numbers), most, DIMENSION), whole * has_words[:, None]

    def matches(self, pack: Pack, windows: Windows) -> Matches:
        """The queries against their passages: `match_query`, with gradients."""
        queries, shape = len(windows.queries), windows.passages.shape
        numbers = (windows.queries, windows.passages.ravel(), windows.titles.ravel())
        texts, inverse = np.unique(np.concatenate(numbers), return_inverse=True)
        words, wholes = self.read(pack, texts)
        counts = pack.word_counts[texts][inverse]
        by_text = np.stack([inverse, counts, pack.word_starts[texts][inverse]])
        moved = torch.from_numpy(by_text).to(pack.device)

        def part(first: int, last: int, size: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
            """The vectors of words, their rows in the table, and which are there."""
            most = max(1, int(counts[first:last].max()))
            _, count, known = (column.view(size)[..., None] for column in moved[:, first:last])
            place = torch.arange(most, device=pack.device)
            inside = place < count
            rows = pack.word_rows[((known + place) * inside).clamp(max=len(pack.word_rows) - 1)]
            vectors = words[:, :most].index_select(0, moved[0, first:last])
            return vectors.view(*size, most, DIMENSION), rows.long() * inside, inside

        end = queries + shape[0] * shape[1]
        query = part(0, queries, (queries,))
        own = _compared(pack, query, part(queries, end, shape))
        titled = _compared(pack, query, part(end, len(inverse), shape))
        near = ((titled["similarity"] - TITLE_FROM) / (1 - TITLE_FROM)).clamp(0, 1)
        if self.training and self.settings.unseen:
            seen = torch.rand(own["exact"].shape, device=pack.device) >= self.settings.unseen
            own |= {name: own[name] * seen for name in ("similarity", "exact", "pair")}
        mask = torch.from_numpy(windows.mask).to(pack.device)
        about = wholes[moved[0, :queries]]
        passages = wholes[moved[0, queries:end]].view(*shape, DIMENSION) * mask[..., None]
        column = {
            name: torch.from_numpy(values.astype(np.float32)).to(pack.device)
            for name, values in windows.columns.items()
        }
        pairs = {"similarity", "exact", "pair"}
        return Matches(
            vectors=query[0].reshape(-1, DIMENSION),
            facts=pack.facts[query[1].reshape(-1)],
            real=query[2],
            mask=mask,
            query=torch.arange(query[1].numel(), device=pack.device).view(query[1].shape),
            about=about,
            title=torch.where(titled["exact"] > 0, 1.0, near) * mask[..., None],
            passages=passages,
            likeness=torch.einsum("bid,bd->bi", passages, about).clamp(min=0),
            position=column["position"],
            is_ordered=column["ordered"],
            follows=column["follows"],
            relevance=torch.zeros(shape, device=pack.device),
            **{name: x * (mask[..., None] if name in pairs else mask) for name, x in own.items()},
        )


def begin(settings: Settings) -> FacetWeights:
    """Where the facets start: contextual vectors are nearer to each other than static ones."""
    sizes = FacetSizes(DIMENSION, settings.projection, settings.hidden, relevance=1)
    chosen = {
        "threshold": [0.4],
        "log_scale": [math.log(10.0)],
        "bonus": [positive(0.1), positive(0.2), positive(0.2)],
        "neighbours": [positive(0.02), positive(0.02)],
        "likeness": [positive(0.15), 0.2],
    }
    named = {name: np.array(values, np.float32) for name, values in chosen.items()}
    return replace(start_weights(sizes, seed=0), **named)


def _compared(
    pack: Pack, query: tuple[Tensor, Tensor, Tensor], texts: tuple[Tensor, Tensor, Tensor]
) -> dict[str, Tensor]:
    """The words of each query against those of each of its texts."""
    asked, asked_rows, real = query
    own, rows, inside = texts
    cosines = own.flatten(1, 2) @ asked.transpose(1, 2)
    cosines = cosines.view(*own.shape[:3], asked.shape[1]).clamp(0, 1)
    facts, wants = pack.facts[rows], pack.facts[asked_rows][:, None, None]
    is_number, is_year, is_function = (facts[..., n : n + 1] > 0 for n in (1, 2, 3))
    wants_number, wants_year, asks_function = (wants[..., n] > 0 for n in (1, 2, 3))
    cosines = cosines * ~(is_number | wants_number)
    both = inside[..., None] & real[:, None, None]
    same = (pack.stem[rows][..., None] == pack.stem[asked_rows][:, None, None]) & both
    near = torch.maximum(cosines, SAME_STEM * same)
    near = torch.where(rows[..., None] == asked_rows[:, None, None], 1.0, near)
    is_asked = (wants_year & is_year) | (~wants_year & is_number)
    near = torch.where(wants_number & is_asked & ~same, SOME_NUMBER, near)
    near = torch.where(same & wants_number, 1.0, near) * both
    pair = torch.zeros_like(same)
    pair[..., 1:, 1:] = same[..., 1:, 1:] & same[..., :-1, :-1]
    counted = ~asks_function & real[:, None, None]
    counted = torch.where(counted.any(-1, keepdim=True), counted, real[:, None, None])
    weight = facts[..., 0] * torch.where(is_function[..., 0], FUNCTION_WORD_SHARE, 1.0) * inside
    total = weight.sum(-1).clamp(min=1e-6)
    return {
        "similarity": near.amax(2),
        "exact": same.any(2).float(),
        "pair": pair.any(2).float(),
        "precision": (weight * (near * counted).amax(-1)).sum(-1) / total,
        "numbers": (weight * is_number[..., 0]).sum(-1) / total,
        "length": inside.sum(-1).float(),
    }


def _cuts(lengths: NDArray[np.int64]) -> list[int]:
    """Where to cut texts that are sorted by length, so that little is padded."""
    cuts: list[int] = []
    start, least = 0, max(64, len(lengths) // 4)
    for place in range(1, len(lengths)):
        size = place - start
        if (size + 1) * (lengths[place] + 2) > _MOST_TOKENS or size >= least:
            cuts.append(place)
            start = place
    return cuts


def objective_of(facets: Facets, mask: Tensor, function: str) -> tuple[FeatureCoverage, Items]:
    """The set function; for a ranker, the sum of what each passage is worth alone."""
    if function == "set":
        return facets.function(mask)
    alone = _alone(facets)[..., None]
    return FeatureCoverage(torch.ones_like(alone[:, 0]), Power(1.0)), Items(alone, mask)


def _alone(facets: Facets) -> Tensor:
    return (facets.weights[:, None] * torch.log1p(facets.features)).sum(-1)


def loss_of(model: Model, pack: Pack, windows: Windows) -> Tensor:
    """The loss of the greedy search and that of the relevance, each with the teacher's share."""
    settings = model.settings
    matches = model.matches(pack, windows)
    facets, mask = model.facets.facets(matches), matches.mask
    gold = torch.from_numpy(windows.columns["gold"]).to(pack.device)
    teacher = torch.from_numpy(windows.teacher).to(pack.device)
    taught = torch.isfinite(teacher)
    has_teacher = bool(np.isfinite(windows.teacher).any())
    if settings.trained == "alone":
        logits = torch.where(mask, _alone(facets) / settings.temperature, lowest_log(teacher))
        greedy, first = _listwise(logits, gold, mask), torch.log_softmax(logits, 1)
    else:
        layers = UnfoldedGreedy(settings.layers, settings.temperature)
        unfolded = layers(*objective_of(facets, mask, settings.function))
        greedy, first = LayerwiseCrossEntropy("set")(unfolded, gold), unfolded.log_probs[:, 0]
    wanted = _SMOOTHING + (1 - 2 * _SMOOTHING) * gold.float()
    share = settings.teacher_share * has_teacher
    soft = torch.where(taught, torch.sigmoid(torch.nan_to_num(teacher)), wanted)
    if has_teacher:
        known = torch.where(taught & mask, torch.nan_to_num(teacher), lowest_log(teacher))
        distilled = -(torch.softmax(known, 1) * first.clamp(min=-50)).sum(1).mean()
        greedy = (1 - settings.layer_teacher) * greedy + settings.layer_teacher * distilled
    binary = functional.binary_cross_entropy_with_logits(
        facets.logits, (1 - share) * wanted + share * soft, reduction="none"
    )
    relevance = (1 - share) * _listwise(facets.logits, gold, mask)
    relevance = relevance + (_BINARY_SHARE + share) * (binary * mask).sum() / mask.sum()
    return settings.greedy_share * greedy + relevance


def _listwise(logits: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
    """Each gold passage against all that are not gold."""
    others = torch.where(mask & ~gold, logits, lowest_log(logits))
    above = logits - torch.logsumexp(others, dim=1, keepdim=True)
    return (-(functional.logsigmoid(above) * gold).sum(dim=1) / gold.sum(dim=1)).mean()


def train(
    pack: Pack,
    out: Path,
    settings: Settings,
    kinds: Sequence[str],
    seconds: float | None,
    every: int,
) -> None:
    """Train on these kinds; write weights.npz, and a checkpoint from time to time."""
    torch.backends.cuda.enable_cudnn_sdp(False)  # it fails where several processes share a GPU
    torch.manual_seed(settings.seed)
    model = Model(settings).moved(pack.device).train()
    network, function = model.facets.network_parameters()
    updates = list(model.updates.parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": updates, "lr": settings.learning_rate, "weight_decay": 0.01},
            {"params": network, "lr": settings.head_rate, "weight_decay": 0.1},
            {"params": function, "lr": 0.3 * settings.head_rate, "weight_decay": 0.0},
        ]
    )
    rates = [group["lr"] for group in optimizer.param_groups]
    shares = np.sqrt([len(pack.rows[name, "train"]) for name in kinds])
    shares /= shares.sum()
    out.mkdir(parents=True, exist_ok=True)
    checkpoint, first = out / "checkpoint.pt", 0
    if checkpoint.is_file():
        kept = torch.load(checkpoint, map_location=pack.device, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = int(kept["step"])
        print(f"resumes at step {first}", flush=True)
    started = saved = time.monotonic()
    for step in range(first, settings.steps):
        done = step / settings.steps
        if seconds is not None:
            done = max(done, (time.monotonic() - started) / seconds)
        if done >= 1:
            print(f"out of time after {step} steps", flush=True)
            break
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * min(1.0, (step + 1) / 100) * max(0.02, 1 - done)
        # The rows follow from the number of the step, so that a resumed run sees the same ones.
        random = np.random.default_rng((settings.seed, step))
        model.way = float(random.uniform(settings.least_way, 1.0))
        loss = loss_of(model, pack, _drawn(pack, kinds, shares, settings, random))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        nn.utils.clip_grad_norm_(updates, 1.0)
        optimizer.step()
        now = time.monotonic()
        if (step + 1) % every == 0:
            left = (now - started) / (step + 1 - first) * (settings.steps - step - 1)
            print(f"step {step + 1}: loss {loss.item():.3f}, {left:.0f} s left", flush=True)
        if now - saved > 60 * _MINUTES:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "step": step + 1}, checkpoint.with_suffix(".tmp"))
            checkpoint.with_suffix(".tmp").replace(checkpoint)
            saved = now
    arrays = {name: w.detach().cpu().numpy() for name, w in model.named_parameters()}
    kept: dict[str, Any] = {
        n: w.astype(np.float16) if n.startswith("updates.") else w for n, w in arrays.items()
    }
    np.savez(out / "weights.npz", **kept)
    write_atomically(out / "settings.json", json.dumps(vars(settings)))


def _drawn(
    pack: Pack,
    kinds: Sequence[str],
    shares: NDArray[np.float64],
    settings: Settings,
    random: np.random.Generator,
) -> Windows:
    rows: list[int] = []
    places: list[NDArray[np.int64]] = []
    while len(rows) < settings.batch:
        kind = kinds[int(random.choice(len(kinds), p=shares))]
        row = int(random.choice(pack.rows[kind, "train"]))
        own = pack.window(row, settings.passages, random)
        gold = pack.columns["gold"][pack.ends[row] + own]
        if gold.any() and not gold.all():
            rows.append(row)
            places.append(own)
    return Windows.of(pack, rows, places, random)


def function_of(
    learned: Mapping[str, NDArray[Any]], settings: Settings, way: float
) -> FacetWeights:
    """The facets, a share of the way from their start; the network as it is."""
    facets = {n.removeprefix("facets."): w for n, w in learned.items() if n.startswith("facets.")}
    start = vars(begin(settings))
    return FacetWeights(
        **{
            n: w if n in _NETWORK else (start[n] + way * (w - start[n])).astype(np.float32)
            for n, w in facets.items()
        }
    )


def encoder_of(run: Path, way: float, function: float) -> MiniLMEncoder:
    """What `train` wrote, at these shares of the way, of the transformer and of the function."""
    settings = Settings(**json.loads((run / "settings.json").read_text(encoding="utf-8")))
    learned = dict(np.load(run / "weights.npz"))
    updates = {
        n.removeprefix("updates.").replace("/", "."): (w * (way if n.endswith("/up") else 1))
        for n, w in learned.items()
        if n.startswith("updates.")
    }
    halves = {name: array.astype(np.float16) for name, array in updates.items()}
    return MiniLMEncoder(function_of(learned, settings, function), halves)


def measure(
    runs: Sequence[Path],
    ways: tuple[Sequence[float], Sequence[float]],
    most: tuple[int, int],
    part: str,
) -> None:
    """Print the recall of what was trained, as it selects, at shares of the way.

    Args:
        runs: What `train` wrote. Those that are named fold-N are measured on the kinds of fold N,
            which they have not learned from, and are one row together; others on all kinds.
        ways: The shares of the transformer, and those of the function.
        most: The most queries of each kind, and the most passages of all of them.
        part: "train" to choose, "dev" to report.
    """
    examples = {name: limited_examples(name, *most, part) for name in KINDS}
    print(made_by("experiments/minilm.py"))
    print(f"{part} parts, {sum(map(len, examples.values())):,} queries; at {KS}")
    groups: dict[str, dict[Path, Sequence[str]]] = {}
    for run in runs:
        name, _, fold = run.name.partition("-")
        groups.setdefault(name, {})[run] = FOLDS[int(fold)] if fold else KINDS
    for name, own in groups.items():
        for way in ways[0]:
            found: dict[tuple[str, float], list[NDArray[np.float64]]] = {}
            for run, kinds in own.items():
                for label, function, recalls in _recalls(run, way, ways[1], kinds, examples):
                    found.setdefault((label, function), []).extend(recalls)
            for (label, function), recalls in found.items():
                mean = np.mean(recalls, axis=0)
                row = f"{name}, {label}, way {way:g}, function {function:g}"
                print(f"{row:<52}" + "".join(f"{share:>8.4f}" for share in mean), flush=True)


def _recalls(
    run: Path,
    way: float,
    functions: Sequence[float],
    kinds: Sequence[str],
    examples: Mapping[str, Sequence[Example]],
) -> Iterator[tuple[str, float, list[NDArray[np.float64]]]]:
    """How it selects, the share of the function, and the mean recall of each kind."""
    encoders = [encoder_of(run, way, function) for function in functions]
    selectors = [Selector(encoder) for encoder in encoders]
    found: dict[tuple[str, float], list[NDArray[np.float64]]] = {}
    for kind in kinds:
        of_kind: dict[tuple[str, float], list[list[float]]] = {}
        for example in examples[kind]:
            query, gold = example.query, np.array(example.gold)
            matched = encoders[0].match([query])  # the transformer reads once for all functions
            wholes: Any = encoders[0].kept(query)
            for encoder, selector, function in zip(encoders, selectors, functions, strict=True):
                f, items = encoder.encode_matches(matched)
                encoder.keep([query], [wholes])
                alone: Any = top_k(f.gains(items, f.empty(items)), max(KS), items.mask)
                chosen = {"ranked": alone[0].indices}
                for breadth in _BREADTHS:
                    limits = Limits(k=max(KS), breadth=breadth)
                    (selection,) = selector.select_encoded([query], limits, f, items)
                    chosen[f"breadth {breadth:g}"] = selection.indices
                for label, indices in chosen.items():
                    of_kind.setdefault((label, function), []).append(recall_at(indices, gold))
        for key, recalls in of_kind.items():
            found.setdefault(key, []).append(np.mean(recalls, axis=0))
    for (label, function), recalls in found.items():
        yield label, function, recalls


def ship(run: Path, folder: Path, way: float, function: float) -> None:
    """Write a model folder at these shares of the way, of the transformer and of the function."""
    Selector(encoder_of(run, way, function)).save_pretrained(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack, train, measure or ship."""
    parser = argparse.ArgumentParser(prog="python -m experiments.minilm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    packing, training, measuring, shipping = (
        commands.add_parser(name) for name in ("pack", "train", "measure", "ship")
    )
    packing.add_argument("folder", type=Path)
    training.add_argument("folder", type=Path)
    training.add_argument("out", type=Path)
    training.add_argument("--fold", type=int, help="leave out the kinds of a fold")
    training.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    training.add_argument("--teacher", type=Path, help="npz with logits of all passages, or NaN")
    training.add_argument("--seconds", type=float, help="stop training after this time")
    training.add_argument("--every", type=int, default=10, help="steps between two lines")
    for one in fields(Settings):
        default: Any = getattr(Settings(), one.name)
        name = f"--{one.name.replace('_', '-')}"
        training.add_argument(name, type=default.__class__, default=default)
    measuring.add_argument("runs", type=Path, nargs="+", help="what train wrote; fold-N: left out")
    measuring.add_argument("--ways", type=float, nargs="+", default=[1.0, 0.5])
    measuring.add_argument("--functions", type=float, nargs="+", default=[1.0])
    measuring.add_argument("--most", type=int, nargs=2, default=(60, 4000))
    measuring.add_argument("--part", choices=("train", "dev"), default="train")
    shipping.add_argument("out", type=Path)
    shipping.add_argument("model", type=Path)
    shipping.add_argument("--way", type=float, required=True)
    shipping.add_argument("--function", type=float, required=True)
    given = parser.parse_args(arguments)
    if given.command == "pack":
        pack(given.folder)
    elif given.command == "ship":
        ship(given.out, given.model, given.way, given.function)
    elif given.command == "train":
        fold: int | None = given.fold
        left: tuple[str, ...] = () if fold is None else FOLDS[fold]
        data = Pack(given.folder, given.device, given.teacher)
        settings = Settings(**{one.name: getattr(given, one.name) for one in fields(Settings)})
        kinds = [name for name in data.names if name not in left]
        train(data, given.out, settings, kinds, given.seconds, given.every)
    else:
        measure(given.runs, (given.ways, given.functions), tuple(given.most), given.part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
