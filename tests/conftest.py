"""Settings for every test: how Hypothesis draws, and in which order the tests run."""

import os
from pathlib import Path

from hypothesis import settings

BROWSER_TESTS = Path(__file__).parent / "browser"

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


def pytest_collection_modifyitems(items):
    """Put the browser tests last.

    They are the slow ones, and while Playwright's synchronous interface is open an event loop
    runs in the main thread, which other tests must not meet.
    """
    items.sort(key=lambda item: BROWSER_TESTS in item.path.parents)
