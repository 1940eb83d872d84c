"""Picture every page: ``python -m tests.screenshots OUT [--pages Overview,Advantages]``.

Saves light, dark and 390 px wide pictures, each of the whole page from top to bottom, as
``OUT/overview-light.png`` and so on.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from pages._ui.menu import MENU
from tests.browser import chromium
from tests.browser.idle import wait_painted
from tests.browser.server import running
from tests.browser.visit import Visit

HEIGHT = 900
LOOKS = {
    "light": {"width": 1280, "dark": False},
    "dark": {"width": 1280, "dark": True},
    "narrow": {"width": 390, "dark": False},
}
# Streamlit scrolls its main part, not the document: a picture of it all needs a window as tall.
CONTENT_HEIGHT = "() => document.querySelector('[data-testid=stMain]').scrollHeight"


def picture(page, path):
    """Save the whole page, whatever its height."""
    width = page.viewport_size["width"]
    wait_painted(page)
    # Twice: what comes into view may be drawn only then, and take room.
    for _ in range(2):
        height = max(HEIGHT, page.evaluate(CONTENT_HEIGHT))
        page.set_viewport_size({"width": width, "height": height})
        wait_painted(page)
    page.screenshot(path=path, animations="disabled")


def take(browser, server, rows, out):
    """Save all pictures of some menu rows; what is wrong with the pages, a text each."""
    faults = []
    for row in rows:
        for look, size in LOOKS.items():
            visit = Visit(browser, server, height=HEIGHT, **size)
            path = out / f"{row.key.lower()}-{look}.png"
            picture(visit.open(row.address), path)
            faults += visit.faults()
            visit.close()
            print(path, flush=True)
    return faults


def chosen(keys):
    """Rows of the menu with these keys; all of them if `keys` is empty."""
    wanted = [key.strip() for key in keys.split(",") if key.strip()]
    for key in wanted:
        if key not in MENU:
            raise SystemExit(f"No page {key!r}. The menu has: {', '.join(MENU)}.")
    return [MENU[key] for key in wanted or MENU]


def main(arguments):
    """Start the app, save the pictures; 1 if a page is faulty."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pages", default="", help="keys of the menu, separated by commas")
    options = parser.parse_args(arguments)
    rows = chosen(options.pages)
    options.out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        running(Path(scratch) / "server.log") as server,
        sync_playwright() as playwright,
        chromium.launch(playwright) as browser,
    ):
        faults = take(browser, server, rows, options.out)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
