"""Training from outcomes: which notes decide whether a machine passes, without evidence labels.

In a clone: pip install '.[train]' && python -m examples.learn_from_outcomes

An order names some parts of a machine, and the notes on it say much: findings about these parts,
talk that mentions them more often, findings about other parts. All that is known is whether the
machine passed in the end. It does if none of the parts of the order is worn.
"""

import random

import torch
from torch import Tensor

from dgn.learn import (
    DifferentiableGreedyNetwork,
    EvidenceReader,
    FeatureEncoder,
    FeedForward,
    Geometric,
    LearnedWeights,
    OutcomeConfig,
    OutcomeNetwork,
    Outcomes,
    UnfoldedGreedy,
    fit_outcomes,
    measure_outcomes,
)

PARTS = ("pump", "valve", "motor", "boiler", "belt", "gear", "tank", "fan")
WORDS = ("sound", "worn", "is", "asked", "about", "again", "looked", "at")
K = 3

Order = tuple[list[str], list[str], bool]  # the parts, the notes, and whether the machine passed


def write_order(source: random.Random) -> Order:
    """An order with its notes and its outcome."""
    parts = source.sample(PARTS, K)
    worn = source.choice(parts) if source.random() < 0.5 else None
    notes = [f"The {part} is {'worn' if part == worn else 'sound'}." for part in parts]
    for part in source.sample(parts, 2):
        notes.append(f"They asked about the {part}, and looked at the {part} again.")
    for part in source.sample([part for part in PARTS if part not in parts], 3):
        notes.append(f"The {part} is {source.choice(['worn', 'sound'])}.")
    source.shuffle(notes)
    return parts, notes, worn is None


def features(parts: list[str], note: str) -> list[int]:
    """What is known about a note: which parts of the order it mentions how often, and its words."""
    said = note.lower().replace(".", "").replace(",", "").split()
    return [said.count(one) * (one in parts) for one in PARTS] + [said.count(w) for w in WORDS]


def outcomes_of(orders: list[Order]) -> Outcomes:
    """The orders as tensors; all have the same number of notes here."""
    rows = [[features(parts, note) for note in notes] for parts, notes, _ in orders]
    x = torch.tensor(rows, dtype=torch.float32)
    return Outcomes(
        x=x,
        passages=x,  # the reader sees the same, but of selected notes alone
        query=torch.zeros(len(orders), 0),
        mask=torch.ones(x.shape[:2], dtype=torch.bool),
        outcome=torch.tensor([int(passed) for _, _, passed in orders]),
    )


def recall(orders: list[Order], selected: Tensor) -> float:
    """The share of the findings about the parts of the order that are selected."""
    found = 0
    for (parts, notes, _), own in zip(orders, selected.tolist(), strict=True):
        found += sum(notes[i].startswith(f"The {p} is") for i in own for p in parts)
    return found / (K * len(orders))


def show(order: Order, selected: Tensor) -> None:
    """Print what is selected from the notes of an order."""
    for index in selected.tolist():
        print(f"    {order[1][index]}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # small tensors: threads would only wait for each other
    source = random.Random(0)  # noqa: S311
    train, validation, test = ([write_order(source) for _ in range(n)] for n in (1500, 300, 300))
    torch.manual_seed(0)
    inputs, data = len(PARTS) + len(WORDS), outcomes_of(test)

    # At its start: coverage of the parts of the order, which counts how often they are mentioned.
    encoder = FeatureEncoder(FeedForward((inputs, 24, len(PARTS))), LearnedWeights(len(PARTS)))
    encoder.start_as_identity(2.0)
    selector = DifferentiableGreedyNetwork(encoder, UnfoldedGreedy(layers=K))
    network = OutcomeNetwork(selector, EvidenceReader(width=inputs), k=K)

    before = network.select(data.x, data.mask).indices
    config = OutcomeConfig(epochs=15, learning_rate=3e-3, temperatures=Geometric(1.0, 0.9, 0.1))
    fit_outcomes(network, outcomes_of(train), outcomes_of(validation), config)
    after = network.select(data.x, data.mask).indices

    print(f"Order: check {', '.join(test[0][0])}. Selected before training:")
    show(test[0], before[0])
    print("and after training from 1,500 outcomes:")
    show(test[0], after[0])
    print(f"findings selected: {recall(test, before):.2f} -> {recall(test, after):.2f}")
    print(f"outcome right, from {K} notes: {measure_outcomes(network, data)[1]:.2f}")
