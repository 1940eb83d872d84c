"""The convention behind logged advantages: found from them alone, and what they cannot tell."""

import numpy as np
import pytest

from grpo_core.errors import ScenarioError
from grpo_core.runs.fit import fit
from grpo_core.runs.rules import RULES, judge
from grpo_core.runs.run import Run, RunLog, total_rewards

from .judged_runs import made_run, recorded, reward_log, with_fields

SEVERAL = [1.0, 0.2, -0.5]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("G", [4, 8])
def test_every_rule_is_told_from_all_others_by_advantages_alone(rule, G):
    found = fit(made_run(rule, SEVERAL, G=G, absent=0.05))
    assert found.rule is RULES[rule]
    np.testing.assert_allclose(found.weights / found.weights[0], SEVERAL, rtol=1e-3)


@pytest.mark.parametrize("rule", RULES)
def test_in_groups_of_two_the_weights_come_from_the_log(rule):
    # Whatever the weights, a pair is +-0.7071: only its order tells anything.
    run = made_run(rule, SEVERAL, G=2)
    found = fit(run, reward_log(run, SEVERAL))
    assert found.rule is not None
    np.testing.assert_allclose(found.predicted, run.advantages, atol=1e-3)
    np.testing.assert_allclose(found.weights, SEVERAL, rtol=1e-3)


@pytest.mark.parametrize("rule", [key for key, row in RULES.items() if row.eps])
@pytest.mark.parametrize("eps", [1e-4, 1e-3])
def test_eps_is_found(rule, eps):
    found = fit(made_run(rule, SEVERAL, G=4, eps=eps))
    assert found.eps == pytest.approx(eps, rel=0.05)


def test_a_few_damaged_groups_do_not_hide_the_rule_and_are_listed():
    found = fit(made_run("group_sample", SEVERAL, damaged=3))
    assert found.rule is RULES["group_sample"]
    np.testing.assert_allclose(found.weights, SEVERAL, rtol=1e-3)
    assert sorted(found.misfits.tolist()) == [0, 1, 2]


def test_the_worst_misfit_stands_first():
    found = fit(made_run("group_sample", SEVERAL, damaged=5))
    assert np.all(np.diff(found.off[found.misfits]) <= 0)


def test_noise_fits_no_rule():
    run = made_run("group_sample", SEVERAL)
    noise = np.random.default_rng(1).normal(size=run.present.shape)
    found = fit(with_fields(run, advantages=noise))
    assert found.rule is None
    assert found.tried


def test_the_scale_of_the_weights_is_unknown_without_a_log_and_comes_from_the_logged_reward():
    # Twice all weights give the same advantages but for eps: only the ratio can be told.
    weights = [0.5, 0.1, -0.25]
    run = made_run("group_sample", weights)
    alone = fit(run)
    assert alone.scale == "unknown"
    np.testing.assert_allclose(alone.weights, SEVERAL, rtol=1e-3)
    with_log = fit(run, reward_log(run, weights))
    assert with_log.scale == "log"
    np.testing.assert_allclose(with_log.weights, weights, rtol=1e-3)


def test_eps_is_in_units_of_the_first_weight_until_the_scale_is_known():
    # 1e-4 over weights that are half as large: 2e-4 in units of the first.
    weights = [0.5, 0.1, -0.25]
    run = made_run("group_sample", weights, eps=1e-4)
    assert fit(run).eps == pytest.approx(2e-4, rel=0.02)
    assert fit(run, reward_log(run, weights)).eps == 1e-4


@pytest.mark.parametrize("rule", ["mean_only", "leave_one_out", "apart_sample"])
def test_advantages_that_grow_with_the_weights_tell_their_scale_themselves(rule):
    found = fit(made_run(rule, [0.5, 0.1, -0.25], G=4))
    assert found.scale == "advantages"
    np.testing.assert_allclose(found.weights, [0.5, 0.1, -0.25], rtol=1e-3)


def test_dr_grpo_and_leave_one_out_are_told_apart_by_the_roundness_of_the_weights():
    # In groups of 4 the second is 4/3 of the first: weights of 1 or of 1.333.
    assert fit(made_run("mean_only", [1.0], G=4)).rule is RULES["mean_only"]
    assert fit(made_run("leave_one_out", [1.0], G=4)).rule is RULES["leave_one_out"]


def test_weights_are_rounded_only_as_far_as_they_fit_as_well():
    assert fit(made_run("group_sample", [1.0, 0.2])).weights.tolist() == [1.0, 0.2]
    found = fit(made_run("group_sample", [1.0, 0.123456]))
    assert found.weights[1] == pytest.approx(0.123456, rel=1e-4)


