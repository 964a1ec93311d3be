"""The stories of the paper, on a paper and pages of our own, and on the real ones."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from dgn.errors import InvalidInput
from dgn.selector import Selector
from dgn.text import open_vectors
from dgn.text.pooled import PooledEncoder
from experiments.reproduce.paper import TABLE_1
from experiments.stories import STORIES, main, read_quotes

SHARED = Path(__file__).parents[3] / "shared"
WORDS = ("red", "green", "blue", "ship", "sank", "harbour", "the", "in")
# For each story the claim and its sentences; "Jarhead," is too short to be one.
QUOTES = (
    ("the red ship sank", "red ship in harbour", "the ship sank in blue", "green harbour in red"),
    ("the green ship sank", "green ship in harbour", "the ship sank red", "blue ship in green"),
    ("the blue ship sank", "blue ship in harbour", "the blue harbour sank", "ship sank in blue"),
)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A paper, pages with the sentences that are on them, and two models."""
    told = "\n".join(f"``{text},'' and ``Ship,''" for story in QUOTES for text in story)
    (tmp_path / "paper.tex").write_text(f"``no story''\nTo illustrate how the dependencies {told}")
    (tmp_path / "docs").mkdir()
    for story, (_, *texts) in zip(STORIES, QUOTES, strict=True):
        sentences = zip(story.sentences.values(), texts, strict=True)
        lines = [text.capitalize() for one, text in sentences if one.page == story.page]
        page = "\n".join(["A line of its own .", *lines])
        (tmp_path / "docs" / story.page).write_text(page)
    row = {"annotation_id": "1", "query": "c", "docids": [STORIES[1].page], "evidences": []}
    (tmp_path / "train.jsonl").write_text(json.dumps(row) + "\n")
    random = np.random.default_rng(0)
    vectors = [" ".join([word, *(f"{x:.3f}" for x in random.random(4))]) for word in WORDS]
    (tmp_path / "words.vec").write_text("\n".join([f"{len(WORDS)} 4", *vectors, ""]))
    for seed in range(2):
        weights = {
            "features.layers.0.weight": random.normal(size=(6, 4)).astype(np.float32) * 5,
            "features.layers.0.bias": np.zeros(6, np.float32),
            "objective.raw": np.ones(6, np.float32),
        }
        source = str(tmp_path / "words.vec")
        encoder = PooledEncoder(open_vectors(source), unit=False, weights=weights, source=source)
        Selector(encoder).save_pretrained(tmp_path / f"DGN-seed{seed}")
    return tmp_path


def numbers_of(selector: Selector, claim: str, first: str, second: str) -> tuple[float, float]:
    """f({second}) and f(second | first), by the definition."""
    weights = selector.encoder.save()[1]
    vectors = open_vectors(selector.encoder.save()[0]["source"])
    x = vectors.pooled([claim, first, second]).astype(np.float16).astype(np.float64)
    features = np.maximum((x[:1] * x[1:]) @ weights["features.layers.0.weight"].T, 0)
    alpha = np.logaddexp(weights["objective.raw"], 0)

    def f(*rows: int) -> float:
        return float(alpha @ np.log1p(features[list(rows)].sum(axis=0)))

    return f(1), f(0, 1) - f(0)


def test_the_numbers_are_those_of_the_definition(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(world / f"DGN-seed{seed}") for seed in range(2)]
    paper, out = str(world / "paper.tex"), world / "stories.md"
    assert main([*runs, "--data", str(world), "--paper", paper, "--out", str(out)]) == 0
    text = out.read_text()
    assert capsys.readouterr().out.startswith("# The stories of the paper")
    assert not any(quote in text.lower() for story in QUOTES for quote in story), "no data"
    assert text.count("| *the paper* |") == 3
    assert "1 training claims are about Phoenix,_Arizona" in text
    # Jarhead: b, given a.
    claim, a, b, _ = QUOTES[0]
    found = [numbers_of(Selector.from_pretrained(run), claim, a, b.capitalize()) for run in runs]
    row = next(line for line in text.splitlines() if re.match(r"\| DGN \| \d+\.\d\d", line))
    cells = [cell.strip() for cell in row.split("|")[3:6]]
    means = [float(cell.split()[0]) for cell in cells]
    alone, after = np.array(found).mean(axis=0)
    assert means[0] == pytest.approx(alone, abs=0.006)
    assert means[1] == pytest.approx(after, abs=0.006)
    kept = np.mean([given / by_itself for by_itself, given in found])
    assert means[2] == pytest.approx(kept, abs=0.001)


def test_another_file_is_not_the_paper(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput, match="not the LaTeX source"):
        read_quotes(world / "train.jsonl")
    paper = str(world / "train.jsonl")
    run = str(world / "DGN-seed0")
    assert main([run, "--data", str(world), "--paper", paper, "--out", str(world / "o")]) == 1
    assert capsys.readouterr().err.startswith("stories: ")


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared is not next to this clone")
def test_our_numbers_of_the_paper_are_in_its_source() -> None:
    (paper,) = (SHARED / "seed").glob("*.txt")
    source = paper.read_text(encoding="utf-8")
    for story in STORIES:
        for one in story.sentences.values():
            for value in (one.alone, one.after):
                assert value is None or re.search(rf"= +{value:g}0?\$|{value:g}0?[ $]", source)
    blocks = source.split("\\hline\nModel")  # in the order 7, 5, 3, 1
    for name, rows in TABLE_1.items():
        written = {"Deep DGN": "DDGN"}.get(name, name)
        for block, k in zip(blocks, (7, 5, 3, 1), strict=True):
            line = next(one for one in block.splitlines() if re.match(rf"%?{written} +&", one))
            assert tuple(map(float, re.findall(r"\d\.\d{3}", line))) == rows[k]
