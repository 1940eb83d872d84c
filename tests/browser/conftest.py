"""Fixtures of the browser tests: a browser, servers of the app, pages that must stay clean."""

import contextlib
import itertools

import pytest
from playwright.sync_api import sync_playwright

from tests.browser import chromium
from tests.browser.server import running
from tests.browser.visit import Visit


@pytest.fixture(scope="session")
def browser():
    """A Chromium for all tests; each page gets a profile of its own."""
    if lack := chromium.lacking():
        pytest.fail(lack, pytrace=False)
    with (
        sync_playwright() as playwright,
        contextlib.closing(chromium.launch(playwright)) as started,
    ):
        yield started


@pytest.fixture
def server(tmp_path):
    """Start a server that nobody has visited yet: ``cold = server()``, with arguments if any."""
    numbers = itertools.count()
    with contextlib.ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(
            running(tmp_path / f"server-{next(numbers)}.log", arguments=arguments)
        )


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    """The server that serves every test that does not ask for one of its own."""
    with running(tmp_path_factory.mktemp("shared") / "server.log") as started:
        yield started


@pytest.fixture
def open_page(browser, request):
    """Open an address of the app in a fresh browser profile and wait until it has settled.

    ``page = open_page("/Advantages", width=390, dark=True)``; ``server=`` takes a server of the
    test's own. At the end of the test every page opened so is looked at again: an error raised in
    the page, an exception box or a request to another machine fails the test.
    """
    visits = []

    def open_(address="/", *, width=1280, height=900, dark=False, server=None):
        server = server or request.getfixturevalue("shared_server")
        visits.append(Visit(browser, server, width=width, height=height, dark=dark))
        return visits[-1].open(address)

    yield open_
    faults = [fault for visit in visits for fault in visit.faults()]
    for visit in visits:
        visit.close()
    if faults:
        pytest.fail("\n\n".join(faults), pytrace=False)
