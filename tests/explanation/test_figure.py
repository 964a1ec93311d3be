from pathlib import Path

import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.encoders import PooledEncoder
from models import untrained, wordllama

pytest.importorskip("matplotlib", reason="matplotlib is in dgn[plot]")

STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", STARTS)
def test_explanation_is_drawn_completely(tmp_path: Path, suffix: str) -> None:
    reasons = untrained().select(CLAIM, PAGE, k=3, titles=TITLE).explain()
    path = tmp_path / f"why{suffix}"
    reasons.draw(str(path))
    assert path.stat().st_size > 1000
    assert path.read_bytes().startswith(STARTS[suffix])
    assert [one.name for one in tmp_path.iterdir()] == [path.name], "no partial file is left"


def test_failed_drawing_leaves_the_old_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    path = tmp_path / "why.png"
    path.write_bytes(b"old")

    def fail(_: object, target: Path, **_options: object) -> None:
        Path(target).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        untrained().select(CLAIM, PAGE, k=1).explain().draw(path)
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["why.png"]


def test_figure_of_a_link_replaces_its_target(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "why.svg").symlink_to(tmp_path / "figures" / "target.svg")
    untrained().select(CLAIM, PAGE, k=1).explain().draw(tmp_path / "why.svg")
    assert (tmp_path / "why.svg").is_symlink()
    assert (tmp_path / "figures" / "target.svg").read_bytes().startswith(b"<?xml")


def test_explanation_without_words_is_drawn(tmp_path: Path) -> None:
    pooled = dgn.Selector(PooledEncoder(wordllama()))
    pooled.select(CLAIM, PAGE, k=2).explain().draw(tmp_path / "why.svg")
    assert (tmp_path / "why.svg").stat().st_size > 1000


def test_dollar_signs_are_not_formulas(tmp_path: Path) -> None:
    found = untrained().select("It cost $5_{ $", ["It cost $5_{ and earned $7.", "No."], k=1)
    found.explain().draw(tmp_path / "why.png")
    assert (tmp_path / "why.png").stat().st_size > 1000
