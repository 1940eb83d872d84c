"""Time an edit in the browser: from the Enter key to the changed picture and the run's end.

All times are the page's own `performance.now`, so that driving the browser costs nothing.
"""

from tests.browser.grid import OVERLAY, WAIT_MS, select_cell
from tests.browser.idle import READY_MS, wait_idle

CLOCK = """
(() => {
  const clock = window.grpoClock = {enter: 0, bars: 0, charts: 0, armed: false};
  const drawn = () => {
    const paths = document.querySelectorAll('.st-key-bars .barlayer path');
    return [...paths].map(path => path.getAttribute('d')).join();
  };
  let before = '';
  addEventListener('keydown', event => {
    if (!clock.armed || event.key !== 'Enter') return;
    Object.assign(clock, {armed: false, enter: event.timeStamp, bars: 0, charts: 0});
    before = drawn();
  }, true);
  // The frame after a change has painted it when the task behind that frame begins.
  const painted = note => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => note(performance.now());
    channel.port2.postMessage(null);
  });
  const inChart = node => node.closest && node.closest('[data-testid=stPlotlyChart]');
  new MutationObserver(records => {
    if (!clock.enter || !records.some(record => inChart(record.target))) return;
    const mark = clock.enter;
    painted(now => { if (clock.enter === mark) clock.charts = now; });
    const after = drawn();
    if (!clock.bars && after && after !== before) {
      clock.bars = -1;
      painted(now => { if (clock.enter === mark) clock.bars = now; });
    }
  }).observe(document, {subtree: true, childList: true, attributes: true});
})();
"""
TIMES = """() => {
  const {enter, bars, charts} = window.grpoClock;
  const {sent, ended} = window.grpoTest;
  return {
    'edit to changed bars': bars - enter,
    'edit to last picture': charts - enter,
    'edit to end of run': ended - enter,
    'message to end of run': ended - sent,
    'message to last picture': charts - sent,
  };
}"""


def timed_edit(page, table, column, value, costs):
    """Type a value into the first row: times in milliseconds and what `costs()` rose by."""
    page.bring_to_front()
    select_cell(page, table, 0, column)
    page.keyboard.press("Enter")
    field = page.locator(OVERLAY).first
    field.wait_for(state="visible", timeout=WAIT_MS)
    field.fill(str(value))
    wait_idle(page)
    page.evaluate("window.grpoClock.armed = true")
    before = costs()
    page.keyboard.press("Enter")
    page.wait_for_function("window.grpoClock.bars > 0", timeout=READY_MS, polling=100)
    wait_idle(page, quiet=400)
    rise = {name: value - before[name] for name, value in costs().items()}
    return page.evaluate(TIMES) | rise
