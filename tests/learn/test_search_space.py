"""What a search tries: a range or some choices for each setting."""

import pytest

from dgn.errors import InvalidInput
from dgn.learn import RunConfig
from dgn.learn.search_space import PAPER_SEARCH, Dimension, config_of_trial, parse_dimension


def test_ranges_and_choices() -> None:
    assert parse_dimension("learning-rate=1e-4:1e-2:log") == Dimension(
        "learning_rate", 1e-4, 1e-2, log=True
    )
    assert parse_dimension("layers=1:7").is_whole
    assert parse_dimension("optimizer=adam,adamw").choices == ("adam", "adamw")
    assert parse_dimension("width=64:300").is_whole
    assert parse_dimension("hidden=1:8").is_whole
    assert not parse_dimension("temperature=0.5:6").is_whole


def test_search_of_the_paper() -> None:
    names = [parse_dimension(text).name for text in PAPER_SEARCH]
    assert names == ["learning_rate", "width", "temperature"]


@pytest.mark.parametrize(
    "text",
    [
        *("x=1:2", "layers", "layers=", "layers=1.5:2", "layers=3:1", "scale=0:1:log"),
        *("scale=1:2:x", "scale=nan:1", "train=a,b", "max_queries=1:9", "seed=1:9"),
        *("device=cpu,cuda", "eval_ks=1,2"),
    ],
)
def test_dimensions_that_are_not_allowed(text: str) -> None:
    with pytest.raises(InvalidInput, match=f"search must be .*; got '{text}'"):
        parse_dimension(text)


def test_misspelled_name_gives_a_suggestion() -> None:
    with pytest.raises(InvalidInput, match="did you mean learning_rate"):
        parse_dimension("learning_rat=1:2")


def test_width_is_the_last_layer_of_the_encoder() -> None:
    assert config_of_trial(RunConfig(), 300, {"width": 64}).encoder.widths == (300, 64)
    wide = RunConfig().with_settings({"widths": [500, 10]})
    assert config_of_trial(wide, 300, {"width": 64}).encoder.widths == (500, 64)
    found = config_of_trial(RunConfig(), 300, {"temperature": 2.0})
    assert (found.fit.temperature, found.encoder.widths) == (2.0, ())


def test_parts_are_searched_with_their_arguments() -> None:
    choices = parse_dimension("concave=log,power(exponent=0.3),my_parts:Own(a=1,b=2)").choices
    assert choices == ("log", "power(exponent=0.3)", "my_parts:Own(a=1,b=2)")
    exponent = parse_dimension("concave.exponent=0.1:1")
    assert (exponent.low, exponent.high, exponent.is_whole) == (0.1, 1.0, False)
    assert parse_dimension("concave.depth=1:9").is_whole
    assert parse_dimension("concave.cap=1,2.5").choices == (1, 2.5)
    base = RunConfig().with_settings({"concave": "power(exponent=0.5)"})
    assert config_of_trial(base, 300, {"concave.exponent": 0.2}).encoder.concave == (
        "power(exponent=0.2)"
    )
    both = {"concave": "saturated", "concave.cap": 3.0}
    assert config_of_trial(base, 300, both).encoder.concave == "saturated(cap=3.0)"
    with pytest.raises(InvalidInput, match="one value"):
        parse_dimension("scale.exponent=0.1:1")
    with pytest.raises(InvalidInput, match="of the form"):
        parse_dimension("concave.exponent=a:b")
