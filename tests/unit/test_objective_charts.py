"""The waterfall adds up to the objective; the aggregations stand side by side; so do sentences."""

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import build_scenario, evaluate
from grpo_core.breakdown import aggregations, contributions, gradient_split
from pages._ui import charts, ledger
from pages._ui.aggregation_views import CHOSEN, aggregation_frame, first_weight_bars
from pages._ui.examples import load_examples
from pages._ui.numbers import number
from pages._ui.objective_charts import waterfall
from pages._ui.palette import PALETTES
from pages._ui.quantities import present

LIGHT = PALETTES["light"]
EXAMPLES = load_examples()
by_example = pytest.mark.parametrize("key", EXAMPLES)


def evaluation_of(key):
    return evaluate(EXAMPLES[key].scenario)


def trace(chart, name):
    return next(trace for trace in chart.data if trace.name == name)


def rows_of(evaluation, prompt):
    """(p, g), or (p, None) for a prompt as a whole, in the order of the bars."""
    there = present(evaluation)
    return [
        (p, g)
        for p in range(len(there))
        for g in (np.flatnonzero(there[p]).tolist() if p == prompt else [None])
    ]


def values_of(part, rows):
    return [part.prompts[p] if g is None else part.completions[p, g] for p, g in rows]


@by_example
def test_the_running_sum_ends_at_the_objective_to_the_last_bit(key):
    evaluation = evaluation_of(key)
    for prompt in range(len(evaluation.valid)):
        chart = waterfall(evaluation, prompt, palette=LIGHT)
        sums = trace(chart, "sums").x[0::3]
        assert sums[-1] == evaluation.objective
        assert trace(chart, "objective").x[0] == evaluation.objective


@by_example
def test_bars_are_the_parts_and_each_begins_where_the_one_above_ends(key):
    evaluation = evaluation_of(key)
    parts, rows = contributions(evaluation), rows_of(evaluation, 0)
    chart = waterfall(evaluation, 0, palette=LIGHT)
    policy, sums = trace(chart, "policy part"), trace(chart, "sums").x[0::3]
    assert_array_equal(policy.x, values_of(parts.policy, rows))
    assert policy.base[0] == 0
    assert_array_equal(policy.base[1:], sums[:-1])
    scale = np.max(np.abs(values_of(parts.policy, rows))) + np.max(np.abs(sums))
    steps = np.diff(np.concatenate([[0.0], sums]))
    assert_allclose(steps, values_of(parts.both, rows), atol=1e-13 * scale)
    if np.any(evaluation.kl_penalty):
        kl = trace(chart, "KL part")
        assert_array_equal(kl.x, values_of(parts.kl, rows))
        assert_allclose(kl.base, np.add(policy.base, policy.x), atol=1e-15 * scale)
        assert kl.marker.pattern.shape == "."
    else:
        assert not [t for t in chart.data if t.name == "KL part"]


def test_every_prompt_has_a_bar_and_the_shown_one_its_completions():
    evaluation = evaluation_of("recorded-batch")
    cells = trace(waterfall(evaluation, 2, palette=LIGHT, selected=(2, 5, 7)), charts.CELLS)
    assert len(cells.customdata) == 7 + 8
    assert [data for data in cells.customdata if data[0] == 2] == [[2, g, 7] for g in range(8)]
    assert [data for data in cells.customdata if data[0] == 6] == [[6, 5, 7]]


def test_the_hover_holds_the_values_in_full():
    evaluation = evaluation_of("four-answers")
    parts = contributions(evaluation)
    said = trace(waterfall(evaluation, 0, palette=LIGHT), charts.CELLS).hovertext
    for g, text in enumerate(said):
        for part in (parts.policy, parts.kl, parts.both):
            assert str(part.completions[0, g]).replace("-", "−") in text


def test_former_and_pinned_states_are_drawn_and_the_same_state_is_not():
    now = evaluation_of("four-answers")
    other = evaluate(EXAMPLES["four-answers"].scenario.replace(rewards=[[1.0, 0, 0, 0]]))
    chart = waterfall(now, 0, palette=LIGHT, former=other, pinned=other)
    for name in ("before", "A (pinned)"):
        assert trace(chart, name).x[-1] == other.objective
    same = waterfall(now, 0, palette=LIGHT, former=now)
    assert "before" not in [t.name for t in same.data]
    assert chart.layout.height == same.layout.height
    assert chart.layout.margin == same.layout.margin


def test_an_infinite_contribution_is_drawn_at_the_edge_and_said():
    scenario = EXAMPLES["four-answers"].scenario
    ref = scenario["logp_ref"].copy()
    new = scenario["logp_new"].copy()
    ref[0, 1, 0], new[0, 1, 0] = -0.5, -np.inf
    evaluation = evaluate(scenario.replace(logp_ref=ref, logp_new=new))
    assert evaluation.objective == -np.inf
    chart = waterfall(evaluation, 0, palette=LIGHT)
    assert "NaN" not in chart.to_json()
    drawn = [t.x for t in chart.data if t.type == "bar" and t.x is not None and t.x[0] is not None]
    assert all(np.all(np.isfinite(np.asarray(x, dtype=float))) for x in drawn)
    assert "−inf" in trace(chart, charts.CELLS).hovertext[1]
    assert "−inf" in charts.alt_text(chart)
    assert ledger.objective_line(contributions(evaluation), evaluation)


