"""The report of a run: one HTML file with live figures that needs no network and fetches none.

Its policy lets two scripts run, told by their digest: Plotly, and the lines that draw. Figures are
data, texts are escaped, so that nothing out of a file can become a script.
"""

import base64
import functools
import hashlib
import html

import numpy as np
import plotly.io
import plotly.offline

from .figure import CONFIG, alt_text
from .numbers import MISSING, count, number
from .palette import PALETTES
from .run_text import plain_text, safe

_ROWS = 200  # of a table that are written
_COLUMNS = 30
_TEXT, _CELL = 20_000, 300  # characters of a text and of a cell
_FIGURES = 2_800_000  # characters of all figures: the file stays below 8 MB
_SEVERITIES = {"error": "■", "warning": "▲", "note": "○"}

_DRAW = """
for (const place of document.querySelectorAll("[data-figure]")) {
  const drawn = JSON.parse(document.getElementById(place.dataset.figure).textContent);
  Plotly.newPlot(place, drawn.data, drawn.layout, drawn.config);
}
"""

_STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: TEXT; font: 15px/1.5 "Source Sans 3", sans-serif; }
main { max-width: 700px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 32px 0 8px; }
h3 { font-size: 15px; margin: 20px 0 4px; overflow-wrap: anywhere; }
.quiet { color: FAINT; font-size: 13px; margin: 2px 0; }
ul.says { list-style: none; padding: 0; }
ul.says li { padding-left: 22px; text-indent: -22px; margin: 6px 0; overflow-wrap: anywhere; }
ul.says span { display: inline-block; width: 22px; text-indent: 0; }
.error, .warning { color: NEGATIVE; }
figure { margin: 0; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 8px; border-bottom: 1px solid LINE; text-align: left; vertical-align: top; }
th { color: FAINT; font-weight: normal; }
.number { text-align: right; white-space: nowrap; }
@page { margin: 12mm; }
@media print {
  main { padding: 0; }
  figure, li, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .table { overflow: visible; }
  table { font-size: 9px; }
  thead { display: table-header-group; }
}
"""


def report(shown, *, sentences, figures, tables, texts, title, made_with):
    """The whole run as one self-contained HTML text, below 8 MB.

    Parameters
    ----------
    shown : Explained
    sentences : sequence of (severity, sentence)
        What the run says; a bare sentence is a note.
    figures : sequence of (title, Figure)
        Drawn with the light palette. Those for which there is no room are named and left out.
    tables : mapping from title to DataFrame
        Numbers are rounded for reading; of long ones the first 200 rows are written.
    texts : sequence of (heading, text), or of texts
        Shown as they are, every character visible.
    title, made_with : str

    Returns
    -------
    str
    """
    pictures, data = _figures(figures)
    parts = [
        f"<h1>{_line(title)}</h1>",
        f'<p class="quiet">{_line(_sizes(shown))}</p>',
        _section("What it says", _sentences(sentences)),
        _section("Figures", pictures),
        _section("Tables", [_table(name, frame) for name, frame in tables.items()]),
        _section("Texts and notes", [_text(each) for each in texts]),
        f'<p class="quiet">Made with {_line(made_with)}. It holds all it needs and fetches '
        "nothing.</p>",
    ]
    plot, digest = _plotly()
    policy = (
        f"default-src 'none'; script-src {digest} {_digest(_DRAW)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    scripts = f"<script>{plot}</script>{''.join(data)}<script>{_DRAW}</script>" if data else ""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_line(title)}</title><style>{_style()}</style></head>"
        f"<body><main>{''.join(parts)}</main>{scripts}</body></html>"
    )


@functools.cache
def _plotly():
    """Plotly's script and its digest."""
    script = plotly.offline.get_plotlyjs()
    return script, _digest(script)


def _digest(script):
    """A script as a content security policy names it."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _style():
    palette, style = PALETTES["light"], _STYLE
    for name in ("text", "faint", "line", "negative"):
        style = style.replace(name.upper(), getattr(palette, name))
    return style


def _line(text, limit=_CELL):
    """A text on one line, escaped."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return safe(cut).replace("<br>", "")


def _sizes(shown):
    run = shown.run
    every = run.every_step
    completions = int(np.sum(run.sizes))
    return (
        f"{count(completions, 'completion')} in {count(len(run.steps), 'group')}, "
        f"{count(len(every), 'scored step')} from {every[0]:,} to {every[-1]:,}; "
        f"task: {shown.task}; rewards: {', '.join(run.names)}"
    )


def _section(title, parts):
    return f"<section><h2>{title}</h2>{''.join(parts)}</section>" if parts else ""


def _sentences(sentences):
    items = []
    for each in sentences:
        severity, said = ("note", each) if isinstance(each, str) else each
        known = severity if severity in _SEVERITIES else "note"
        mark = f'<span class="{known}">{_SEVERITIES[known]}</span>'
        items.append(f"<li>{mark}{_line(said, _TEXT)}</li>")
    return [f'<ul class="says">{"".join(items)}</ul>'] if items else []


def _figures(figures):
    """Places of the figures, and their data as scripts that are not run."""
    places, data, left = [], [], _FIGURES
    for at, (title, chart) in enumerate(figures):
        drawn = _drawn(chart)
        if len(drawn) > left:
            places.append(
                f'<h3>{_line(title)}</h3><p class="quiet">Left out: the file would be too '
                "large.</p>"
            )
            continue
        left -= len(drawn)
        alt = html.escape(alt_text(chart))
        height = int(chart.layout.height)
        places.append(
            f"<figure><h3>{_line(title)}</h3>"
            f'<div data-figure="figure-{at}" role="img" aria-label="{alt}" '
            f'style="height:{height}px"></div><noscript>{alt}</noscript></figure>'
        )
        data.append(f'<script type="application/json" id="figure-{at}">{drawn}</script>')
    return places, data


def _drawn(chart):
    """A figure as JSON that ends no script."""
    sent = chart.to_dict()
    white = {"paper_bgcolor": "#ffffff", "plot_bgcolor": "#ffffff"}
    sent["layout"] = {**sent["layout"], **white}
    sent["config"] = {**CONFIG, "responsive": True}
    text = plotly.io.to_json(sent, validate=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _table(title, frame):
    shown = frame.head(_ROWS).iloc[:, :_COLUMNS]
    right = [column.dtype.kind in "iuf" for _, column in shown.items()]
    kinds = [' class="number"' if number_ else "" for number_ in right]
    head = "".join(
        f"<th{kind}>{_line(str(name))}</th>"
        for kind, name in zip(kinds, shown.columns, strict=True)
    )
    columns = [[_cell(value) for value in column.tolist()] for _, column in shown.items()]
    rows = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in zip(*columns, strict=True)
    )  # fmt: skip
    cut = [
        f"{most:,} of {count(size, noun)}"
        for size, most, noun in ((len(frame), _ROWS, "row"), (frame.shape[1], _COLUMNS, "column"))
        if size > most
    ]
    note = (
        f'<p class="quiet">The first {" and ".join(cut)}. The others are in the tables as CSV.</p>'
        if cut
        else ""
    )
    return (
        f'<h3>{_line(title)}</h3><div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{note}"
    )


def _cell(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    return MISSING if value is None else _line(str(value))


def _text(each):
    heading, text = ("", each) if isinstance(each, str) else each
    above = f"<h3>{_line(heading)}</h3>" if heading else ""
    return above + plain_text(text, _TEXT)
