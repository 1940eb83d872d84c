"""Wait for Streamlit: has the script run, has it finished, are the pictures drawn?"""

import contextlib

READY_MS = 30_000
# An editor sends a cell 150 ms after it was committed: a shorter silence proves nothing.
QUIET_MS = 250

# Runs in every page before its own scripts. Notes when the page last sent something to the server,
# when the script last began and ended, and when the page was last seen to work on what came back.
# The state that Streamlit writes into the page alone would not do: it says "notRunning" while a
# message is on its way, and again while the elements of the run are still being drawn.
WATCH = """
(() => {
  const seen = window.grpoTest = {runs: 0, sent: 0, ended: 0, drawn: 0, state: null};
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (...message) {
    seen.sent = performance.now();
    return send.apply(this, message);
  };
  const look = records => {
    // A table renews its cells for screen readers long after it was drawn.
    const isPage = record => !(record.target.closest && record.target.closest('canvas'));
    if (records.some(isPage)) seen.drawn = performance.now();
    const app = document.querySelector('[data-testid=stApp]');
    const state = app && app.getAttribute('data-test-script-state');
    if (state === seen.state) return;
    if (state === 'running') seen.runs += 1;
    else if (seen.state === 'running') seen.ended = performance.now();
    seen.state = state;
  };
  new MutationObserver(look).observe(document, {
    subtree: true, childList: true, attributes: true, attributeFilter: ['data-test-script-state'],
  });
  // A late tick: the page was busy, and what it did not get to do may be yet to come.
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    if (now - last > 100) seen.drawn = now;
    last = now;
  }, 20);
})();
"""
# A message that starts no run (there are few) counts as answered after 3 s.
IDLE = """([quiet, since]) => {
  const seen = window.grpoTest;
  const now = performance.now();
  const app = document.querySelector('[data-testid=stApp]');
  return app
    && app.getAttribute('data-test-script-state') === 'notRunning'
    && app.getAttribute('data-test-connection-state') === 'CONNECTED'
    && (seen.ended > seen.sent || now - seen.sent > 3000)
    && document.querySelector('[data-testid=stSkeleton]') === null
    && now - Math.max(seen.ended, seen.sent, seen.drawn, since) >= quiet;
}"""
PAINTED = """() =>
  [...document.querySelectorAll('[data-testid=stPlotlyChart]')]
    .every(chart => chart.querySelector('.main-svg'))
  && document.fonts.status === 'loaded'"""


def wait_idle(page, quiet=QUIET_MS):
    """Wait until the page has been idle for `quiet` milliseconds, counted from now."""
    since = page.evaluate("performance.now()")
    page.wait_for_function(IDLE, arg=[quiet, since], timeout=READY_MS, polling=20)


def wait_painted(page):
    """Wait until the page is idle and every chart that is on it has been drawn."""
    wait_idle(page)
    page.wait_for_function(PAINTED, timeout=READY_MS)


@contextlib.contextmanager
def rerun(page):
    """Do something that makes the script run, and wait for the end of that run.

    ``with rerun(page): page.get_by_text("Reset").click()``. Raises Playwright's TimeoutError if
    no run begins.
    """
    before = runs(page)
    yield
    begun = "before => window.grpoTest.runs > before"
    page.wait_for_function(begun, arg=before, timeout=READY_MS, polling=20)
    wait_idle(page)


def runs(page):
    """How many times the script has begun to run since the page was loaded."""
    return page.evaluate("window.grpoTest.runs")
