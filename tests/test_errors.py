import pickle

import pytest

from dgn.errors import BrokenInput, DGNError, InvalidInput, MissingExtra, SearchTooLarge

ERRORS = [
    InvalidInput("k", found="0", allowed="at least 1"),
    BrokenInput("f.jsonl", 812_345, found="no valid JSON", allowed="JSON"),
    BrokenInput("f.jsonl", None, found="nothing", allowed="something"),
    MissingExtra("this", package="torch", extra="train"),
    SearchTooLarge("no proof"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_the_way_back_from_a_worker(error: DGNError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_broken_line_is_easy_to_find() -> None:
    assert str(ERRORS[1]) == "f.jsonl, line 812,345: found no valid JSON; allowed: JSON"
    assert str(ERRORS[2]) == "f.jsonl: found nothing; allowed: something"
