"""Every page on awkward and on large examples, driven without a browser: a sentence, no failure."""

import numpy as np
import pytest

from grpo_core import Texts, build_scenario
from pages._ui.limits import SHOWN_CELLS, TABLE_COLUMNS
from pages._ui.link import encode
from pages._ui.menu import MENU
from tests.app.driver import figures, messages, scenario, settled, start, visit

PAGES = list(MENU.values())
by_page = pytest.mark.parametrize("row", PAGES, ids=[row.key for row in PAGES])


def opened(given, row=MENU["Overview"]):
    """A session that holds a scenario, on a page."""
    app = start()
    app.session_state["store"].scenario = given
    return visit(app, row)


def batch(P, G, L):
    rng = np.random.default_rng(3)
    old = -rng.exponential(size=(P, G, L))
    new, ref = (np.minimum(old + rng.normal(0, 0.1, old.shape), 0) for _ in range(2))
    return build_scenario(
        rewards=rng.integers(0, 2, (P, G)).astype(float), logp_old=old, logp_new=new, logp_ref=ref
    )


EDGES = {
    "all absent": build_scenario(rewards=[[0, 1, 2], [3, 4, 5]], present=np.zeros((2, 3))),
    "shown prompt absent": build_scenario(rewards=np.eye(2), present=[[0, 0], [1, 1]]),
    "all masked": build_scenario(rewards=np.eye(2), mask=np.zeros((2, 2, 3))),
    "not scored": build_scenario(rewards=[[np.nan, np.nan]]),
    "one of each": build_scenario(rewards=[[1.0]]),
    "huge": build_scenario(rewards=[[1e308, -1e308, 1e308]]),
    "tiny": build_scenario(rewards=[[5e-324, -5e-324]]),
    "float32": build_scenario(rewards=np.float32([[3e38, -3e38]])),
}  # fmt: skip


@by_page
@pytest.mark.parametrize("variant", ["mean_std", "mean_only"])
@pytest.mark.parametrize("key", EDGES)
def test_every_page_opens_at_the_edges(row, variant, key):
    link = encode(EDGES[key].choose("advantage", variant))
    app = visit(start(link), row)
    assert figures(app)
    assert not messages(app)


@by_page
@pytest.mark.parametrize("sizes", [(4096, 8, 4), (64, 64, 48), (1, 6, 32_768)], ids=str)
def test_every_page_opens_at_the_limits(row, sizes):
    app = opened(batch(*sizes), row)
    assert figures(app)
    assert not messages(app)


@pytest.mark.parametrize("before", ["", "1, 0"])
@pytest.mark.parametrize(
    ("line", "word"),
    [("inf, 0", "finite"), ("-inf 0", "finite"), ("[nan,inf]", "finite"), (",", "no number"),
     (";", "no number"), ("1 " * 513, "512"), ("1e999, 0", "range")],
)  # fmt: skip
def test_a_bad_line_of_rewards_gets_its_sentence_and_the_last_picture_stays(before, line, word):
    app = start()
    settled(app.text_input(key="overview_line").set_value(before).run())
    shown = figures(app)
    settled(app.text_input(key="overview_line").set_value(line).run())
    assert len(messages(app)) == 1
    assert word in messages(app)[0]
    assert figures(app) == shown
    settled(app.text_input(key="overview_line").set_value("1, 1, 0").run())
    assert not messages(app)


def test_sizes_whose_product_is_too_large_are_refused():
    app = opened(batch(20, 20, 400))
    app.session_state["overview_arrays"] = True
    app.session_state["overview_tabs"] = "Sizes"
    settled(app.run())
    settled(app.number_input(key="overview_size_P").set_value(40).run())
    assert "320,000 cells" in messages(app)[0]
    assert scenario(app).sizes["P"] == 20
    settled(app.number_input(key="overview_size_P").set_value(21).run())
    assert scenario(app).sizes["P"] == 21
    assert not messages(app)


@by_page
def test_a_table_with_too_many_columns_is_a_sentence(row):
    app = opened(batch(1, 2, TABLE_COLUMNS + 1), row)
    wide = [name for name in row.arrays[: row.at_top] if name in ("logp_new", "logp_ref", "mask")]
    said = [note.value for note in app.caption if "too many for a table" in note.value]
    assert len(said) == len(wide)
    assert figures(app)


@pytest.mark.parametrize("P", [4, SHOWN_CELLS // 1_000 + 1])
def test_much_code_is_a_file_and_little_is_on_the_page(P):
    app = opened(batch(P, 10, 100))
    app.session_state["overview_code"] = True
    app.session_state["overview_arrays"] = True
    app.session_state["overview_tabs"] = "Paste and copy"
    settled(app.run())
    settled(app.selectbox(key="overview_paste_key").select("logp_new").run())
    much = scenario(app)["mask"].size > SHOWN_CELLS
    assert any("logp_new = np.array" in code.value for code in app.code) != much
    saved = [button.proto.label for button in app.get("download_button")]
    assert saved.count("Save the code") == (2 if much else 0)


@by_page
def test_the_prompt_picker_shows_what_a_text_really_contains(row):
    texts = Texts(("a\u202eb\n", "$x$"))
    app = opened(build_scenario(rewards=np.eye(2)).with_texts(texts), row)
    pickers = [box for box in app.selectbox if box.label == "Prompt"][:1]
    if not pickers and (row.group == "Choose" or not row.example):
        return  # a page that shows all prompts at once, or none of the example's
    (picker,) = pickers
    assert "\u202e" not in "".join(picker.options)
    assert "a\\u202eb↵" in picker.options[0]
