"""Fetch all that the tests need, then run them: ``python3 -m tests.run [pytest arguments]``.

Works from a bare Python: makes the virtual environment ``.venv`` (unless one is active), installs
``requirements-dev.txt`` into it, finds or installs a browser, then runs ruff and pytest. The exit
code is that of the first of the two that failed, else 0.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)


def environment():
    """Python to test with: that of the active virtual environment, else of .venv; or None."""
    if sys.prefix != sys.base_prefix:
        return sys.executable
    home = ROOT / ".venv"
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        print(f"Making the virtual environment {home}", flush=True)
        if run(sys.executable, "venv", str(home)):
            shutil.rmtree(home, ignore_errors=True)  # half made, it would be taken for whole
            return None
    return str(python)


def run(python, *arguments):
    """Run a module of `python` in the repository; its exit code."""
    return subprocess.run([python, "-m", *arguments], cwd=ROOT).returncode


def main(arguments):
    """Prepare, lint, test; the exit code."""
    if sys.version_info < OLDEST:
        print("Python {}.{} or newer is needed; this is {}.{}.".format(*OLDEST, *sys.version_info))
        return 1
    python = environment()
    if python is None:
        return 1  # the venv module has said why
    quiet = ["--quiet", "--disable-pip-version-check"]
    if run(python, "pip", "install", *quiet, "-r", "requirements-dev.txt"):
        print("The packages of requirements-dev.txt could not be installed.")
        return 1
    # Without a browser the browser tests fail by themselves, with the line that installs one.
    run(python, "tests.browser.chromium")
    linted = run(python, "ruff", "check", ".")
    tested = run(python, "pytest", "-n", "2", *arguments)
    return linted or tested


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
