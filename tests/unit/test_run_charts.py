"""Pictures of a run: what they show, that every one can be drawn, and how much is sent."""

import json
import time

import numpy as np
import plotly.graph_objects as go
import pytest

from grpo_core.runs.series import LOGGED
from pages._ui.palette import PALETTES
from pages._ui.run_chart_panels import MOST_POINTS, thinned
from pages._ui.run_chart_rows import MOST_TERMS, kept_terms, label, looks_of
from pages._ui.run_charts import (
    STEP_CHARTS,
    agreement_chart,
    group_chart,
    residue_chart,
    step_chart,
    steps_overview,
    why_missing,
)
from pages._ui.run_group_charts import order_of_group, weighted_deviations
from tests.unit.drawable import check_drawable
from tests.unit.made_runs import HOSTILE, awkward, hacked, made, made_log, shown

LIGHT = PALETTES["light"]
RUNS = awkward()
every_run = pytest.mark.parametrize("name", list(RUNS))
every_chart = pytest.mark.parametrize("key", list(STEP_CHARTS))


def drawable(chart):
    """As `check_drawable`; keys of a legend, which have no place, left out."""
    without = [trace for trace in chart.data if len(np.ravel(trace.x)) and trace.x[0] is not None]
    check_drawable(go.Figure(data=without, layout=chart.layout))
    go.Figure(chart.to_dict())
    json.loads(chart.to_json(), parse_constant=pytest.fail)


def trace(chart, name):
    """The one line or row of points of a name."""
    found = [
        each
        for each in chart.data
        if each.name == name and each.x is not None and len(each.x) and each.x[0] is not None
    ]
    assert len(found) == 1, [each.name for each in chart.data]
    return found[0]


