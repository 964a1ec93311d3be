"""Learning from outcomes: a gradient from after the selection to the features.

There are no evidence labels here, only what happened after a selection: a verdict, whether the
answer was right, a reward. K greedy layers select softly, a reader predicts the outcome from what
is selected, and the loss of its prediction goes back through the layers to the features.

    network = OutcomeNetwork(DifferentiableGreedyNetwork(encoder, greedy), EvidenceReader(...))
    fit_outcomes(network, train, validation, OutcomeConfig())
    network.select(x, mask, k)              the passages, by the trained selector
    network.predict(data, k)                the outcome, from k passages and nothing else

The reader must not see what was not selected, or it has no need of the selection. While the layers
choose softly, it sees a little of every passage, so the temperature falls during training; and it
learns from k whole passages in each step, too, as it will read them later.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from dgn.core import Selections
from dgn.core.arrays import Bool, Float
from dgn.errors import InvalidInput
from dgn.learn.config import Geometric, Schedule


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Queries with their passages, and what happened after a selection from them.

    Attributes:
        x: What the encoder takes. Anything that can be indexed by a tensor of rows, for example a
            tensor [queries, items, inputs].
        passages: [queries, items, width], what the reader sees of a passage if it is selected. It
            may depend on the query and on this passage, and on no other passage.
        query: [queries, width of the query], what the reader sees of the query.
        mask: [queries, items], False for padding.
        outcome: [queries], integers for classes; or numbers from 0 to 1 for how good it was.
        gold: [queries, items], evidence labels where there are some. Outcomes need none; a loss of
            your own may use them, too.
    """

    x: Any
    passages: Float[Tensor, "queries items width"]
    query: Float[Tensor, "queries query_width"]
    mask: Bool[Tensor, "queries items"]
    outcome: Tensor
    gold: Tensor | None = None

    def __post_init__(self) -> None:
        if self.passages.shape[:2] != self.mask.shape:
            raise InvalidInput(
                "passages",
                found=f"shape {tuple(self.passages.shape)}",
                allowed=f"of shape [{self.mask.shape[0]}, {self.mask.shape[1]}, width], as mask",
            )
        if self.outcome.shape != self.mask.shape[:1]:
            raise InvalidInput(
                "outcome",
                found=f"shape {tuple(self.outcome.shape)}",
                allowed=f"one for each of the {self.mask.shape[0]} queries",
            )

    def __len__(self) -> int:
        return len(self.mask)

    def rows(self, rows: Tensor) -> Outcomes:
        """Some of the queries, padded to the most passages that one of them has."""
        mask = self.mask[rows]
        width = int(mask.any(dim=0).nonzero().max()) + 1 if mask.any() else 1
        x = self.x[rows]
        return Outcomes(
            x=x[:, :width] if isinstance(x, Tensor) else x,
            passages=self.passages[rows][:, :width],
            query=self.query[rows],
            mask=mask[:, :width],
            outcome=self.outcome[rows],
            gold=None if self.gold is None else self.gold[rows][:, :width],
        )

    def batches(
        self, batch_size: int, random: torch.Generator | None = None
    ) -> Iterator[tuple[Tensor, Outcomes]]:
        """All queries, those with similar numbers of passages together, and which rows they are.

        Args:
            batch_size: The number of queries per batch.
            random: The source of a random order; without it, the order is by length.
        """
        lengths = self.mask.sum(dim=1).cpu()
        if random is not None:
            # The noise mixes neighbours, so that the batches of two epochs are not the same.
            noise = torch.rand(len(self), generator=random)
            lengths = lengths + noise * (1 + lengths.float().std(unbiased=False))
        by_length = lengths.argsort(stable=True)
        starts = list(range(0, len(self), batch_size))
        if random is not None:
            shuffled = torch.randperm(len(starts), generator=random)
            starts = [starts[int(number)] for number in shuffled]
        for start in starts:
            rows = by_length[start : start + batch_size].to(self.mask.device)
            yield rows, self.rows(rows)


