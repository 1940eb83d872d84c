"""Wait for Streamlit: has the script run, has it finished, are the pictures drawn?"""

import contextlib

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

READY_MS = 30_000
# An editor sends a cell 150 ms after it was committed: a shorter silence proves nothing.
QUIET_MS = 250
# The server's word that a run is over: the field's key in protobuf's wire format (a varint), and
# its value where the run was only cut short for the next one.
FINISHED = ForwardMsg.DESCRIPTOR.fields_by_name["script_finished"].number << 3
CUT_SHORT = ForwardMsg.FINISHED_EARLY_FOR_RERUN

# Runs in every page before its own scripts. Notes when the page last sent something to the server,
# when and how often the server said that a run is over, and when the page was last seen to work on
# what came back. The state that Streamlit writes into the page alone would not do: it still says
# "notRunning" while a message is on its way, never says "running" of a run that is over before
# React draws, and says "notRunning" again while the elements of the run are still being drawn.
WATCH = """
(() => {
  const seen = window.grpoTest = {runs: 0, sent: 0, ended: 0, drawn: 0};
  const statusOfRun = bytes => {
    let at = 0;
    const varint = () => {
      let value = 0, unit = 1, byte;
      do { byte = bytes[at++]; value += (byte & 127) * unit; unit *= 128; } while (byte & 128);
      return value;
    };
    while (at < bytes.length) {
      const key = varint();
      const value = varint();
      if (key === FINISHED) return value;
      if ((key & 7) === 2) at += value;  // a field of so many bytes: skip them
    }
    return null;
  };
  window.WebSocket = class extends WebSocket {
    constructor(...address) {
      super(...address);
      this.addEventListener('message', message => {
        if (!(message.data instanceof ArrayBuffer)) return;
        const status = statusOfRun(new Uint8Array(message.data));
        if (status === null || status === CUT_SHORT) return;
        seen.runs += 1;
        seen.ended = performance.now();
      });
    }
    send(...message) {
      seen.sent = performance.now();
      super.send(...message);
    }
  };
  new MutationObserver(records => {
    // A table renews its cells for screen readers long after it was drawn.
    const isPage = record => !(record.target.closest && record.target.closest('canvas'));
    if (records.some(isPage)) seen.drawn = performance.now();
  }).observe(document, {subtree: true, childList: true});
  // A late tick: the page was busy, and what it did not get to do may be yet to come.
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    if (now - last > 100) seen.drawn = now;
    last = now;
  }, 20);
})();
""".replace("FINISHED", str(FINISHED)).replace("CUT_SHORT", str(CUT_SHORT))
# A message that starts no run (there are few) counts as answered after 10 s.
IDLE = """([quiet, since]) => {
  const seen = window.grpoTest;
  const now = performance.now();
  const app = document.querySelector('[data-testid=stApp]');
  return app
    && app.getAttribute('data-test-script-state') === 'notRunning'
    && app.getAttribute('data-test-connection-state') === 'CONNECTED'
    && (seen.ended > seen.sent || now - seen.sent > 10000)
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
    no run follows.
    """
    before = runs(page)
    yield
    ended = "before => window.grpoTest.runs > before"
    page.wait_for_function(ended, arg=before, timeout=READY_MS, polling=20)
    wait_idle(page)


def runs(page):
    """How many times the script has run to its end since the page was loaded."""
    return page.evaluate("window.grpoTest.runs")
