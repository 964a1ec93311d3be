"""A row of the paper's tables with parts of the user."""

import sys
from pathlib import Path

import pytest

from dgn import parts
from dgn.learn import RunConfig
from experiments.reproduce import own, plan
from experiments.reproduce.__main__ import main


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "MODELS", plan.MODELS)
    for name, before in (("MODELS", plan.MODELS), ("RECIPES", plan.RECIPES)):
        for module in (own, plan):
            monkeypatch.setattr(module, name, dict(before))
    own.MODELS, own.RECIPES = plan.MODELS, plan.RECIPES


def test_row_of_the_user_is_searched_like_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sharp_parts.py").write_text(
        "from dgn.learn import Relaxation, Softmax\n\n\nclass Sharp(Relaxation):\n"
        "    def choose(self, scores, log_prior, temperature):\n"
        "        return Softmax().choose(scores, log_prior, temperature / 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv(parts.IMPORTS, "")
    given = ["data", "--own", "relaxation=sharp_parts:Sharp", "concave=sqrt", "--out", "x"]
    assert own.take_own_parts(given) == ["data", "--out", "x"]
    name = "DGN, relaxation sharp_parts:Sharp, concave sqrt"
    assert plan.RECIPES["paper"][-1] == name
    runs = plan.plan_search(plan.Effort(models=(name,), trials=2, studies=()), 100, 300)
    assert len(runs) == 2
    for run in runs:
        config = RunConfig().with_settings(run.settings)
        assert config.network.relaxation == "sharp_parts:Sharp"
        assert config.encoder.concave == "sqrt"
    sys.modules.pop("sharp_parts")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["relaxation=nowhere:X"], "The module nowhere cannot be imported"),
        (["relaxatio=softmax"], "did you mean relaxation"),
        ([], "--own needs settings"),
    ],
)
def test_mistakes_are_named(
    given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "--out", "x", "--own", *given]) == 1
    assert message in capsys.readouterr().err
