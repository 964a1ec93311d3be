"""The exceptions: their messages, their tree, and their way through pickle."""

import inspect
import pickle

import pytest

import dgn
from dgn import errors
from dgn.errors import (
    BrokenInput,
    DGNError,
    InvalidInput,
    MissingExtra,
    require_extra,
)

ERRORS = [
    DGNError("something"),
    InvalidInput("k", found="0", allowed="at least 1"),
    InvalidInput("mask", message="Set 1 has no item."),
    BrokenInput("f.jsonl", 812_345, found="no valid JSON", allowed="JSON"),
    BrokenInput("f.jsonl", None, found="nothing", allowed="something"),
    BrokenInput("f.jsonl", 3, message="the claim has no word."),
    MissingExtra("this", package="torch", extra="train"),
]
CLASSES = [
    kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, DGNError)
]


def test_every_class_is_tested_here() -> None:
    assert {type(error) for error in ERRORS} == set(CLASSES)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pickled_exception_is_the_same(error: DGNError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_exception_is_exported(kind: type[DGNError]) -> None:
    assert kind.__name__ in dgn.__all__
    assert getattr(dgn, kind.__name__) is kind


def test_message_of_an_invalid_input() -> None:
    assert str(ERRORS[1]) == "k must be at least 1; got 0."
    assert (ERRORS[1].argument, ERRORS[1].found, ERRORS[1].allowed) == ("k", "0", "at least 1")
    assert str(ERRORS[2]) == "Set 1 has no item."
    assert ERRORS[2].argument == "mask"


def test_message_of_a_broken_input() -> None:
    assert str(ERRORS[3]) == "f.jsonl, line 812,345: expected JSON; found no valid JSON."
    assert str(ERRORS[4]) == "f.jsonl: expected something; found nothing."
    assert str(ERRORS[5]) == "f.jsonl, line 3: the claim has no word."
    assert (ERRORS[3].file, ERRORS[3].line) == ("f.jsonl", 812_345)


def test_exceptions_have_a_common_base() -> None:
    assert all(issubclass(kind, DGNError) for kind in CLASSES)
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(BrokenInput, ValueError)
    assert issubclass(MissingExtra, ImportError)


def test_missing_package_is_reported_with_its_extra() -> None:
    with pytest.raises(MissingExtra, match=r"no_such_package.*pip install 'dgn\[train\]'"):
        require_extra("this", package="no_such_package", extra="train")
    require_extra("this", package="numpy", extra="train")
