"""Each finding is raised by an example and not by a near miss; examples say what they teach."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core import STAGES, Choice, Conventions, build_scenario, evaluate
from grpo_core.clip_cases import clip_cases
from grpo_core.findings import FINDINGS, SEVERITIES, find
from grpo_core.variants import OneOf
from grpo_core.words import cells, groups, listing, number, percent
from pages._ui import numbers
from pages._ui.examples import load_examples

EXAMPLES = {key: example.scenario for key, example in load_examples().items()}
INF = float("inf")


def findings(scenario):
    return {finding.code: finding for finding in find(evaluate(scenario))}


def one_group(rewards, *, conventions=None, **arrays):
    """One prompt, a reward for each completion; per-token arrays as lists of rows."""
    arrays = {key: [rows] for key, rows in arrays.items()}
    return build_scenario(rewards=[rewards], conventions=conventions or Conventions({}), **arrays)


def tokens(new, old=None, ref=None, *, advantage=1.0, conventions=None):
    """Two completions; the first holds the given tokens and the advantage, the second one token.

    With advantages 1 and -1 the filler token has ratio 1 and no KL.
    """
    old, ref = old or new, ref or new
    pad = [0.0] * (len(new) - 1)
    mask = [[1] * len(new), [1] + [0] * len(pad)]
    rewards = [1, 0] if advantage > 0 else [0, 1]
    rows = {"logp_new": new, "logp_old": old, "logp_ref": ref}
    arrays = {key: [row, [-1.0, *pad]] for key, row in rows.items()}
    return one_group(rewards, mask=mask, conventions=conventions, **arrays)


def of(**choices):
    return Conventions.of(**choices)


LENGTHS = {"logp_new": [[-1.0] * 6] * 2, "mask": [[1, 1, 0, 0, 0, 0], [1] * 6]}  # 2 and 6 tokens
THREE_HALVES = {"logp_new": [[-1.0] * 4] * 2, "mask": [[1, 1, 1, 0], [1] * 4]}  # 3 and 4
PULLED = {"logp_new": [[-1.0], [-1.0]], "logp_ref": [[-2.0], [-1.0]]}
KL_IN_REWARD = of(kl=("k1", {"place": "reward", "beta": 0.1}))
GIVEN = of(advantage="given")
NO_KL = of(kl=("k3", {"beta": 0.0}))


@dataclass(frozen=True)
class Case:
    """A scenario that raises a finding, and one that is close to it and does not."""

    raises: object
    near_miss: object


CASES = {
    # All equal; one differs.
    "tied_group": Case(one_group([0.1, 0.1, 0.1]), one_group([0.1, 0.1, 0.2])),
    # A spread of 1/1000 of the largest reward; ten times as much.
    "nearly_tied_group": Case(one_group([1, 1, 0.999]), one_group([1, 1, 0.99])),
    # log pi old - log pi ref is 1 and 0, so the scores are 0.9 and 1; under k1 in the objective
    # the rewards stay equal.
    "tie_broken_by_kl": Case(
        one_group([1, 1], conventions=KL_IN_REWARD, **PULLED),
        one_group([1, 1], conventions=of(kl=("k1", {"beta": 0.1})), **PULLED),
    ),
    "group_of_one": Case(one_group([1, None]), one_group([1, 0])),
    # 5 and 3 are divided by their own spread; without the division the 2 between them shows.
    "group_of_two": Case(
        one_group([5, 3]), one_group([5, 3], conventions=of(advantage="mean_only"))
    ),
    "missing_reward": Case(one_group([1, None, 0]), one_group([1, 0, 0])),
    "empty_completion": Case(
        one_group([1, 0], mask=[[1, 1], [0, 0]]), one_group([1, 0], mask=[[1, 1], [0, 1]])
    ),
    # A float32 mean leaves 1e-3; the same number in a group that is not tied is an advantage.
    "advantages_residue": Case(
        one_group([1, 1], advantages=[1e-3, 1e-3], conventions=GIVEN),
        one_group([1, 0], advantages=[1e-3, 1e-3], conventions=GIVEN),
    ),
    "loss_zero_gradient_not": Case(one_group([1, 0, 0]), one_group([1, 1, 1])),
    # Advantages 1 and -1 on 2 and 6 tokens: loss -(2 - 6) / 8 = 0.5. By completion it is 0.
    "on_policy_loss_not_zero": Case(
        one_group([1, 0], conventions=of(aggregation="token_mean"), **LENGTHS),
        one_group([1, 0], **LENGTHS),
    ),
    # 3 times as long; 4/3 is not worth a sentence.
    "token_weight_by_length": Case(one_group([1, 0], **LENGTHS), one_group([1, 0], **THREE_HALVES)),
    # Loss 0 logged and 0 here, to within 1e-6; or not.
    "logged_loss": Case(
        build_scenario(rewards=[[1, 0]], logged_loss=9e-7),
        build_scenario(rewards=[[1, 0]], logged_loss=1.1e-6),
    ),
    "logged_loss_differs": Case(
        build_scenario(rewards=[[1, 0]], logged_loss=1.1e-6),
        build_scenario(rewards=[[1, 0]], logged_loss=9e-7),
    ),
    # Ratios 1.22 and 1; with rewards 1 and 1 no advantage, with 1 and 0 one to clip.
    "nothing_clipped_no_advantage": Case(
        tokens([-1.0], [-1.2]).replace(rewards=[[1, 1]]), tokens([-1.0], [-1.2])
    ),
    "nothing_to_learn": Case(
        one_group([1, 1], conventions=of(kl=("k3", {"beta": 0.0}))),
        one_group([1, 0], conventions=of(kl=("k3", {"beta": 0.0}))),
    ),
    "nothing_clipped_ratio_one": Case(tokens([-1.0]), tokens([-1.0], [-1.001])),
    # Ratios 1 and e^0.1 = 1.105 are inside 0.8 to 1.2; e^0.2 = 1.221 is not.
    "nothing_clipped_inside_band": Case(tokens([-1.0], [-1.1]), tokens([-1.0], [-1.2])),
    # Ratio e^0.5 = 1.65 is above the band: stopped with A > 0, kept with A < 0.
    "clipped_share": Case(tokens([-1.0], [-1.5]), tokens([-1.0], [-1.5], advantage=-1.0)),
    "outside_band_not_clipped": Case(
        tokens([-1.0], [-1.5], advantage=-1.0), tokens([-1.0], [-1.5])
    ),
    # k3 at d = 4 is 49.6, at d = 0.5 it is 0.149; at d = 1 (0.718) no spike, however lonely.
    "kl_spike": Case(
        tokens([-5.0, -1.0], ref=[-1.0, -0.5]), tokens([-2.0, -1.0], ref=[-1.0, -0.99])
    ),
    # One with the reference elsewhere, one with the reference in the same place.
    "tied_group_kl_pull": Case(
        one_group([1, 1], **PULLED), one_group([1, 1], conventions=NO_KL, **PULLED)
    ),
    # log pi ref is above log pi new: k1 = -0.5, k3 = 0.149.
    "kl_below_zero": Case(
        tokens([-1.0], ref=[-0.5], conventions=of(kl="k1")), tokens([-1.0], ref=[-0.5])
    ),
    # The slope of k1 is 1 at both tokens; in the reward it has none.
    "kl_same_pull_everywhere": Case(
        tokens([-1.0, -2.0], ref=[-0.5, -2.0], conventions=of(kl="k1")),
        tokens([-1.0, -2.0], ref=[-0.5, -2.0], conventions=KL_IN_REWARD),
    ),
    # d = 1 and 0.5: k1 -1.5, k2 0.625, k3 0.867 in all. d = -1 and 0.5: 0.5, 0.625, 0.517.
    "kl_estimates_apart": Case(
        tokens([-2.0, -2.0], ref=[-1.0, -1.5], conventions=of(aggregation="token_mean")),
        tokens([-2.0, -2.0], ref=[-3.0, -1.5], conventions=of(aggregation="token_mean")),
    ),
    "float32_overflow": Case(tokens([-1.0], [-89.8]), tokens([-1.0], [-89.7])),
    "logp_minus_inf": Case(tokens([-INF], [-1.0]), tokens([-1e4], [-1.0])),
    # -1 + 3 (0.5) = 0.5 is above 0; -1 + 2 (0.5) = 0 is not.
    "drift_held": Case(
        build_scenario(rewards=[[1.0]], logp_new=[[[-0.5]]], logp_old=[[[-1.0]]], drift=3.0),
        build_scenario(rewards=[[1.0]], logp_new=[[[-0.5]]], logp_old=[[[-1.0]]], drift=2.0),
    ),
}


def test_every_finding_has_a_case():
    assert CASES.keys() == FINDINGS.keys()


@pytest.mark.parametrize("code", CASES)
def test_example_raises_finding(code):
    assert code in findings(CASES[code].raises)


@pytest.mark.parametrize("code", CASES)
def test_near_miss_does_not_raise_finding(code):
    assert code not in findings(CASES[code].near_miss)


@pytest.mark.parametrize("code", FINDINGS)
def test_row_is_complete(code):
    row = FINDINGS[code]
    assert row.severity in SEVERITIES
    assert row.page in {"Advantages", "Clipping", "KL", "Objective"}
    assert row.question.endswith("?")


# What each shipped example says, no more and no less.
EXAMPLE_CODES = {
    "four-answers": {"clipped_share", "outside_band_not_clipped", "token_weight_by_length"},
    "one-zero-zero-one": {"loss_zero_gradient_not", "nothing_clipped_ratio_one"},
    "tied-and-graded": {"tied_group", "loss_zero_gradient_not", "nothing_clipped_ratio_one"},
    "half-clipped": {"clipped_share", "group_of_two"},
    "every-clip-case": {"clipped_share", "outside_band_not_clipped"},
    "tied-group": {"tied_group", "tied_group_kl_pull", "outside_band_not_clipped"},
    "nearly-tied": {"nearly_tied_group", "clipped_share", "outside_band_not_clipped"},
    "on-policy": {
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
    },
    "token-mean-on-policy": {
        "on_policy_loss_not_zero",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
    },
    "group-of-two": {"group_of_two", "nothing_clipped_inside_band"},
    "long-against-short": {"token_weight_by_length", "nothing_clipped_inside_band"},
    "left-padding": {"nothing_clipped_inside_band"},
    "mask-with-hole": {"clipped_share"},
    "missing-reward": {"missing_reward", "clipped_share"},
    "unequal-groups": {"tied_group", "tied_group_kl_pull", "clipped_share"},
    "kl-spike": {"kl_spike", "kl_estimates_apart", "nothing_clipped_inside_band"},
    "float32-overflow": {"float32_overflow", "outside_band_not_clipped"},
    "sequence-ratio": {"clipped_share", "outside_band_not_clipped"},
    "kl-in-reward": {"tie_broken_by_kl", "kl_below_zero", "nothing_clipped_inside_band"},
    "recorded-batch": {
        "advantages_residue",
        "kl_spike",
        "kl_estimates_apart",
        "logged_loss",
        "clipped_share",
        "outside_band_not_clipped",
        "tied_group_kl_pull",
        "token_weight_by_length",
    },
}


@pytest.mark.parametrize("key", EXAMPLES)
def test_example_says_exactly(key):
    assert findings(EXAMPLES[key]).keys() == EXAMPLE_CODES[key]


def test_every_example_is_listed():
    assert EXAMPLE_CODES.keys() == EXAMPLES.keys()


@pytest.mark.parametrize("key", EXAMPLES)
def test_example_is_introduced_in_one_line_and_one_sentence(key):
    example = load_examples()[key]
    assert len(example.title) <= 34
    assert example.teaches.endswith(".")
    assert ". " not in example.teaches


# --- words -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.00014790312, "0.0001479"),
        (-0.5, "−0.5"),
        (-0.0, "0"),
        (99.996, "100"),
        (23094.01, "23094"),
        (999999.7, "1e6"),
        (5.51e-8, "5.51e−8"),
        (-INF, "−inf"),
    ],
)
def test_numbers_are_rounded_for_reading(value, said):
    assert number(value) == said


@given(st.floats(allow_nan=False))
def test_sentences_and_pages_write_a_number_alike(value):
    rounded = float(f"{value:.3e}")  # at the edge of two notations both are right
    assert number(rounded) == numbers.number(rounded)


def test_shares_are_whole_only_when_they_are():
    assert [percent(share) for share in (0.5, 1 / 3, 1.0, 0.99999)] == [
        "50%",
        "33.3%",
        "100%",
        ">99.9%",
    ]


def test_places_are_named_and_the_rest_counted():
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert groups([(3,)]) == "the group of prompt 3"
    assert groups([(p,) for p in range(9)]) == ("the groups of prompts 0, 1, 2, 3 and 5 more")
    assert cells([(0, 1), (2, 3)]) == "prompt 0, completion 1; prompt 2, completion 3"
    assert cells([(0, 1, 4)], 3) == "prompt 0, completion 1, token 4 and 2 more"


# --- sentences ---------------------------------------------------------------------------


def text(scenario, code):
    return findings(scenario)[code].text


def test_groups_of_one_kind_make_one_finding():
    scenario = build_scenario(rewards=[[1, 1], [1, 0], [2, 2]])
    finding = findings(scenario)["tied_group"]
    assert finding.where == (0,)
    assert finding.figures["places"] == ((0,), (2,))
    assert finding.text.startswith("The groups of prompts 0 and 2 are tied")


def test_errors_come_before_warnings_before_notes():
    scenario = build_scenario(
        rewards=[[1, 1], [1, 0]],
        logp_new=[[[-INF], [-1.0]], [[-1.0], [-1.0]]],
        logp_old=[[[-1.0], [-1.0]], [[-1.5], [-1.0]]],
    )
    severities = [finding.severity for finding in find(evaluate(scenario))]
    assert {"error", "warning", "note"} == set(severities)
    assert severities == sorted(severities, key=list(SEVERITIES).index)


def test_near_tie_says_how_a_difference_became_an_advantage():
    # [1, 1, 0.999]: mean 0.99967, std 0.0004714; 1 / std = 2121; the odd one is 2/3000 below
    # the mean, which times 2121 is 1.414.
    said = text(one_group([1, 1, 0.999]), "nearly_tied_group")
    assert "differ by at most 0.001" in said
    assert "by 2121" in said
    assert "0.0006667 from the mean became an advantage of 1.414" in said


def test_near_tie_says_how_much_of_the_divisor_is_eps():
    # Rewards 0.9 and 0.9001: sample std 7.071e-5; TRL's eps 1e-4 is 58.6% of the sum.
    trl = of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}))
    assert "eps is 58.6% of the divisor" in text(
        one_group([0.9, 0.9001], conventions=trl), "nearly_tied_group"
    )


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e3, 1e200])
def test_near_ties_do_not_depend_on_the_unit_of_the_rewards(scale):
    conventions = of(advantage=("mean_std", {"eps": 0.0}))
    near = one_group([scale, scale, 0.9999 * scale], conventions=conventions)
    clear = one_group([scale, 0.0, 0.0], conventions=conventions)
    assert "nearly_tied_group" in findings(near)
    assert "nearly_tied_group" not in findings(clear)


def test_a_spread_below_a_guarding_eps_is_a_near_tie():
    assert "nearly_tied_group" in findings(one_group([1e-9, 0.0]))


@pytest.mark.parametrize("eps", [0.0, 1e-8, 1e-4, 10.0])
def test_right_and_wrong_is_never_a_near_tie(eps):
    scenario = one_group([1] + [0] * 999, conventions=of(advantage=("mean_std", {"eps": eps})))
    assert "nearly_tied_group" not in findings(scenario)


@pytest.mark.parametrize(("ddof", "size"), [(0, "1"), (1, "0.7071")])
def test_two_completions_get_the_same_advantages_whatever_the_rewards(ddof, size):
    for rewards in ([1, 0], [5, 3], [0.2, -7]):
        scenario = one_group(rewards, conventions=of(advantage=("mean_std", {"ddof": ddof})))
        assert f"gets {size}, the other −{size}" in text(scenario, "group_of_two")


def test_two_nearly_tied_completions_are_not_said_to_get_one():
    trl = of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}))
    assert "group_of_two" not in findings(one_group([0.9, 0.9001], conventions=trl))


def test_a_policy_that_stays_inside_the_band_is_told_how_far_it_has_moved():
    said = text(tokens([-1.0, -1.5], [-1.1, -1.4]), "nothing_clipped_inside_band")
    # e^-0.1 and e^0.1
    assert "every ratio, from 0.9048 to 1.105, is inside the band (0.8 to 1.2)" in said


def test_clipped_share_counts_tokens_and_gradient():
    # Ratio e and 1, advantages 1 and -1, equal weights: e / (e + 1) = 73.1% of the gradient.
    said = text(EXAMPLES["half-clipped"], "clipped_share")
    assert "1 of 2 tokens (50%) is clipped" in said
    assert "73.1% of the policy gradient" in said


def test_dual_clip_is_named():
    conventions = of(surrogate="dual_clip")
    scenario = tokens([-1.0], [-2.5], advantage=-1.0, conventions=conventions)  # e^1.5 = 4.48 > 3
    assert "1 beyond the dual clip" in text(scenario, "clipped_share")
    assert "outside_band_not_clipped" not in findings(scenario)


def test_outside_the_band_names_the_band_to_its_last_digit():
    assert "0.9997 to 1.0004" in text(EXAMPLES["sequence-ratio"], "outside_band_not_clipped")


@pytest.mark.parametrize(
    ("new", "drift", "why"),
    [
        ([-1.0, -1.0], 1.0, "the new policy is still the one that sampled"),
        ([-1.5, -1.0], 0.0, "the drift is 0"),
        ([-1.5, -0.5], 1.0, "what its tokens gained and lost cancels"),  # +0.5 - 0.5
    ],
)
def test_ratio_one_names_its_cause(new, drift, why):
    scenario = build_scenario(
        rewards=[[1.0]],
        logp_new=[[new]],
        logp_old=[[[-1.0, -1.0]]],
        drift=drift,
        conventions=of(ratio="sequence"),
    )
    assert text(scenario, "nothing_clipped_ratio_one").endswith(f"because {why}.")


def test_on_policy_loss_names_the_two_completions_and_the_loss_without_the_effect():
    # 11 and 4 tokens of 35: loss = -(1.2127 (10 - 10) + 0.7276 (4 - 11)) / 35 = 0.1455.
    said = text(EXAMPLES["token-mean-on-policy"], "on_policy_loss_not_zero")
    assert "the loss is 0.1455" in said
    assert "completion 3 with 11 tokens weighs 2.75 times as much as completion 2 with 4" in said
    assert said.endswith("With equal weights the loss would be 0.")


@pytest.mark.parametrize(
    ("aggregation", "said"),
    [
        # 2 and 6 tokens: 1/2 against 1/6 of a completion; everywhere else a token is a token.
        ("completion_mean", "counts 3 times as much as one of the longest"),
        ("token_mean", "counts as much as one of the longest"),
        ("constant", "counts as much as one of the longest"),
    ],
)
def test_token_weight_is_that_of_the_aggregation(aggregation, said):
    scenario = one_group([1, 0], conventions=of(aggregation=aggregation), **LENGTHS)
    assert said in text(scenario, "token_weight_by_length")


def test_kl_spike_is_found_in_a_large_batch_too():
    # 2 x 200 tokens of KL 0.0214 (d = 0.2) against one of 49.6: 85% of the mean KL, 340 times
    # an even share.
    logp = np.full((1, 2, 200), -1.0)
    ref = logp + 0.2
    logp[0, 1, 7], ref[0, 1, 7] = -5.0, -1.0
    scenario = build_scenario(rewards=[[1, 0]], logp_new=logp, logp_ref=ref)
    assert findings(scenario)["kl_spike"].where == (0, 1, 7)


def test_two_large_kls_are_no_spike():
    assert "kl_spike" not in findings(tokens([-3.0, -3.0], ref=[-0.5, -0.4]))


def test_a_spike_beside_tokens_without_kl_is_found():
    assert "kl_spike" in findings(tokens([-5.0, -1.0], ref=[-1.0, -1.0]))


def test_kl_in_float32_overflows_by_its_own_exponential():
    # k3 of d = 89 is e^89 > 3.4e38; k2 is 89^2 / 2.
    scenario = tokens([-90.0], ref=[-1.0])
    assert "difference to the reference is 89" in text(scenario, "float32_overflow")
    assert "float32_overflow" not in findings(scenario.choose("kl", "k2"))


def test_minus_infinity_names_the_policies():
    scenario = tokens([-INF], [-1.0], [-INF])
    assert "(new and reference policy)" in text(scenario, "logp_minus_inf")


def test_no_rewards_are_not_missing_where_advantages_are_given():
    scenario = build_scenario(advantages=[[1.0, -1.0]], conventions=GIVEN)
    assert "missing_reward" not in findings(scenario)


def test_missing_reward_says_what_the_convention_makes_of_it():
    scenario = one_group([1, None, 0])
    assert "left out of the group. Its advantage is 0." in text(scenario, "missing_reward")
    as_zero = scenario.choose("rewards", missing="as_zero")
    assert "counted as reward 0" in text(as_zero, "missing_reward")
    assert "advantage is 0" not in text(as_zero, "missing_reward")


def test_advantages_without_the_mark_of_rounding_are_not_explained_by_it():
    residue = one_group([1, 1], advantages=[1e-3, 1e-3], conventions=GIVEN)
    other = one_group([1, 1], advantages=[1e-3, -1e-3], conventions=GIVEN)
    assert "float32" in text(residue, "advantages_residue")
    assert "float32" not in text(other, "advantages_residue")


def test_residue_says_what_it_does_to_the_loss():
    # Two tokens of one completion each, ratio 1: loss -(0.001 + 0.001) / 2.
    residue = one_group([1, 1], advantages=[1e-3, 1e-3], conventions=GIVEN)
    assert text(residue, "advantages_residue").endswith("They change the loss by −0.001.")


def test_residue_does_not_claim_what_the_given_advantages_leave():
    # Loss 0 with any of these advantages, and 0.1 logged: no advantage explains it.
    scenario = build_scenario(rewards=[[1, 1]], advantages=[[0.3, -0.3]], logged_loss=0.1)
    said = text(scenario, "advantages_residue")
    assert said.endswith("With the given advantages −0.1 would remain.")


def test_of_several_near_ties_the_largest_advantage_is_told():
    trl = of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}))
    scenario = build_scenario(rewards=[[1, 1 + 1e-8], [0.9, 0.9001]], conventions=trl)
    finding = findings(scenario)["nearly_tied_group"]
    assert finding.figures["places"] == ((1,), (0,))
    assert finding.text.endswith("Nearly tied, too: the group of prompt 0.")


# --- the recorded batch ------------------------------------------------------------------


def test_logged_advantages_give_the_trainers_loss():
    scenario = EXAMPLES["recorded-batch"]
    assert evaluate(scenario).loss == pytest.approx(float(scenario["logged_loss"]), abs=1e-6)


def test_own_advantages_miss_the_trainers_loss_by_the_residue_of_the_tied_group():
    trl = EXAMPLES["recorded-batch"].choose("advantage", "mean_std", ddof=1, eps=1e-4)
    found = findings(trl)
    assert "logged_loss_differs" not in found  # the residue explains all of it
    assert "logged_loss_differs" in findings(trl.choose("advantage", ddof=0))
    residue = found["advantages_residue"]
    assert residue.where == (0,)
    assert residue.figures["places"] == ((0,),)
    assert residue.figures["difference"] == pytest.approx(1.479e-4, abs=5e-8)
    assert residue.figures["from_tied"] == pytest.approx(1.48e-4, abs=5e-8)
    assert abs(residue.figures["from_others"]) < 1e-7
    parts = ("from_tied", "from_others", "unexplained")
    assert sum(residue.figures[part] for part in parts) == pytest.approx(
        residue.figures["difference"], rel=1e-9
    )
    assert "from the tied group of prompt 0" in residue.text


# --- what the examples teach -------------------------------------------------------------


def _close(values, expected):
    np.testing.assert_allclose(values, expected, atol=1e-4)


def teaches_four_answers(e):
    assert np.all((e.advantages > 0) == (e.scores > e.mean[:, None]))
    np.testing.assert_array_equal(
        (e.policy_gradient == 0), ~e.valid | e.clipped_low | e.clipped_high
    )


def teaches_one_zero_zero_one(e):
    assert (e.mean[0], e.std[0]) == (0.5, 0.5)
    _close(e.advantages, [[1, -1, -1, 1]])


def teaches_tied_and_graded(e):
    _close(e.advantages, [[0, 0, 0], [-1.2247, 0, 1.2247]])


def teaches_half_clipped(e):
    assert e.ratio[0, 0, 0] == pytest.approx(2.718, abs=5e-4)
    assert e.objective == pytest.approx(0.1, abs=1e-8)
    assert e.gradient[0, 0, 0] == 0


def teaches_every_clip_case(e):
    found = {item.case.key: item for item in clip_cases(e)}
    assert all(item.tokens for item in found.values())
    assert sum(item.tokens for item in found.values()) == 11
    assert (found["clipped_low"].tokens, found["dual_clipped"].tokens) == (1, 1)
    assert percent(found["clipped_low"].gradient) == "3.99%"
    assert percent(found["dual_clipped"].gradient) == "31.9%"


def teaches_tied_group(e):
    assert not e.advantages[1].any()
    assert not e.policy_gradient[1].any()
    assert e.gradient[1].any()


def teaches_nearly_tied(e):
    assert e.advantages[0, 3] == pytest.approx(1.732, abs=5e-4)
    assert np.ptp(e.scores[0]) == pytest.approx(1e-4)
    # "as a whole point would": rewards 0, 0, 0, 1 give the square root of 3.
    whole = evaluate(one_group([0, 0, 0, 1])).advantages[0, 3]
    assert whole == pytest.approx(e.advantages[0, 3], rel=1e-3)


def teaches_on_policy(e):
    assert np.all(e.ratio[e.valid] == 1)
    assert not e.kl.any()
    assert abs(e.loss) < 1e-15
    assert e.metrics["gradient_norm"] > 0.1


def teaches_token_mean_on_policy(e):
    assert np.all(e.ratio[e.valid] == 1)
    assert abs(e.loss) > 0.1
    long, short = 3, 2
    assert e.lengths[0, long] > e.lengths[0, short]
    assert e.advantages[0, long] < 0 < e.advantages[0, short]
    assert e.weight[0, long].sum() > e.weight[0, short].sum()


def teaches_group_of_two(e):
    _close(e.advantages, [[1, -1], [-1, 1], [1, -1]])
    _close(np.ptp(e.scores, axis=1), [0.1, 1, 2])


def teaches_long_against_short(e):
    assert e.lengths.tolist() == [[4, 4, 17, 17]]
    assert e.weight[0, 0, 0] / e.weight[0, 2, 0] == pytest.approx(4.25)


def teaches_left_padding(e):
    assert not e.valid[..., 0].all()
    assert e.valid[..., -1].all()
    right = {}
    for key in ("logp_new", "logp_old", "logp_ref", "mask"):
        rows = e.scenario[key]
        order = np.argsort(~e.valid, axis=-1, kind="stable")
        right[key] = np.take_along_axis(rows, order, axis=-1)
    assert evaluate(e.scenario.replace(**right)).loss == pytest.approx(e.loss, rel=1e-12)


def teaches_mask_with_hole(e):
    hole = ~e.valid & np.logical_or.accumulate(e.valid, axis=-1)
    hole &= np.logical_or.accumulate(e.valid[..., ::-1], axis=-1)[..., ::-1]
    assert hole.sum() == 9  # an arrow, a result and an arrow in three of four answers
    assert not e.gradient[hole].any()


def teaches_missing_reward(e):
    assert e.scored.tolist() == [[True, False, True, True]]
    assert e.advantages[0, 1] == 0
    assert e.mean[0] == pytest.approx(0.3333, abs=5e-5)


def teaches_unequal_groups(e):
    assert e.scored.sum(axis=1).tolist() == [4, 3, 4]
    assert e.tied.tolist() == [False, True, False]
    assert not e.advantages[1].any()


def teaches_kl_spike(e):
    spike = (0, 2, 0)
    assert e.logp_ref[spike] > -1
    assert e.logp_new[spike] < -7
    assert e.kl[spike] * e.weight[spike] > 0.99 * e.mean_kl


def teaches_float32_overflow(e):
    assert e.log_ratio.max() == pytest.approx(91.2)
    assert e.ratio.max() == pytest.approx(4.05e39, rel=5e-3)
    assert e.ratio.max() > np.finfo(np.float32).max


def teaches_sequence_ratio(e):
    stopped = e.clipped_low | e.clipped_high
    whole = stopped.sum(axis=-1)
    assert np.all((whole == 0) | (whole == e.lengths))
    assert np.any(whole == 0)
    assert np.any(whole > 0)
    mean = np.sum(np.where(e.valid, e.logp_new - e.logp_old, 0), axis=-1) / e.lengths
    np.testing.assert_allclose(np.max(e.ratio, axis=-1), np.exp(mean))


def teaches_kl_in_reward(e):
    assert np.ptp(e.scenario["rewards"][0]) == 0
    assert 0 < np.ptp(e.scores[0]) < 0.1
    assert np.abs(e.advantages[0]).max() > 1


def teaches_recorded_batch(e):
    logged = float(e.scenario["logged_loss"])
    assert abs(e.loss - logged) < 1e-6
    own = evaluate(e.scenario.choose("advantage", "mean_std", ddof=1, eps=1e-4))
    assert abs(own.loss - logged) > 1e-4


@pytest.mark.parametrize("key", EXAMPLES)
def test_example_teaches_the_truth(key):
    check = globals()["teaches_" + key.replace("-", "_")]
    check(evaluate(EXAMPLES[key]))


# --- never an exception, never a warning -------------------------------------------------


def option_value(option):
    if isinstance(option.domain, OneOf):
        return st.sampled_from(list(option.domain.words))
    values = [option.default, 0, 0.5, 1, 1e-4, 1.5, 10, 1e6]
    return st.sampled_from([v for v in map(option.domain.coerce, values) if v in option.domain])


def variant_choice(variant):
    options = {option.key: option_value(option) for option in variant.options}
    return st.builds(Choice, st.just(variant.key), st.fixed_dictionaries(options))


CONVENTIONS = st.builds(
    Conventions,
    st.fixed_dictionaries(
        {
            key: st.one_of([variant_choice(variant) for variant in stage.variants.values()])
            for key, stage in STAGES.items()
        }
    ),
)
REWARD = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, float("nan"), 1e308, -1e308, 5e-324, 1 + 1e-12]),
    st.floats(-10, 10),
)
LOGP = st.one_of(
    st.sampled_from([0.0, -1.0, -INF, -1e308, -1e-300, -100.0, -88.8]), st.floats(-20, 0)
)
GIVEN_ADVANTAGE = st.sampled_from([0.0, 1.0, -1.0, 1e-3, 1e308, -1e308, 5e-324])


@st.composite
def scenarios(draw):
    P, G, L = draw(st.tuples(*[st.integers(1, 3)] * 3))

    def array(cell, *shape):
        size = int(np.prod(shape))
        return np.array(draw(st.lists(cell, min_size=size, max_size=size))).reshape(shape)

    logp_new = array(LOGP, P, G, L)
    same = draw(st.booleans())
    arrays = {
        "rewards": array(REWARD, P, G),
        "advantages": array(GIVEN_ADVANTAGE, P, G),
        "logp_new": logp_new,
        "logp_old": logp_new if same else array(LOGP, P, G, L),
        "logp_ref": array(LOGP, P, G, L),
        "mask": array(st.booleans(), P, G, L),
        "present": array(st.booleans(), P, G),
    }
    if draw(st.booleans()):
        arrays["logged_loss"] = draw(st.sampled_from([0.0, 0.1, -1e308]))
    if draw(st.booleans()):
        floats = {k: a for k, a in arrays.items() if k.startswith("logp") or k == "rewards"}
        with np.errstate(all="ignore"):
            single = {k: np.clip(a, -3e38, 3e38).astype(np.float32) for k, a in floats.items()}
        arrays |= single
    drift = draw(st.sampled_from([1.0, 0.0, 0.5, -1.0, 3.0, 1e6]))
    return build_scenario(**arrays, conventions=draw(CONVENTIONS), drift=drift)


def plain(value):
    if isinstance(value, tuple):
        return all(map(plain, value))
    return type(value) in (bool, int, float, str, type(None))


@given(scenario=scenarios())
def test_findings_never_raise_never_warn_and_hold_only_plain_numbers(scenario):
    evaluation = evaluate(scenario)
    for finding in find(evaluation):
        said = finding.text
        assert said.endswith(".")
        assert "undefined" not in said, finding
        assert "nan" not in said, finding
        assert not set("*_`$<>[]") & set(said.replace(">99.9%", "")), said  # nothing to render
        assert all(plain(value) for value in finding.figures.values()), finding
        assert all(0 <= i < n for i, n in zip(finding.where, scenario["mask"].shape, strict=False))
