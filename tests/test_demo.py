"""The demonstration shows what the README says it shows."""

import pytest

import dgn.cli.demo
from dgn.demo import KS, DemoResult, run_demo


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run_demo(0, epochs=4)


def test_the_dgn_beats_every_baseline_beyond_the_first_pick(result: DemoResult) -> None:
    *baselines, dgn_row = result.rows
    assert [row.name for row in result.rows] == [
        "Top-k",
        "Greedy",
        "Encoder",
        "DeepEncoder",
        "DGN",
    ]
    for row in baselines:
        for k, ours, theirs in zip(KS, dgn_row.recall, row.recall, strict=True):
            if k > 1:
                assert ours > theirs + 0.03, (row.name, k)


def test_the_story_is_told_with_its_gains(
    result: DemoResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert result.story is not None
    monkeypatch.setattr(dgn.cli.demo, "run_demo", lambda *_, **__: result)
    dgn.cli.demo.show_demo(2)
    printed = capsys.readouterr().out
    assert "DeepEncoder" in printed
    assert "±" in printed
    assert "DGN picks, each given the ones before:" in printed
    assert "its gain falls" in printed
