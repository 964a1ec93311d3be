"""The demonstration shows what the documentation says."""

import pytest

import experiments.demo
from experiments.demo import KS, DemoResult, main, run_demo


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run_demo(0, epochs=4)


def test_the_dgn_beats_every_baseline_after_the_first_sentence(result: DemoResult) -> None:
    *baselines, dgn_row = result.rows
    assert [row.name for row in result.rows] == [
        "Top-k",
        "Greedy",
        "Encoder",
        "DeepEncoder",
        "Encoder, listwise",
        "DGN",
    ]
    for row in baselines:
        for k, ours, theirs in zip(KS, dgn_row.recall, row.recall, strict=True):
            if k > 1:
                assert ours > theirs + 0.03, (row.name, k)


def test_the_table_and_an_example_are_printed(
    result: DemoResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert result.story is not None
    monkeypatch.setattr(experiments.demo, "run_demo", lambda *_, **__: result)
    assert main(["--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    assert "DeepEncoder" in printed
    assert "±" in printed
    assert "DGN selects, each given those before:" in printed
    assert "its gain falls" in printed
