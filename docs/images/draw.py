"""Draws docs/images/network.svg: the flow of the data, and the unfolded network.

python docs/images/draw.py
"""

from __future__ import annotations

from pathlib import Path

INK, PALE, LINE = "#1f2933", "#f5f7fa", "#52606d"
BLUE, GREEN, AMBER = "#d9e8f6", "#dff0e0", "#fbecd0"


def box(x: int, y: int, width: int, height: int, title: str, note: str, fill: str) -> str:
    middle = x + width / 2
    lines = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" '
        f'stroke="{LINE}"/>'
    ]
    height_of_title = y + height / 2 + (5 if not note else -3)
    lines.append(f'<text x="{middle}" y="{height_of_title}" class="title">{title}</text>')
    if note:
        lines.append(f'<text x="{middle}" y="{y + height / 2 + 15}" class="note">{note}</text>')
    return "\n".join(lines)


def arrow(*points: tuple[int, int]) -> str:
    path = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline points="{path}" class="arrow"/>'


def line(*points: tuple[int, int]) -> str:
    return arrow(*points).replace("arrow", "line")


def label(x: int, y: int, text: str, kind: str = "note") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{text}</text>'


def heading(y: int, text: str) -> str:
    return f'<text x="20" y="{y}" class="heading">{text}</text>'


def flow_of_the_data() -> list[str]:
    y = 50
    packages = [
        ("text and data", "what is asked", PALE),
        ("encoders", "what a passage offers", PALE),
        ("objectives", "what a set is worth", BLUE),
    ]
    parts = [heading(28, "The flow of the data")]
    for number, (title, note, fill) in enumerate(packages):
        x = 20 + 200 * number
        parts.append(box(x, y + 40, 160, 56, title, note, fill))
        parts.append(arrow((x + 160, y + 68), (x + 194, y + 68)) if number < 2 else "")
    parts += [
        box(640, y, 220, 56, "maximizers", "run time: argmax, with a certificate", GREEN),
        box(640, y + 84, 220, 56, "unfolding", "training: softmax, differentiable", AMBER),
        arrow((580, y + 60), (610, y + 60), (610, y + 28), (634, y + 28)),
        arrow((580, y + 76), (610, y + 76), (610, y + 112), (634, y + 112)),
        label(750, y + 73, "one formula for both"),
    ]
    return parts


def unfolded_network() -> list[str]:
    y = 300
    parts = [
        heading(246, "The unfolded network"),
        box(20, y, 90, 56, "X", "n items", PALE),
        arrow((110, y + 28), (144, y + 28)),
        box(150, y, 110, 56, "encoder", "linear, ReLU ×2", PALE),
        arrow((260, y + 28), (294, y + 28)),
        box(300, y, 60, 56, "H ≥ 0", "", PALE),
        line((360, y + 28), (380, y + 28), (380, 284), (765, 284)),
    ]
    for number, (name, state) in enumerate((("1", "s¹"), ("2", "s² …"), ("K", "sᴷ"))):
        x = 420 + 150 * number
        parts.append(box(x, y, 90, 56, f"layer {name}", "", AMBER))
        parts.append(arrow((x + 45, 284), (x + 45, y - 4)))
        parts.append(arrow((x + 90, y + 28), (x + (144 if number < 2 else 116), y + 28)))
        parts.append(label(x + 117, y + 20, state))
        parts.append(arrow((x + 45, y + 56), (x + 45, y + 78)))
        parts.append(label(x + 45, y + 94, f"loss {name}"))
    parts.append(label(400, y + 20, "∅"))
    parts.append(arrow((388, y + 28), (414, y + 28)))
    return parts


def one_layer() -> list[str]:
    y = 456
    return [
        heading(436, "One greedy layer; all K share their weights α"),
        box(20, y, 240, 62, "gain of every item v", "f(v | s) = f(s ∪ v) − f(s)", BLUE),
        arrow((260, y + 31), (294, y + 31)),
        box(300, y, 280, 62, "choose one item", "train: softmax(gain / τ)   run: argmax", AMBER),
        arrow((580, y + 31), (614, y + 31)),
        box(620, y, 240, 62, "add it", "s ← s ∪ p", GREEN),
        label(
            440,
            y + 92,
            "f(A) = Σᵤ αᵤ log(1 + Σₐ hₐᵤ): a little of every feature beats much of one",
        ),
    ]


def draw() -> str:
    style = f"""
    text {{ font-family: Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: {INK}; }}
    .heading {{ font-size: 16px; font-weight: bold; }}
    .title {{ font-size: 15px; text-anchor: middle; }}
    .note {{ font-size: 12px; text-anchor: middle; fill: {LINE}; }}
    .line {{ fill: none; stroke: {LINE}; stroke-width: 1.4; }}
    .arrow {{ fill: none; stroke: {LINE}; stroke-width: 1.4; marker-end: url(#head); }}
    """
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker>'
    )
    parts = [*flow_of_the_data(), *unfolded_network(), *one_layer()]
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 566" role="img" '
            'aria-label="The flow of the data and the unfolded greedy network">',
            f"<style>{style}</style><defs>{head}</defs>",
            '<rect width="880" height="566" fill="white"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    Path(__file__).with_name("network.svg").write_text(draw(), encoding="utf-8")
