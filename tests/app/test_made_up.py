"""A row that only its table knows opens on the pages, with its chain and its code."""

import pytest

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from tests import made_up

from .driver import scenario, settled, start, visit

SCENARIO = load_examples()["four-answers"].scenario


# Stages in which a page shows the example by a row of its own.
REPLACED = {"Process_rewards": ("advantage",), "Shaping": ("rewards", "advantage")}


@pytest.mark.parametrize(("stage", "row"), made_up.ROWS, ids=made_up.NAMES)
def test_a_made_up_row_is_shown_on_the_pages(monkeypatch, stage, row):
    made_up.add(monkeypatch, stage, row)
    app = start(encode(SCENARIO.choose(stage, row.key)))
    for page in (row for row in MENU.values() if row.example):
        if stage in REPLACED.get(page.key, ()):
            continue
        app = visit(app, page)
        app.session_state[f"{page.key.lower()}_code"] = True
        app = settled(app.run())
        assert scenario(app).conventions[stage].variant == row.key
        chain = next(box.value for box in app.markdown if "log-probability" in box.value)
        assert row.label in chain, page.key
        assert any("no plain-NumPy transcription yet" in box.value for box in app.code), page.key
