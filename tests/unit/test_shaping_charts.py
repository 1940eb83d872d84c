"""The pictures of the shaping page: bars add up, curves and marks stand where the numbers are."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import Term, build_scenario, evaluate
from grpo_core.shaping_parts import COMBINE
from grpo_core.shaping_views import logged, weight_curves, with_shaping
from grpo_core.shaping_world_views import bandit_view, potential_view
from pages._ui.examples import load_examples
from pages._ui.figure import alt_text
from pages._ui.palette import PALETTES
from pages._ui.shaping_bars import component_look, part_bars
from pages._ui.shaping_charts import weight_curves_chart
from pages._ui.shaping_shares import share_bars
from pages._ui.shaping_world_charts import bandit_chart, credit_chart
from pages._ui.weight_axis import rule, weight_axis

LIGHT = PALETTES["light"]
NAN = np.nan
EXAMPLES = load_examples()
AWKWARD = {
    "plain": {"rewards": [[1, 0, 0, 1], [1, 1, 1, 1]]},
    "one": {"rewards": [[1.0]]},
    "not scored": {"rewards": [[NAN, NAN]]},
    "absent": {"rewards": [[1, 0], [1, 0]], "present": [[0, 0], [1, 1]]},
    "half of the largest": {"rewards": [[8e307, -8e307, 0]]},
    "tiny": {"rewards": [[5e-324, -5e-324]]},
    "float32": {"rewards": np.float32([[3e38, -3e38]])},
    "nothing masked in": {"rewards": [[1, 0]], "mask": np.zeros((1, 2, 3))},
}


def evaluated(key, combine="sum_then_normalize", **advantage):
    scenario = with_shaping(build_scenario(**AWKWARD[key])).choose("rewards", combine)
    return evaluate(scenario.choose("advantage", **advantage))


def example(key):
    return evaluate(with_shaping(EXAMPLES[key].scenario))


def shares(evaluation, **looks):
    return share_bars(logged(evaluation), evaluation.attribution.names, palette=LIGHT, **looks)


def curves_chart(evaluation, prompt=0, term=0, palette=LIGHT):
    curves = weight_curves(evaluation, prompt, term)
    return weight_curves_chart(curves, evaluation, prompt, term, palette=palette)


def named(chart, name):
    return next(trace for trace in chart.data if trace.name == name)


def check(chart):
    """What is sent is strict JSON, known to Plotly, with axes of two finite ends and a text."""
    sent = json.loads(chart.to_json(), parse_constant=pytest.fail)
    go.Figure(chart.to_dict())
    for name, axis in sent["layout"].items():
        if name.startswith(("xaxis", "yaxis")):
            low, high = axis["range"]
            assert np.isfinite([low, high, high - low]).all()
            assert low != high
    assert "nan" not in alt_text(chart)


@pytest.mark.parametrize("combine", COMBINE)
@pytest.mark.parametrize("variant", ["mean_std", "mean_only"])
@pytest.mark.parametrize("key", AWKWARD)
def test_every_figure_of_an_awkward_batch_can_be_drawn(key, variant, combine):
    evaluation = evaluated(key, combine, variant=variant)
    other = evaluate(evaluation.scenario.replace(rewards=evaluation.scenario["rewards"] / 2))
    for prompt in range(evaluation.scenario.sizes["P"]):
        looks = {"former": other, "pinned": other, "selected": (prompt, 0, 0)}
        check(part_bars(evaluation, prompt, palette=LIGHT))
        check(part_bars(evaluation, prompt, palette=LIGHT, **looks))
        check(curves_chart(evaluation, prompt))
    check(shares(evaluation, selected=(0, 0, 0)))


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
@pytest.mark.parametrize("key", EXAMPLES)
def test_every_figure_of_every_example_can_be_drawn(key, palette):
    evaluation = example(key)
    check(part_bars(evaluation, 0, palette=palette))
    for term in range(len(evaluation.scenario.terms)):
        check(curves_chart(evaluation, 0, term, palette))
    check(shares(evaluation))


class TestParts:
    def test_the_bars_of_a_completion_add_up_to_its_advantage(self):
        evaluation = example("length-and-judge")
        chart = part_bars(evaluation, 0, palette=LIGHT)
        bars = [trace.x for trace in chart.data if trace.type == "bar"]
        assert len(bars) == 3
        assert_allclose(np.sum(bars, axis=0), evaluation.advantages[0], rtol=1e-12)
        assert_allclose(named(chart, "advantage").x, evaluation.advantages[0])

    def test_rounding_is_drawn_as_nothing(self):
        chart = part_bars(example("recorded-step-bonus"), 0, palette=LIGHT)
        assert not any(0 < abs(x) < 1e-9 for trace in chart.data if trace.type == "bar"
                       for x in trace.x)  # fmt: skip
        assert "e−1" not in alt_text(chart)

    def test_the_former_advantages_are_an_outline_where_they_differ(self):
        now = evaluated("plain")
        before = evaluated("plain", "add_after")
        assert not [t for t in part_bars(now, 0, palette=LIGHT, former=now).data
                    if t.name == "before"]  # fmt: skip
        ghost = named(part_bars(now, 0, palette=LIGHT, former=before), "before")
        ends = np.reshape(ghost.x, (4, 6))[:, :2]
        assert_allclose(ends.sum(axis=1), before.advantages[0])

    def test_a_click_selects_the_completion_and_keeps_the_token(self):
        chart = part_bars(evaluated("plain"), 1, palette=LIGHT, selected=(1, 2, 0))
        assert chart.data[0].customdata[3] == [1, 3, 0]

    def test_sixteen_terms_look_different(self):
        looks = [str(component_look(index, LIGHT)) for index in range(13)]
        assert len(set(looks)) == 13

    def test_a_name_is_never_markup(self):
        scenario = build_scenario(rewards=[[1, 0]]).with_terms((Term("<b>x", 1),), [[[1], [0]]])
        evaluation = evaluate(scenario.choose("rewards", "add_after"))
        for chart in (part_bars(evaluation, 0, palette=LIGHT), shares(evaluation)):
            assert "<b>" not in json.dumps([trace.name for trace in chart.data])


class TestShares:
    def test_negative_shares_hang_below_0(self):
        chart = shares(example("length-and-judge"))
        assert named(chart, "judge").y[0] < 0
        assert chart.layout.yaxis.range[0] < 0
        assert_allclose(sum(trace.y[0] for trace in chart.data if trace.type == "bar"), 1)

    def test_groups_that_shaping_alone_decides_are_marked(self):
        chart = shares(example("recorded-step-bonus"))
        assert_array_equal(named(chart, "task rewards equal").x, [1, 2])

    def test_of_very_many_prompts_those_around_the_selected_one_are_drawn(self):
        many = with_shaping(build_scenario(rewards=[[1, 0]] * 500))
        chart = shares(evaluate(many), selected=(300, 0, 0))
        drawn = chart.data[0].x
        assert 300 in drawn
        assert len(drawn) < 100
        assert "of 500" in chart.layout.xaxis.title.text

    def test_silent_groups_are_marked(self):
        assert_array_equal(named(shares(example("terms-cancel")), "nothing differs").x, [0])


class TestCurves:
    def test_dots_stand_at_the_advantages_of_the_evaluation(self):
        evaluation = example("bonus-breaks-a-tie")
        chart = curves_chart(evaluation, 1)
        tied, mixed = (trace for trace in chart.data if trace.name == "now")
        assert_allclose(tied.y, [0.918, -0.918], atol=5e-4)
        assert_allclose(mixed.y, evaluation.advantages[1, [2, 0]], rtol=1e-9)
        assert tied.yaxis != mixed.yaxis

    def test_the_present_weight_and_that_of_eps_are_marked(self):
        chart = curves_chart(example("bonus-breaks-a-tie"))
        assert [line.x0 for line in chart.layout.shapes] == pytest.approx([0.01, 0.00018708287])
        words = " ".join(note.text for note in chart.layout.annotations)
        assert "now 0.01" in words
        assert "eps takes over: 0.0001871" in words

    def test_there_is_a_line_for_each_way_and_the_chosen_one_is_thick(self):
        evaluation = evaluated("plain", "add_after")
        chart = curves_chart(evaluation)
        lines = [t for t in chart.data if t.mode == "lines" and "completion" in (t.name or "")]
        assert len(lines) == 2 * 2 * len(COMBINE)
        assert {t.name.split(",")[0] for t in lines if t.line.width > 2} == {"add_after"}

    @pytest.mark.parametrize("weight", [0.0, 1e-12, -0.5, 1e4])
    def test_any_weight_can_be_drawn(self, weight):
        scenario = build_scenario(rewards=[[1, 0]]).with_terms((Term("x", weight),), [[[1], [0]]])
        check(curves_chart(evaluate(scenario.choose("rewards", "sum_then_normalize"))))


class TestWorlds:
    @pytest.mark.parametrize("weight", [0.0, 1e-9, 0.1, 0.5, 30.0])
    @pytest.mark.parametrize("rates", [(0.3, 0.1), (0.1, 0.3), (0.5, 0.5), (0, 1), (1, 0)])
    def test_any_bandit_can_be_drawn(self, rates, weight):
        scenario = build_scenario(rewards=[[1, 0]], arm_rates=list(rates))
        view = bandit_view(scenario, weight, {"scale": "std", "ddof": 0, "eps": 1e-8})
        check(bandit_chart(view, palette=LIGHT))

    def test_both_flips_are_marked(self):
        scenario = build_scenario(rewards=[[1] * 8], arm_rates=[0.3, 0.1])
        chart = bandit_chart(
            bandit_view(scenario, 0.01, {"scale": "std", "ddof": 1, "eps": 1e-4}), palette=LIGHT
        )
        words = " ".join(note.text for note in chart.layout.annotations)
        assert "B is worth more: 0.2" in words
        assert "B is learned: 0.0734" in words

    @pytest.mark.parametrize("potential", [(0, 0, 0), (0, 0.5, 0), (-1e6, 1e6, 3)])
    def test_any_potential_can_be_drawn(self, potential):
        scenario = build_scenario(rewards=[[1, 0]], potential=list(potential))
        view = potential_view(scenario, {"ddof": 0, "eps": 1e-8})
        chart = credit_chart(view, palette=LIGHT)
        check(chart)
        assert "True: 0.036" in alt_text(chart)


class TestAxis:
    def test_a_weight_off_the_axis_is_not_marked(self):
        weights = np.logspace(-8, 0, 9)
        for weight in (None, 0.0, 2.0):
            assert rule(weight, weights, "x", LIGHT, at=0.5) == ([], [])

    @pytest.mark.parametrize("low", [-8, -300])
    def test_ticks_are_few(self, low):
        axis = weight_axis(np.logspace(low, 0, 50), "weight", LIGHT)
        assert 3 <= len(axis["tickvals"]) <= 7
