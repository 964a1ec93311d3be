"""Small files in FEVER's exact official formats, written for the tests."""

from __future__ import annotations

import json
from pathlib import Path

PAGES = {
    "Harbour_Lights_-LRB-film-RRB-": [
        "Harbour Lights is a 1987 drama film directed by Ines Moreau .",
        "It was shot in Bergen .",
        "",
        "The film won two awards .",
    ],
    "Ines_Moreau": ["Ines Moreau is a French director .", "She was born in Lyon ."],
    "Caf\u00e9_Zenith": ["Caf\u00e9 Zenith is a restaurant -LRB- closed in 1999 -RRB- ."],
    "Empty_Page": [],
}

CLAIMS = [
    {
        "id": 1,
        "verifiable": "VERIFIABLE",
        "label": "SUPPORTS",
        "claim": "Harbour Lights was directed by a French director.",
        "evidence": [
            [
                [10, 20, "Harbour_Lights_-LRB-film-RRB-", 0],
                [10, 21, "Ines_Moreau", 0],
            ],
            [[11, 22, "Ines_Moreau", 0]],
        ],
    },
    {
        "id": 2,
        "verifiable": "VERIFIABLE",
        "label": "REFUTES",
        "claim": "Café Zenith is still open.",
        # The accent decomposed, as FEVER writes it now and then.
        "evidence": [[[12, 23, "Cafe\u0301_Zenith", 0]]],
    },
    {
        "id": 3,
        "verifiable": "NOT VERIFIABLE",
        "label": "NOT ENOUGH INFO",
        "claim": "Ines Moreau likes tea.",
        "evidence": [[[13, None, None, None]]],
    },
]


def wiki_row(title: str, sentences: list[str]) -> dict[str, str]:
    lines = [
        f"{n}\t{text}" + ("\tBergen\tBergen" if "Bergen" in text else "")
        for n, text in enumerate(sentences)
    ]
    return {"id": title, "text": " ".join(sentences), "lines": "\n".join(lines)}


def write_jsonl(path: Path, rows: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def write_wiki(folder: Path) -> Path:
    """Two files, each with the empty first row that FEVER's have."""
    rows = [wiki_row(title, sentences) for title, sentences in PAGES.items()]
    empty = {"id": "", "text": "", "lines": ""}
    write_jsonl(folder / "wiki-001.jsonl", [empty, *rows[:2]])
    write_jsonl(folder / "wiki-002.jsonl", [empty, *rows[2:]])
    return folder


def write_claims(path: Path) -> Path:
    return write_jsonl(path, list(CLAIMS))
