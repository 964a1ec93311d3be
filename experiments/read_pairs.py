r"""Train MiniLM to read a query and a passage together, for the model minilm.

    python -m experiments.read_pairs pack FOLDER            # here: tokens and weights, 60 MB
    python -m experiments.read_pairs compare FOLDER OUT     # on a GPU: words and texts, compared
    python -m experiments.read_pairs train FOLDER OUT       # on a GPU: needs torch alone
    python -m experiments.read_pairs embed FOLDER OUT       # on a GPU: vectors, and logits
    python -m experiments.read_pairs ship FUNCTION/weights.npz FOLDER --reader OUT/reader.npz

A kind of text is drawn by the square root of its size. The linear maps of the transformer change by
a matrix of low rank, so that what is learned has 3 MB. The same command with `--rank 0` trains all
weights: the cross-encoder that the model is compared with. A passage of a document is read with the
passages around it (`--before`, `--after`: how many of their tokens), which often say what a pronoun
means.
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

from experiments.pairs import END, LONGEST, LONGEST_TEXT, NUMBER, START, Pack, Pairs, pack

_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_MAPS = (
    *(f"attention.self.{part}" for part in ("query", "key", "value")),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
)
_MASK = 103
_BINARY_SHARE, _SMOOTHING = 0.3, 0.05
_PARTS_OF_A_BATCH = 4
_COMPARED_LAYERS = (6,)


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


def logits_of(
    reader: Reader, pack: Pack, pairs: Pairs, parts: int = _PARTS_OF_A_BATCH, hidden: float = 0.0
) -> Tensor:
    """The logit of each pair; pairs of about the same length are read together.

    In training, a share of the tokens may be hidden.
    """
    length = np.minimum(pack.lengths[pairs.passage], LONGEST["passage"])
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
    """Train on all domains but those left out; write the reader and the logits of both parts.

    With domains left out, the logits are those of their examples alone.
    """
    import safetensors.torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.enable_cudnn_sdp(False)  # it fails where several processes share a GPU
    torch.manual_seed(settings.seed)
    random = np.random.default_rng(settings.seed)
    pack = Pack(folder, device, (settings.before, settings.after))
    weights = safetensors.torch.load_file(folder / "minilm.safetensors")
    reader = Reader(weights, settings.rank, settings.dropout).to(device)
    domains = [name for name in pack.domains if name not in settings.without]
    sizes = np.array([len(pack.rows[name, "train"]) for name in domains])
    shares = np.sqrt(sizes) / np.sqrt(sizes).sum()
    learned = [weight for weight in reader.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learned, settings.learning_rate, weight_decay=0.01, fused=True)
    started = time.monotonic()
    for step in range(settings.steps):
        done = step / settings.steps
        if settings.seconds:
            done = max(done, (time.monotonic() - started) / settings.seconds)
        if done >= 1:
            print(f"out of time after {step} steps", flush=True)
            break
        rate = min(1.0, (step + 1) / 60) * max(0.02, 1 - done)
        for group in optimizer.param_groups:
            group["lr"] = rate * settings.learning_rate
        parts: list[Pairs] = []
        golds: list[Any] = []
        while len(golds) < settings.batch:
            rows = pack.rows[domains[int(random.choice(len(domains), p=shares))], "train"]
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
    for part in settings.parts:
        read = _logits(reader.eval(), pack, part, settings.without or pack.domains)
        name = {"dev": "logits.npz", "train": "train-logits.npz"}[part]
        np.savez_compressed(out / name, **read)
        _print_ranks(pack, read, part)


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
def _logits(reader: Reader, pack: Pack, part: str, domains: Sequence[str]) -> dict[str, Any]:
    """The logits of all passages of a part of each domain, example after example."""
    found: dict[str, Any] = {}
    for name in domains:
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
    for name in logits:
        recalls: list[Any] = []
        place = 0
        for one in pack.rows[name, part]:
            gold = pack.gold[pack.ends[one] : pack.ends[one + 1]]
            order = np.argsort(-logits[name][place : place + len(gold)].astype(np.float32))
            place += len(gold)
            recalls.append(
                np.cumsum(gold[order])[np.minimum([0, 2, 4, 6], len(gold) - 1)] / gold.sum()
            )
        means.append(np.mean(recalls, axis=0))
        print(f"{name:<16}" + " ".join(f"{share:.3f}" for share in means[-1]))
    print(
        f"{'mean':<16}" + " ".join(f"{share:.3f}" for share in np.mean(means, axis=0)), flush=True
    )


@torch.no_grad()
def compare(folder: Path, out: Path) -> None:
    """Write how near MiniLM's words and texts are, for every query and each of its passages.

    The files `words-LAYER.npy` have, for each example, the texts (its passages and its different
    titles) by the words of the query: the largest cosine of a word of the text, in steps of 1/255.
    `texts.npz` has the cosines of query and passage as wholes.
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
        full, mask = _marked(pack, some)
        width = full.shape[1] - 2
        inside = pack.padded(some, width)[1]
        with torch.autocast(device, torch.bfloat16):
            hidden = reader.hidden(full, torch.zeros_like(full), mask)
        last = hidden[-1].float() * mask[..., None]
        wholes[numbers] = functional.normalize(last.sum(1) / mask.sum(1, keepdim=True), dim=1)
        word = token_words[
            ((starts[numbers][:, None] + torch.arange(width, device=device)) * inside)
        ]
        used = inside & (word < NUMBER)
        place = (word_starts[numbers][:, None] + word.long())[used]
        for layer, table in zip(_COMPARED_LAYERS, by_layer, strict=True):
            sums = hidden[layer][:, 1:-1].float()[used]
            table.index_add_(0, place, sums.half())
    for table in by_layer:
        table.copy_(functional.normalize(table.float(), dim=1))
    out.mkdir(parents=True, exist_ok=True)
    titles, title_ends = (
        found["different_titles"],
        np.concatenate([[0], np.cumsum(found["title_counts"])]),
    )
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
    np.savez_compressed(
        out / "texts.npz",
        cosines=torch.cat(cosines).cpu().numpy(),
        names=np.array(pack.domains),
        counts=np.array(
            [[len(pack.rows[name, part]) for part in ("train", "dev")] for name in pack.domains]
        ),
    )


