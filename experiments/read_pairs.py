r"""Train MiniLM to read a query and a passage together, for the model minilm.

    python -m experiments.read_pairs pack FOLDER            # here: tokens and weights, 60 MB
    python experiments/read_pairs.py compare FOLDER OUT     # on a GPU: words and texts, compared
    python experiments/read_pairs.py train FOLDER OUT       # on a GPU: needs torch alone
    python -m experiments.read_pairs ship OUT/reader.npz src/dgn/models/minilm

Every domain counts alike. The linear maps of the transformer change by a matrix of low rank, so
that what is learned has 3 MB. The same command with `--rank 0` trains all weights: the
cross-encoder that the model is compared with. A passage of a document is read with the passages
around it (`--before`, `--after`: how many of their tokens), which often say what a pronoun means.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_MAPS = (
    *(f"attention.self.{part}" for part in ("query", "key", "value")),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
)
_START, _END, _MASK, _STOP = 101, 102, 103, 1012
_LONGEST_TEXT, _NO_WORD, _NUMBER = 254, 255, 254
_LONGEST = {"query": 48, "title": 16, "passage": 96}
_BINARY_SHARE, _SMOOTHING = 0.3, 0.05
_PARTS_OF_A_BATCH = 4
_COMPARED_LAYERS = (4, 5, 6)


class Reader(nn.Module):
    """A cross-encoder whose linear maps are W + up · down; with rank 0, W itself is trained."""

    def __init__(self, weights: dict[str, Tensor], rank: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.rank = rank
        named = {name.replace(".", "/"): nn.Parameter(w.float()) for name, w in weights.items()}
        self.weights = nn.ParameterDict(named).requires_grad_(rank == 0)
        self.low = nn.ParameterDict()
        for layer in range(_LAYERS) if rank else ():
            for part in _MAPS:
                name = f"encoder/layer/{layer}/{part.replace('.', '/')}"
                outputs, inputs = self.weights[f"{name}/weight"].shape
                down = torch.randn(rank, inputs) / math.sqrt(inputs)
                self.low[f"{name}/down"] = nn.Parameter(down)
                self.low[f"{name}/up"] = nn.Parameter(torch.zeros(outputs, rank))
        self.pool, self.score = nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, 1)
        for part in (self.pool, self.score):
            nn.init.normal_(part.weight, std=0.02)
            nn.init.zeros_(part.bias)
        nn.init.constant_(self.score.bias, -1.0)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """A logit for every pair."""
        first = self.hidden(tokens, kinds, mask)[-1][:, 0]
        return self.score(self.dropout(torch.tanh(self.pool(first))))[:, 0].float()

    def hidden(self, tokens: Tensor, kinds: Tensor, mask: Tensor) -> list[Tensor]:
        """The vectors of all tokens after each layer; the first are the embeddings."""
        w = self.weights
        x = functional.embedding(tokens, w["embeddings/word_embeddings/weight"])
        x = x + w["embeddings/position_embeddings/weight"][: tokens.shape[1]]
        x = x + functional.embedding(kinds, w["embeddings/token_type_embeddings/weight"])
        x = self.dropout(self._norm(x, "embeddings"))
        found = [x]
        shape = (*tokens.shape, _HEADS, _WIDTH // _HEADS)
        for number in range(_LAYERS):
            layer = f"encoder/layer/{number}"
            query, key, value = (
                self._map(x, f"{layer}/attention/self/{part}").view(shape).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = functional.scaled_dot_product_attention(
                query, key, value, mask[:, None, None, :]
            )
            seen = self._map(
                seen.transpose(1, 2).reshape(x.shape), f"{layer}/attention/output/dense"
            )
            x = self._norm(x + self.dropout(seen), f"{layer}/attention/output")
            wide = functional.gelu(self._map(x, f"{layer}/intermediate/dense"))
            wide = self._map(wide, f"{layer}/output/dense")
            x = self._norm(x + self.dropout(wide), f"{layer}/output")
            found.append(x)
        return found

    def _map(self, x: Tensor, name: str) -> Tensor:
        weight = self.weights[f"{name}/weight"]
        if self.rank:
            weight = weight + self.low[f"{name}/up"] @ self.low[f"{name}/down"]
        return functional.linear(x, weight, self.weights[f"{name}/bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale = self.weights[f"{name}/LayerNorm/weight"]
        return functional.layer_norm(
            x, (_WIDTH,), scale, self.weights[f"{name}/LayerNorm/bias"], 1e-12
        )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Some pairs of a query and a passage, each a text by its number; -1 for none."""

    query: Any
    title: Any
    passage: Any
    before: Any
    after: Any

    def __getitem__(self, places: Any) -> Pairs:
        return Pairs(*(column[places] for column in vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """All pairs of these parts, in order."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


class Pack:
    """The examples of all domains as tokens, in a few flat arrays; the tokens are on the device."""

    def __init__(self, folder: Path, device: str, context: tuple[int, int] = (0, 0)) -> None:
        found = dict(np.load(folder / "examples.npz"))
        self.context = context
        self.lengths: Any = found["text_lengths"]
        self.words: Any = found["words"]
        self.ends: Any = np.concatenate([[0], np.cumsum(found["counts"])])
        self.queries, self.passages, self.titles = (
            found[name] for name in ("queries", "passages", "titles")
        )
        self.gold, self.hard, self.follows = found["gold"], found["hard"], found["follows"]
        self.domains: list[str] = found["names"].tolist()
        self.rows = {
            (name, part): np.flatnonzero((found["domain"] == number) & (found["is_dev"] == dev))
            for number, name in enumerate(self.domains)
            for dev, part in enumerate(("train", "dev"))
        }
        starts = np.cumsum(self.lengths) - self.lengths
        self.device = device
        self.tokens = torch.from_numpy(found["tokens"].astype(np.int32)).to(device)
        self._starts = torch.from_numpy(starts).to(device)
        self._lengths = torch.from_numpy(self.lengths.astype(np.int64)).to(device)

    def pairs(
        self, example: int, places: Any, *, titles: bool = True, neighbours: bool = True
    ) -> Pairs:
        """The query of an example with some of its passages."""
        first, last = self.ends[example], self.ends[example + 1] - 1
        own = first + places
        nothing = np.full(len(own), -1)
        before, after = nothing, nothing
        if neighbours:
            before = np.where(self.follows[own], self.passages[np.maximum(own - 1, first)], -1)
            below = np.minimum(own + 1, last)
            after = np.where((below > own) & self.follows[below], self.passages[below], -1)
        query = np.full(len(own), self.queries[example])
        return Pairs(
            query, self.titles[own] if titles else nothing, self.passages[own], before, after
        )

    def batch(self, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens, kinds and mask: the query, the title and the passage, what is around it."""
        count = len(pairs.query)
        before, after = self.context
        sections: list[tuple[Tensor, Tensor, int]] = [
            self._mark(count, _START, 0),
            self._text(pairs.query, _LONGEST["query"], 0),
            self._mark(count, _END, 0),
            self._text(pairs.title, _LONGEST["title"], 1),
            self._mark(count, _STOP, 1, pairs.title >= 0),
            self._text(pairs.passage, _LONGEST["passage"], 1),
            self._mark(count, _END, 1),
        ]
        if before:
            sections.append(self._text(pairs.before, before, 0, last=True))
            sections.append(self._mark(count, _END, 0, pairs.before >= 0))
        if after:
            sections.append(self._text(pairs.after, after, 0))
            sections.append(self._mark(count, _END, 0, pairs.after >= 0))
        tokens = torch.cat([tokens for tokens, _, _ in sections], 1)
        mask = torch.cat([mask for _, mask, _ in sections], 1)
        kinds = torch.cat([torch.full_like(tokens, kind) for tokens, _, kind in sections], 1)
        longest = int(mask.sum(1).max())
        order = (~mask).to(torch.int8).argsort(dim=1, stable=True)[:, :longest]
        mask = mask.gather(1, order)
        return tokens.gather(1, order) * mask, kinds.gather(1, order) * mask, mask

    def _mark(
        self, count: int, token: int, kind: int, used: Any = None
    ) -> tuple[Tensor, Tensor, int]:
        tokens = torch.full((count, 1), token, device=self.device)
        if used is None:
            return tokens, torch.ones_like(tokens, dtype=torch.bool), kind
        return tokens, torch.from_numpy(np.ascontiguousarray(used)).to(self.device)[:, None], kind

    def _text(
        self, texts: Any, longest: int, kind: int, *, last: bool = False
    ) -> tuple[Tensor, Tensor, int]:
        """The first (or the last) tokens of some texts, padded to the longest."""
        numbers = torch.from_numpy(np.ascontiguousarray(texts, np.int64)).to(self.device)
        known = numbers >= 0
        numbers = numbers.clamp(min=0)
        lengths, places = self._lengths[numbers], torch.arange(longest, device=self.device)
        shown = lengths.clamp(max=longest)
        starts = self._starts[numbers] + (lengths - shown if last else 0)
        mask = known[:, None] & (places < shown[:, None])
        rows = (starts[:, None] + places) * mask
        return self.tokens[rows].long(), mask, kind

    def window(self, example: int, most: int, random: np.random.Generator) -> Any:
        """Some passages of an example; all of them if there are few."""
        start, end = self.ends[example], self.ends[example + 1]
        gold, hard, count = self.gold[start:end], self.hard[start:end], end - start
        if count <= most:
            return np.arange(count)  # pyright: ignore[reportUnknownVariableType]
        if random.random() < 0.35:  # a part of the document
            size = int(random.integers(min(8, most), most + 1))
            middle = int(random.choice(np.flatnonzero(gold)))
            first = int(np.clip(middle - random.integers(0, size), 0, count - size))
            return np.arange(first, first + size)
        third = most // 3
        kept = [random.permutation(np.flatnonzero(one))[:third] for one in (gold, hard)]
        others = random.permutation(np.flatnonzero(~gold & ~hard))
        return np.unique(np.concatenate([*kept, others[: most - sum(map(len, kept))]]))


def logits_of(
    reader: Reader, pack: Pack, pairs: Pairs, parts: int = _PARTS_OF_A_BATCH, hidden: float = 0.0
) -> Tensor:
    """The logit of each pair; pairs of about the same length are read together.

    In training, a share of the tokens may be hidden.
    """
    length = np.minimum(pack.lengths[pairs.passage], _LONGEST["passage"])
    for texts, longest in zip((pairs.before, pairs.after), pack.context, strict=True):
        length = length + np.where(texts >= 0, np.minimum(pack.lengths[texts], longest), 0)
    order = np.argsort(length, kind="stable")
    with torch.autocast(pack.device, torch.bfloat16):
        batches = (pack.batch(pairs[own]) for own in np.array_split(order, parts))
        found = [reader(_hide(tokens, hidden), *others) for tokens, *others in batches]
    back = torch.from_numpy(np.argsort(order)).to(pack.device)
    return torch.cat(found)[back]


def _hide(tokens: Tensor, share: float) -> Tensor:
    """The tokens with a share of them replaced; the marks between the texts stay."""
    if not share:
        return tokens
    is_hidden = (torch.rand(tokens.shape, device=tokens.device) < share) & (tokens > _MASK)
    return torch.where(is_hidden, _MASK, tokens)


def train(folder: Path, out: Path, settings: argparse.Namespace) -> None:
    """Train on all domains but those left out; write the reader and the logits of both parts."""
    import safetensors.torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(settings.seed)
    random = np.random.default_rng(settings.seed)
    pack = Pack(folder, device, (settings.before, settings.after))
    weights = safetensors.torch.load_file(folder / "minilm.safetensors")
    reader = Reader(weights, settings.rank, settings.dropout).to(device)
    domains = [name for name in pack.domains if name not in settings.without]
    learned = [weight for weight in reader.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learned, settings.learning_rate, weight_decay=0.01, fused=True)
    started = time.monotonic()
    for step in range(settings.steps):
        if settings.seconds and time.monotonic() - started > settings.seconds:
            print(f"out of time after {step} steps", flush=True)
            break
        rate = min(1.0, (step + 1) / 60) * max(0.02, 1 - step / settings.steps)
        for group in optimizer.param_groups:
            group["lr"] = rate * settings.learning_rate
        parts: list[Pairs] = []
        golds: list[Any] = []
        while len(golds) < settings.batch:
            rows = pack.rows[domains[int(random.integers(len(domains)))], "train"]
            example = int(random.choice(rows))
            places = pack.window(example, settings.passages, random)
            gold = pack.gold[pack.ends[example] + places]
            if gold.any() and not gold.all():
                titles, neighbours = random.random() > 0.3, random.random() > 0.35
                parts.append(pack.pairs(example, places, titles=titles, neighbours=neighbours))
                golds.append(gold)
        logits = logits_of(reader, pack, Pairs.joined(parts), hidden=settings.hidden)
        loss = _loss(logits, golds)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        if (step + 1) % 100 == 0:
            seconds = time.monotonic() - started
            print(f"step {step + 1}: loss {loss.item():.3f}, {seconds:.0f} s", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    if settings.rank:
        arrays = {n: w.detach().cpu().numpy() for n, w in reader.named_parameters() if _ships(n)}
        halves: dict[str, Any] = {n: a.astype(np.float16) for n, a in arrays.items()}
        np.savez(out / "reader.npz", **halves)
    logits: dict[str, Any] = {}
    for part in settings.parts:
        logits = _logits(reader.eval(), pack, part)
        name = {"dev": "logits.npz", "train": "train-logits.npz"}[part]
        np.savez_compressed(out / name, **logits)
        _print_ranks(pack, logits, part)


def _loss(logits: Tensor, golds: Sequence[Any]) -> Tensor:
    """Each gold passage against all that are not gold, and each passage by itself."""
    sizes = [len(gold) for gold in golds]
    most = max(sizes)
    padded = np.zeros((2, len(golds), most), bool)
    for row, gold in enumerate(golds):
        padded[0, row, : len(gold)], padded[1, row, : len(gold)] = gold, True
    gold, mask = torch.from_numpy(padded).to(logits.device)
    by_query = torch.zeros(mask.shape, device=logits.device).masked_scatter(mask, logits)
    others = torch.where(mask & ~gold, by_query, -1e4)
    above = by_query - torch.logsumexp(others, 1, keepdim=True)
    listwise = -(functional.logsigmoid(above) * gold).sum(1) / gold.sum(1)
    wanted = _SMOOTHING + (1 - 2 * _SMOOTHING) * gold.float()
    binary = functional.binary_cross_entropy_with_logits(by_query, wanted, reduction="none")
    binary = (binary * mask).sum(1) / mask.sum(1)
    return (listwise + _BINARY_SHARE * binary).mean()


@torch.no_grad()
def _logits(reader: Reader, pack: Pack, part: str) -> dict[str, Any]:
    """The logits of all passages of a part of each domain, example after example."""
    found: dict[str, Any] = {}
    for name in pack.domains:
        rows = pack.rows[name, part].tolist()
        pairs = Pairs.joined(
            [pack.pairs(one, np.arange(pack.ends[one + 1] - pack.ends[one])) for one in rows]
        )
        parts = 1 + len(pairs.query) // 1024
        found[name] = logits_of(reader, pack, pairs, parts).cpu().numpy().astype(np.float16)
    return found


def _print_ranks(pack: Pack, logits: dict[str, Any], part: str) -> None:
    """The recall at 1, 3, 5 and 7 of ranking by the logits alone."""
    means: list[Any] = []
    for name in pack.domains:
        recalls: list[Any] = []
        place = 0
        for one in pack.rows[name, part]:
            gold = pack.gold[pack.ends[one] : pack.ends[one + 1]]
            order = np.argsort(-logits[name][place : place + len(gold)].astype(np.float32))
            place += len(gold)
            recalls.append(np.cumsum(gold[order])[np.minimum([0, 2, 4, 6], len(gold) - 1)] / gold.sum())
        means.append(np.mean(recalls, axis=0))
        print(f"{name:<16}" + " ".join(f"{share:.3f}" for share in means[-1]))
    print(f"{'mean':<16}" + " ".join(f"{share:.3f}" for share in np.mean(means, axis=0)), flush=True)


@torch.no_grad()
def compare(folder: Path, out: Path) -> None:
    """Write how near MiniLM's words and texts are, for every query and each of its passages.

    The files `words-LAYER.npy` have, for each example, the texts (its passages and its different
    titles) by the words of the query: the largest cosine of a word of the text, in steps of 1/255.
    `texts.npz` has the cosines of query and passage as wholes, and the vectors of all texts in
    the 64 directions in which they differ most.
    """
    import safetensors.torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    pack = Pack(folder, device)
    reader = Reader(safetensors.torch.load_file(folder / "minilm.safetensors"), 0).to(device).eval()
    found = dict(np.load(folder / "examples.npz"))
    token_words = torch.from_numpy(found["words"]).to(device)
    word_counts = torch.from_numpy(found["word_counts"].astype(np.int64)).to(device)
    word_starts = word_counts.cumsum(0) - word_counts
    total = int(word_counts.sum())
    by_layer = [
        torch.zeros(total, _WIDTH, device=device, dtype=torch.float16) for _ in _COMPARED_LAYERS
    ]
    wholes = torch.zeros(len(pack.lengths), _WIDTH, device=device)
    order = np.argsort(pack.lengths, kind="stable")
    starts = torch.from_numpy(np.cumsum(pack.lengths) - pack.lengths).to(device)
    for some in np.array_split(order, 1 + len(order) // 1024):
        numbers = torch.from_numpy(some).to(device)
        tokens, inside, _ = pack._text(some, _LONGEST_TEXT, 0)  # noqa: SLF001
        width = max(1, int(inside.sum(1).max()))
        tokens, inside = tokens[:, :width], inside[:, :width]
        lengths = inside.sum(1)
        full = torch.zeros(len(some), width + 2, dtype=torch.long, device=device)
        full[:, 0], full[:, 1:-1] = _START, tokens
        full.scatter_(1, lengths[:, None] + 1, _END)
        mask = torch.arange(width + 2, device=device) < lengths[:, None] + 2
        with torch.autocast(device, torch.bfloat16):
            hidden = reader.hidden(full, torch.zeros_like(full), mask)
        last = hidden[-1].float() * mask[..., None]
        wholes[numbers] = functional.normalize(last.sum(1) / mask.sum(1, keepdim=True), dim=1)
        word = token_words[((starts[numbers][:, None] + torch.arange(width, device=device)) * inside)]
        used = inside & (word < _NUMBER)
        place = (word_starts[numbers][:, None] + word.long())[used]
        for layer, table in zip(_COMPARED_LAYERS, by_layer, strict=True):
            sums = torch.zeros(0)
            sums = hidden[layer][:, 1:-1].float()[used]
            table.index_add_(0, place, sums.half())
    for table in by_layer:
        table.copy_(functional.normalize(table.float(), dim=1))
    out.mkdir(parents=True, exist_ok=True)
    titles, title_ends = found["different_titles"], np.concatenate([[0], np.cumsum(found["title_counts"])])
    cosines: list[Any] = []
    near: list[list[Any]] = [[] for _ in by_layer]
    for example in range(len(pack.queries)):
        own = pack.passages[pack.ends[example] : pack.ends[example + 1]]
        query = int(pack.queries[example])
        cosines.append((wholes[torch.from_numpy(own).to(device)] @ wholes[query]).half())
        texts = np.concatenate([own, titles[title_ends[example] : title_ends[example + 1]]])
        numbers = torch.from_numpy(texts).to(device)
        counts = word_counts[numbers]
        which = torch.repeat_interleave(torch.arange(len(texts), device=device), counts)
        within = torch.arange(len(which), device=device) - (counts.cumsum(0) - counts)[which]
        rows = word_starts[numbers][which] + within
        asked = slice(int(word_starts[query]), int(word_starts[query] + word_counts[query]))
        for table, kept in zip(by_layer, near, strict=True):
            cosine = table[rows] @ table[asked].T
            best = torch.zeros(len(texts), cosine.shape[1], device=device, dtype=cosine.dtype)
            best.scatter_reduce_(0, which[:, None].expand_as(cosine), cosine, "amax")
            kept.append((best.clamp(0, 1) * 255).round().to(torch.uint8).reshape(-1))
    for layer, kept in zip(_COMPARED_LAYERS, near, strict=True):
        np.save(out / f"words-{layer}.npy", torch.cat(kept).cpu().numpy())
    centred = wholes - wholes.mean(0)
    _, _, directions = torch.linalg.svd(centred.T @ centred)
    small = wholes @ directions[:64].T
    scale = small.abs().max()
    np.savez_compressed(
        out / "texts.npz",
        cosines=torch.cat(cosines).cpu().numpy(),
        vectors=(small / scale * 127).round().to(torch.int8).cpu().numpy(),
    )


def _ships(name: str) -> bool:
    return name.startswith(("low.", "pool.", "score."))


def pack(folder: Path) -> None:
    """Write the tokens of all examples and MiniLM's weights, as they travel to a GPU."""
    import safetensors.torch

    from dgn.encoders.facets.matching import places_of
    from dgn.encoders.minilm.transformer import WordPieces, package_folder
    from dgn.selector import Selector
    from dgn.text import title_text
    from dgn.text.words import normalized, word_spans
    from experiments.domains import DOMAINS, read_domain

    pieces, selector = WordPieces(), Selector.from_pretrained("untrained")
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(normalized(text), len(texts))

    names = ("queries", "passages", "titles", "gold", "hard", "domain", "is_dev", "counts")
    names += ("follows", "different_titles", "title_counts")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for place, name in enumerate(DOMAINS):
        domain = read_domain(name)
        for is_dev, part in enumerate((domain.train, domain.dev)):
            for example in part:
                query = example.query
                columns["queries"].append(number(query.text))
                columns["counts"].append(len(query.passages))
                columns["domain"].append(place)
                columns["is_dev"].append(is_dev)
                columns["passages"] += [number(text) for text in query.texts]
                columns["titles"] += [
                    number(title_text(p.title)) if p.title else -1 for p in query.passages
                ]
                different = dict.fromkeys(p.title for p in query.passages)
                columns["different_titles"] += [number(title_text(one)) for one in different]
                columns["title_counts"].append(len(different))
                columns["follows"] += places_of(query.passages)[2].tolist()
                columns["gold"] += example.gold
                chosen = () if is_dev else selector.select_queries([query], k=16)[0].indices
                columns["hard"] += [
                    place in chosen and not gold for place, gold in enumerate(example.gold)
                ]
    tokens: list[int] = []
    words: list[int] = []
    lengths: list[int] = []
    word_counts: list[int] = []
    for text in texts:
        spans = word_spans(text)
        located = pieces.located(text, _LONGEST_TEXT)
        own = 0
        for token, begin in located:
            while own < len(spans) and spans[own][1] <= begin:
                own += 1
            inside = own < len(spans) and begin >= spans[own][0] and own < _NUMBER
            is_number = inside and text[spans[own][0]].isdigit()
            words.append(_NUMBER if is_number else own if inside else _NO_WORD)
            tokens.append(token)
        lengths.append(len(located))
        word_counts.append(len(spans))
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
    arrays["names"] = np.array(DOMAINS)
    arrays["tokens"] = np.array(tokens, np.uint16)
    arrays["words"] = np.array(words, np.uint8)
    arrays["text_lengths"] = np.array(lengths, np.int32)
    arrays["word_counts"] = np.array(word_counts, np.int32)
    np.savez_compressed(folder / "examples.npz", **arrays)
    weights = safetensors.torch.load_file(package_folder() / "model.safetensors")
    kept = {n: w.half() for n, w in weights.items() if w.is_floating_point() and "pooler" not in n}
    safetensors.torch.save_file(kept, folder / "minilm.safetensors")


def ship(reader: Path, folder: Path) -> None:
    """Write a trained reader as a model folder."""
    from dgn.encoders.minilm.encoder import MiniLMEncoder, reading_weights
    from dgn.selector import Selector

    found = {name.removeprefix("low."): array for name, array in np.load(reader).items()}
    named = {name.replace("/", "."): array for name, array in found.items()}
    Selector(MiniLMEncoder(reading_weights(), named)).save_pretrained(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack, compare, train or ship."""
    parser = argparse.ArgumentParser(prog="python -m experiments.read_pairs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("pack").add_argument("folder", type=Path)
    shipping = commands.add_parser("ship")
    shipping.add_argument("reader", type=Path)
    shipping.add_argument("folder", type=Path)
    comparing = commands.add_parser("compare")
    training = commands.add_parser("train")
    for command in (comparing, training):
        command.add_argument("folder", type=Path)
        command.add_argument("out", type=Path)
    training.add_argument("--without", nargs="*", default=[], metavar="DOMAIN")
    training.add_argument("--rank", type=int, default=32, help="0 to train all weights")
    training.add_argument("--steps", type=int, default=800)
    training.add_argument("--batch", type=int, default=32, help="queries per step")
    training.add_argument("--passages", type=int, default=16, help="passages per query")
    training.add_argument("--before", type=int, default=0, help="tokens of the passage before")
    training.add_argument("--after", type=int, default=0, help="tokens of the passage after")
    training.add_argument("--learning-rate", type=float, default=8e-4, help="6e-5 for rank 0")
    training.add_argument("--dropout", type=float, default=0.1)
    training.add_argument("--hidden", type=float, default=0.0, help="share of hidden tokens")
    training.add_argument("--seconds", type=float, help="stop training after this time")
    training.add_argument("--parts", nargs="*", default=["dev", "train"], help="of the logits")
    training.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args(arguments)
    if settings.command == "pack":
        pack(settings.folder)
    elif settings.command == "ship":
        ship(settings.reader, settings.folder)
    elif settings.command == "compare":
        compare(settings.folder, settings.out)
    else:
        train(settings.folder, settings.out, settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
