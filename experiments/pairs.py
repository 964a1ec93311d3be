"""Pairs of a query and a passage as tokens, as they travel to a GPU that has torch alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

START, END, STOP = 101, 102, 1012
LONGEST_TEXT, NO_WORD, NUMBER = 254, 255, 254
"""The most tokens of a text; the word of a token that is in no word, and of one in a number."""

LONGEST = {"query": 48, "title": 16, "passage": 192}


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
            self._mark(count, START, 0),
            self._text(pairs.query, LONGEST["query"], 0),
            self._mark(count, END, 0),
            self._text(pairs.title, LONGEST["title"], 1),
            self._mark(count, STOP, 1, pairs.title >= 0),
            self._text(pairs.passage, LONGEST["passage"], 1),
            self._mark(count, END, 1),
        ]
        if before:
            sections.append(self._text(pairs.before, before, 0, last=True))
            sections.append(self._mark(count, END, 0, pairs.before >= 0))
        if after:
            sections.append(self._text(pairs.after, after, 0))
            sections.append(self._mark(count, END, 0, pairs.after >= 0))
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
        return (*self.padded(texts, longest, last=last), kind)

    def padded(self, texts: Any, longest: int, *, last: bool = False) -> tuple[Tensor, Tensor]:
        """The first (or the last) tokens of some texts, [texts, longest], and their mask."""
        numbers = torch.from_numpy(np.ascontiguousarray(texts, np.int64)).to(self.device)
        known = numbers >= 0
        numbers = numbers.clamp(min=0)
        lengths, places = self._lengths[numbers], torch.arange(longest, device=self.device)
        shown = lengths.clamp(max=longest)
        starts = self._starts[numbers] + (lengths - shown if last else 0)
        mask = known[:, None] & (places < shown[:, None])
        rows = (starts[:, None] + places) * mask
        return self.tokens[rows].long(), mask

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


def pack(folder: Path, *, english: bool = False, most: tuple[int, int] | None = None) -> None:
    """Write the tokens of all examples and MiniLM's weights, as they travel to a GPU.

    Args:
        folder: Where to write.
        english: Whether all 35 English kinds of text are packed, and not the ten domains.
        most: The most examples of the training part and of the dev part of each; by default all.
    """
    import safetensors.torch

    from dgn.minilm.package import WordPieces, package_folder
    from dgn.selector import Limits, Selector
    from dgn.text.facets.reading import order_of
    from dgn.text.spelling import normalized, title_text
    from dgn.text.words import word_spans
    from experiments.domains import DOMAINS, KINDS, read_domain

    domains = KINDS if english else DOMAINS
    pieces, selector = WordPieces(), Selector.from_pretrained("untrained")
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(normalized(text), len(texts))

    names = ("queries", "passages", "titles", "gold", "hard", "domain", "is_dev", "counts")
    names += ("follows", "different_titles", "title_counts")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for place, name in enumerate(domains):
        domain = read_domain(name)
        for is_dev, part in enumerate((domain.train, domain.dev)):
            for example in part[: most[is_dev] if most else None]:
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
                columns["follows"] += order_of(query.passages)[2].tolist()
                columns["gold"] += example.gold
                chosen = () if is_dev else selector.select_queries([query], Limits(k=16))[0].indices
                columns["hard"] += [
                    place in chosen and not gold for place, gold in enumerate(example.gold)
                ]
    tokens: list[int] = []
    words: list[int] = []
    lengths: list[int] = []
    word_counts: list[int] = []
    for text in texts:
        spans = word_spans(text)
        located = pieces.located(text, LONGEST_TEXT)
        own = 0
        for token, begin in located:
            while own < len(spans) and spans[own][1] <= begin:
                own += 1
            inside = own < len(spans) and begin >= spans[own][0] and own < NUMBER
            is_number = inside and text[spans[own][0]].isdigit()
            words.append(NUMBER if is_number else own if inside else NO_WORD)
            tokens.append(token)
        lengths.append(len(located))
        word_counts.append(len(spans))
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
    arrays["names"] = np.array(domains)
    arrays["tokens"] = np.array(tokens, np.uint16)
    arrays["words"] = np.array(words, np.uint8)
    arrays["text_lengths"] = np.array(lengths, np.int32)
    arrays["word_counts"] = np.array(word_counts, np.int32)
    np.savez_compressed(folder / "examples.npz", **arrays)
    weights = safetensors.torch.load_file(package_folder() / "model.safetensors")
    kept = {n: w.half() for n, w in weights.items() if w.is_floating_point() and "pooler" not in n}
    safetensors.torch.save_file(kept, folder / "minilm.safetensors")
