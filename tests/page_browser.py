"""The page of `dgn serve` in a real browser: Debian's Chromium, driven by Playwright."""

import contextlib
import shutil
from collections.abc import Callable, Generator
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"
)
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@contextlib.contextmanager
def launched() -> Generator[Any]:
    """A browser."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextlib.contextmanager
def opener(browser: Any, url: str) -> Generator[Callable[..., Any]]:
    """A function that opens the page; no script may fail, and nothing may come from elsewhere.

    `prepare(page)` is called before the page is opened, and `expected` are errors that the test
    provokes and that the browser notes.
    """
    contexts, problems = [], []

    def open_page(
        path: str = "/",
        *,
        prepare: Callable[[Any], Any] = lambda _: None,
        expected: tuple[str, ...] = (),
        **options: Any,
    ) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: (
                problems.append(message.text)
                if message.type == "error" and not any(one in message.text for one in expected)
                else None
            ),
        )
        page.on(
            "request",
            lambda r: None if r.url.startswith((url, "blob:")) else problems.append(r.url),
        )
        prepare(page)
        page.goto(url + path)
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def select_own(page: Any, query: str, text: str, k: int = 3) -> None:
    """Select from a text of the test, with the form."""
    if page.is_hidden("#form"):
        page.click("#edit")
    page.fill("#query", query)
    page.fill("#text", text)
    page.fill("#k", str(k))
    page.click("#select")


def picks(page: Any) -> list[str]:
    """The highlighted sentences, in the order of their numbers."""
    found = page.eval_on_selector_all(
        ".sentence:has(.badge)",
        "nodes => nodes.map(n => [Number(n.querySelector('.badge').textContent), n.textContent])",
    )
    return [text.removeprefix(str(number)) for number, text in sorted(found)]
