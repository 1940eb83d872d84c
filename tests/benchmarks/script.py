"""Where the CPU time of a rerun goes: ``python -m tests.benchmarks.script [--runs 30]``.

Edits a cell again and again without a browser, ours and a bare page with the same widgets in turn
(both through AppTest, whose own work is in both), and takes apart what ours costs. Not a test: it
asserts nothing.
"""

import argparse
import functools
import logging
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import streamlit as st

from pages._ui import chain, charts, editors, export, panels, share, state
from pages._ui.menu import MENU
from tests.app.driver import TIMEOUT, AppTest, start, type_cell, visit
from tests.benchmarks.inventory import build_site
from tests.benchmarks.redraw import CELLS, WARM_UP, spread, value_of

PARTS = {
    "read the link": [(state, "read_link")],
    "apply the edit": [(editors, "apply_edits")],
    "evaluate": [(state, "evaluate")],
    "findings": [(state, "find")],
    "figures": [(charts, name) for name in charts.__all__ if callable(getattr(charts, name))],
    "send figures": [(st, "plotly_chart")],
    "tables": [(st, "data_editor"), (st, "dataframe")],
    "chain": [(panels, "chain")],
    "chain as text (closed)": [(chain, "as_text")],
    "write the link": [(state, "encode")],
    "tools at the head": [(share, "tools")],
    "export (closed)": [(export, "script"), (export, "notebook"), (export, "tables_zip")],
}


class Meter:
    """CPU seconds and calls of each part, as long as it is on."""

    def __init__(self):
        self.seconds, self.calls = Counter(), Counter()

    def on(self, stack):
        """Put a clock around every function of `PARTS` until the stack closes."""
        for part, functions in PARTS.items():
            for owner, name in functions:
                timed = self._timed(part, getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, timed))

    def _timed(self, part, function):
        @functools.wraps(function)
        def timed(*arguments, **options):
            before = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds[part] += time.thread_time() - before
                self.calls[part] += 1

        return timed


def rerun_seconds(app, key, value):
    """CPU seconds of the run that an edit starts."""
    before = time.process_time()
    type_cell(app, "rewards", 0, CELLS[key], value)
    return time.process_time() - before


def compare(key, site, runs):
    """Edit ours and the bare page in turn; CPU milliseconds of each run, and our session."""
    bare = AppTest.from_file(str(site / "app.py"), default_timeout=TIMEOUT).run()
    apps = {"ours": visit(start(), MENU[key]), "bare": visit(bare, MENU[key])}
    spent = {name: [] for name in apps}
    for count in range(WARM_UP + runs):
        for name, app in apps.items():
            spent[name].append(1e3 * rerun_seconds(app, key, value_of(count)))
    return {name: values[WARM_UP:] for name, values in spent.items()}, apps["ours"]


def take_apart(app, key, runs):
    """CPU milliseconds and calls a run of each part of ours."""
    meter = Meter()
    with ExitStack() as stack:
        meter.on(stack)
        for count in range(runs):
            rerun_seconds(app, key, value_of(count))
    return {part: (1e3 * meter.seconds[part] / runs, meter.calls[part] / runs) for part in PARTS}


def main(arguments):
    """Measure each page, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.script", description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)  # Streamlit says at length that no browser is there
    with tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch)
        build_site(site, CELLS)
        for key in CELLS:
            spent, app = compare(key, site, options.runs)
            ours, bare = spent["ours"], spent["bare"]
            ratio = statistics.median(ours) / statistics.median(bare)
            print(f"\n{key}: CPU of a rerun, median (quartiles) in ms")
            print(f"  ours {spread(ours)}, bare {spread(bare)}, ratio {ratio:.2f}; of ours:")
            for part, (cost, calls) in take_apart(app, key, options.runs).items():
                print(f"  {part:24}{cost:8.2f}   {calls:g} calls")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
