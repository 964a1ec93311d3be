"""Takes docs/images/page.png: the page of a running `dgn serve`, in Debian's Chromium.

python docs/images/page.py http://127.0.0.1:8000
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

with sync_playwright() as driver:
    browser = driver.chromium.launch(
        executable_path=shutil.which("chromium"),
        args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    )
    page = browser.new_page(viewport={"width": 1180, "height": 900})
    page.goto(sys.argv[1])
    page.wait_for_selector("body[data-ready]")
    page.select_option("#sample", "0")
    page.wait_for_selector("#answer:not([hidden])")
    page.click(".sentence >> nth=0")
    page.click("#back")
    page.evaluate("() => scrollTo(0, 0)")
    page.wait_for_timeout(800)
    size = {"x": 0, "y": 0, "width": 1180, "height": 1210}
    page.screenshot(path=Path(__file__).with_name("page.png"), full_page=True, clip=size)
    browser.close()
