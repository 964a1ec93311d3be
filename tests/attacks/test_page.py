"""The page under attack: hostile texts, links and files, late answers, and proxies that fail."""

import base64
import json
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from page_browser import launched, needs_chromium, opener, picks, select_own
from running_service import Running

pytest.importorskip("fastapi", reason="dgn[serve] is not installed")
pytestmark = needs_chromium

MARKUP = "<img src=x onerror='window.attacked=1'><script>window.attacked=1</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Any, service: Running) -> Iterator[Callable[..., Any]]:
    with opener(browser, service.url) as open_page:
        yield open_page


def link(state: dict[str, Any]) -> str:
    """The path of a link with this state, as the page makes it."""
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(json.dumps(state).encode()) + packer.flush()
    return "/#s=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def wait_for_text(page: Any, selector: str, text: str) -> None:
    script = "([selector, text]) => document.querySelector(selector).textContent.includes(text)"
    page.wait_for_function(script, arg=[selector, text])


# --- markup -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["form", "link", "file"])
def test_markup_stays_text(open_page: Callable[..., Any], way: str, tmp_path: Path) -> None:
    query, text = f"Who swims {MARKUP}?", f"# Title {MARKUP}\nAda swims {MARKUP}. Bo {MARKUP} runs."
    if way == "link":
        page = open_page(link({"query": query, "text": text, "k": MARKUP, "unit": MARKUP}))
    else:
        page = open_page()
        select_own(page, query, text if way == "form" else "Ada swims.")
    if way == "file":
        wait_for_text(page, "#document", "Ada swims")  # the answer closes the form
        file = tmp_path / "<img src=x onerror=alert(1)>.txt"
        file.write_text(text)
        page.click("#edit")
        page.set_input_files("#files", str(file))
        wait_for_text(page, "body", "Ada")
        page.wait_for_function("() => document.querySelector('#text').value.includes('Bo')")
        page.click("#select")
    wait_for_text(page, "#document", "window.attacked")
    for sentence in page.locator(".sentence").all():
        sentence.click()
        assert page.is_visible("#reason")
    page.click("#copy-link")
    assert page.locator("main img, main script, main iframe").count() == 0
    assert page.evaluate("window.attacked") is None


def test_scripts_and_styles_are_refused_even_if_they_were_there(
    open_page: Callable[..., Any],
) -> None:
    page = open_page(expected=("Content Security Policy", "violates the following"))
    page.evaluate(
        """markup => {
            document.querySelector('main').insertAdjacentHTML('beforeend', markup);
            const script = document.createElement('script');
            script.textContent = 'window.attacked = 1';
            document.body.append(script);
        }""",
        "<div id=styled style='position:fixed' onclick='window.attacked=1'>a</div>",
    )
    page.evaluate("document.querySelector('#styled').click()")
    position = "getComputedStyle(document.querySelector('#styled')).position"
    assert page.evaluate(position) == "static"
    assert page.evaluate("window.attacked") is None


# --- links --------------------------------------------------------------------------------------

COUNT_INFLATED = """
    window.inflated = 0;
    const Real = DecompressionStream;
    window.DecompressionStream = function (format) {
        const real = new Real(format);
        const counter = new TransformStream({
            transform(chunk, controller) {
                window.inflated += chunk.length;
                controller.enqueue(chunk);
            },
        });
        return { writable: real.writable, readable: real.readable.pipeThrough(counter) };
    };
"""


