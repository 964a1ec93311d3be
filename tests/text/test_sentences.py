import pytest

from dgn.text import split_sentences


def test_sentences_have_their_positions() -> None:
    text = "Dr. Moreau lives in Zürich.  She paints.\n\nA heading\n\nReally? Yes!  "
    spans = split_sentences(text)
    assert [span.text for span in spans] == [
        "Dr. Moreau lives in Zürich.",
        "She paints.",
        "A heading",
        "Really?",
        "Yes!",
    ]
    for span in spans:
        assert text[span.start : span.end] == span.text


@pytest.mark.parametrize("text", ["", "   ", "\n\n\n"])
def test_blank_text_has_no_sentence(text: str) -> None:
    assert split_sentences(text) == []


def test_repeated_sentences_have_different_positions() -> None:
    spans = split_sentences("Yes. Yes. Yes.")
    assert [span.start for span in spans] == [0, 5, 10]


@pytest.mark.parametrize("space", ["\u2003", "\u00a0", "\u2028", "\x0b", "\x1c", "\u3000"])
def test_rare_spaces_do_not_shift_positions(space: str) -> None:
    text = f"The{space}ship left.{space}It sank.{space}"
    spans = split_sentences(text)
    assert spans[-1].text.endswith("It sank.")
    for span in spans:
        assert text[span.start : span.end] == span.text


def texts_of(text: str) -> list[str]:
    spans = split_sentences(text)
    for span in spans:
        assert text[span.start : span.end] == span.text
    assert [span.start for span in spans] == sorted(span.start for span in spans)
    return [span.text for span in spans]


def test_rows_of_a_table_stay_whole() -> None:
    table = "| plan | price |\n|:-----|------:|\n| basic. Good. | 12 |\n| pro | 30 |"
    assert texts_of(f"See below.\n\n{table}\n\nThat is all.") == [
        "See below.",
        "| plan | price |",
        "| basic. Good. | 12 |",
        "| pro | 30 |",
        "That is all.",
    ]
    assert texts_of("plan | price\n--- | ---\nbasic | 12\npro | 30\nEnd.") == [
        "plan | price",
        "basic | 12",
        "pro | 30",
        "End.",
    ]


def test_rows_with_tabs_stay_whole() -> None:
    assert texts_of("name\tage\nAda Voss. Born\t36\nBo\t12\n\nThe end.") == [
        "name\tage",
        "Ada Voss. Born\t36",
        "Bo\t12",
        "The end.",
    ]


def test_a_block_of_code_stays_whole() -> None:
    code = "```python\ndef f(x):\n    # Twice. Not once.\n    return 2 * x\n\n\nprint(f(1))\n```"
    assert texts_of(f"Like this:\n\n{code}\n\nIt prints 2. Fine.") == [
        "Like this:",
        code,
        "It prints 2.",
        "Fine.",
    ]
    assert texts_of("~~~\n# not a heading\n```\nstill code\n~~~\nText.") == [
        "~~~\n# not a heading\n```\nstill code\n~~~",
        "Text.",
    ]


def test_a_fence_that_is_never_closed_is_not_code() -> None:
    assert texts_of("Look at it.\n```\nIt ended. Really.")[1:] == ["```\nIt ended.", "Really."]


def test_long_code_is_cut_at_empty_lines_and_at_lines() -> None:
    function = "def f():\n" + "    call(1, 2, 3)\n" * 40
    code = "```\n" + "\n\n".join([function] * 6) + "```"
    pieces = texts_of(code)
    assert len(pieces) > 2
    assert all(len(piece) <= 2000 for piece in pieces)
    assert all(piece.startswith(("```", "def f")) for piece in pieces)
    lines = "```\n" + "call(1, 2, 3)\n" * 500 + "```"
    pieces = texts_of(lines)
    assert {line for piece in pieces for line in piece.splitlines()} == {"```", "call(1, 2, 3)"}


def test_items_of_a_list_are_sentences_of_their_own() -> None:
    text = (
        "Do this:\n- Restart the app\n- Update it. Then wait\n  a minute\n* Call\n\n1. One.\n2. Two"
    )
    assert texts_of(text) == [
        "Do this:",
        "- Restart the app",
        "- Update it.",
        "Then wait\n  a minute",
        "* Call",
        "1. One.",
        "2. Two",
    ]


def test_a_number_within_prose_begins_no_item() -> None:
    assert texts_of("The club was founded with the number\n12. It ended.")[-1] == "It ended."
    assert texts_of("A line - with a dash\nand 5 - 3 is 2.") == [
        "A line - with a dash\nand 5 - 3 is 2."
    ]


def test_a_heading_belongs_to_the_sentence_after_it() -> None:
    hours = "# Manual\n\n## Opening hours\nMonday to Friday. Not today."
    assert texts_of(f"{hours}\n\n### Prices\n| a | b |\n## End") == [
        "# Manual\n\n## Opening hours\nMonday to Friday.",
        "Not today.",
        "### Prices\n| a | b |",
        "## End",
    ]
    assert texts_of("#hashtag is here. And #5 too.") == ["#hashtag is here.", "And #5 too."]
    assert texts_of("Title\n=====\nText. More.\n\n---\n\nEnd.") == [
        "Title",
        "Text.",
        "More.",
        "End.",
    ]


@pytest.mark.parametrize("text", ["---", "👍", "!!!", "* * *", "|---|", "## ", "#"])
def test_a_text_of_signs_is_not_lost(text: str) -> None:
    assert texts_of(text) == [text.strip()]


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    words = [f"word{number}" for number in range(2000)]
    for joint in (" ", ", ", "; ", "\n"):
        text = joint.join(words)
        pieces = texts_of(text)
        assert max(map(len, pieces)) <= 2000
        assert [word.strip(",;") for piece in pieces for word in piece.split()] == words
    chinese = "语" * 5000
    assert "".join(texts_of(chinese)) == chinese
    assert max(map(len, texts_of(chinese))) <= 2000
