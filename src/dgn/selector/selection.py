"""What was picked, with the sentences themselves, and the reasons on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dgn.encoders import Encoded
from dgn.maximizers import Selection
from dgn.selector.coverage import covered_shares
from dgn.selector.sources import Question, Sentence

if TYPE_CHECKING:
    from dgn.selector.reasons import Reasons


@dataclass(frozen=True)
class SentenceSelection(Selection):
    """A Selection of sentences; the indices are places in `candidates`."""

    question: Question
    encoded: Encoded = field(repr=False, compare=False)

    @property
    def candidates(self) -> tuple[Sentence, ...]:
        """All sentences, picked or not."""
        return self.question.sentences

    @property
    def picked(self) -> tuple[Sentence, ...]:
        """The picked sentences, in the order of the picks."""
        return tuple(self.candidates[index] for index in self.indices)

    @property
    def texts(self) -> tuple[str, ...]:
        """The picked sentences' texts, in the order of the picks."""
        return tuple(sentence.text for sentence in self.picked)

    def explain(self) -> Reasons:
        """Why each sentence was picked, or was not."""
        from dgn.selector.reasons import reasons_of

        return reasons_of(self)

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        covered = covered_shares(self.encoded, self.indices)
        return {
            "claim": self.question.claim,
            "picks": [
                {"index": index, "gain": gain, **_where(sentence)}
                for index, gain, sentence in zip(self.indices, self.gains, self.picked, strict=True)
            ],
            "value": self.values[-1] if self.values else 0.0,
            "covered": float(covered[-1]),
            "certificate": self.certificate.ratio,
        }


def _where(sentence: Sentence) -> dict[str, Any]:
    place: dict[str, Any] = {"text": sentence.text, "sentence": sentence.place}
    if sentence.title:
        place["title"] = sentence.title
    if sentence.document is not None:
        place["document"] = sentence.document
    if sentence.start is not None:
        place |= {"start": sentence.start, "end": sentence.end}
    return place