@torch.no_grad()
def embed(folder: Path, out: Path, model: Path, context: tuple[int, int]) -> None:
    """Write MiniLM's vectors of all texts, in steps of 1/127, and the logits of a shipped reader.

    Args:
        folder: What `pack` wrote.
        out: Where to write `vectors-N.npy`, the texts in order, and the logits of each part.
        model: A model folder of the family minilm.
        context: How many tokens of the passage before and after its reader sees.
    """
    import safetensors.torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    pack = Pack(folder, device, context)
    weights = safetensors.torch.load_file(folder / "minilm.safetensors")
    plain = Reader(weights, 0).to(device).eval()
    wholes = torch.zeros(len(pack.lengths), _WIDTH, device=device)
    order = np.argsort(pack.lengths, kind="stable")
    for some in np.array_split(order, 1 + len(order) // 1024):
        full, mask = _marked(pack, some)
        with torch.autocast(device, torch.bfloat16):
            last = plain.hidden(full, torch.zeros_like(full), mask)[-1].float() * mask[..., None]
        mean = last.sum(1) / mask.sum(1, keepdim=True)
        wholes[torch.from_numpy(some).to(device)] = functional.normalize(mean, dim=1)
    out.mkdir(parents=True, exist_ok=True)
    largest = wholes.abs().amax(1, keepdim=True).clamp(min=1e-6)
    steps = (wholes / largest * 127).round().to(torch.int8).cpu().numpy()
    for number, part in enumerate(np.array_split(steps, 1 + steps.nbytes // 14_000_000)):
        np.save(out / f"vectors-{number}.npy", part)
    shipped = safetensors.torch.load_file(model / "model.safetensors")
    rank = next(len(w) for name, w in shipped.items() if name.endswith(".down"))
    reader = Reader(weights, rank, 0.0).to(device).eval()
    own = {name.replace(".", "/"): w.float() for name, w in shipped.items()}
    state = reader.state_dict()
    for name in state:
        key = name.removeprefix("low.") if name.startswith("low.") else name.replace(".", "/")
        if key in own:
            state[name] = own[key].to(device)
    reader.load_state_dict(state)
    for part in ("train", "dev"):
        read = _logits(reader, pack, part, pack.domains)
        np.savez_compressed(out / f"{part}-logits.npz", **read)
        _print_ranks(pack, read, part)


def _marked(pack: Pack, texts: Any) -> tuple[Tensor, Tensor]:
    """The tokens of some texts between their marks, and their mask."""
    tokens, inside = pack.padded(texts, LONGEST_TEXT)
    width = max(1, int(inside.sum(1).max()))
    tokens, inside = tokens[:, :width], inside[:, :width]
    lengths = inside.sum(1)
    full = torch.zeros(len(texts), width + 2, dtype=torch.long, device=pack.device)
    full[:, 0], full[:, 1:-1] = START, tokens
    full.scatter_(1, lengths[:, None] + 1, END)
    return full, torch.arange(width + 2, device=pack.device) < lengths[:, None] + 2


def _ships(name: str) -> bool:
    return name.startswith(("low.", "pool.", "score."))


def ship(reader: Path | None, function: Path, folder: Path, around: tuple[int, int]) -> None:
    """Write a model folder.

    Args:
        reader: The trained reader; None for a model without one.
        function: The weights of the function, which `experiments.function` wrote.
        folder: The model folder.
        around: The reader's `--before` and `--after`.
    """
    from dgn.minilm.encoder import MiniLMEncoder
    from dgn.selector import Selector
    from dgn.text.facets.formula import FacetWeights

    found = {} if reader is None else dict(np.load(reader))
    named = {name.removeprefix("low.").replace("/", "."): array for name, array in found.items()}
    weights: dict[str, Any] = dict(np.load(function))
    encoder = MiniLMEncoder(FacetWeights(**weights), named, around)
    Selector(encoder).save_pretrained(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack, compare, train or ship."""
    parser = argparse.ArgumentParser(prog="python -m experiments.read_pairs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder", type=Path)
    packing.add_argument("--english", action="store_true", help="all 35 kinds of text, not the ten")
    packing.add_argument("--most", type=int, nargs=2, metavar=("TRAIN", "DEV"), help="examples")
    shipping = commands.add_parser("ship")
    shipping.add_argument("function", type=Path, help="weights of experiments.function")
    shipping.add_argument("folder", type=Path)
    shipping.add_argument("--reader", type=Path, help="OUT/reader.npz; without it, no reader")
    comparing = commands.add_parser("compare")
    embedding = commands.add_parser("embed")
    embedding.add_argument("--model", type=Path, required=True, help="folder of the model minilm")
    training = commands.add_parser("train")
    for command in (comparing, embedding, training):
        command.add_argument("folder", type=Path)
        command.add_argument("out", type=Path)
    training.add_argument("--without", nargs="*", default=[], metavar="DOMAIN")
    training.add_argument("--rank", type=int, default=32, help="0 to train all weights")
    training.add_argument("--steps", type=int, default=1500)
    training.add_argument("--batch", type=int, default=32, help="queries per step")
    training.add_argument("--passages", type=int, default=16, help="passages per query")
    for command in (training, embedding, shipping):
        command.add_argument("--before", type=int, default=32, help="tokens of the passage before")
        command.add_argument("--after", type=int, default=24, help="tokens of the passage after")
    training.add_argument("--learning-rate", type=float, default=8e-4, help="6e-5 for rank 0")
    training.add_argument("--dropout", type=float, default=0.2)
    training.add_argument("--hidden", type=float, default=0.1, help="share of hidden tokens")
    training.add_argument("--seconds", type=float, help="stop training after this time")
    training.add_argument("--parts", nargs="*", default=["dev", "train"], help="of the logits")
    training.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args(arguments)
    if settings.command == "pack":
        most = settings.most and tuple(settings.most)
        pack(settings.folder, english=settings.english, most=most)
    elif settings.command == "ship":
        around = (settings.before, settings.after) if settings.reader else (0, 0)
        ship(settings.reader, settings.function, settings.folder, around)
    elif settings.command == "compare":
        compare(settings.folder, settings.out)
    elif settings.command == "embed":
        around = (settings.before, settings.after)
        embed(settings.folder, settings.out, settings.model, around)
    else:
        train(settings.folder, settings.out, settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
