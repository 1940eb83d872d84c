"""Charts: what a figure shows is what the evaluation says, and nothing jumps."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import Conventions, Texts, build_scenario, evaluate
from grpo_core.stages import STAGES
from pages._ui import charts
from pages._ui.grid import MAX_CELLS, build_grid, reduction
from pages._ui.palette import PALETTES
from pages._ui.quantities import QUANTITIES, advantage_title, clipped
from tests.needed import with_needed

LIGHT = PALETTES["light"]
WORDS = ("<b>6", " a", "$x$")


def scenario(**changes):
    """Two prompts, three completions, four tokens; lengths 4, 3, 2 and 4, 4, 1."""
    rng = np.random.default_rng(7)
    old = -rng.exponential(size=(2, 3, 4))
    lengths = np.array([[4, 3, 2], [4, 4, 1]])
    arrays = {
        "rewards": [[1.0, 0.0, 0.5], [1.0, 1.0, 1.0]],
        "logp_old": old,
        "logp_new": np.minimum(old + rng.normal(0, 0.5, old.shape), 0),
        "logp_ref": np.minimum(old + rng.normal(0, 0.3, old.shape), 0),
        "mask": np.arange(4) < lengths[..., None],
    }
    return build_scenario(**{**arrays, **changes})


def traces(chart, name):
    return [trace for trace in chart.data if trace.name == name]


def heat(chart):
    return next(trace for trace in chart.data if trace.type == "heatmap")


def heatmap(evaluation, quantity="gradient", **settings):
    return charts.token_heatmap(evaluation, quantity, palette=LIGHT, **settings)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_heatmap_shows_the_values_and_leaves_padding_empty(quantity):
    evaluation = evaluate(scenario())
    shown = heat(heatmap(evaluation, quantity, prompts=0)).z
    values = QUANTITIES[quantity].values(evaluation)[0]
    assert shown.dtype == np.float32
    there = evaluation.valid[0] & ~np.isnan(values)  # some tokens belong to no step
    assert_array_equal(np.isnan(shown), ~there)
    assert_allclose(shown[there], values[there], rtol=1e-6)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_signed_scale_is_symmetric_and_a_one_sided_one_starts_at_zero(quantity):
    axis = heatmap(evaluate(scenario()), quantity).layout.coloraxis
    assert axis.cmin == (-axis.cmax if QUANTITIES[quantity].signed else 0)


def test_a_kl_that_turns_negative_gets_the_scale_of_both_signs():
    under_k1 = evaluate(scenario(conventions=Conventions.of(kl="k1")))
    axis = heatmap(under_k1, "kl").layout.coloraxis
    assert np.any(under_k1.kl < 0)
    assert axis.cmin == -axis.cmax


def test_the_colour_scale_shows_numbers():
    for compact in (False, True):
        bar = heatmap(evaluate(scenario()), compact=compact).layout.coloraxis.colorbar
        assert len(bar.ticktext) == 3
        assert all(bar.ticktext)


def test_clipped_tokens_are_crossed_out_and_no_others():
    evaluation = evaluate(scenario())
    (crosses,) = traces(heatmap(evaluation, "log_ratio", prompts=0), "clipped")
    expected = np.argwhere(clipped(evaluation)[0])
    assert len(expected)
    assert_array_equal(np.stack([crosses.y, crosses.x], axis=-1), expected)


def test_a_click_gives_prompt_completion_and_token():
    evaluation = evaluate(scenario())
    (cells,) = traces(heatmap(evaluation, prompts=[1]), charts.CELLS)
    expected = [[1, g, t] for g, t in np.argwhere(evaluation.valid[1]).tolist()]
    assert [list(data[:3]) for data in cells.customdata] == expected
    assert cells.marker.opacity == 0
    # Streamlit hands rows of typed arrays back as mappings; lists arrive as lists.
    (sent,) = [t for t in json.loads(heatmap(evaluation).to_json())["data"]
               if t["name"] == charts.CELLS]  # fmt: skip
    assert isinstance(sent["customdata"][0], list)


def test_the_hover_holds_the_value_in_full():
    evaluation = evaluate(scenario())
    (cells,) = traces(heatmap(evaluation, "log_ratio", prompts=0), charts.CELLS)
    shown = [float(data[3].replace("−", "-")) for data in cells.customdata]
    assert shown == evaluation.log_ratio[0][evaluation.valid[0]].tolist()


def test_bars_and_dots_select_their_completion_too():
    evaluation = evaluate(scenario())
    bars = charts.advantage_bars(evaluation, 0, palette=LIGHT, selected=(0, 1, 2))
    strip = charts.group_strip(evaluation, 0, palette=LIGHT, selected=(0, 1, 2))
    for chart in (bars, strip):
        assert [list(cell) for cell in chart.data[0].customdata] == [[0, g, 2] for g in range(3)]


def test_token_texts_are_shown_but_never_act_as_markup():
    texts = Texts(("p", "q"), (((*WORDS, "y"),) * 3,) * 2)
    evaluation = evaluate(scenario(texts=texts))
    chart = heatmap(evaluation, prompts=0, written=True)
    (cells,), (written,) = traces(chart, charts.CELLS), traces(chart, "texts")
    for shown in (*cells.hovertext, *written.text):
        assert "<b>" not in shown
        assert "$" not in shown
    assert "&lt;b&gt;6" in cells.hovertext[0]
    assert written.text[1] == "␣a"


def test_the_selected_token_is_outlined():
    shapes = heatmap(evaluate(scenario()), prompts=0, selected=(0, 1, 2)).layout.shapes
    boxes = {(s.x0, s.x1, s.y0, s.y1) for s in shapes}
    assert boxes == {(1.5, 2.5, 0.5, 1.5)}


@pytest.mark.parametrize("selected", [(1, 0, 0), (0, 9, 0), (0, 0, 9)])
def test_a_token_that_is_not_drawn_is_not_outlined(selected):
    assert not heatmap(evaluate(scenario()), prompts=0, selected=selected).layout.shapes


def test_changed_cells_are_outlined_against_the_former_state():
    before, now = scenario(), scenario(rewards=[[1.0, 0.0, 0.25], [1.0, 1.0, 1.0]])
    one, other = evaluate(before), evaluate(now)
    assert not traces(heatmap(one, former=one), "changed")
    assert len(traces(heatmap(other, "token_advantages", former=one), "changed")) == 1
    assert not traces(heatmap(other, "log_ratio", former=one), "changed")


def test_a_former_state_of_another_size_is_no_ghost():
    former = evaluate(build_scenario(rewards=[[1, 0]]))
    assert not traces(heatmap(evaluate(scenario()), former=former), "changed")
    charts.advantage_bars(evaluate(scenario()), 0, palette=LIGHT, former=former, pinned=former)


def test_the_pinned_state_stands_below_on_the_same_scale():
    evaluation = evaluate(scenario())
    pinned = evaluate(scenario(rewards=[[9.0, 0.0, 0.5], [1.0, 1.0, 1.0]]))
    chart = heatmap(evaluation, "surrogate", prompts=0, pinned=pinned)
    both = [trace for trace in chart.data if trace.type == "heatmap"]
    assert [trace.coloraxis for trace in both] == ["coloraxis"] * 2
    assert both[1].y[0] > both[0].y[-1]
    assert {note.text for note in chart.layout.annotations} >= {"now", "A (pinned)"}


def test_a_pinned_state_without_the_shown_prompt_is_left_out():
    small = evaluate(build_scenario(rewards=[[1, 0]]))
    chart = heatmap(evaluate(scenario()), prompts=1, pinned=small)
    assert sum(trace.type == "heatmap" for trace in chart.data) == 1


def test_several_prompts_are_labelled_and_separated():
    chart = heatmap(evaluate(scenario()))
    assert chart.layout.yaxis.ticktext[:4] == ("0·0 ", "0·1 ", "0·2 ", "1·0 ")
    assert [shape.y0 for shape in chart.layout.shapes] == [2.5]


def test_a_window_of_tokens_keeps_their_positions():
    evaluation = evaluate(scenario())
    shown = heat(heatmap(evaluation, "weight", prompts=0, window=(1, 3)))
    assert shown.x.tolist() == [1.0, 2.0]
    assert_allclose(shown.z[0], evaluation.weight[0, 0, 1:3], rtol=1e-6)


def test_infinite_values_take_the_colour_of_their_end_and_say_so_on_hover():
    old = np.full((1, 2, 2), -1.0)
    new = np.array([[[-np.inf, -1.0], [-0.5, -1.0]]])
    evaluation = evaluate(build_scenario(rewards=[[1, 0]], logp_new=new, logp_old=old))
    chart = heatmap(evaluation, "log_ratio")
    shown = heat(chart).z
    assert shown[0, 0] == chart.layout.coloraxis.cmin
    assert chart.data[-1].customdata[0][3] == "−inf"


@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 1), (64, 512), (8, 4096), (512, 64), (1024, 4096), (3000, 5)]
)
def test_a_reduced_grid_is_small_enough(rows, columns):
    down, across = reduction(rows, columns)
    assert -(-rows // down) * -(-columns // across) <= MAX_CELLS
    if rows * columns <= MAX_CELLS and max(rows, columns) <= 512:
        assert (down, across) == (1, 1)


def test_a_reduced_heatmap_keeps_its_extremes_and_says_what_a_cell_is():
    rng = np.random.default_rng(0)
    shape = (4, 8, 2000)
    old = -rng.exponential(size=shape)
    new = np.minimum(old + rng.normal(0, 0.01, shape), 0)
    new[3, 5, 1234] = -40.0
    rewards = rng.normal(size=(4, 8))
    evaluation = evaluate(build_scenario(rewards=rewards, logp_new=new, logp_old=old))
    chart = heatmap(evaluation, "log_ratio")
    shown = heat(chart)
    assert shown.z.size <= MAX_CELLS
    assert np.nanmin(shown.z) == np.float32(evaluation.log_ratio[3, 5, 1234])
    assert "each cell shows the largest of" in chart.layout.xaxis.title.text
    assert not traces(chart, charts.CELLS)


def test_a_reduced_cell_is_the_entry_of_largest_magnitude_of_its_block():
    shape = (2, 300, 130)  # 600 rows: blocks of 2 completions and of 2 or 3 tokens
    rng = np.random.default_rng(3)
    values = rng.normal(size=shape)
    flat_policy = np.full(shape, -1.0)
    evaluation = evaluate(build_scenario(rewards=np.zeros(shape[:2]), logp_new=flat_policy))
    row = replace(QUANTITIES["gradient"], values=lambda _: values, marks=None)
    grid = build_grid(evaluation, row, prompts=[0, 1])
    down, across = grid.step
    flat = values.reshape(600, 130)
    for r in (0, 7, grid.values.shape[0] - 1):
        for c in (0, 5, grid.values.shape[1] - 1):
            block = flat[r * down : (r + 1) * down, c * across : (c + 1) * across]
            assert grid.values[r, c] == block.ravel()[np.argmax(np.abs(block))]


def test_many_clipped_cells_are_barred_instead_of_crossed():
    rng = np.random.default_rng(1)
    shape = (2, 8, 400)
    evaluation = evaluate(build_scenario(
        rewards=rng.normal(size=(2, 8)), logp_old=np.full(shape, -3.0),
        logp_new=-rng.uniform(0, 6, shape),
    ))  # fmt: skip
    (bars,) = traces(heatmap(evaluation, "log_ratio"), "clipped")
    assert bars.type == "heatmap"
    assert np.nansum(bars.z) == np.sum(clipped(evaluation))


@pytest.mark.parametrize("draw", [
    lambda e: charts.advantage_bars(e, 0, palette=LIGHT),
    lambda e: charts.advantage_bars(e, 0, palette=LIGHT, former=evaluate(scenario())),
    lambda e: heatmap(e, prompts=0),
    lambda e: heatmap(e, "token_advantages", prompts=0, former=evaluate(scenario())),
])  # fmt: skip
def test_frame_and_axes_stay_where_they_are_after_a_small_edit(draw):
    one = draw(evaluate(scenario())).layout
    other = draw(evaluate(scenario(rewards=[[1.0, 0.0, 0.52], [1.0, 1.0, 1.0]]))).layout
    for part in ("height", "margin", "xaxis", "yaxis", "uirevision"):
        assert one[part] == other[part]


def test_bars_have_the_length_and_colour_of_the_advantage():
    evaluation = evaluate(scenario())
    bars = charts.advantage_bars(evaluation, 0, palette=LIGHT).data[0]
    assert_allclose(bars.x, evaluation.advantages[0], rtol=1e-15)
    assert list(bars.marker.color) == [LIGHT.positive, LIGHT.negative, LIGHT.neutral]


def test_a_missing_score_is_named_and_an_absent_completion_is_not_drawn():
    present = np.array([[True, True, True], [True, True, False]])
    evaluation = evaluate(scenario(rewards=[[1, np.nan, 0], [1, 0, 0]], present=present))
    (labels,) = traces(charts.advantage_bars(evaluation, 0, palette=LIGHT), "values")
    assert labels.text[1].strip() == "no score"
    assert len(charts.advantage_bars(evaluation, 1, palette=LIGHT).data[0].x) == 2


def test_ghosts_and_pinned_bars_come_with_a_legend_and_only_then():
    now, before = evaluate(scenario()), evaluate(scenario(rewards=[[0, 1, 0], [1, 1, 1]]))
    plain = charts.advantage_bars(now, 0, palette=LIGHT)
    both = charts.advantage_bars(now, 0, palette=LIGHT, former=before, pinned=before)
    assert not [t for t in plain.data if t.showlegend]
    assert [t.name for t in both.data if t.showlegend] == ["now", "before", "A (pinned)"]
    assert not traces(charts.advantage_bars(now, 0, palette=LIGHT, former=now), "before")


def test_a_tied_group_says_why_there_are_no_bars():
    notes = charts.advantage_bars(evaluate(scenario()), 1, palette=LIGHT).layout.annotations
    assert "every advantage is 0" in notes[0].text


def test_an_infinite_advantage_ends_beyond_all_others_and_inside_the_picture():
    evaluation = replace(evaluate(scenario()), advantages=np.array([[np.inf, -1.0, 0.0]] * 2))
    chart = charts.advantage_bars(evaluation, 0, palette=LIGHT)
    assert 1.0 < chart.data[0].x[0] < chart.layout.xaxis.range[1]
    assert chart.data[0].hovertext[0] == "inf"


def test_the_upper_ruler_reads_each_dots_advantage():
    evaluation = evaluate(scenario())
    layout = charts.group_strip(evaluation, 0, palette=LIGHT).layout
    mean, std = evaluation.mean[0], evaluation.std[0]
    for at, text in zip(layout.xaxis2.tickvals, layout.xaxis2.ticktext, strict=True):
        assert (at - mean) / (std + 1e-8) == pytest.approx(float(text.replace("−", "-")), abs=1e-9)


@pytest.mark.parametrize("changes", [
    {"rewards": [[1.0, 1.0, 1.0]] * 2},
    {"rewards": [[np.nan, np.nan, np.nan]] * 2},
    {"rewards": [[1.0, np.nan, np.nan]] * 2},
    {"advantages": [[3.0, -5.0, 0.5]] * 2, "conventions": Conventions.of(advantage="given")},
])  # fmt: skip
def test_there_is_no_upper_ruler_where_advantages_are_no_line_of_the_rewards(changes):
    layout = charts.group_strip(evaluate(scenario(**changes)), 0, palette=LIGHT).layout
    assert "xaxis2" not in layout.to_plotly_json()


@pytest.mark.parametrize("scale", [1e-320, 1e-9, 1e8, 1e200, 1.7e308])
def test_group_pictures_survive_rewards_of_any_size(scale):
    evaluation = evaluate(scenario(rewards=[[scale, -scale, 0.0], [scale] * 3]))
    for prompt in (0, 1):
        for draw in (charts.group_strip, charts.advantage_bars):
            json.loads(draw(evaluation, prompt, palette=LIGHT).to_json())


def test_equal_rewards_stand_on_each_other():
    levels = charts.group_strip(evaluate(scenario()), 1, palette=LIGHT).data[0].y
    assert sorted(levels) == [0, 1, 2]


def test_formulas_stand_side_by_side_in_colours_that_mean_no_sign():
    columns = {"population": [1.0, -1.0], "TRL": [0.7, -0.7]}
    chart = charts.formula_bars(columns, palette=LIGHT)
    assert [trace.name for trace in chart.data] == list(columns)
    assert [trace.x.tolist() for trace in chart.data] == list(columns.values())
    assert not {trace.marker.color for trace in chart.data} & {LIGHT.positive, LIGHT.negative}


@pytest.mark.parametrize("variant", STAGES["advantage"].variants)
def test_the_advantage_axis_names_the_unit_of_the_convention(variant):
    needs = STAGES["advantage"].variants[variant].needs
    title = advantage_title(evaluate(with_needed(scenario(), *needs).choose("advantage", variant)))
    assert title.startswith("advantage")
    if variant == "mean_only":
        assert title == "advantage (in reward units)"


@pytest.mark.parametrize("theme", PALETTES)
def test_every_figure_has_words_for_those_who_do_not_see_it(theme):
    evaluation, palette = evaluate(scenario()), PALETTES[theme]
    for chart in (
        charts.advantage_bars(evaluation, 0, palette=palette),
        charts.group_strip(evaluation, 0, palette=palette),
        charts.formula_bars({"TRL": [1.0, -1.0]}, palette=palette),
        charts.token_heatmap(evaluation, "gradient", palette=palette),
    ):
        assert len(charts.alt_text(chart)) > 20
        assert charts.alt_text(chart).endswith(".")


def test_one_token_and_one_completion_can_be_drawn():
    evaluation = evaluate(build_scenario(rewards=[[1.0]]))
    for quantity in charts.PIPELINE:
        heatmap(evaluation, quantity, prompts=0, compact=True, written=True, selected=(0, 0, 0))
    charts.advantage_bars(evaluation, 0, palette=LIGHT)
    charts.group_strip(evaluation, 0, palette=LIGHT)


def test_a_batch_without_a_single_valid_token_can_be_drawn():
    evaluation = evaluate(scenario(mask=np.zeros((2, 3, 4), dtype=bool)))
    for quantity in QUANTITIES:
        heatmap(evaluation, quantity)


def test_the_strip_shows_the_pinned_state_and_the_former_one_where_it_differs():
    scenario = build_scenario(rewards=[[0, 1, 2]])
    now, before = evaluate(scenario), evaluate(scenario.replace(rewards=[[0, 1, 5]]))
    drawn = charts.group_strip(now, 0, palette=PALETTES["light"], former=before, pinned=now)
    rings = [trace for trace in drawn.data if trace.mode == "markers"]
    assert [list(trace.x) for trace in rings] == [[0, 1, 2], [0, 1, 5]]
    alone = charts.group_strip(now, 0, palette=PALETTES["light"], former=now)
    assert not [trace for trace in alone.data if trace.mode == "markers"]
