r"""Train MiniLM to read a query and a passage together, for the model minilm.

    python -m experiments.read_pairs pack FOLDER            # here: tokens and weights, 55 MB
    python experiments/read_pairs.py train FOLDER OUT       # on a GPU: needs torch alone
    python -m experiments.read_pairs ship OUT/reader.npz src/dgn/models/minilm

Every domain counts alike. The linear maps of the transformer change by a matrix of low rank, so
that what is learned has 3 MB. The same command with `--rank 0` trains all weights: the
cross-encoder that the model is compared with.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
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
_START, _END, _STOP = 101, 102, 1012
_LONGEST = {"query": 48, "title": 16, "passage": 96}
_BINARY_SHARE, _SMOOTHING = 0.3, 0.05


class Reader(nn.Module):
    """A cross-encoder whose linear maps are W + up · down; with rank 0, W itself is trained."""

    def __init__(self, weights: dict[str, Tensor], rank: int) -> None:
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
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """A logit for every pair."""
        w = self.weights
        x = functional.embedding(tokens, w["embeddings/word_embeddings/weight"])
        x = x + w["embeddings/position_embeddings/weight"][: tokens.shape[1]]
        x = x + functional.embedding(kinds, w["embeddings/token_type_embeddings/weight"])
        x = self.dropout(self._norm(x, "embeddings"))
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
        return self.score(self.dropout(torch.tanh(self.pool(x[:, 0]))))[:, 0].float()

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


class Pack:
    """The examples of all domains as tokens, in a few flat arrays."""

    def __init__(self, folder: Path) -> None:
        found = dict(np.load(folder / "examples.npz"))
        self.tokens: Any = found["tokens"].astype(np.int64)
        self.text_ends: Any = np.concatenate([[0], np.cumsum(found["text_lengths"])])
        self.ends: Any = np.concatenate([[0], np.cumsum(found["counts"])])
        self.queries, self.passages, self.titles = (
            found[name] for name in ("queries", "passages", "titles")
        )
        self.gold, self.hard = found["gold"], found["hard"]
        self.domains: list[str] = found["names"].tolist()
        self.rows = {
            (name, part): np.flatnonzero((found["domain"] == number) & (found["is_dev"] == dev))
            for number, name in enumerate(self.domains)
            for dev, part in enumerate(("train", "dev"))
        }

    def text(self, number: int, kind: str) -> list[int]:
        """The tokens of a text, up to the longest of its kind."""
        start, end = self.text_ends[number], self.text_ends[number + 1]
        return self.tokens[start : min(end, start + _LONGEST[kind])].tolist()

    def pairs(self, example: int, places: Any, *, titles: bool = True) -> list[list[int]]:
        """The second text of each pair: the title, a full stop, and the passage."""
        texts: list[list[int]] = []
        for place in self.ends[example] + places:
            title = self.titles[place]
            named = [*self.text(title, "title"), _STOP] if titles and title >= 0 else []
            texts.append(named + self.text(self.passages[place], "passage"))
        return texts

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


def padded(pairs: Sequence[tuple[list[int], list[int]]], device: str) -> tuple[Tensor, ...]:
    """Tokens, kinds and mask of some pairs."""
    rows = [[_START, *query, _END, *text, _END] for query, text in pairs]
    longest, place = max(map(len, rows)), torch.arange(max(map(len, rows)))
    tokens = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    mask = place < torch.tensor(list(map(len, rows)))[:, None]
    first = torch.tensor([len(query) + 2 for query, _ in pairs])[:, None]
    kinds = (mask & (place >= first)).long()
    return tokens.to(device), kinds.to(device), mask.to(device)


def train(folder: Path, out: Path, settings: argparse.Namespace) -> None:
    """Train on all domains but those left out; write the reader and the logits of both parts."""
    import safetensors.torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(settings.seed)
    random, pack = np.random.default_rng(settings.seed), Pack(folder)
    reader = Reader(safetensors.torch.load_file(folder / "minilm.safetensors"), settings.rank).to(
        device
    )
    domains = [name for name in pack.domains if name not in settings.without]
    learned = [weight for weight in reader.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learned, settings.learning_rate, weight_decay=0.01)
    started = time.monotonic()
    for step in range(settings.steps):
        rate = min(1.0, (step + 1) / 60) * max(0.02, 1 - step / settings.steps)
        for group in optimizer.param_groups:
            group["lr"] = rate * settings.learning_rate
        pairs: list[tuple[list[int], list[int]]] = []
        golds: list[Tensor] = []
        while len(golds) < settings.batch:
            rows = pack.rows[domains[int(random.integers(len(domains)))], "train"]
            example = int(random.choice(rows))
            places = pack.window(example, settings.passages, random)
            gold = torch.from_numpy(pack.gold[pack.ends[example] + places]).to(device)
            if gold.any() and not gold.all():
                query = pack.text(pack.queries[example], "query")
                texts = pack.pairs(example, places, titles=random.random() > 0.3)
                pairs += [(query, text) for text in texts]
                golds.append(gold)
        with torch.autocast(device, torch.bfloat16):
            logits = reader(*padded(pairs, device))
        by_query = logits.split([len(gold) for gold in golds])
        losses = [_loss(own, gold) for own, gold in zip(by_query, golds, strict=True)]
        loss = torch.stack(losses).mean()
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
    for part, name in (("dev", "logits.npz"), ("train", "train-logits.npz")):
        np.savez_compressed(out / name, **_logits(reader.eval(), pack, device, part))


def _loss(logits: Tensor, gold: Tensor) -> Tensor:
    """Each gold passage against all that are not gold, and each passage by itself."""
    above = logits[gold] - torch.logsumexp(logits[~gold], 0)
    wanted = _SMOOTHING + (1 - 2 * _SMOOTHING) * gold.float()
    binary = functional.binary_cross_entropy_with_logits(logits, wanted)
    return -functional.logsigmoid(above).mean() + _BINARY_SHARE * binary


@torch.no_grad()
def _logits(reader: Reader, pack: Pack, device: str, part: str) -> dict[str, Any]:
    """The logits of all passages of a part of each domain, example after example."""
    found: dict[str, Any] = {}
    for name in pack.domains:
        read: list[Any] = []
        for example in pack.rows[name, part].tolist():
            count = pack.ends[example + 1] - pack.ends[example]
            query = pack.text(pack.queries[example], "query")
            texts = pack.pairs(example, np.arange(count))
            for start in range(0, count, 256):
                some = [(query, text) for text in texts[start : start + 256]]
                with torch.autocast(device, torch.bfloat16):
                    logits = reader(*padded(some, device))
                read.append(logits.float().cpu().numpy())
        found[name] = np.concatenate(read).astype(np.float16)
    return found


def _ships(name: str) -> bool:
    return name.startswith(("low.", "pool.", "score."))


def pack(folder: Path) -> None:
    """Write the tokens of all examples and MiniLM's weights, as they travel to a GPU."""
    import safetensors.torch

    from dgn.encoders.minilm.transformer import WordPieces, package_folder
    from dgn.selector import Selector
    from dgn.text import title_text
    from dgn.text.words import normalized
    from experiments.domains import DOMAINS, read_domain

    pieces, selector = WordPieces(), Selector.from_pretrained("untrained")
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(normalized(text), len(texts))

    names = ("queries", "passages", "titles", "gold", "hard", "domain", "is_dev", "counts")
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
                columns["gold"] += example.gold
                chosen = () if is_dev else selector.select_queries([query], k=16)[0].indices
                columns["hard"] += [
                    place in chosen and not gold for place, gold in enumerate(example.gold)
                ]
    tokens = pieces(list(texts), max(_LONGEST.values()))
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
    arrays["names"] = np.array(DOMAINS)
    arrays["tokens"] = np.array([token for text in tokens for token in text], np.uint16)
    arrays["text_lengths"] = np.array(list(map(len, tokens)), np.int32)
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
    """Pack, train or ship."""
    parser = argparse.ArgumentParser(prog="python -m experiments.read_pairs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("pack").add_argument("folder", type=Path)
    shipping = commands.add_parser("ship")
    shipping.add_argument("reader", type=Path)
    shipping.add_argument("folder", type=Path)
    training = commands.add_parser("train")
    training.add_argument("folder", type=Path)
    training.add_argument("out", type=Path)
    training.add_argument("--without", nargs="*", default=[], metavar="DOMAIN")
    training.add_argument("--rank", type=int, default=32, help="0 to train all weights")
    training.add_argument("--steps", type=int, default=800)
    training.add_argument("--batch", type=int, default=32, help="queries per step")
    training.add_argument("--passages", type=int, default=16, help="passages per query")
    training.add_argument("--learning-rate", type=float, default=8e-4, help="6e-5 for rank 0")
    training.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args(arguments)
    if settings.command == "pack":
        pack(settings.folder)
    elif settings.command == "ship":
        ship(settings.reader, settings.folder)
    else:
        train(settings.folder, settings.out, settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
