"""The KL page's figures and sentences say what the core says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import build_scenario, evaluate
from grpo_core.estimators import PAIRS, compare, sample
from grpo_core.kl_curves import in_each_place, kl_curve, kl_distance, place_words
from grpo_core.numerics import FLOAT32_LOG_MAX
from pages._ui.estimator_charts import expected_gradients, sample_means
from pages._ui.examples import load_examples
from pages._ui.kl_charts import kl_curves, needs_tail
from pages._ui.kl_scales import MOST_TOKENS
from pages._ui.kl_tables import (
    estimator_frame,
    exact_lines,
    gradient_line,
    mean_line,
    penalty_frame,
    place_frame,
    place_line,
)
from pages._ui.palette import PALETTES

LIGHT = PALETTES["light"]
EXAMPLES = {key: example.scenario for key, example in load_examples().items()}
DEFAULT = next(iter(EXAMPLES.values()))
BARE = build_scenario(rewards=[[1.0, 0.0]])


def drawn(scenario, **settings):
    return kl_curves(evaluate(scenario), palette=LIGHT, **settings)


def named(chart, name):
    return [trace for trace in chart.data if trace.name == name]


@pytest.mark.parametrize("row", ["k1", "k2", "k3"])
def test_the_curves_are_the_rows_of_the_core(row):
    value, slope = named(drawn(DEFAULT), row)
    expected = kl_curve(row, value.x)
    assert_array_equal(value.y, expected[0])
    assert_array_equal(slope.y, expected[1])
    assert (value.xaxis, slope.xaxis) == ("x", "x")  # one axis of d for both pictures
    assert (value.yaxis, slope.yaxis) == ("y", "y2")


@pytest.mark.parametrize("key", ["four-answers", "kl-spike", "recorded-batch", "kl-in-reward"])
def test_the_tokens_stand_at_their_d_and_kl_and_return_their_place(key):
    evaluation = evaluate(EXAMPLES[key])
    chart = kl_curves(evaluation, palette=LIGHT, selected=(0, 0, 0))
    value, slope = named(chart, "tokens")
    where = np.argwhere(evaluation.valid)
    assert [list(cell) for cell in value.customdata] == where.tolist()
    assert_array_equal(value.x, kl_distance(evaluation)[evaluation.valid])
    assert_array_equal(value.y, evaluation.kl[evaluation.valid].astype(np.float64))
    assert_allclose(slope.y, kl_curve(evaluation.scenario.conventions["kl"].variant, slope.x)[1])


def test_the_chosen_curve_is_the_thick_one():
    chart = drawn(DEFAULT.choose("kl", "k2"))
    widths = {row: named(chart, row)[0].line.width for row in ("k1", "k2", "k3")}
    assert widths["k2"] > max(widths["k1"], widths["k3"])


def test_the_log_scale_draws_what_its_title_says():
    assert needs_tail(evaluate(EXAMPLES["kl-spike"]))
    assert not needs_tail(evaluate(DEFAULT))
    evaluation = evaluate(EXAMPLES["kl-spike"])
    (value, _) = named(kl_curves(evaluation, palette=LIGHT, tail=True), "tokens")
    kl = evaluation.kl[evaluation.valid]
    assert_allclose(value.y, np.sign(kl) * np.log10(1 + np.abs(kl)))
    axis = drawn(EXAMPLES["kl-spike"], tail=True).layout.yaxis
    assert "log scale" in axis.title.text
    for text, at in zip(axis.ticktext, axis.tickvals, strict=True):
        number = float(text.replace("−", "-"))
        assert at == pytest.approx(np.sign(number) * np.log10(1 + abs(number)))


def test_infinite_values_stand_inside_the_picture():
    scenario = build_scenario(
        rewards=[[1.0, 0.0]], logp_new=[[[-1.0, -np.inf], [-1.0, -1.0]]],
        logp_ref=[[[-np.inf, -1.0], [-1.5, -0.5]]],
    )  # fmt: skip
    for row in ("k1", "k2", "k3"):
        for tail in (False, True):
            chart = drawn(scenario.choose("kl", row), tail=tail)
            for trace, axis in zip(named(chart, "tokens"), ("yaxis", "yaxis2"), strict=True):
                low, high = chart.layout[axis].range
                assert np.all((trace.y >= low) & (trace.y <= high))


@pytest.mark.parametrize(("far", "marks"), [(-80.0, 0), (-100.0, 1)])
def test_the_float32_limit_is_marked_where_it_is_in_range(far, marks):
    # The axis ends at 1.15 * 70, a round number below the limit, or beyond it.
    scenario = build_scenario(
        rewards=[[1.0]], logp_new=[[[far]]], logp_ref=[[[-10.0 if marks else -20.0]]]
    )
    lines = [shape.x0 for shape in drawn(scenario).layout.shapes if shape.type == "line"]
    assert lines == [FLOAT32_LOG_MAX] * marks


def test_the_former_state_is_a_ghost_and_the_pinned_one_diamonds():
    new = DEFAULT["logp_new"].copy()
    new[0, 0, 0] -= 0.25
    before, after = evaluate(DEFAULT), evaluate(DEFAULT.replace(logp_new=new))
    chart = kl_curves(after, palette=LIGHT, former=before, pinned=before, selected=(0, 0, 0))
    ghost = named(chart, "before")[0]
    assert ghost.x.tolist() == [kl_distance(before)[0, 0, 0]]
    assert len(named(chart, "A (pinned)")[0].x) == before.valid.sum()
    assert not named(kl_curves(before, palette=LIGHT, former=before), "before")


def test_of_a_large_batch_the_shown_prompts_tokens_are_drawn():
    rng = np.random.default_rng(0)
    new = -rng.exponential(size=(3, 4, MOST_TOKENS // 4))
    scenario = build_scenario(rewards=rng.random((3, 4)), logp_new=new, logp_ref=new - 0.1)
    (value, _) = named(drawn(scenario, selected=(1, 0, 0)), "tokens")
    assert {cell[0] for cell in value.customdata} == {1}
    assert len(value.x) == MOST_TOKENS


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_the_pictures_of_two_distributions_show_the_cores_numbers(pair):
    comparison = compare(BARE.replace(dist_new=pair[0], dist_ref=pair[1]))
    samples = sample(comparison, 1)
    chart = sample_means(comparison, samples, palette=LIGHT)
    low, high = chart.layout.yaxis.range
    for key, held in samples.items():
        (line,) = named(chart, key)
        finite = np.isfinite(held.running)
        assert_array_equal(line.y[finite], np.clip(held.running, low, high)[finite])
    if np.isfinite(comparison.reverse):
        assert [s.y0 for s in chart.layout.shapes].count(comparison.reverse) == len(samples)
    bars = {trace.name: trace for trace in expected_gradients(comparison, palette=LIGHT).data
            if trace.type == "bar"}  # fmt: skip
    for row in comparison.estimators.values():
        assert (row.label in bars) == (row.gradient is not None)
        if row.gradient is not None:
            assert_array_equal(bars[row.label].y, row.gradient)


def test_the_words_name_whose_gradient_it_is():
    assert gradient_line(compare(BARE)) == (
        "k3 descends KL(reference ‖ policy). k2 descends KL(policy ‖ reference). "
        "k1 pulls nowhere: 0 at every logit, and one sample's gradient is noise. "
        "absolute has the gradient of neither KL."
    )
    equal = compare(BARE.replace(dist_new=[1, 1], dist_ref=[1, 1]))
    assert gradient_line(equal) == "The distributions are equal, and every gradient is 0."


def test_the_words_say_what_the_distributions_are():
    lines = exact_lines(compare(BARE.replace(dist_new=[0.6, 0.6], dist_ref=[1, 0])))
    assert "is infinite" in lines[0]
    assert "of the policy add up to 1.2" in lines[1]
    assert "gives token 1 and the reference never does" in lines[2]
    lines = exact_lines(compare(BARE.replace(dist_new=[1, 0], dist_ref=[0.8, 0.2])))
    assert "never gives token 1" in lines[1]
    assert "20%" in lines[1]


def test_the_table_puts_the_sampled_moments_beside_the_exact_ones():
    comparison = compare(BARE)
    frame = estimator_frame(comparison, sample(comparison))
    assert frame.loc["k3", "mean"] == "0.5108"
    assert frame.loc["k2", "bias"] == "0.2231"
    assert frame.loc["k1", "std of 1"] == "1.099"


def test_the_mean_line_holds_every_row():
    line = mean_line(evaluate(DEFAULT.choose("kl", "k1")))
    assert line.startswith("Mean KL 0.02059 by k1. On the same tokens: k3 0.02332, k2 0.02116, ")
    assert "abs 0.1212. " in line
    assert line.endswith("10 tokens of 35 below 0.")


def test_the_two_places_side_by_side():
    places = in_each_place(evaluate(EXAMPLES["kl-in-reward"]))
    words = place_words(EXAMPLES["kl-in-reward"])
    assert list(words) == ["objective", "reward", "returns"]
    frame = place_frame(places, words)
    assert frame.index.tolist() == list(words.values())
    penalty = penalty_frame(places, 0)
    reward, off, score = (float(penalty[name].iloc[1].replace("−", "-")) for name in
                          ("reward", "penalty", "score"))  # fmt: skip
    assert score == pytest.approx(reward - off, abs=1e-3)
    moved = np.max(np.abs(places["reward"].advantages - places["objective"].advantages))
    assert f"by up to {moved:.4g}" in place_line(places)
    silent = in_each_place(evaluate(EXAMPLES["kl-in-reward"].choose("kl", beta=0)))
    assert place_line(silent).startswith("beta is 0")


@pytest.mark.parametrize("far", [-1e308, -1.7e308, -1e-300, -np.inf])
def test_the_most_extreme_log_probabilities_are_drawn_without_a_warning(far):
    scenario = build_scenario(
        rewards=[[1.0, 0.0]], logp_new=[[[far], [-1.0]]], logp_ref=[[[-1.0], [far]]]
    )
    for row in ("k1", "k2", "k3"):
        for tail in (False, True):
            chart = drawn(scenario.choose("kl", row), tail=tail, selected=(0, 0, 0))
            assert all(np.isfinite(trace.y).all() for trace in named(chart, "tokens"))
            assert mean_line(evaluate(scenario.choose("kl", row)))
    nothing = build_scenario(rewards=[[1.0]], mask=[[[0]]])
    assert len(named(drawn(nothing), "tokens")[0].x) == 0
