"""The page in a real browser."""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from page_browser import launched, needs_chromium, opener, picks, select_own

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Any, service: Any) -> Iterator[Callable[..., Any]]:
    with opener(browser, service.url) as open_page:
        yield open_page


def choose(page: Any, place: int) -> None:
    """Press the button of a sample, and wait for the answer."""
    button = page.locator("#samples button").nth(place)
    with page.expect_response("**/v1/compare"):
        button.click()
    page.wait_for_function("() => !document.querySelector('#results').ariaBusy")


def shares(page: Any) -> list[float]:
    script = "nodes => nodes.map(n => parseFloat(n.style.getPropertyValue('--share')))"
    return page.eval_on_selector_all(".word", script)


def bars(page: Any) -> dict[int, float]:
    """The gain of each sentence in this round; of a pick, when it was taken."""
    rows = page.eval_on_selector_all(
        "#gains li", "nodes => nodes.map(n => [n.dataset.index, n.lastChild.textContent])"
    )
    return {int(index): float(text) for index, text in rows}


def test_opens_on_a_solved_sample_in_one_view(open_page: Callable[..., Any], service: Any) -> None:
    asked = []
    page = open_page(
        viewport={"width": 1280, "height": 800},
        prepare=lambda page: page.on("request", lambda request: asked.append(request)),
    )
    body = next(one.post_data_json for one in asked if one.url.endswith("/v1/explain"))
    answer = httpx.post(f"{service.url}/v1/select", json=body).json()
    assert picks(page) == [one["text"] for one in answer["selected"]]
    assert page.get_attribute("#samples button >> nth=0", "aria-pressed") == "true"
    assert page.is_hidden("#form")
    assert page.url == f"{service.url}/"
    assert f"{answer['coverage']:.0%} of the query is covered" in page.inner_text("#covered")
    least = math.floor(1000 * answer["certificate"]) / 10  # never more than what is proved
    assert f"at least {least:.1f}% of the best" in page.inner_text("#certificate")
    rows = page.eval_on_selector_all(
        ".method",
        """nodes => nodes.map(n => [n.querySelector('h3').textContent,
                                    n.querySelector('.count').textContent])""",
    )
    assert rows[0] == ["dgn", "3 of 3 parts"]
    assert [name for name, _ in rows[1:]] == ["one by one", "BM25", "top-k", "MMR"]
    assert all(count != "3 of 3 parts" for _, count in rows[1:])
    for selector in ("#words", "#play", "#document", "#gains", ".method h3", ".method .count"):
        for box in [one.bounding_box() for one in page.locator(selector).all()]:
            assert box["y"] + box["height"] <= 800, selector
            assert box["x"] + box["width"] <= 1280, selector


def test_play_starts_before_round_1(open_page: Callable[..., Any]) -> None:
    page = open_page()
    final = picks(page)
    page.click("#play")
    assert picks(page) == []
    assert page.inner_text("#round-text") == "before round 1"
    assert set(shares(page)) == {0}
    assert page.locator("#gains [class*=pick-]").count() == 0
    for count in range(1, len(final) + 1):
        page.wait_for_function(
            f"() => document.querySelectorAll('#document .badge').length === {count}"
        )
        assert picks(page) == final[:count]
    assert page.inner_text("#play") == "Play"