@by_example
@pytest.mark.parametrize("theme", PALETTES)
def test_pictures_are_valid_json_with_a_description(key, theme):
    evaluation, palette = evaluation_of(key), PALETTES[theme]
    for chart in (
        waterfall(evaluation, 0, palette=palette, selected=(0, 0, 0)),
        first_weight_bars(aggregations(evaluation), 0, palette=palette),
    ):
        json.loads(chart.to_json())
        assert len(charts.alt_text(chart)) > 40


def test_first_weights_are_those_of_the_core():
    evaluation = evaluation_of("long-against-short")
    rows = aggregations(evaluation)
    chart = first_weight_bars(rows, 0, palette=LIGHT, selected=(0, 0, 3))
    assert len(chart.data) == len(rows)
    for bars, row in zip(chart.data, rows, strict=True):
        assert_array_equal(bars.x, row.first_weight[0])
        assert [list(cell) for cell in bars.customdata] == [[0, g, 3] for g in range(4)]
        assert bars.name.startswith(CHOSEN) == row.chosen
        assert (bars.marker.pattern.shape is None) == row.chosen


def test_the_table_says_what_each_aggregation_gives_and_marks_the_chosen_one():
    rows = aggregations(evaluation_of("token-mean-on-policy"))
    frame = aggregation_frame(rows)
    assert [name.startswith(CHOSEN) for name in frame.index] == [row.chosen for row in rows]
    assert frame["loss"].tolist() == [number(row.evaluation.loss) for row in rows]
    assert frame["mean KL"].tolist() == [number(row.evaluation.mean_kl) for row in rows]


def as_decimal(text):
    return Decimal(text.replace("−", "-"))


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([0.6, -0.5], 0.1),
        ([0.31582, -0.30777, 0.194400001, -0.17746], 0.024990001),
        ([0.333333, 0.333333, 0.333334], 1.0),
        ([1234.56, -0.04], 1234.52),
        ([0.5, -0.5], 0.0),
    ],
)
def test_a_column_adds_up_as_it_is_shown(parts, whole):
    shown, total = ledger.column(parts, whole)
    assert sum(map(as_decimal, shown)) == as_decimal(total)
    assert_allclose([float(as_decimal(text)) for text in shown], parts, atol=5e-4 * max(parts))


def test_numbers_too_large_or_small_for_a_column_are_rounded_alone():
    assert ledger.column([9.2e37, -1.0], 9.2e37) == (["+9.2e37", "−1"], "+9.2e37")
    assert ledger.column([2.5e-7], 2.5e-7) == (["+2.5e−7"], "+2.5e−7")
    assert ledger.column([0.0], 0.0) == (["0"], "0")


def said(key, **changes):
    evaluation = evaluate(EXAMPLES[key].scenario.replace(**changes))
    return ledger.objective_line(contributions(evaluation), evaluation)


def test_a_loss_of_zero_is_explained_by_what_cancels():
    text = said("on-policy")
    assert "the loss is 0." in text
    assert "add +0.4851, those that lower it −0.4851" in text
    assert "They cancel" in text


def test_an_on_policy_loss_under_token_mean_does_not_cancel():
    text = said("token-mean-on-policy")
    assert "the loss is 0.1455." in text
    assert "cancel" not in text


def test_a_tied_group_adds_its_kl_part_only():
    evaluation = evaluation_of("tied-group")
    added = number(contributions(evaluation).kl.prompts[1])
    assert (
        f"Prompt 1 has only advantages of 0, so no policy part: the KL part there adds {added}"
        in (said("tied-group"))
    )
    assert "only advantages of 0" not in said("four-answers")


def test_a_batch_that_adds_nothing_says_so():
    assert "No completion contributes anything" in said("one-zero-zero-one", rewards=[[1.0] * 4])


def test_the_gradient_line_counts_where_the_kl_pulls_against_the_reward():
    split = gradient_split(evaluation_of("four-answers"))
    line = ledger.gradient_line(split)
    assert f"{split.against} of the {split.both} tokens" in line
    assert number(split.cosine, 3) in line
    assert "the KL part is 0" in ledger.gradient_line(gradient_split(evaluation_of("on-policy")))
    only_kl = evaluate(build_scenario(rewards=[[1.0, 1.0]], logp_ref=[[[-0.5], [-0.5]]]))
    assert "the policy part is 0" in ledger.gradient_line(gradient_split(only_kl))
    infinite = replace(split, policy_norm=np.inf, cosine=None)
    assert "cosine" not in ledger.gradient_line(infinite)