@pytest.mark.parametrize("megabytes", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_a_link_that_inflates_is_refused(open_page: Callable[..., Any], megabytes: int) -> None:
    path = link({"query": "a", "text": "a" * (megabytes * 2**20)})
    page = open_page(path, prepare=lambda page: page.add_init_script(COUNT_INFLATED))
    assert page.inner_text("#error") == (
        "This link contains more text than this page accepts, so it was not opened."
    )
    assert page.is_hidden("#answer")
    assert page.input_value("#text") == ""
    assert page.evaluate("window.inflated") <= 8 * 2**20
    select_own(page, "Who swims?", "Ada swims. Bo runs.")  # the page still works
    wait_for_text(page, "#document", "Ada swims.")
    assert page.inner_text("#error") == ""


DAMAGED = [
    "/#s=",
    "/#s=%%%",
    "/#s=abc",
    link({"query": "a", "text": "b" * 500})[:-4],
    link({"query": 1, "text": ["a"]}),
    link({}),
]


def test_a_damaged_link_is_a_sentence(open_page: Callable[..., Any], service: Running) -> None:
    page = open_page(DAMAGED[0])
    for path in DAMAGED:
        page.goto(service.url + path)
        page.wait_for_function("() => document.querySelector('#error').textContent !== ''")
        assert page.inner_text("#error") == (
            "This link is damaged, so that its text could not be read. Ask for it again."
        )
        page.evaluate("document.querySelector('#error').textContent = ''")


def test_a_long_text_makes_no_link(open_page: Callable[..., Any], service: Running) -> None:
    page = open_page()
    words = " ".join(f"{number:x}" for number in random.Random(0).choices(range(2**32), k=15_000))
    select_own(page, "Who swims?", f"Ada swims. {words}.")
    wait_for_text(page, "#document", "Ada swims.")
    assert page.url == f"{service.url}/"
    page.click("#copy-link")
    wait_for_text(page, "#done", "too long for a link")


# --- late answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [True, False], ids=["aborted", "not aborted"])
@pytest.mark.parametrize("late", ["answer", "failure"])
def test_a_late_answer_never_replaces_a_newer_one(
    open_page: Callable[..., Any], ends: bool, late: str
) -> None:
    page = open_page(expected=("status of 503",))
    if not ends:  # as if the answer had already been under way
        page.evaluate("AbortController.prototype.abort = () => {}")
    held: list[Any] = []

    def hold_the_first(route: Any) -> None:
        if "Ada" in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/v1/*", hold_the_first)
    select_own(page, "Who swims?", "Ada swims. Bo runs.", k=1)
    page.wait_for_timeout(100)
    assert len(held) == 2
    select_own(page, "Who sings?", "Cy sings. Di runs.", k=1)
    wait_for_text(page, "#document", "Cy sings.")
    address = page.url
    for route in held:
        if late == "answer":
            route.continue_()
        else:
            route.fulfill(status=503, body="{}")
    page.wait_for_timeout(400)
    assert picks(page) == ["Cy sings."]
    assert page.is_visible("#answer")
    assert page.inner_text("#error") == ""
    assert page.url == address
    assert page.get_attribute("#results", "aria-busy") is None


def test_a_late_sample_does_not_replace_own_text(open_page: Callable[..., Any]) -> None:
    held: list[Any] = []

    def prepare(page: Any) -> None:
        page.route("**/page/samples.json", lambda route: held.append(route))
        page.add_init_script(
            "document.addEventListener('DOMContentLoaded', () => "
            "document.body.dataset.ready = 'early')"
        )

    page = open_page(prepare=prepare)
    page.wait_for_timeout(200)
    select_own(page, "Who sings?", "Cy sings. Di runs.", k=1)
    wait_for_text(page, "#document", "Cy sings.")
    held[0].continue_()
    page.wait_for_selector("body[data-ready=yes]")
    assert picks(page) == ["Cy sings."]
    assert page.input_value("#query") == "Who sings?"


def test_a_late_answer_does_not_disturb_typing(open_page: Callable[..., Any]) -> None:
    page = open_page()
    held: list[Any] = []
    page.route("**/v1/*", lambda route: held.append(route))
    select_own(page, "Who swims?", "Ada swims. Bo runs.", k=1)
    page.wait_for_timeout(100)
    page.fill("#query", "Who runs?")
    for route in held:
        route.continue_()
    wait_for_text(page, "#document", "Ada swims.")
    assert page.is_visible("#form")
    assert page.evaluate("document.activeElement.id") == "query"
    assert page.input_value("#query") == "Who runs?"


# --- failures -----------------------------------------------------------------------------------

HTML = "<html><head><title>502 Bad Gateway</title></head><body><h1>nginx</h1></body></html>"
BUSY = {"detail": "More than 512 requests are in progress; try again later.", "status": 503}


FAILURES: list[tuple[dict[str, Any] | None, str]] = [
    (
        {"status": 502, "body": HTML, "content_type": "text/html"},
        "A server between this page and dgn serve does not reach it (error 502). Try again in "
        "a moment. If that does not help, check that dgn serve is running.",
    ),
    (
        {"status": 503, "body": HTML, "headers": {"Retry-After": "30"}},
        "A server between this page and dgn serve does not reach it (error 503). Try again in "
        "30 seconds. If that does not help, check that dgn serve is running.",
    ),
    (
        {"status": 503, "body": json.dumps(BUSY), "headers": {"Retry-After": "1"}},
        "More than 512 requests are in progress. Try again in a second.",
    ),
    (
        {"status": 413, "body": HTML},
        "A server between this page and dgn serve refuses so much text. Use less text.",
    ),
    (
        {"status": 403, "body": '["no"]'},
        "A server between this page and dgn serve refused the request (error 403). Ask the "
        "person who runs it.",
    ),
    (
        {"status": 200, "body": HTML, "content_type": "text/html"},
        "The address of this page answers with something else than dgn serve. Open the address "
        "that dgn serve printed when it was started.",
    ),
    (
        None,
        "The service does not answer. Check that dgn serve is still running and that this "
        "device is connected to it, then try again.",
    ),
]


def test_failures_are_sentences(open_page: Callable[..., Any]) -> None:
    page = open_page(expected=("status of", "net::ERR_FAILED"))
    for answer, sentence in FAILURES:
        page.route("**/v1/*", lambda route: answer_with(route, answer))  # noqa: B023
        select_own(page, "Who swims?", "Ada swims.")
        page.wait_for_function("() => document.querySelector('#error').textContent !== ''")
        assert page.inner_text("#error") == sentence
        assert page.is_hidden("#answer")
        page.unroute_all()
        page.click("#select")
        page.wait_for_selector("#answer:not([hidden])")
        assert page.inner_text("#error") == ""


def answer_with(route: Any, answer: dict[str, Any] | None) -> None:
    if answer is None:
        route.abort()
    else:
        route.fulfill(**answer)


@pytest.mark.parametrize("body", [HTML, '{"detail": "no"}'])
def test_the_form_works_without_samples(open_page: Callable[..., Any], body: str) -> None:
    def prepare(page: Any) -> None:
        page.route("**/page/samples.json", lambda route: route.fulfill(status=502, body=body))

    page = open_page(prepare=prepare, expected=("status of 502",))
    assert page.is_visible("#empty")
    select_own(page, "Who swims?", "Ada swims. Bo runs.", k=1)
    wait_for_text(page, "#document", "Ada swims.")
    assert picks(page) == ["Ada swims."]
