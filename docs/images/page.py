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
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(sys.argv[1])
    page.wait_for_selector("body[data-ready]")
    page.wait_for_timeout(800)  # the bars have moved
    bottom = page.evaluate("document.querySelector('#methods').getBoundingClientRect().bottom")
    size = {"x": 0, "y": 0, "width": 1280, "height": bottom + 6}
    page.screenshot(path=Path(__file__).with_name("page.png"), full_page=True, clip=size)
    browser.close()
