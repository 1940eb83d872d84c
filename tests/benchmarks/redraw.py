"""How long an edit takes until it is seen: ours against a bare page with the same widgets.

``python -m tests.benchmarks.redraw [--edits 30] [--pages Overview,Advantages]`` starts the app and
a bare site (`inventory`), opens both in one Chromium and edits the same cell of both in turn.
Prints medians with quartiles, and the ratio of the medians. CPU times hold still where others use
the machine; the others do not. Not a test: it asserts nothing.
"""

import argparse
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from playwright.sync_api import sync_playwright

from pages._ui.menu import MENU
from tests.benchmarks.clock import CLOCK, timed_edit
from tests.benchmarks.inventory import build_site
from tests.browser import chromium
from tests.browser.grid import editor
from tests.browser.server import running
from tests.browser.visit import Visit

CELLS = {"Overview": "rewards", "Advantages": "0"}
HEADERS = {"rewards": "reward"}
WARM_UP = 4


class Side:
    """A server, one visitor's page of it, and what was measured there."""

    def __init__(self, name, browser, server, key):
        self.name, self.server = name, server
        self.visit = Visit(browser, server, height=2400)
        self.visit.page.add_init_script(CLOCK)
        self.page = self.visit.open(MENU[key].address)
        self.table = editor(self.page, "table_rewards")
        self.column = HEADERS.get(CELLS[key], CELLS[key])
        self.times = []
        self.devtools = self.page.context.new_cdp_session(self.page)
        self.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def edit(self, value):
        """One edit; its times join the others."""
        self.times.append(timed_edit(self.page, self.table, self.column, value, self.costs))

    def costs(self):
        """CPU milliseconds so far of the server and of the page's main thread."""
        metrics = self.devtools.send("Performance.getMetrics")["metrics"]
        spent = {row["name"]: 1e3 * row["value"] for row in metrics}
        server = cpu_milliseconds(self.server)
        return {
            "CPU of server and page": server + spent["TaskDuration"],
            "CPU of the server": server,
            "CPU of the page": spent["TaskDuration"],
            "CPU of the page: scripts": spent["ScriptDuration"],
            "CPU of the page: layout": spent["LayoutDuration"] + spent["RecalcStyleDuration"],
        }


def cpu_milliseconds(server):
    """CPU time of a server so far, in ticks of 10 ms; 0 where the system does not tell."""
    with suppress(OSError):
        fields = Path(f"/proc/{server._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return 1e3 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def value_of(count):
    """The number typed in an edit, never twice the same in a row."""
    return str(round(0.05 + 0.9 * (count * 0.618 % 1), 3))


def measure(browser, servers, key, edits):
    """Edit both sides in turn, each first in every other round."""
    sides = [Side(name, browser, server, key) for name, server in servers.items()]
    for count in range(WARM_UP + edits):
        for side in sides if count % 2 else sides[::-1]:
            side.edit(value_of(count))
    for side in sides:
        print(*side.visit.faults(), sep="\n", end="")
        side.visit.close()
        del side.times[:WARM_UP]
    return sides


def report(key, sides):
    """Print one page's table."""
    ours, bare = sides
    print(f"\n{key}, {len(ours.times)} edits a side: median (quartiles) in ms")
    print(f"{'':26}{'ours':>22}{'bare':>22}{'ratio':>8}")
    for name in ours.times[0]:
        columns = [[times[name] for times in side.times] for side in (ours, bare)]
        middles = [statistics.median(column) for column in columns]
        cells = "".join(f"{spread(column):>22}" for column in columns)
        print(f"{name:26}{cells}{middles[0] / middles[1] if middles[1] else 0:8.2f}")


def spread(values):
    """Median and quartiles in words."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.0f} ({low:.0f}-{high:.0f})"


def main(arguments):
    """Start everything, measure each page, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.redraw", description=__doc__)
    parser.add_argument("--edits", type=int, default=30)
    parser.add_argument("--pages", default=",".join(CELLS), help="keys of the menu, with commas")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        site = scratch / "site"
        site.mkdir()
        build_site(site, CELLS)
        servers = {
            "ours": stack.enter_context(running(scratch / "ours.log")),
            "bare": stack.enter_context(running(scratch / "bare.log", site)),
        }
        browser = chromium.launch(stack.enter_context(sync_playwright()))
        stack.callback(browser.close)
        for key in options.pages.split(","):
            report(key, measure(browser, servers, key, options.edits))
    if hasattr(os, "getloadavg"):
        print("\nload of the machine: {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