def test_a_term_that_never_differs_within_a_group_has_no_weight_that_advantages_tell():
    run = made_run("group_sample", [1.0, 0.2])
    terms = run.terms.copy()
    terms[..., 1] = 0.5
    run = with_fields(run, terms=terms)
    made = judge(run, RULES["group_sample"], np.array([1.0, 0.2]), 1e-4)
    found = fit(with_fields(run, advantages=made))
    assert found.fixed.tolist() == [True, False]
    assert found.rule is RULES["group_sample"]


def test_terms_that_move_together_are_said_to_be_ambiguous():
    run = made_run("group_sample", [1.0, 0.2])
    terms = run.terms.copy()
    terms[..., 1] = 2 * terms[..., 0]
    run = with_fields(run, terms=terms)
    made = judge(run, RULES["group_sample"], np.array([1.0, 0.2]), 1e-4)
    assert fit(with_fields(run, advantages=made)).ambiguous


def test_totals_of_the_file_tell_the_weights_where_no_advantage_was_logged():
    run = made_run("group_sample", [1.0, 0.2])
    totals = total_rewards(run, np.array([2.0, -0.5]))
    found = fit(with_fields(run, advantages=None, totals=totals))
    assert found.rule is None
    assert found.scale == "totals"
    np.testing.assert_allclose(found.weights, [2.0, -0.5])


def test_the_log_tells_the_weights_where_no_advantage_was_logged():
    run = made_run("group_sample", [1.0, 0.2])
    found = fit(with_fields(run, advantages=None), reward_log(run, [2.0, -0.5]))
    assert found.scale == "log"
    np.testing.assert_allclose(found.weights, [2.0, -0.5], rtol=1e-4)


def test_nothing_to_go_by_is_said_and_every_term_counts_as_one():
    found = fit(with_fields(made_run("group_sample", [1.0, 0.2]), advantages=None))
    assert found.scale == "assumed"
    assert found.weights.tolist() == [1.0, 1.0]
    assert not found.fixed.any()


def test_weights_that_are_given_set_the_scale():
    found = fit(made_run("group_sample", [0.5, 0.1]), weights=[0.5, 0.1])
    assert found.scale == "given"
    assert found.weights.tolist() == [0.5, 0.1]


def test_weights_that_are_given_hold_also_where_advantages_disagree():
    found = fit(made_run("group_sample", [1.0, 0.5]), weights=[1.0, 0.123456])
    assert found.weights.tolist() == [1.0, 0.123456]
    assert found.rule is None or found.misfits.size


@pytest.mark.parametrize("weights", [[1.0], [1.0, np.nan], [1.0, np.inf], [[1.0, 2.0]]])
def test_weights_that_are_no_weights_are_refused(weights):
    with pytest.raises(ScenarioError, match="a finite number for each"):
        fit(made_run("group_sample", [1.0, 0.2]), weights=weights)


def test_tied_groups_are_recounted_and_their_logged_advantages_are_the_residue():
    run = made_run("group_sample", [1.0, 0.2], S=4, P=4)
    terms, advantages = run.terms.copy(), run.advantages.copy()
    terms[3], advantages[3] = [1.0, 0.5], 0.001
    found = fit(with_fields(run, terms=terms, advantages=advantages))
    assert found.tied.tolist() == [q == 3 for q in range(16)]
    assert found.residue == 0.001
    assert 3 not in found.misfits


