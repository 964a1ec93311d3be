"""Every committed output names the code and the weights that made it."""

from pathlib import Path

import pytest

from experiments.made import made_by, what_is_wrong

ROOT = Path(__file__).parents[2]
OUTPUTS = sorted(
    str(path.relative_to(ROOT))
    for folder in ("experiments/results", "benchmarks/results")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".txt", ".md", ".json") and path.name != "README.md"
)


@pytest.mark.parametrize("output", OUTPUTS)
def test_output_says_by_what_it_was_made(output: str) -> None:
    assert not what_is_wrong((ROOT / output).read_text(encoding="utf-8"))


def test_a_changed_script_or_changed_weights_are_noticed() -> None:
    line = made_by("experiments/made.py", "facets")
    assert not what_is_wrong(f"x\n{line}\ny")
    for wrong in (
        line[:-1] + ("0" if line[-1] != "0" else "1"),
        line.replace("made.py ", "made.py 0"),
        "nothing",
    ):
        assert what_is_wrong(wrong)
    assert not what_is_wrong("Made at commit d973326.")
