"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"
)
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, service: Any) -> Iterator[Callable[..., Any]]:
    """Open the page; no script may fail, and nothing may be loaded from elsewhere."""
    contexts, problems = [], []

    def open_one(path: str = "/", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda m: problems.append(m.text) if is_problem(m) else None)
        page.on(
            "request",
            lambda r: None if r.url.startswith((service.url, "blob:")) else problems.append(r.url),
        )
        page.goto(service.url + path)
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert problems == []


def is_problem(message: Any) -> bool:
    """Whether a script has failed; a refusal of the service is noted by the browser, too."""
    return message.type == "error" and "status of 422" not in message.text


def choose(page: Any, sample: str) -> None:
    page.select_option("#sample", sample)
    page.wait_for_selector("#answer:not([hidden])")


def picks(page: Any) -> list[str]:
    """The highlighted sentences, in the order of their numbers."""
    found = page.eval_on_selector_all(
        ".sentence:has(.badge)",
        "nodes => nodes.map(n => [Number(n.querySelector('.badge').textContent), n.textContent])",
    )
    return [text.removeprefix(str(number)) for number, text in sorted(found)]


def shares(page: Any) -> list[float]:
    script = "nodes => nodes.map(n => parseFloat(n.style.getPropertyValue('--share')))"
    return page.eval_on_selector_all(".word", script)


def test_picks_are_those_of_the_api(open_page: Callable[..., Any], service: Any) -> None:
    page = open_page()
    with page.expect_request("**/v1/explain") as asked:
        choose(page, "0")
    import httpx

    answer = httpx.post(f"{service.url}/v1/select", json=asked.value.post_data_json).json()
    assert picks(page) == [one["text"] for one in answer["selected"]]
    assert len(picks(page)) == 4
    assert "86% of the query is covered" in page.inner_text("#covered")
    assert "at least 84.2% of the best" in page.inner_text("#certificate")


def test_rounds_fill_the_words_and_lower_the_bars(open_page: Callable[..., Any]) -> None:
    page = open_page()
    choose(page, "0")
    page.click("#first")
    before = shares(page)
    assert len(picks(page)) == 1
    values = dict(bars(page))
    page.click("#forward")
    assert len(picks(page)) == 2
    after = shares(page)
    assert all(new >= old for old, new in zip(before, after, strict=True))
    assert sum(after) > sum(before)
    for index, value in bars(page):
        if value is not None:
            assert value <= values[index] + 0.005
    page.click("#play")
    page.wait_for_function("() => document.querySelectorAll('.badge').length === 4")
    page.wait_for_function("() => document.querySelector('#play').textContent === 'Play'")


def bars(page: Any) -> list[tuple[int, float | None]]:
    """The gain of each sentence in this round; None for earlier picks."""
    rows = page.eval_on_selector_all(
        "#gains li", "nodes => nodes.map(n => [n.dataset.index, n.lastChild.textContent])"
    )
    return [(int(i), None if text.startswith("pick") else float(text)) for i, text in rows]


def test_every_sentence_says_why(open_page: Callable[..., Any]) -> None:
    page = open_page()
    choose(page, "0")
    page.click(".sentence >> nth=0")
    reason = page.inner_text("#reason")
    assert reason.startswith("“The museum in Aldermoor is the largest…” Not taken.")
    assert "81% of what it covers is covered by “The museum in Aldermoor was founded in" in reason
    page.click(".sentence:has(.badge) >> nth=2")
    reason = page.inner_text("#reason")
    assert "Pick 1: it adds" in reason
    assert "It covers entrance 100%, fee 100%, museum 100%" in reason
    assert "It says something similar to charges 12%." in reason


def test_hovering_over_a_pick_lights_its_words(open_page: Callable[..., Any]) -> None:
    page = open_page()
    choose(page, "0")
    page.hover(".sentence:has(.badge) >> nth=3")
    lit = page.eval_on_selector_all(".word.lit", "nodes => nodes.map(n => n.textContent)")
    assert {"closed", "Mondays"} <= set(lit)
    page.hover("h1")
    assert page.locator(".word.lit").count() == 0


def test_own_text_by_keyboard_alone(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.focus("#query")
    page.keyboard.type("Who swims?")
    page.keyboard.press("Tab")
    page.keyboard.type("# Sports\nAda swims in the lake. Bo runs. Cy <b>sings</b>.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#answer:not([hidden])")
    assert picks(page)[0] == "Ada swims in the lake."
    assert page.inner_text(".document h3") == "Sports"
    assert page.locator("#document b").count() == 0  # text stays text
    page.focus(".sentence >> nth=1")
    page.keyboard.press("Enter")
    assert "Pick 2: it adds" in page.inner_text("#reason")


def test_token_limit(open_page: Callable[..., Any]) -> None:
    page = open_page()
    choose(page, "2")
    assert len(picks(page)) == 4
    assert "within the token limit" in page.inner_text("#certificate")


def test_other_methods_are_shown(open_page: Callable[..., Any]) -> None:
    page = open_page()
    choose(page, "0")
    headings = page.eval_on_selector_all(".method h3", "nodes => nodes.map(n => n.textContent)")
    assert [one.split(" ·")[0] for one in headings] == ["dgn", "one by one", "BM25", "top-k", "MMR"]
    assert page.locator(".method li").count() == 20


def test_a_link_reproduces_the_state(open_page: Callable[..., Any], service: Any) -> None:
    page = open_page()
    choose(page, "1")
    page.fill("#k", "2")
    page.click("#select")
    page.wait_for_function("() => document.querySelectorAll('.badge').length === 2")
    wanted, link = picks(page), page.url
    assert "#s=" in link
    again = open_page(link.removeprefix(service.url))
    again.wait_for_selector("#answer:not([hidden])")
    assert picks(again) == wanted
    assert again.input_value("#k") == "2"
    damaged = open_page("/#s=abc")
    assert damaged.is_visible("#empty")


def test_dropped_and_opened_files(open_page: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "Corran_Bridge.txt"
    file.write_text("The bridge is red.")
    page = open_page()
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
    choose(page, "0")
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
    page = open_page()
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


def test_token_is_asked_for(browser: Any, start: Callable[..., Any]) -> None:
    token = "a-token-of-this-test"  # noqa: S105
    with start(DGN_TOKEN=token) as running:
        page = browser.new_page()
        page.goto(running.url)
        page.wait_for_selector("body[data-ready]")
        assert page.is_hidden("#token")
        page.select_option("#sample", "0")
        page.wait_for_selector("#token:visible")
        page.fill("#token", token)
        page.click("#select")
        page.wait_for_selector("#answer:not([hidden])")
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_accessibility_and_width(open_page: Callable[..., Any], scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    size = {"width": width, "height": 800}
    page = open_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    assert axe.Axe().run(page).violations_count == 0
    choose(page, "1")
    page.click(".sentence >> nth=0")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
