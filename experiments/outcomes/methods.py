"""The methods that are compared: what selects softly, and what its loss is.

All of them have the same encoder at the same start, the same reader and the same number of trials.
Those that learn from outcomes alone choose a trial and an epoch by the loss of the outcome that the
reader predicts from k selected passages of claims that are not reported. Those that have evidence
labels choose by their recall of them, and then teach a new reader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dgn.core import Selections, top_k
from dgn.core.functions import FeatureCoverage, Items, Power
from dgn.core.numerics import lowest_log
from dgn.learn.config import Geometric
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.learn.networks import DifferentiableGreedyNetwork
from dgn.learn.outcomes import (
    OutcomeConfig,
    OutcomeNetwork,
    Outcomes,
    fit_outcomes,
    measure_outcomes,
    outcome_losses,
)
from dgn.learn.relaxations import Choice, Relaxation, Softmax, StraightThrough

SAMPLES = 4
"""Sets that REINFORCE draws per claim and step; each one is compared with the other three."""

Kind = Literal["soft", "hard", "sampled", "attention"]
_MODULAR = FeatureCoverage(concave=Power(1.0))
_TRIAL_SEED = 7


@dataclass(frozen=True, eq=False)
class Split:
    """Claims, and the true recall of what is selected from them, [claims, k], −1 for none."""

    data: Outcomes
    recall: Callable[[NDArray[np.int64]], float]


class Problem(Protocol):
    """What the methods are compared on.

    Attributes:
        name: Its name.
        k: How many passages the reader gets; also the number of layers.
        ks: Where recall is reported.
        temperature: About the size of a gain.
        epochs: The number of epochs in which the selector learns.
        batch_size: The number of claims per step.
    """

    name: str
    k: int
    ks: tuple[int, ...]
    temperature: float
    epochs: int
    batch_size: int

    def splits(self, seed: int) -> tuple[Split, Split, Split]:
        """What learns, what chooses and what is reported."""
        ...

    def encoder(self, seed: int) -> nn.Module:
        """The encoder at its start: that of the untrained function."""
        ...

    def reader(self, seed: int) -> nn.Module:
        """A reader that has learned nothing."""
        ...


@dataclass(frozen=True)
class Method:
    """A way to learn.

    Attributes:
        name: Its name.
        greedy: Whether the value of a set is f, or the sum of f of each passage by itself.
        kind: How passages are selected in training.
        outcomes: Whether the selector learns from outcomes.
        labels: Whether it learns from evidence labels.
    """

    name: str
    greedy: bool = True
    kind: Kind = "soft"
    outcomes: bool = True
    labels: bool = False


METHODS = (
    Method("greedy, untrained", outcomes=False),
    Method("DGN", kind="soft"),
    Method("evidence labels", outcomes=False, labels=True),
    Method("attention over all", greedy=False, kind="attention"),
    Method("straight-through top-k", greedy=False, kind="hard"),
    Method("REINFORCE", kind="sampled"),
    Method("labels and outcomes", labels=True),
    Method("top-k, untrained", greedy=False, outcomes=False),
    Method("soft top-k", greedy=False),
    Method("DGN, straight-through", kind="hard"),
)


@dataclass(frozen=True)
class Settings:
    """What the trials vary; the same draws for every method.

    Attributes:
        learning_rate: Of the selector.
        reader_learning_rate: Of the reader.
        temperature: At the start, relative to that of the problem.
        factor: What it is multiplied with per epoch.
        stay_near: How much the distance of the selector from its start costs.
    """

    learning_rate: float
    reader_learning_rate: float
    temperature: float
    factor: float
    stay_near: float


def draw_settings(trials: int) -> list[Settings]:
    """Usual settings, and then random ones; the same in every call."""
    random = np.random.default_rng(_TRIAL_SEED)
    usual = Settings(2e-3, 4e-3, temperature=1.0, factor=0.85, stay_near=0.0)
    return [usual] + [
        Settings(
            learning_rate=float(10 ** random.uniform(-3.0, -2.0)),
            reader_learning_rate=float(10 ** random.uniform(-3.0, -2.0)),
            temperature=float(random.choice([0.5, 1.0, 2.0])),
            factor=float(random.choice([0.8, 0.9, 1.0])),
            stay_near=float(random.choice([0.0, 1e-3, 1e-2])),
        )
        for _ in range(trials - 1)
    ]


class ScoreSelector(nn.Module):
    """Selects by f of each passage by itself, with the encoder of the DGN.

    Args:
        encoder: A module with `forward(x, mask) -> (SetFunction, Items)`.
        greedy: The layers, on the sum of the scores; None for attention over all passages.
        k: How many passages attention stands for.
    """

    def __init__(self, encoder: nn.Module, greedy: UnfoldedGreedy | None, k: int) -> None:
        super().__init__()
        self.encoder, self.greedy, self.k = encoder, greedy, k
        self.temperature = 1.0

    def scores(self, x: Any, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """[batch, items] each: the scores, and which of them are real."""
        objective, items = self.encoder(x, mask)
        return objective.gains(items, objective.empty(items)), items.mask

    def membership(self, x: Any, mask: Tensor | None = None) -> Tensor:
        """How far each passage is selected."""
        scores, real = self.scores(x, mask)
        if self.greedy is not None:
            return self.greedy(_MODULAR, Items(scores[..., None], real)).membership
        logits = torch.where(real, scores / self.temperature, lowest_log(scores))
        return self.k * torch.softmax(logits, dim=1)

    @torch.no_grad()
    def select(self, x: Any, mask: Tensor | None = None, k: int | None = None) -> Selections:
        """The k passages with the highest scores."""
        scores, real = self.scores(x, mask)
        return cast("Selections", top_k(scores, self.k if k is None else k, real))

    def set_temperature(self, temperature: float) -> None:
        """Of the softmax."""
        self.temperature = temperature
        if self.greedy is not None:
            self.greedy.temperature = temperature


class _Sampled(Relaxation):
    """Each layer draws a passage by its probability; REINFORCE needs to know which."""

    def __init__(self) -> None:
        self.drawn: list[Tensor] = []

    def choose(self, scores: Tensor, log_prior: Tensor, temperature: float) -> Choice:
        soft = Softmax().choose(scores, log_prior, temperature)
        index = torch.multinomial(soft.member.detach().clamp(min=1e-12), 1)
        picked = torch.zeros_like(soft.member).scatter(-1, index, 1.0)
        self.drawn.append(index)
        return Choice(soft.log_probs, soft.log_others, picked, picked * lowest_log(scores))


def build(method: Method, problem: Problem, seed: int) -> OutcomeNetwork:
    """The network of a method, at its start."""
    relaxation = {"hard": StraightThrough(), "sampled": _Sampled()}.get(method.kind)
    layers = UnfoldedGreedy(problem.k, problem.temperature, relaxation)
    encoder = problem.encoder(seed)
    if method.greedy:
        selector = DifferentiableGreedyNetwork(encoder, layers, LayerwiseCrossEntropy("set"))
    else:
        selector = ScoreSelector(encoder, None if method.kind == "attention" else layers, problem.k)
    return OutcomeNetwork(selector, problem.reader(seed), problem.k)


def loss_of(method: Method, network: OutcomeNetwork) -> Callable[[Outcomes], Tensor]:
    """The loss of a method for a batch."""

    def loss(data: Outcomes) -> Tensor:
        if not method.outcomes:
            total = outcome_losses(network.predict(data), data.outcome).mean()
        elif method.kind == "sampled":
            total = _reinforce(network, data)
        else:
            total = network.loss(data)
        if method.labels:
            selector = cast("DifferentiableGreedyNetwork", network.selector)
            total = total + selector.loss(data.x, cast("Tensor", data.gold), data.mask)
        return total

    return loss


def _reinforce(network: OutcomeNetwork, data: Outcomes) -> Tensor:
    """The loss of the reader on drawn sets, and the gradient of its expectation."""
    selector = cast("DifferentiableGreedyNetwork", network.selector)
    relaxation = cast("_Sampled", selector.greedy.layer.relaxation)
    losses, log_probs = list[Tensor](), list[Tensor]()
    objective, items = selector.encode(data.x, data.mask)
    for _ in range(SAMPLES):
        relaxation.drawn.clear()
        unfolded = selector.greedy(objective, items)
        index = torch.stack(relaxation.drawn, dim=1)
        log_probs.append(unfolded.log_probs.gather(2, index)[..., 0].sum(dim=1))
        logits = network.read(data, unfolded.membership.detach())
        losses.append(outcome_losses(logits, data.outcome))
    loss = torch.stack(losses)
    others = (loss.sum(dim=0) - loss) / (SAMPLES - 1)
    advantage = (loss - others).detach()
    return loss.mean() + (advantage * torch.stack(log_probs)).mean()


def run(
    method: Method,
    problem: Problem,
    settings: Settings,
    seed: int,
    splits: tuple[Split, Split, Split],
) -> tuple[OutcomeNetwork, float]:
    """Train once.

    Returns:
        The network, and what it misses on the claims that choose: the loss of the outcome, or
        the share of the labelled evidence.
    """
    network = build(method, problem, seed)
    learns = method.outcomes or method.labels
    reader_epochs = 2 if learns else problem.epochs + 2
    config = OutcomeConfig(
        epochs=problem.epochs if learns else 0,
        reader_epochs=reader_epochs,
        learning_rate=settings.learning_rate,
        reader_learning_rate=settings.reader_learning_rate,
        stay_near=settings.stay_near,
        temperatures=Geometric(
            problem.temperature * settings.temperature,
            settings.factor,
            problem.temperature * settings.temperature / 20,
        ),
        batch_size=problem.batch_size,
        seed=seed,
    )
    train, choose, _ = splits

    def missed() -> float:
        found = [choose.recall(selected_from(network, choose.data, k)) for k in problem.ks]
        return 1 - sum(found) / len(found)

    validate = missed if method.labels else None
    loss = loss_of(method, network)
    fit_outcomes(network, train.data, choose.data, config, loss=loss, validate=validate)
    if not method.labels:
        return network, measure_outcomes(network, choose.data)[0]
    network.reader = problem.reader(seed)
    alone = replace(config, epochs=0, reader_epochs=problem.epochs + 2)
    loss = loss_of(METHODS[0], network)
    fit_outcomes(network, train.data, choose.data, alone, loss=loss)
    return network, missed()


def selected_from(network: OutcomeNetwork, data: Outcomes, k: int) -> NDArray[np.int64]:
    """[claims, k], what is selected; −1 for none."""
    found = np.full((len(data), k), -1)
    for rows, batch in data.batches(256):
        own = network.select(batch.x, batch.mask, k).indices.numpy()
        found[rows.numpy()[:, None], np.arange(own.shape[1])] = own
    return found