def test_totals_that_are_equal_but_for_rounding_are_tied():
    # 1 x 0.1 + 2 x 0.2 and 3 x 0.1 + 1 x 0.2 are both 0.5, and differ in the last bit.
    terms = np.array([[[1.0, 2.0], [3.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]])
    run = Run(steps=[0, 0], present=np.ones((2, 2)), names=("a", "b"), terms=terms)
    assert fit(run, weights=[0.1, 0.2]).tied.tolist() == [True, False]


def test_a_missing_reward_adds_nothing_and_a_completion_without_any_is_left_out():
    # Group: 1, blank, 0 with a second term of 0, 1, and nothing at all for the last.
    # Sums with weights 1 and 0.5: 1, 0.5, 0; mean 0.5, sample std 0.5: 1, 0, -1; none for it.
    terms = np.array([[[1.0, 0.0], [np.nan, 1.0], [0.0, 0.0], [np.nan, np.nan]]])
    run = Run(steps=[0], present=np.ones((1, 4)), names=("a", "b"), terms=terms)
    made = judge(run, RULES["group_sample"], np.array([1.0, 0.5]), 0.0)
    np.testing.assert_allclose(made, [[1.0, 0.0, -1.0, 0.0]])
    assert np.isnan(total_rewards(run, np.array([1.0, 0.5]))[0, 3])


def test_a_run_of_many_groups_is_fitted_on_some_and_judged_on_all():
    run = made_run("group_sample", [1.0, 0.2], S=400, P=10, G=4)
    found = fit(run)
    assert found.rule is RULES["group_sample"]
    assert found.off.shape == (4000,)
    assert np.isfinite(found.off).all()


@pytest.mark.parametrize(
    ("name", "weights", "tied", "groups"),
    [("trl-addition", [1.0, 0.2], 122, 1600), ("trl-addition-step-bonus", [1.0, 0.3], 52, 640)],
)
def test_recorded_runs_of_trl(name, weights, tied, groups):
    opened = recorded(name)
    found = fit(opened.run, opened.log)
    assert found.rule is RULES["group_sample"]
    assert found.weights.tolist() == weights
    assert found.scale == "log"
    assert found.eps == 1e-4
    assert found.error < 5e-6
    assert not found.misfits.size
    assert (int(found.tied.sum()), len(found.tied)) == (tied, groups)
    assert 0.0011 < found.residue < 0.0012


def test_a_recorded_run_without_its_log_has_the_ratio_of_the_weights_only():
    found = fit(recorded("trl-addition").run)
    assert found.scale == "unknown"
    assert found.weights.tolist() == [1.0, 0.2]


def test_a_log_of_another_run_does_not_set_the_scale():
    run = made_run("group_sample", [1.0, 0.2])
    rng = np.random.default_rng(3)
    log = RunLog(run.every_step, {"reward": rng.normal(size=len(run.every_step))})
    assert fit(run, log).scale == "unknown"


@pytest.mark.parametrize("weights", [[1.0, 0.2], [1.0, -0.5], [1.0, 0.3, 0.2], [1.0, 0.2, -0.5]])
def test_in_groups_of_two_without_a_log_the_weights_order_every_pair_as_logged(weights):
    found = fit(made_run("group_sample", weights, G=2))
    assert found.rule is RULES["group_sample"]
    assert found.ambiguous
    assert not found.eps_found
    assert len(found.misfits) <= 1


def bfloat16(values):
    """Rounded to eight bits, as training in half precision logs them."""
    bits = values.astype(np.float32).view(np.uint32)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)).astype(float)


ROUNDED = {
    "bfloat16": bfloat16,
    "float16": lambda values: values.astype(np.float16).astype(float),
    "four decimals": lambda values: np.round(values, 4),
    "two decimals": lambda values: np.round(values, 2),
    "four digits": lambda values: np.vectorize(lambda v: float(f"{v:.4g}"))(values),
}


@pytest.mark.parametrize("how", ROUNDED)
@pytest.mark.parametrize("rule", ["group_sample", "mean_only", "apart_sample", "batch_sample"])
def test_advantages_that_were_rounded_still_tell_the_rule_and_no_group_is_a_misfit(rule, how):
    run = made_run(rule, [1.0, 0.3])
    found = fit(with_fields(run, advantages=ROUNDED[how](run.advantages)))
    assert RULES[rule] in (found.rule, *(each.rule for each in found.alike))
    assert not found.misfits.size
    np.testing.assert_allclose(found.weights / found.weights[0], [1.0, 0.3], rtol=0.03)
    assert not found.eps_found or found.eps == 1e-4


def test_eps_is_told_also_where_the_first_weight_is_small():
    # 1e-4 over a first weight of 1e-3: a tenth of it, and little of what is divided by.
    found = fit(made_run("group_sample", [1e-3, 1.0]))
    assert found.eps == pytest.approx(0.1, rel=0.01)
    assert found.error < 1e-5


def test_a_first_weight_of_zero_is_zero_and_the_next_is_the_unit():
    found = fit(made_run("group_sample", [0.0, 0.3, 0.6]))
    np.testing.assert_allclose(found.weights, [0.0, 1.0, 2.0], rtol=1e-4)
    assert found.weights[0] == 0


@pytest.mark.parametrize(
    ("rule", "G", "other"),
    [
        ("leave_one_out", 2, "mean_only"),  # r - r' and half of it: a factor of 2
        ("group_population", 2, "mean_only"),  # of 0 and 1: -1 and 1, whatever is done
    ],
)
def test_rules_that_cannot_be_told_apart_are_named(rule, G, other):
    found = fit(made_run(rule, [1.0], G=G, eps=0.0))
    assert {found.rule.key, *(each.rule.key for each in found.alike)} >= {rule, other}


def test_what_is_summed_tells_the_rounding_of_a_tied_group():
    # 0.1 + 0.2 - 0.3 is 5.6e-17, and 0 + 0 + 0 is 0: the same total.
    terms = np.array([[[0.1, 0.2, -0.3], [0.0, 0.0, 0.0]]])
    run = Run(steps=[0], present=np.ones((1, 2)), names=("a", "b", "c"), terms=terms)
    assert fit(run, weights=[1.0, 1.0, 1.0]).tied.tolist() == [True]
