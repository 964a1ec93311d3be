"""Training from outcomes: which notes decide whether a machine passes, without evidence labels.

In a clone: pip install '.[train]' && python -m examples.learn_from_outcomes

An order names some parts of a machine, and the notes on it say much: findings about these parts,
talk that mentions them more often, findings about other parts. All that is known is whether the
machine passed in the end. It does if none of the parts of the order is worn.
"""

import random

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dgn.learn import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LearnedWeights,
    UnfoldedGreedy,
)

PARTS = ("pump", "valve", "motor", "boiler", "belt", "gear", "tank", "fan")
WORDS = ("sound", "worn", "is", "asked", "about", "again", "looked", "at")
K = 3
READER_EPOCHS, EPOCHS = 5, 15

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
    words = note.lower().replace(".", "").replace(",", "").split()
    mentions = [words.count(part) * (part in parts) for part in PARTS]
    return mentions + [words.count(word) for word in WORDS]


def tensors(orders: list[Order]) -> tuple[Tensor, Tensor]:
    """What is known about every note, [orders, notes, features], and the outcome of every order."""
    rows = [[features(parts, note) for note in notes] for parts, notes, _ in orders]
    return torch.tensor(rows).float(), torch.tensor([int(passed) for _, _, passed in orders])


class Reader(nn.Module):
    """Predicts the outcome from the notes that are selected; of the others it sees nothing."""

    def __init__(self, width: int, hidden: int = 64) -> None:
        super().__init__()
        self.read = nn.Sequential(
            *(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        )
        self.conclude = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, x: Tensor, membership: Tensor) -> Tensor:
        """[orders, 2], the logits; membership is [orders, notes], how far each note is selected."""
        return self.conclude((membership[:, None, :] @ self.read(x))[:, 0])


def whole(selected: Tensor, notes: int) -> Tensor:
    """[orders, notes], 1 for the notes that are selected at run time."""
    return torch.zeros(len(selected), notes).scatter(1, selected, 1.0)


def train_on_outcomes(
    selector: DifferentiableGreedyNetwork, reader: Reader, x: Tensor, outcome: Tensor
) -> None:
    """Train both by the outcome alone: the loss reaches the selector through its soft selection."""
    optimizer = torch.optim.Adam(
        [
            {"params": reader.parameters(), "lr": 1e-2},
            {"params": selector.parameters(), "lr": 3e-3},
        ]
    )
    for epoch in range(READER_EPOCHS + EPOCHS):
        # The reader learns first: what it cannot read yet, it cannot ask for.
        learns = epoch >= READER_EPOCHS
        selector.set_temperature(max(0.1, 0.9 ** max(0, epoch - READER_EPOCHS)))
        for rows in torch.randperm(len(x)).split(64):
            soft = selector.membership(x[rows])
            soft = soft if learns else soft.detach()
            hard = whole(selector.select(x[rows], k=K).indices, x.shape[1])
            loss = cross_entropy(reader(x[rows], soft), outcome[rows])
            loss = loss + cross_entropy(reader(x[rows], hard), outcome[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def recall(orders: list[Order], selected: Tensor) -> float:
    """The share of the findings about the parts of the order that are selected."""
    findings = 0
    for (parts, notes, _), indices in zip(orders, selected.tolist(), strict=True):
        findings += sum(notes[i].startswith(f"The {part} is") for i in indices for part in parts)
    return findings / (K * len(orders))


def show(order: Order, selected: Tensor) -> None:
    """Print what is selected from the notes of an order."""
    for index in selected.tolist():
        print(f"    {order[1][index]}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # small tensors: threads would only wait for each other
    source = random.Random(0)  # noqa: S311
    train, test = ([write_order(source) for _ in range(n)] for n in (1500, 300))
    torch.manual_seed(0)
    inputs, (x, outcome) = len(PARTS) + len(WORDS), tensors(test)

    # At its start: coverage of the parts of the order, which counts how often they are mentioned.
    encoder = FeatureEncoder(FeedForward((inputs, 24, len(PARTS))), LearnedWeights(len(PARTS)))
    encoder.start_as_identity(2.0)
    selector = DifferentiableGreedyNetwork(encoder, UnfoldedGreedy(layers=K))
    reader = Reader(inputs)

    before = selector.select(x, k=K).indices
    train_on_outcomes(selector, reader, *tensors(train))
    after = selector.select(x, k=K).indices
    right = reader(x, whole(after, x.shape[1])).argmax(dim=1) == outcome

    print(f"Order: check {', '.join(test[0][0])}. Selected before training:")
    show(test[0], before[0])
    print("and after training from 1,500 outcomes:")
    show(test[0], after[0])
    print(f"findings selected: {recall(test, before):.2f} -> {recall(test, after):.2f}")
    print(f"outcome right, from {K} notes: {right.float().mean():.2f}")
