"""Find a Chromium for the browser tests, or install one.

``python -m tests.browser.chromium`` prints the browser in use; where there is none it installs
one first. A browser of your own: set ``GRPO_CHROMIUM`` to its path.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

OWN = "GRPO_CHROMIUM"
FLAGS = [
    "--no-sandbox",  # Chromium refuses to run as root without it; the tests open their own pages
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
MAC_CHROME = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# The last one is what Playwright's own driver needs and a small Debian lacks.
DEBIAN_PACKAGES = ["chromium", "fonts-liberation", "libatomic1"]
PLAYWRIGHT_PATH = """
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
"""
DOWNLOAD_SECONDS = 300
PACKAGE_SECONDS = 600


def find():
    """Path of the first Chromium that starts, or None."""
    own = os.environ.get(OWN)
    if own:
        return own if _starts(own) else None
    # A file of that name is not enough: it may be a stub that asks for another package.
    installed = [path for path in [*map(shutil.which, NAMES), MAC_CHROME] if path]
    return next(filter(_starts, installed), None) or next(filter(_starts, _downloaded()), None)


def lacking():
    """What the browser tests lack on this machine, with the line that helps; else nothing."""
    own = os.environ.get(OWN)
    remedy = f"This line installs what is missing:\n    {sys.executable} -m tests.browser.chromium"
    if not _succeeds([sys.executable, "-m", "playwright", "--version"]):
        return f"Playwright, which drives the browser, does not start. {remedy}"
    if find():
        return ""
    if own:
        return f"{OWN} is {own!r}, which does not start. Correct it, or unset it."
    return f"No Chromium was found. {remedy}\nOr set {OWN} to the path of a browser of your own."


def launch(playwright):
    """Start the browser; RuntimeError if there is none."""
    path = find()
    if path is None:
        raise RuntimeError(lacking())
    return playwright.chromium.launch(executable_path=path, args=FLAGS)


def install():
    """Try each way to bring a Chromium to this machine until nothing is lacking."""
    for command, seconds in _install_commands():
        print("+", *command, flush=True)
        if _run(command, seconds) and not lacking():
            return


def _install_commands():
    """Commands that may bring a browser here, each with its time limit in seconds."""
    download = [sys.executable, "-m", "playwright", "install", "--no-shell"]
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if root and _is_debian():
        # First, since it brings the libraries along. Not for Ubuntu, whose package is a stub.
        get = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *DEBIAN_PACKAGES]
        packages = ["sh", "-c", f"apt-get update -q && {' '.join(get)}"]
        return [(packages, PACKAGE_SECONDS), ([*download, "chromium"], DOWNLOAD_SECONDS)]
    with_libraries = ["--with-deps"] if root and sys.platform == "linux" else []
    return [([*download, *with_libraries, "chromium"], DOWNLOAD_SECONDS)]


def _is_debian():
    release = Path("/etc/os-release")
    lines = release.read_text().splitlines() if release.exists() else []
    return "ID=debian" in lines and shutil.which("apt-get") is not None


def _downloaded():
    """Path, in a list, at which Playwright keeps the browser that it downloads, there or not."""
    # In a process of its own: two of Playwright's event loops cannot share a thread.
    command = [sys.executable, "-c", PLAYWRIGHT_PATH]
    return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[:1]


def _starts(path):
    return _succeeds([path, "--version"])


def _succeeds(command):
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(command, seconds):
    """Run a command in sight of the user; whether it succeeded in time."""
    settings = {
        "DEBIAN_FRONTEND": "noninteractive",
        "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "10000",  # milliseconds, five times tried
    }
    try:
        done = subprocess.run(
            command, timeout=seconds, env=os.environ | settings, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        print(f"  {problem}", flush=True)
        return False
    return done.returncode == 0


def main():
    """Print the browser in use, installing one if need be; 1 if there is still none."""
    if lacking() and not os.environ.get(OWN):
        install()
    lack = lacking()
    print(lack or f"Browser: {find()}")
    return 1 if lack else 0


if __name__ == "__main__":
    sys.exit(main())