@every_run
@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_every_picture_of_every_run_can_be_drawn(name, palette):
    run = RUNS[name]
    drawable(steps_overview(run, palette))
    drawable(steps_overview(run, palette, RUNS["plain"], step=3))
    for q in {0, len(run.run.steps) // 2, len(run.run.steps) - 1}:
        drawable(group_chart(run, q, palette, selected=0))
    for chart in (agreement_chart(run, palette), residue_chart(run, palette)):
        if chart is not None:
            drawable(chart)


@every_run
@every_chart
def test_every_step_chart_is_drawn_or_says_why_it_is_not(name, key):
    chart, why = step_chart(key, RUNS[name], LIGHT), why_missing(key, RUNS[name])
    assert (chart is None) == bool(why)
    for each in (chart, step_chart(key, RUNS[name], LIGHT, RUNS["plain"], step=5)):
        if each is not None:
            drawable(each)


@every_chart
def test_every_row_says_what_it_shows(key):
    row = STEP_CHARTS[key]
    assert row.key == key
    assert all((row.title, row.note, row.unit, row.missing))


def test_rewards_are_drawn_as_recounted_and_beside_them_as_logged():
    run = shown(log=made_log([0, 1, 4], reward=[0.5, np.nan, 2.0]))
    chart = step_chart("reward", run, LIGHT)
    assert np.array_equal(trace(chart, "total reward, recounted").y, run.series.reward)
    logged = trace(chart, "logged as reward")
    assert (list(logged.x), list(logged.y)) == ([0, 4], [0.5, 2.0])
    assert logged.line.width > trace(chart, "total reward, recounted").line.width


def test_the_band_of_the_task_is_two_standard_errors_on_each_side():
    run = shown()
    band = trace(step_chart("task", run, LIGHT), "± 2 standard errors")
    task, error = run.series.task, run.series.task_error
    assert np.allclose(band.y, [*(task + 2 * error), *(task - 2 * error)[::-1]])


def test_every_term_has_an_axis_of_its_own():
    chart = step_chart("terms", shown(), LIGHT)
    axes = {trace(chart, f"mean of {name}").yaxis for name in ("correct", "format")}
    assert axes == {"y", "y2"}


@pytest.mark.parametrize("what", ["kl", "clip_share", "entropy", "loss"])
def test_a_title_names_what_the_log_calls_it_and_a_missing_one_is_explained(what):
    name = LOGGED[what][-1]
    run = shown(log=made_log([0, 1], kl=[np.nan] * 2, **{name: [0.1, 0.2]}))
    title = step_chart(what, run, LIGHT).layout.annotations[0].text
    assert f"logged as {name}" in title
    assert step_chart(what, shown(), LIGHT) is None
    assert name in why_missing(what, shown())


def test_the_turn_stands_in_every_panel_and_is_named_once():
    run = hacked()
    assert run.turns[0].step == 20
    chart = steps_overview(run, LIGHT)
    lines = [shape for shape in chart.layout.shapes if shape.line.dash == "dash"]
    assert [line.x0 for line in lines] == [20] * 4
    assert [note.text for note in chart.layout.annotations].count("step 20") == 1
    assert "bonus takes over at step 20" in chart.layout.meta["alt"]


def test_the_selected_step_is_marked_in_every_panel():
    marks = steps_overview(shown(), LIGHT, step=7).layout.shapes
    assert len([mark for mark in marks if mark.x0 == 7]) == 4


def test_a_click_returns_the_step():
    steps = trace(steps_overview(shown(), LIGHT), "steps")
    assert steps.customdata == tuple([step] for step in range(12))
    assert steps.marker.opacity == steps.unselected.marker.opacity == 0


def test_a_lone_term_has_no_share_to_show():
    titles = [note.text for note in steps_overview(RUNS["one term"], LIGHT).layout.annotations]
    assert len(titles) == 2
    titles = [
        note.text
        for note in steps_overview(RUNS["a measure is the task"], LIGHT).layout.annotations
    ]
    assert len(titles) == 3
    assert any("acc" in title for title in titles)


def test_the_other_run_is_dashed_in_its_own_colour_and_the_legend_names_both():
    one, other = shown(name="first"), shown(made(seed=4), name="second")
    chart = step_chart("task", one, LIGHT, other)
    line = trace(chart, "second: mean of correct")
    assert (line.line.dash, line.line.color) == ("dash", LIGHT.negative)
    assert line.line.width < trace(chart, "mean of correct").line.width
    named = [each.name for each in chart.data if each.showlegend and each.name != "steps"]
    assert named == ["first", "second"]


def test_in_a_panel_of_several_terms_colours_tell_the_terms():
    one, other = shown(name="first"), shown(made(seed=4), name="second")
    chart = step_chart("shares", one, LIGHT, other)
    for name in ("correct", "format"):
        same = {trace(chart, f"{who}share of {name}").line.color for who in ("", "second: ")}
        assert len(same) == 1


def test_the_task_is_blue_and_a_term_has_one_colour_whatever_is_shown_beside_it():
    one, other = shown(), shown(made(names=("other", "format")))
    alone, both = looks_of(LIGHT, one), looks_of(LIGHT, one, other)
    assert alone.of["correct"][0] == LIGHT.categories[0]
    assert alone.of.items() <= both.of.items()
    assert len(set(both.of.values())) == 3


def test_of_many_terms_the_smaller_ones_are_summed_up():
    run = RUNS["fifteen terms"]
    kept, others = kept_terms(run)
    assert sorted(kept + others) == list(range(15))
    assert len(kept) == MOST_TERMS - 1
    chart = step_chart("shares", run, LIGHT)
    drawn = [each for each in chart.data if each.name.startswith("share of")]
    assert len(drawn) == MOST_TERMS
    rest = trace(chart, "share of all others")
    assert np.allclose(rest.y, run.series.shares[:, others].sum(axis=1))
    assert np.allclose(np.sum([each.y for each in drawn], axis=0), 1.0)
    assert "summed up as others" in chart.layout.meta["alt"]
    assert "not drawn" in step_chart("terms", run, LIGHT).layout.meta["alt"]


def test_twelve_terms_look_different():
    run = shown(made(names=tuple(f"term {k}" for k in range(12))))
    assert len(set(looks_of(LIGHT, run).of.values())) == 12


def test_the_hover_of_one_picture_is_exact():
    run = shown()
    line = trace(step_chart("reward", run, LIGHT), "total reward, recounted")
    assert [float(text) for text in line.hovertext] == run.series.reward.tolist()


def test_a_value_between_gaps_is_a_dot():
    log = made_log(np.arange(5), kl=[1.0, np.nan, np.nan, np.nan, 2.0])
    chart = step_chart("kl", shown(log=log), LIGHT)
    assert len(trace(chart, "kl").x) == 2  # what is not logged leaves no gap in a log
    terms = made().terms.copy()
    terms[2:4] = terms[6:8] = np.nan
    chart = step_chart("reward", shown(made(terms=terms, advantages=None)), LIGHT)
    dots = [each for each in chart.data if each.mode == "markers" and each.name != "steps"]
    assert {tuple(each.x) for each in dots} == {(0,), (2,)} or tuple(dots[0].x) == (0, 2)


def test_names_of_a_file_are_never_markup():
    for chart in (
        steps_overview(RUNS["hostile names"], LIGHT),
        step_chart("terms", RUNS["hostile names"], LIGHT),
        group_chart(RUNS["hostile names"], 0, LIGHT),
    ):
        sent = chart.to_json()
        assert "<img" not in sent
        assert "\u202e" not in sent
        assert "%{x} $a$" not in sent
    assert HOSTILE in RUNS["hostile names"].run.names


def long(S):
    rng = np.random.default_rng(0)
    reward = rng.normal(size=S)
    return shown(made(2 * S, 2, advantages=None), made_log(np.arange(S), kl=reward))


def test_a_long_run_is_thinned_and_keeps_its_extremes():
    run = long(5000)
    line = trace(step_chart("reward", run, LIGHT), "total reward, recounted")
    assert len(line.x) <= MOST_POINTS
    assert {np.min(line.y), np.max(line.y)} == {run.series.reward.min(), run.series.reward.max()}
    assert len(steps_overview(run, LIGHT, run).to_json()) < 1_200_000


def test_a_crowded_line_is_pale_with_its_mean_beside_it_and_the_axis_says_so():
    run = long(3000)
    chart = step_chart("reward", run, LIGHT)
    single = trace(chart, "total reward, recounted")
    strong = trace(chart, "total reward, recounted, mean")
    assert single.opacity < strong.opacity
    assert np.allclose(strong.y, run.series.reward.reshape(150, 20).mean(axis=1))
    assert "mean of 20" in chart.layout.xaxis.title.text
    few = step_chart("reward", shown(), LIGHT)
    assert few.layout.xaxis.title.text == "training step"
    assert trace(few, "total reward, recounted").opacity == 1


def test_a_long_name_loses_its_middle():
    assert label("accuracy_reward_of_the_whole_answer", 14) == "accurac…answer"
    assert len(label("x" * 10**6)) == 28


def test_a_hundred_thousand_steps_are_drawn_in_a_moment():
    run = long(100_000)
    start = time.perf_counter()
    steps_overview(run, LIGHT)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("size", [1, 7, 999, 1000, 1001, 1003, 54_321])
def test_thinning_keeps_ends_and_extremes_in_their_order(size):
    values = np.random.default_rng(size).normal(size=size)
    kept = thinned(values)
    assert len(kept) <= MOST_POINTS
    assert np.all(np.diff(kept) > 0)
    assert {0, size - 1, int(np.argmin(values)), int(np.argmax(values))} <= set(kept.tolist())


def test_thinning_keeps_gaps_and_what_stands_in_them():
    values = np.full(5000, np.nan)
    values[[10, 4000]] = 3.0, -3.0
    kept = thinned(values)
    assert {10, 4000} <= set(kept.tolist())
    assert np.isnan(values[kept]).any()


def test_deviations_add_up_to_the_total_less_its_mean():
    run = RUNS["gaps"]
    for q in (0, 1, 7):
        known = np.isfinite(run.run.terms[q])
        totals = np.sum(np.where(known, run.run.terms[q], 0.0) * run.fit.weights, axis=1)
        added = sum(weighted_deviations(run, q).values())
        assert np.allclose(added, totals - totals.mean(), atol=1e-12)


def test_completions_stand_in_the_order_of_their_advantages_with_their_own_index():
    run = shown()
    order = order_of_group(run, 3)
    assert np.all(np.diff(run.run.advantages[3][order]) <= 0)
    chart = group_chart(run, 3, LIGHT)
    assert [text.strip() for text in chart.layout.yaxis.ticktext] == [str(g) for g in order]
    assert [cell[1] for cell in trace(chart, "logged").customdata] == order.tolist()
    assert {cell[0] for each in chart.data for cell in each.customdata} == {3}


def test_absent_completions_are_not_drawn():
    chart = group_chart(RUNS["ragged"], 0, LIGHT)
    assert len(chart.layout.yaxis.tickvals) == 3


def test_logged_and_recomputed_advantages_are_points_of_the_group():
    run = shown()
    chart = group_chart(run, 0, LIGHT)
    order = order_of_group(run, 0)
    assert np.array_equal(trace(chart, "logged").x, run.run.advantages[0][order])
    assert np.array_equal(trace(chart, "recomputed").x, run.fit.predicted[0][order])


def test_without_advantages_a_group_is_in_the_order_of_its_totals():
    run = RUNS["no advantages, no lengths"]
    order = order_of_group(run, 2)
    totals = run.run.terms[2] @ run.fit.weights
    assert np.all(np.diff(totals[order]) <= 1e-12)
    assert agreement_chart(run, LIGHT) is None
    assert residue_chart(run, LIGHT) is None


def test_agreement_keeps_the_worst_of_many_and_tells_tied_groups_and_misfits():
    run = made(2000, 4)
    advantages = run.advantages.copy()
    advantages[1234, 2] += 5
    bad = shown(made(2000, 4, advantages=advantages))
    chart = agreement_chart(bad, LIGHT)
    assert sum(len(each.x) for each in chart.data) <= 2000
    assert (1234, 2) in {tuple(cell) for cell in trace(chart, "does not fit").customdata}
    assert {each.name for each in chart.data} == {"fits", "tied group", "does not fit"}
    assert len({each.marker.symbol for each in chart.data}) == 3


def test_the_residue_is_that_of_tied_groups_only():
    chart = residue_chart(RUNS["all but one tied"], LIGHT)
    assert set(chart.data[0].y) == {1e-4}
    terms = made().terms.copy()
    terms[[5, 9]] = 1.0
    drawn = residue_chart(shown(made(terms=terms)), LIGHT)
    assert {5, 9} <= {cell[0] for cell in drawn.data[0].customdata}
    assert not drawn.data[0].y.any()
    plain = made(terms=np.arange(192.0).reshape(24, 4, 2))
    assert residue_chart(shown(plain), LIGHT) is None
