"""Clip cases: every valid token has one, and shares of tokens are not shares of the gradient."""

from statistics import NormalDist

import numpy as np
import pytest

from grpo_core import Conventions, build_scenario, evaluate
from grpo_core.clip_cases import CASES, clip_cases
from pages._ui.examples import load_examples

EXAMPLES = {key: example.scenario for key, example in load_examples().items()}
NORMAL = NormalDist()


def by_key(evaluation, prompts=None):
    return {item.case.key: item for item in clip_cases(evaluation, prompts)}


@pytest.mark.parametrize("key", EXAMPLES)
def test_the_counts_sum_to_the_valid_tokens_and_the_shares_to_one(key):
    evaluation = evaluate(EXAMPLES[key])
    cases = clip_cases(evaluation)
    assert [item.case.key for item in cases] == list(CASES)
    assert sum(item.tokens for item in cases) == np.sum(evaluation.valid)
    assert sum(item.share for item in cases) == pytest.approx(1)
    pulled = np.any(evaluation.token_advantages)  # else there is no gradient to share
    assert sum(item.gradient for item in cases) == pytest.approx(float(pulled))


@pytest.mark.parametrize("key", EXAMPLES)
def test_the_stopped_cases_are_those_that_trainers_count(key):
    evaluation = evaluate(EXAMPLES[key])
    found, shares = by_key(evaluation), evaluation.metrics
    assert found["clipped_high"].share == pytest.approx(shares["clip_high"])
    assert found["clipped_low"].share == pytest.approx(shares["clip_low"])
    assert found["dual_clipped"].share == pytest.approx(shares["dual_clip"])
    stopped = [item for item in found.values() if item.case.stopped]
    assert sum(item.share for item in stopped) == pytest.approx(shares["clip"])


def test_the_example_of_every_case_counts_each_by_hand():
    # Ratios: 1.105, 1.733 x, 0.607, 0.905 | 1.051, 0.449 x, 1.822, 3.597 x | A = 0 three times.
    found = by_key(evaluate(EXAMPLES["every-clip-case"]))
    assert {key: item.tokens for key, item in found.items()} == {
        "inside": 3,
        "outside": 2,
        "clipped_high": 1,
        "clipped_low": 1,
        "dual_clipped": 1,
        "no_advantage": 3,
    }
    # Equal weights and advantages of equal size: each pulls with its ratio.
    pulls = np.exp([0.1, 0.55, -0.5, -0.1, 0.05, -0.8, 0.6, 1.28])
    shares = pulls / np.sum(pulls)
    assert found["clipped_low"].gradient == pytest.approx(shares[5], abs=1e-12)
    assert found["dual_clipped"].gradient == pytest.approx(shares[7], abs=1e-12)
    assert (round(100 * shares[5], 2), round(100 * shares[7], 1)) == (3.99, 31.9)
    assert found["dual_clipped"].where == (0, 1, 3)


def drifted(sigma, advantage, n=20_001):
    """One completion whose log-ratios are the quantiles of a normal with mean ratio 1."""
    z = np.array([NORMAL.inv_cdf((i + 0.5) / n) for i in range(n)])
    log_ratio = sigma * z - sigma**2 / 2
    old = np.full((1, 1, n), -20.0)
    return evaluate(
        build_scenario(
            rewards=[[0.0]],
            advantages=[[advantage]],
            logp_old=old,
            logp_new=old + log_ratio,
            conventions=Conventions.of(advantage="given"),
        )
    )


# sigma: clipped high and its lost gradient, clipped low and its lost gradient, for a band of 0.2,
# in closed form: shares of a normal below and above the logarithm of an edge.
CLOSED = {
    0.1: (0.0305, 0.0381, 0.0146, 0.0113),
    0.2: (0.1559, 0.2085, 0.1549, 0.1120),
    0.5: (0.2694, 0.4544, 0.4222, 0.2431),
}


@pytest.mark.parametrize("sigma", CLOSED)
def test_lost_gradient_and_clipped_tokens_follow_their_closed_forms(sigma):
    high, lost_high, low, lost_low = CLOSED[sigma]
    up = by_key(drifted(sigma, 1.0))["clipped_high"]
    down = by_key(drifted(sigma, -1.0))["clipped_low"]
    found = (up.share, up.gradient, down.share, down.gradient)
    assert found == pytest.approx((high, lost_high, low, lost_low), abs=3e-4)
    assert up.gradient > up.share
    assert down.gradient < down.share


def test_one_prompt_is_counted_by_itself():
    evaluation = evaluate(EXAMPLES["recorded-batch"])
    alone = [clip_cases(evaluation, p) for p in range(len(evaluation.valid))]
    whole = clip_cases(evaluation)
    for index, item in enumerate(whole):
        assert sum(cases[index].tokens for cases in alone) == item.tokens
        if item.where is not None:
            assert item.where in [cases[index].where for cases in alone]


def test_a_batch_without_tokens_has_no_shares():
    evaluation = evaluate(build_scenario(rewards=[[1, 0]], mask=[[[0], [0]]]))
    assert all((i.tokens, i.share, i.gradient, i.where) == (0, 0, 0, None)
               for i in clip_cases(evaluation))  # fmt: skip


def test_a_ratio_beyond_any_number_has_all_of_the_gradient_and_raises_no_warning():
    found = by_key(
        evaluate(
            build_scenario(
                rewards=[[1, 0]], logp_new=[[[0.0], [-1.0]]], logp_old=[[[-2000.0], [-1.0]]]
            )
        )
    )
    assert found["clipped_high"].gradient == 1


def test_without_a_ratio_each_token_pulls_with_its_advantage():
    # e^0.5 = 1.65 and 1 are the ratios; A = 1 and -1 pull alike, and neither is stopped.
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-0.5, -1.0], [-1.0, -1.0]]],
        logp_old=[[[-1.0, -1.0], [-1.0, -1.0]]],
    )
    found = by_key(evaluate(scenario.choose("surrogate", "reinforce")))
    assert (found["inside"].tokens, found["inside"].gradient) == (4, pytest.approx(1))
    # TRL's CISPO holds the weight at 1.2 and the token keeps its gradient: 1.2 of 1.2 + 3.
    cispo = {"bound": "absolute", "epsilon_high": 1.2}
    found = by_key(evaluate(scenario.choose("surrogate", "cispo", **cispo)))
    assert (found["outside"].tokens, found["clipped_high"].tokens) == (1, 0)
    assert found["outside"].gradient == pytest.approx(1.2 / 4.2, abs=1e-6)


def test_a_token_that_is_not_selected_has_no_part_of_the_gradient():
    scenario = build_scenario(rewards=[[1, 0]], entropy=[[[2, 0], [0, 0]]])
    evaluation = evaluate(scenario.choose("selection", "entropy", share=0.25))
    assert np.count_nonzero(evaluation.policy_gradient) == 1
    assert by_key(evaluation)["inside"].where == (0, 0, 0)