def test_rounds_fill_the_words_and_lower_the_bars(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.click("#first")
    assert picks(page) == []
    page.click("#forward")
    filled, values = shares(page), bars(page)
    assert len(picks(page)) == 1
    page.click("#forward")
    assert len(picks(page)) == 2
    assert all(new >= old for old, new in zip(filled, shares(page), strict=True))
    assert sum(shares(page)) > sum(filled)
    for index, value in bars(page).items():
        assert value <= values[index] + 0.005
    assert sum(bars(page).values()) < sum(values.values())
    # A word, the sentence that covers it and its bar have the same colour.
    text = page.locator(".sentence", has_text="Do not drink alcohol").get_attribute("class")
    word = page.locator(".word", has_text="alcohol").get_attribute("class")
    bar = page.locator("#gains li", has_text="Do not drink alcohol").get_attribute("class")
    assert all("pick-1" in one for one in (text, word, bar))


def test_why_is_next_to_the_sentence(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.click(".sentence >> text=If you drink alcohol")
    reason = page.inner_text("#reason")
    assert reason.startswith("“If you drink alcohol while you take…” Not taken.")
    assert re.search("[0-9]+% of what it covers is covered by “Do not drink alcohol", reason)
    page.click(".sentence >> text=Do not drive")
    reason = page.inner_text("#reason")
    assert re.search("Pick [23]: it adds", reason)
    assert "It covers drive 100%" in reason
    page.click(".sentence >> text=Do not drive")
    assert page.locator("#reason").count() == 0


def test_why_does_not_jump_in_a_long_text(open_page: Callable[..., Any]) -> None:
    page = open_page(viewport={"width": 1280, "height": 800})
    text = "\n\n".join(
        " ".join(f"The boat {10 * row + one} sails to the island." for one in range(10))
        for row in range(50)
    )
    select_own(page, "Which boat sails to an island?", text)
    page.wait_for_function("() => document.querySelectorAll('.sentence').length === 500")
    page.wait_for_function("() => document.querySelectorAll('#document .badge').length === 3")
    for number in (250, 40, 499):
        sentence = page.locator(f".sentence[data-index='{number}']")
        sentence.scroll_into_view_if_needed()
        before = sentence.bounding_box()["y"]
        sentence.click()
        after, why = sentence.bounding_box(), page.locator("#reason").bounding_box()
        needed = max(0, before + after["height"] + why["height"] + 20 - 800)  # to see all of it
        assert -1 <= before - after["y"] <= needed + 1
        assert 0 <= why["y"] - (after["y"] + after["height"]) < 20
        assert why["y"] + why["height"] <= 800
        # The words and the bars are still in view.
        assert 0 <= page.locator("#words").bounding_box()["y"] < 800
        assert 0 <= page.locator("#gains li").first.bounding_box()["y"] < 800


def test_text_flows_in_paragraphs(open_page: Callable[..., Any]) -> None:
    page = open_page(viewport={"width": 1280, "height": 800})
    select_own(page, "Who swims?", "Ada swims. Bo\nruns. Cy sings.\n\nDi swims too. (End)\n \n")
    page.wait_for_function("() => document.querySelectorAll('.paragraph').length === 2")
    first, second = page.locator(".paragraph").all()
    tops = [one.bounding_box()["y"] for one in first.locator(".sentence").all()]
    assert len(tops) == 3
    assert max(tops) - min(tops) < 5
    assert "Bo runs." in first.inner_text()
    assert "Di swims too." in second.inner_text()


def test_languages_without_spaces_and_from_right_to_left(open_page: Callable[..., Any]) -> None:
    page = open_page()
    text = "😀 東京は日本の首都です。大阪は西にあります。"
    select_own(page, "東京は首都ですか。", text)
    page.wait_for_function("() => document.querySelector('#document').textContent.includes('東')")
    shown = page.evaluate(
        """() => [...document.querySelectorAll('.paragraph')].map(paragraph => {
            const copy = paragraph.cloneNode(true);
            for (const badge of copy.querySelectorAll('.badge')) badge.remove();
            return copy.textContent;
        })"""
    )
    assert shown == [text]
    select_own(page, "מי שוחה?", "# ספורט\nעדה שוחה באגם. בו רץ.")
    page.wait_for_function("() => document.querySelector('#document').textContent.includes('רץ')")
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.paragraph')).direction") == "rtl"
    )
    assert page.evaluate("getComputedStyle(document.querySelector('#words')).direction") == "rtl"
    page.click(".sentence >> nth=0")
    assert page.evaluate("getComputedStyle(document.querySelector('#reason')).direction") == "ltr"


def test_hovering_over_a_pick_lights_its_words(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.hover(".sentence >> text=Mothers who breastfeed")
    lit = page.eval_on_selector_all(".word.lit", "nodes => nodes.map(n => n.textContent)")
    assert "breastfeed" in lit
    assert "alcohol" not in lit
    page.hover("h1")
    assert page.locator(".word.lit").count() == 0


def test_own_text_by_keyboard_alone(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.focus("#edit")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+A")
    page.keyboard.type("Who swims?")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("# Sports\nAda swims in the lake. Bo runs. Cy <b>sings</b>.")
    page.keyboard.press("Control+Enter")
    page.wait_for_function("() => document.querySelectorAll('.sentence').length === 3")
    assert picks(page)[0] == "Ada swims in the lake."
    assert page.inner_text(".document h3") == "Sports"
    assert page.locator("#document b").count() == 0  # text stays text
    page.focus(".sentence >> nth=1")
    page.keyboard.press("Enter")
    assert "Pick 2: it adds" in page.inner_text("#reason")
    assert page.get_attribute(".sentence >> nth=1", "aria-expanded") == "true"
    page.keyboard.press("Escape")
    assert page.locator("#reason").count() == 0
    page.keyboard.press(" ")
    assert page.is_visible("#reason")
    page.focus("#round")
    page.keyboard.press("Home")
    assert picks(page) == []


def test_headings_and_code_are_text_and_not_titles(open_page: Callable[..., Any]) -> None:
    page = open_page()
    code = "```\n# a comment\nswim()\n```"
    select_own(
        page, "Who swims?", f"# Sports\n## Water\nAda swims.\n\n{code}\n\n# Music\nBo sings."
    )
    page.wait_for_function("() => document.querySelectorAll('.sentence').length === 3")
    titles = page.eval_on_selector_all(".document h3", "nodes => nodes.map(n => n.textContent)")
    assert titles == ["Sports", "Music"]
    shown = page.inner_text("#document")
    assert "Water" in shown
    assert "# a comment" in shown


def test_repeats_are_counted_and_have_no_bars(open_page: Callable[..., Any]) -> None:
    page = open_page()
    text = "Ada swims in the lake. Bo swims, too. Ada swims in the lake! Cy sings."
    select_own(page, "How do I swim in the lake?", text)
    page.wait_for_function("() => document.querySelectorAll('.sentence').length === 4")
    assert page.locator("#gains li").count() == 3
    assert page.inner_text("#more-gains") == "1 that repeats another one took no part."
    page.click(".sentence >> nth=1")
    assert "it repeats words that are covered already" in page.inner_text("#reason")


def test_token_limit(open_page: Callable[..., Any]) -> None:
    page = open_page()
    choose(page, 2)
    assert len(picks(page)) == 5
    assert "within the token limit" in page.inner_text("#certificate")


def test_other_methods_for_an_own_text(open_page: Callable[..., Any]) -> None:
    page = open_page()
    select_own(page, "Who swims?", "Ada swims. Bo runs. Cy sings. Di swims.", k=2)
    page.wait_for_function("() => document.querySelectorAll('.method li').length === 10")
    assert page.locator(".parts").count() == 0  # nobody has marked parts in this text
    assert "of the query covered" in page.inner_text(".method >> nth=0")


def test_breadth_and_chunks(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.click("#edit")
    page.click("#clear")
    query = "Why did the bridge collapse on Saturday?"
    chunks = [
        "On Saturday a bridge collapsed. The cause of the\ncollapse is unknown.",
        "A bridge has collapsed on Saturday. Why it collapsed is not known.",
        "The battery of the phone lasts two days.",
    ]
    page.fill("#query", query)
    page.fill("#text", "\n\n".join(chunks))
    page.check("input[value=chunks]")
    page.fill("#k", "2")
    page.fill("#breadth", "0")
    page.click("#select")
    page.wait_for_function("() => document.querySelectorAll('.badge').length === 2")
    assert page.locator(".sentence").count() == 3
    assert page.locator("[data-index='2'] .badge").count() == 0
    assert "Most of the picks are similar" in page.inner_text("#covered")
    page.click(".sentence >> nth=1")
    assert re.search(
        r"Similar to “On Saturday a bridge.*” \([01]\.\d\d\)", page.inner_text("#reason")
    )
    link = page.url
    page.click("#edit")
    page.fill("#breadth", "1")
    page.click("#select")
    page.wait_for_function("() => document.querySelector('[data-index=\"2\"] .badge')")
    again = open_page(link[link.index("#") - 1 :])
    again.wait_for_selector("#answer:not([hidden])")
    assert again.input_value("#breadth") == "0"
    assert again.is_checked("input[value=chunks]")


def test_a_link_reproduces_the_state(open_page: Callable[..., Any], service: Any) -> None:
    page = open_page()
    choose(page, 1)
    page.click("#edit")
    page.fill("#k", "2")
    page.click("#select")
    page.wait_for_function("() => document.querySelectorAll('.badge').length === 2")
    assert page.is_hidden("#form")
    wanted, link = picks(page), page.url
    assert "#s=" in link
    again = open_page(link.removeprefix(service.url))
    again.wait_for_selector("#answer:not([hidden])")
    assert picks(again) == wanted
    assert again.input_value("#k") == "2"
    again.goto(f"{service.url}/#s=abc")  # the address changes, the page stays
    again.wait_for_selector("#empty:visible")
    assert again.inner_text("#error").startswith("This link is damaged")
    assert again.is_hidden("#answer")


def test_dropped_and_opened_files(open_page: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "Corran_Bridge.txt"
    file.write_text("The bridge is red.")
    page = open_page()
    page.click("#edit")
    page.click("#clear")
    page.set_input_files("#files", str(file))
    page.wait_for_function("() => document.querySelector('#text').value !== ''")
    assert page.input_value("#text") == "# Corran Bridge\nThe bridge is red."
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["It is long."], "Two.md", {type: "text/plain"}));
            const options = {dataTransfer: data, bubbles: true, cancelable: true};
            document.querySelector("#text").dispatchEvent(new DragEvent("drop", options));
        }"""
    )
    page.wait_for_function("() => document.querySelector('#text').value.includes('# Two')")


def test_exports(open_page: Callable[..., Any], tmp_path: Path) -> None:
    page = open_page()
    with page.expect_download() as saved:
        page.click("#save-json")
    saved.value.save_as(tmp_path / "selection.json")
    content = json.loads((tmp_path / "selection.json").read_text(encoding="utf-8"))
    assert [one["text"] for one in content["selection"]["selected"]] == picks(page)
    assert set(content) == {"request", "selection", "explanation", "methods", "text"}
    with page.expect_download() as saved:
        page.click("#save-png")
    saved.value.save_as(tmp_path / "selection.png")
    image = (tmp_path / "selection.png").read_bytes()
    assert image.startswith(b"\x89PNG")
    assert int.from_bytes(image[16:20], "big") == 2400
    assert len(image) > 50_000


def test_mistakes_are_explained(open_page: Callable[..., Any]) -> None:
    page = open_page(expected=("status of 422",))
    page.click("#edit")
    page.fill("#query", "a")
    page.fill("#text", "# only a title")
    page.click("#select")
    assert page.inner_text("#error") == "Paste some text first."
    page.fill("#text", "b")
    page.fill("#query", "?!")
    page.evaluate("document.querySelector('#form').noValidate = true")
    with page.expect_response("**/v1/explain"):
        page.click("#select")
    page.wait_for_function("() => document.querySelector('#error').textContent !== ''")
    assert page.inner_text("#error") == "The query: must contain a letter or a digit."
    assert page.is_hidden("#answer")


def test_token_prompt_speaks_to_people(browser: Any, start: Callable[..., Any]) -> None:
    token = "a-token-of-this-test"  # noqa: S105
    with start(DGN_TOKEN=token) as running, opener(browser, running.url) as open_page:
        page = open_page(expected=("status of 401",))
        prompt = page.inner_text("#token-form")
        assert "ask them for it" in prompt
        assert "--token-file" in prompt
        assert page.inner_text("#token-error") == ""
        assert page.inner_text("#error") == ""
        page.keyboard.type("wrong")  # the field has the focus
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('#token-error').textContent !== ''")
        assert "not the right one" in page.inner_text("#token-error")
        page.fill("#token", "schlüssel")
        page.keyboard.press("Enter")
        assert "only Latin letters" in page.inner_text("#token-error")
        page.fill("#token", f" {token} ")
        page.keyboard.press("Enter")
        page.wait_for_selector("#answer:not([hidden])")
        assert page.is_hidden("#token-form")
        assert len(picks(page)) == 3
        page.reload()  # the token is kept in this tab
        page.wait_for_selector("body[data-ready]")
        assert len(picks(page)) == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])  # 320 is 1280 at a zoom of 400%
def test_accessibility_and_width(open_page: Callable[..., Any], scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    size = {"width": width, "height": 800}
    page = open_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page.click(".sentence >> nth=0")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.click("#edit")
    page.evaluate("document.querySelector('#token-form').hidden = false")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
