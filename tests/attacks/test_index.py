"""Attacks on a saved index: replaced while it is used, killed while it is written, damaged."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dgn import DGNError, Selector

PAGES = [
    {"id": f"page {n}", "title": f"Bridge {n}", "text": f"Bridge {n} was built in {1900 + n}."}
    for n in range(40)
]
QUERY = "Which bridge was built in 1911?"


@pytest.fixture(scope="module")
def selector() -> Selector:
    return Selector.from_pretrained()


def test_an_index_can_be_saved_where_it_was_loaded_from(selector: Selector, tmp_path: Path) -> None:
    selector.index(PAGES).save(tmp_path)
    wanted = selector.load_index(tmp_path).select(QUERY)
    for _ in range(2):
        selector.load_index(tmp_path).save(tmp_path)
    assert selector.load_index(tmp_path).select(QUERY) == wanted
    assert [path.name for path in tmp_path.iterdir()] == ["index.safetensors"]


def test_an_open_index_stays_when_its_folder_is_saved_again(
    selector: Selector, tmp_path: Path
) -> None:
    selector.index(PAGES).save(tmp_path)
    opened = selector.load_index(tmp_path)
    wanted = opened.select(QUERY)
    selector.index(PAGES[:2]).save(tmp_path)
    assert opened.select(QUERY) == wanted
    for number in range(3):  # so many new words that its memory of words is made again
        opened.select(" ".join(f"w{number}x{word}" for word in range(2000)), k=1)
    assert opened.select(QUERY) == wanted
    assert len(selector.load_index(tmp_path)) == 2


SAVING = """
import sys
from pathlib import Path
from dgn import Selector
pages = [{"text": f"Bridge {n} was built in {1900 + n}."} for n in range(int(sys.argv[2]))]
index = Selector.from_pretrained().index(pages)
print("ready", flush=True)
while True:
    index.save(Path(sys.argv[1]))
"""


def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_index(
    selector: Selector, tmp_path: Path
) -> None:
    selector.index(PAGES).save(tmp_path)
    chance = random.Random(0)
    for count in (30, 60, 90):
        command = [sys.executable, "-c", SAVING, str(tmp_path), str(count)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saving:
            assert saving.stdout is not None
            assert saving.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.0, 0.1))
            os.kill(saving.pid, signal.SIGKILL)
        loaded = selector.load_index(tmp_path)
        assert len(loaded) in (30, 40, 60, 90)
        assert loaded.select(QUERY, k=1).texts[0].startswith("Bridge")
    loaded.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.safetensors"], "nothing is left"


def test_every_damage_is_one_sentence(selector: Selector, tmp_path: Path) -> None:
    selector.index(PAGES).save(tmp_path)
    file = tmp_path / "index.safetensors"
    whole = file.read_bytes()
    chance = random.Random(1)
    for attempt in range(200):
        damaged = bytearray(whole)
        if attempt % 4 == 0:
            del damaged[chance.randrange(len(damaged)) :]
        else:
            # The header is small, and most of the file is room for words.
            place = chance.randrange(2500 if attempt % 2 else len(damaged))
            damaged[place] ^= 1 << chance.randrange(8)
        file.write_bytes(damaged)
        with pytest.raises(DGNError) as refused:
            selector.load_index(tmp_path)
        assert "\n" not in str(refused.value)
        assert str(tmp_path) in str(refused.value)