class SoftSelector(Protocol):
    """Selects softly in training, and k passages at run time: what an OutcomeNetwork trains."""

    def membership(self, x: Any, mask: Tensor | None = None) -> Float[Tensor, "batch items"]:
        """How far each item is selected, from 0 to 1, differentiably."""
        ...

    def select(self, x: Any, mask: Tensor | None = None, k: int | None = None) -> Selections:
        """Up to k items of every set."""
        ...

    def set_temperature(self, temperature: float) -> None:
        """Set the temperature of the soft selection."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """What is trained."""
        ...


class EvidenceReader(nn.Module):
    """Predicts an outcome from a set of passages: each one is read by itself, then all together.

    What is read from a passage is weighted by how far the passage is selected, and summed. It does
    not depend on the order, and a passage that is not selected has no part in it.

    Args:
        width: The width of what it sees of a passage.
        query_width: The width of what it sees of the query; 0 for nothing.
        classes: The number of classes; 1 if the outcome is a number from 0 to 1.
        hidden: The number of units of each of its layers.
        dropout: The share of units that are left out of a training step.
    """

    def __init__(
        self,
        width: int,
        query_width: int = 0,
        classes: int = 2,
        hidden: int = 64,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.read = nn.Sequential(
            *(nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout)),
            *(nn.Linear(hidden, hidden), nn.ReLU()),
        )
        self.conclude = nn.Sequential(
            *(nn.Linear(hidden + query_width, hidden), nn.ReLU(), nn.Dropout(dropout)),
            nn.Linear(hidden, classes),
        )

    def forward(
        self,
        query: Float[Tensor, "batch query_width"],
        passages: Float[Tensor, "batch items width"],
        membership: Float[Tensor, "batch items"],
    ) -> Float[Tensor, "batch classes"]:
        """The logits of the outcome.

        Args:
            query: [batch, query_width].
            passages: [batch, items, width].
            membership: [batch, items], from 0 for a passage that is not selected to 1.
        """
        evidence = (membership[:, None, :] @ self.read(passages))[:, 0]
        return self.conclude(torch.cat([query, evidence], dim=1))


@final
class OutcomeNetwork(nn.Module):
    """A selector, and a reader that predicts the outcome from what is selected.

    Args:
        selector: What is to be learned, for example a DifferentiableGreedyNetwork with any encoder
            that returns `(SetFunction, Items)`.
        reader: A module `reader(query, passages, membership)` that returns logits,
            [batch, classes], or [batch, 1] for an outcome from 0 to 1; for example an
            EvidenceReader.
        k: How many passages are selected.
        whole: How much the reader's loss from k whole passages counts, next to that of the soft
            selection. It has no gradient to the selector.
    """

    def __init__(
        self, selector: SoftSelector, reader: nn.Module, k: int, *, whole: float = 1.0
    ) -> None:
        super().__init__()
        self.selector = selector
        self.reader = reader
        self.k = k
        self.whole = whole

    def loss(self, data: Outcomes) -> Float[Tensor, ""]:
        """The loss of the outcome that the reader predicts from the soft selection."""
        soft = self.selector.membership(data.x, data.mask)
        loss = outcome_losses(self.read(data, soft), data.outcome).mean()
        if self.whole:
            read = outcome_losses(self.predict(data), data.outcome).mean()
            loss = loss + self.whole * read
        return loss

    def read(self, data: Outcomes, membership: Tensor) -> Float[Tensor, "batch classes"]:
        """The logits of the outcome, from softly selected passages."""
        # A NaN in the padding would come back through the gradient.
        passages = torch.where(data.mask[..., None], data.passages, 0.0)
        return self.reader(data.query, passages, membership)

    def predict(self, data: Outcomes, k: int | None = None) -> Float[Tensor, "batch classes"]:
        """The logits of the outcome, from k selected passages alone."""
        return self.read_only(data, self.select(data.x, data.mask, k))

    def read_only(self, data: Outcomes, selected: Selections) -> Float[Tensor, "batch classes"]:
        """The logits of the outcome, from these passages; the reader gets no others."""
        indices = selected.indices
        inside = indices >= 0
        row = torch.arange(len(indices), device=indices.device)[:, None]
        passages = data.passages[row, indices.clamp(min=0)]
        passages = torch.where(inside[..., None], passages, 0.0)
        return self.reader(data.query, passages, inside.to(passages.dtype))

    @torch.no_grad()
    def select(self, x: Any, mask: Tensor | None = None, k: int | None = None) -> Selections:
        """Select up to k items of every set, as at run time."""
        return self.selector.select(x, mask, self.k if k is None else k)


def outcome_losses(logits: Float[Tensor, "batch classes"], outcome: Tensor) -> Tensor:
    """[batch], the cross-entropy of predicted outcomes.

    Args:
        logits: [batch, classes], or [batch, 1] for outcomes from 0 to 1.
        outcome: [batch], integers for classes, or numbers from 0 to 1.
    """
    if outcome.dtype.is_floating_point:
        return binary_cross_entropy_with_logits(logits[:, 0], outcome, reduction="none")
    return cross_entropy(logits, outcome, reduction="none")


@dataclass(frozen=True)
class OutcomeConfig:
    """How to train from outcomes.

    Args:
        epochs: The number of epochs.
        reader_epochs: The number of epochs before them in which the reader alone learns: what it
            cannot read yet, it cannot ask for.
        learning_rate: The learning rate of the selector.
        reader_learning_rate: The learning rate of the reader.
        weight_decay: The weight decay of the reader.
        stay_near: How much the squared distance of the selector's weights from their start costs.
        temperatures: The temperature of the soft selection, by epoch.
        batch_size: The number of queries per step.
        seed: Determines the order of the queries.
    """

    epochs: int = 20
    reader_epochs: int = 2
    learning_rate: float = 2e-3
    reader_learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    stay_near: float = 0.0
    temperatures: Schedule = field(default_factory=lambda: Geometric(2.0, 0.85, 0.1))
    batch_size: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.reader_epochs < 0 or self.batch_size < 1:
            raise InvalidInput(
                "config", message="epochs and reader_epochs must be at least 0, batch_size 1."
            )


@dataclass(frozen=True)
class OutcomeReport:
    """What is known after an epoch; the first reports are those of the reader alone.

    Attributes:
        epoch: The number of the epoch.
        loss: The mean training loss.
        validation_loss: The loss on the validation queries, from k selected passages.
        accuracy: How often the outcome is predicted correctly from them; for outcomes from 0 to 1,
            how often it is on the right side of one half.
        learns_to_select: Whether the selector was trained in this epoch.
    """

    epoch: int
    loss: float
    validation_loss: float
    accuracy: float
    learns_to_select: bool


def fit_outcomes(
    network: OutcomeNetwork,
    train: Outcomes,
    validation: Outcomes,
    config: OutcomeConfig | None = None,
    *,
    loss: Callable[[Outcomes], Tensor] | None = None,
    validate: Callable[[], float] | None = None,
    on_epoch: Callable[[OutcomeReport], None] = lambda _: None,
) -> list[OutcomeReport]:
    """Train a selector from outcomes.

    Args:
        network: Trained in place; at the end it has the weights of its best epoch, which may be
            one in which the reader alone was trained.
        train: The queries to learn from.
        validation: The queries whose outcomes choose the best epoch.
        config: How to train.
        loss: Another loss of a batch; by default that of the network.
        validate: Another measure of the network that chooses the best epoch, the lowest; by
            default, the loss of the validation outcomes, predicted from k selected passages.
        on_epoch: Called with the report of every epoch.
    """
    config = config or OutcomeConfig()
    loss = loss or network.loss
    selector = list(network.selector.parameters())
    start = [weight.detach().clone() for weight in selector]
    optimizer = torch.optim.AdamW(
        [
            {"params": network.reader.parameters(), "lr": config.reader_learning_rate},
            {"params": selector, "lr": config.learning_rate, "weight_decay": 0.0},
        ],
        weight_decay=config.weight_decay,
    )
    random = torch.Generator().manual_seed(config.seed)
    best, weights = float("inf"), copy.deepcopy(network.state_dict())
    reports: list[OutcomeReport] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        for number in range(-config.reader_epochs, config.epochs):
            network.train()
            network.selector.set_temperature(config.temperatures.at(max(0, number)))
            total = 0.0
            for _, batch in train.batches(config.batch_size, random):
                optimizer.zero_grad()
                batch_loss = loss(batch)
                total_loss = batch_loss
                if config.stay_near:
                    pairs = zip(selector, start, strict=True)
                    near = torch.stack([((now - then) ** 2).sum() for now, then in pairs]).sum()
                    total_loss = batch_loss + config.stay_near * near
                total_loss.backward()
                if number < 0:
                    for weight in selector:
                        weight.grad = None
                optimizer.step()
                total += float(batch_loss.detach()) * len(batch)
            validation_loss, accuracy = measure_outcomes(network, validation)
            report = OutcomeReport(
                len(reports) + 1, total / len(train), validation_loss, accuracy, number >= 0
            )
            reports.append(report)
            on_epoch(report)
            measured = validation_loss if validate is None else validate()
            if measured < best:
                best, weights = measured, copy.deepcopy(network.state_dict())
    network.load_state_dict(weights)
    network.eval()
    return reports


@torch.no_grad()
def measure_outcomes(
    network: OutcomeNetwork, data: Outcomes, k: int | None = None, batch_size: int = 512
) -> tuple[float, float]:
    """The mean loss and the accuracy of outcomes that are predicted from k selected passages."""
    was_training = network.training
    network.eval()
    losses, correct = list[Tensor](), list[Tensor]()
    for _, batch in data.batches(batch_size):
        logits = network.predict(batch, k)
        losses.append(outcome_losses(logits, batch.outcome))
        if batch.outcome.dtype.is_floating_point:
            correct.append((logits[:, 0] > 0) == (batch.outcome > 0.5))
        else:
            correct.append(logits.argmax(dim=1) == batch.outcome)
    network.train(was_training)
    return float(torch.cat(losses).mean()), float(torch.cat(correct).float().mean())
