"""What is said about settings and trainers, and the lists of rows that rules rely on."""

from dataclasses import replace

import numpy as np
import pytest

from grpo_core import STAGES, Choice, Conventions, build_scenario, evaluate
from grpo_core.findings import facts, find
from grpo_core.findings.kl import ESTIMATES
from grpo_core.findings.trainers import RESIDUES, float32_statistics
from grpo_core.kl_curves import kl_curve
from grpo_core.presets import PRESETS
from grpo_core.scenario import as_batch
from tests.needed import with_needed


def findings(scenario):
    return {finding.code: finding for finding in find(evaluate(scenario))}


def text(scenario, code):
    return findings(scenario)[code].text


def of(**choices):
    return Conventions.of(**{"kl": ("k3", {"beta": 0.0}), **choices})


def on_policy(surrogate, **options):
    """Advantages 1 and -1 at ratio 1, one token each."""
    return build_scenario(rewards=[[1, 0]], conventions=of(surrogate=(surrogate, options)))


def moved(step, *, advantage=1, **choices):
    """Two completions of one token; the first has moved by `step` and has the advantage."""
    return build_scenario(
        rewards=[[1, 0] if advantage > 0 else [0, 1]],
        logp_new=[[[-3.0 + step], [-3.0]]],
        logp_old=[[[-3.0], [-3.0]]],
        conventions=of(**choices),
    )


# --- the lists of rows -------------------------------------------------------------------


def wild(stage, row):
    """Ratios far on both sides with advantages of both signs, under one row at its defaults."""
    rng = np.random.default_rng(7)
    old = -rng.uniform(0.01, 4, size=(2, 4, 5))
    scenario = build_scenario(
        rewards=rng.integers(0, 2, (2, 4)) + np.array([[0.0], [0.5]]),
        logp_new=old[:, ::-1],
        logp_old=old,
        conventions=of(),
    )
    scenario = with_needed(scenario, *STAGES[stage].variants[row].needs)
    return scenario.choose(stage, row)


@pytest.mark.parametrize("row", STAGES["surrogate"].variants)
def test_rows_that_stop_tokens_say_so(row):
    evaluation = evaluate(wild("surrogate", row))
    stops = STAGES["surrogate"].variants[row].stops
    assert facts.stopped(evaluation).any() == bool(stops)
    assert (facts.band(evaluation) is not None) == (stops == "band")


@pytest.mark.parametrize("row", STAGES["surrogate"].variants)
def test_rows_without_a_ratio_say_so(row):
    scenario = wild("surrogate", row)
    batch, _ = as_batch(scenario)
    conventions = scenario.conventions
    ratio = conventions.run("ratio", batch)
    advantages = evaluate(scenario).token_advantages
    own = conventions.run("surrogate", batch, ratio, advantages)
    one = replace(ratio, ratio=np.ones_like(ratio.ratio))
    other = conventions.run("surrogate", batch, one, advantages)
    assert np.array_equal(own.value, other.value) == (
        not STAGES["surrogate"].variants[row].reads_ratio
    )


@pytest.mark.parametrize("row", STAGES["advantage"].variants)
def test_advantages_over_the_own_std_are_blind_to_a_group_s_unit(row):
    # Half of the spread in one group alone: what its own std divides stays the same.
    scenario = wild("advantage", row)
    half = scenario.replace(rewards=scenario["rewards"] * [[1.0], [0.5]])
    before, after = (evaluate(each).advantages[1] for each in (scenario, half))
    if row in facts.OWN_STD:
        np.testing.assert_allclose(after, before, rtol=1e-6)
    # What is left out: given ones, those of steps, of counts, and in other units of a group.
    elif np.allclose(after, before, rtol=1e-6):
        assert row in {
            "given", "given_per_token", "process", "best_over_second", "pass_at_k",
            "over_mean", "leave_one_out_std",
        }  # fmt: skip


@pytest.mark.parametrize("row", STAGES["advantage"].variants)
def test_rows_that_compare_nothing_give_a_tied_group_its_score(row):
    scenario = with_needed(
        build_scenario(rewards=[[2.0, 2.0]]), *STAGES["advantage"].variants[row].needs
    )
    evaluation = evaluate(scenario.choose("advantage", row))
    if not (facts.given(evaluation) or facts.by_steps(evaluation)):
        assert np.all(evaluation.advantages == 2.0) == (row in facts.UNCOMPARED)


@pytest.mark.parametrize("row", STAGES["kl"].variants)
def test_estimates_of_a_kl_are_right_in_expectation_near_the_reference(row):
    # Samples of p = 1/2 +- h against q = 1/2: the KL is 2 h^2, which k1, k2 and k3 average to.
    h = 1e-3
    p = np.array([0.5 + h, 0.5 - h])
    value, _ = kl_curve(row, np.log(0.5) - np.log(p))
    assert (np.sum(p * value) == pytest.approx(2 * h * h, rel=1e-2)) == (row in ESTIMATES)


# --- sentences ---------------------------------------------------------------------------


def test_an_edge_is_told_with_the_band_it_makes():
    said = text(on_policy("clip", epsilon_high=1.28), "edge_given_as_offset")
    assert "Epsilon high is 1.28: is that an edge" in said
    assert "the band runs from 0.8 to 2.28 and nothing is stopped" in said
    assert said.endswith("For an edge at 1.28 it has to be 0.28.")
    low = text(on_policy("clip", epsilon_low=0.8), "edge_given_as_offset")
    assert "Epsilon low is 0.8" in low
    assert "from 0.2 to 1.2" in low
    assert low.endswith("For an edge at 0.8 it has to be 0.2.")


@pytest.mark.parametrize("key", PRESETS)
def test_no_preset_is_taken_for_a_mistake_but_trl_s_own_cispo(key):
    scenario = build_scenario(rewards=[[1, 0]], conventions=PRESETS[key].conventions)
    mistakes = {"edge_given_as_offset", "delta_inside_band", "cispo_bound_below_one"}
    assert not mistakes & findings(scenario).keys()


def test_cispo_at_trl_s_default_says_how_small_a_first_step_is():
    scenario = on_policy("cispo", epsilon_high=0.2, bound="absolute")
    said = text(scenario, "cispo_bound_below_one")
    assert "2 tokens (100%) with a larger ratio weigh 0.2" in said
    assert "With a bound of 1 a first step would be 5 times as large" in said
    one = evaluate(scenario.choose("surrogate", epsilon_high=1.0))
    np.testing.assert_allclose(one.gradient, 5 * evaluate(scenario).gradient)


def test_delta_names_the_tokens_that_it_stops():
    # Ratio e^0.1 = 1.105 is in the band, and above a delta of 1.1.
    scenario = moved(0.1, surrogate=("two_sided", {"delta": 1.1}))
    finding = findings(scenario)["delta_inside_band"]
    assert finding.where == (0, 0, 0)
    assert "inside a band that ends at 1.2" in finding.text
    assert "here 1 token" in finding.text
    assert "nothing_clipped_inside_band" not in findings(scenario)


def test_gmpo_bounds_are_told_as_ratios():
    said = text(on_policy("gmpo", log_low=0.2, log_high=0.2), "narrow_log_bounds")
    assert "ratios from 0.8187 to 1.221 are not held" in said
    assert said.endswith("the paper's bound is 0.4, 0.67 to 1.49.")


def test_sapo_s_first_loss_is_explained_and_its_gradient_is_that_of_the_clip():
    scenario = on_policy("sapo")
    said = text(scenario, "sapo_loss_on_policy")
    assert "the loss is −0.04762, and not 0 as with a plain ratio" in said
    assert "2 where that is above 0 and 1.905 where it is below" in said
    clip = evaluate(scenario.choose("surrogate", "clip"))
    np.testing.assert_allclose(evaluate(scenario).gradient, clip.gradient)
    assert "on_policy_loss_not_zero" not in findings(scenario)


@pytest.mark.parametrize("row", ["reinforce", "cispo", "vespo", "dro"])
def test_the_loss_of_log_probabilities_is_not_blamed_on_lengths(row):
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-1.0, -1.0], [-4.0, -4.0]]],
        mask=[[[1, 1], [1, 0]]],
        conventions=of(surrogate=row, aggregation="token_mean"),
    )
    found = findings(scenario)
    label = STAGES["surrogate"].variants[row].label
    assert f"{label} multiplies the advantage by a log-probability" in found[
        "loss_of_log_probabilities"
    ].text  # fmt: skip
    assert "on_policy_loss_not_zero" not in found


def test_the_dual_clip_tells_what_it_holds():
    said = text(moved(2.0, advantage=-1, surrogate="dual_clip"), "dual_clip_active")
    # e^2 = 7.389
    assert "ratio 7.389 with advantage −1 counts −3 instead of −7.389" in said
    assert "dual_clip_active" in findings(
        moved(2.0, advantage=-1, surrogate=("two_sided", {"delta": 3.0}))
    )
    assert "dual_clip_active" not in findings(moved(2.0, surrogate="dual_clip"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Where it is held the gradient is 0"),
        ({"gradient": "k2"}, "What is left of its gradient does not come from the held value."),
        ({"place": "reward"}, "That is all that is taken off its reward or return."),
    ],
)
def test_a_held_kl_says_whether_anything_pulls(options, said):
    kl = ("k3", {"beta": 0.1, "clamp_in": 20.0, "clamp_out": 10.0, **options})
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-6.0], [-1.0]]],
        logp_ref=[[[-1.0], [-1.0]]],
        conventions=of(kl=kl),
    )
    finding = findings(scenario)["kl_clamp_active"]
    # e^5 - 5 - 1 = 142.4
    assert "differ by 5: 10 instead of 142.4" in finding.text
    assert said in finding.text
    pull = evaluate(scenario).kl_gradient[0, 0, 0]
    assert (pull == 0) == ("gradient" not in options)
    assert "kl_clamp_active" not in findings(scenario.choose("kl", beta=0.0))


def test_a_batch_that_a_filter_empties_is_masked_too():
    scenario = build_scenario(rewards=[[1, 1]], conventions=of(tied="drop"))
    said = text(scenario, "fully_masked_batch")
    assert "all 2 tokens have left the loss" in said
    # verl's filter_groups and OpenRLHF's dynamic filtering replace the groups: nothing is 0 / 0.
    assert "samples others in their place" in said
    assert "NaN" not in said
    assert "no token counts" in text(scenario, "nothing_to_learn")


def test_a_batch_of_cut_answers_is_empty_in_trainers_too():
    cut = {"truncated": [[1.0, 1.0]]}
    for tied in ("keep", "drop"):
        conventions = of(truncated="drop", tied=tied)
        scenario = build_scenario(rewards=[[1, 1]], conventions=conventions, **cut)
        assert "in verl and OpenRLHF it is 0 / 0, NaN" in text(scenario, "fully_masked_batch")


def test_the_residue_of_eight_times_0_9_is_what_the_trainers_show():
    # conventions: float32 std 6.4e-8, difference 6e-8: 6e-4 under 1e-4, 0.056 under 1e-6, 0.92
    # under 1e-9.
    figures = findings(build_scenario(rewards=[[0.9] * 8]))["float32_residue"].figures
    assert figures["off"] == pytest.approx(5.96e-8, rel=1e-3)
    assert figures["TRL"] == pytest.approx(6e-4, rel=1e-2)
    assert figures["verl"] == pytest.approx(0.056, rel=1e-2)
    assert figures["OpenRLHF"] == pytest.approx(0.92, rel=1e-2)


@pytest.mark.parametrize("reward", [0.0, 1.0, -3.0, 0.5, 0.25])
@pytest.mark.parametrize("G", [2, 7, 8, 100])
def test_whole_numbers_and_halves_leave_no_residue(reward, G):
    assert "float32_residue" not in findings(build_scenario(rewards=[[reward] * G]))


def test_residues_are_those_of_numpy_s_own_float32():
    rng = np.random.default_rng(3)
    scores = np.repeat(rng.uniform(-2, 2, (50, 1)), 11, axis=1)
    deviation, std = float32_statistics(scores, np.ones(scores.shape, dtype=bool))
    for k, row in enumerate(scores.astype(np.float32)):
        mean = np.float32(0)
        for value in row:  # one after the other
            mean = np.float32(mean + value)
        off = row - np.float32(mean / np.float32(11))
        assert deviation[k] == off[0]
        assert std[k] == pytest.approx(np.sqrt(np.sum(off**2) / 10), rel=1e-6)


def test_trainers_of_residues_differ_in_eps_alone():
    eps = [PRESETS[key].conventions["advantage"].options["eps"] for key in RESIDUES.values()]
    assert eps == [1e-4, 1e-6, 1e-9]
    for key in RESIDUES.values():
        assert PRESETS[key].conventions["advantage"].options["ddof"] == 1


def test_a_split_names_both_losses():
    # Advantages 1 and -1 on 2 and 4 tokens: -(2 - 4) / 6 = 0.3333; each on its own -1 and 1: 0.
    scenario = build_scenario(
        rewards=[[1, 0]],
        mask=[[[1, 1, 0, 0], [1, 1, 1, 1]]],
        conventions=of(aggregation="token_mean"),
    )
    said = text(scenario, "micro_batch_split")
    assert "split in two of 1 completion each, with 2 and 4 tokens" in said
    assert "it would be 0 instead of 0.3333" in said
    assert "A token counts 1.5 times" in said
    assert "0.75 times in the other" in said


def of_lengths(lengths, aggregation, **more):
    """One group whose advantages are given: 1, -1, 1, ..."""
    lengths = np.asarray(lengths)
    return build_scenario(
        **{
            "advantages": [[(-1.0) ** k for k in range(len(lengths))]],
            "mask": [np.arange(max(lengths.max(), 1)) < lengths[:, None]],
            **more,
        },
        conventions=of(advantage="given", aggregation=aggregation),
    )


BY_TOKENS = {"token_mean", "prompt_mean"}


@pytest.mark.parametrize("row", STAGES["aggregation"].variants)
def test_only_a_mean_over_the_tokens_at_hand_depends_on_the_split(row):
    scenario = of_lengths([2, 4], row)
    assert ("micro_batch_split" in findings(scenario)) == (row in BY_TOKENS)


@pytest.mark.parametrize(
    ("aggregation", "lengths", "high", "low"),
    [
        # Halves of 6 and 6 tokens, but single ones of 1 and 5: 12 / (4 * 1) and 12 / (4 * 5).
        ("token_mean", [1, 5, 5, 1], 3.0, 0.6),
        # Three have no halves: 15 / (3 * 1) and 15 / (3 * 9).
        ("token_mean", [1, 5, 9], 5.0, 5 / 9),
        # Halves with 1 and 2 completions that count, of 3: 3 / (2 * 1) and 3 / (2 * 2).
        (("completion_mean", {"empty": "drop"}), [2, 0, 2, 2], 1.5, 0.75),
        # One prompt as halves of 3 and 6 tokens, of 9: 9 / (2 * 3) and 9 / (2 * 6).
        ("prompt_mean", [1, 2, 3, 3], 1.5, 0.75),
    ],
)
def test_whatever_depends_on_the_split_is_found(aggregation, lengths, high, low):
    figures = findings(of_lengths(lengths, aggregation))["micro_batch_split"].figures
    assert figures["factors"] == pytest.approx((high, low))


@pytest.mark.parametrize(
    "aggregation",
    [
        ("token_mean", {"tokens": 12.0}),
        ("completion_sum", {"completions": 4.0, "empty": "drop"}),
        ("constant", {"completions": 4.0, "empty": "drop"}),
        "token_sum",
    ],
)
def test_a_given_divisor_and_a_sum_do_not_depend_on_the_split(aggregation):
    for lengths in ([1, 5, 5, 1], [2, 0, 2, 2], [1, 5, 9]):
        assert "micro_batch_split" not in findings(of_lengths(lengths, aggregation))


def test_single_completions_are_named_with_their_tokens():
    said = text(of_lengths([1, 5, 5, 1], "token_mean"), "micro_batch_split")
    assert "split into single completions, and averaged" in said
    assert "3 times as much as in the whole batch in one of 1 token, 0.6 times in one of 5." in said


def test_split_losses_are_those_of_single_completions_evaluated_alone():
    rng = np.random.default_rng(6)
    advantages, lengths = rng.normal(size=3), [2, 5, 3]
    whole = of_lengths(lengths, "token_mean", advantages=[advantages])
    alone = [
        of_lengths([n], "token_mean", advantages=[[A]])
        for n, A in zip(lengths, advantages, strict=True)
    ]
    figures = findings(whole)["micro_batch_split"].figures
    assert figures["split"] == pytest.approx(np.mean([evaluate(each).loss for each in alone]))


def test_split_losses_are_those_of_the_halves_evaluated_alone():
    rng = np.random.default_rng(5)
    arrays = {
        "advantages": rng.normal(size=(2, 4)),
        "mask": np.arange(6) < rng.integers(1, 7, (2, 4, 1)),
    }
    conventions = of(advantage="given", aggregation="token_mean")
    whole = build_scenario(**arrays, conventions=conventions)
    halves = [
        build_scenario(**{k: a[p : p + 1] for k, a in arrays.items()}, conventions=conventions)
        for p in range(2)
    ]
    figures = findings(whole)["micro_batch_split"].figures
    assert figures["split"] == pytest.approx(np.mean([evaluate(half).loss for half in halves]))


def test_kl_in_the_returns_pushes_a_tied_group():
    kl = ("k1", {"beta": 0.1, "place": "returns"})
    scenario = build_scenario(
        rewards=[[1, 1]],
        logp_new=[[[-1.0], [-1.0]]],
        logp_ref=[[[-2.0], [-1.0]]],
        conventions=of(kl=kl),
    )
    found = findings(scenario)
    assert "the KL is taken off the returns of their tokens" in found["tied_group_pushed"].text
    assert "reach 0.1" in found["tied_group_pushed"].text
    assert "tied_group" not in found


# --- what the new rows leave of older findings -------------------------------------------


@pytest.mark.parametrize("row", ["reinforce", "sapo", "vespo", "dro", "cispo"])
def test_nothing_is_said_to_be_inside_a_band_where_none_clips(row):
    for step in (0.0, 0.1, 1.0):
        assert not {
            code for code in findings(moved(step, surrogate=row)) if "clipped" in code
        }  # fmt: skip


def test_tokens_that_left_the_loss_are_not_counted_as_clipped():
    scenario = moved(1.0).replace(truncated=[[1, 0]])
    assert "clipped_share" in findings(scenario)
    assert "clipped_share" not in findings(scenario.choose("truncated", "drop"))


def test_scores_of_their_own_have_no_ties():
    scenario = build_scenario(rewards=[[1, 1], [0, 0]], conventions=of(advantage="uncompared"))
    assert not {"tied_group", "group_too_small"} & findings(scenario).keys()


@pytest.mark.parametrize("row", ["batch_std", "leave_one_out_std", "over_mean", "pass_at_k"])
def test_pairs_that_no_own_std_divides_are_not_said_to_lose_their_distance(row):
    scenario = build_scenario(rewards=[[5, 3], [1, 0]], conventions=of(advantage=row))
    assert not {"group_of_two", "divided_unevenly"} & findings(scenario).keys()


def test_a_floor_under_the_std_is_part_of_the_divisor():
    # Spread 0.001: std 0.00047, but never below 0.1.
    advantage = ("mean_std", {"floor": 0.1})
    scenario = build_scenario(rewards=[[1, 1, 0.999]], conventions=of(advantage=advantage))
    assert "multiplies differences by 10," in text(scenario, "nearly_tied_group")


def test_whitened_tokens_are_not_said_to_differ_within_a_completion():
    # Whitened the tokens have 0.25 / s and -0.75 / s: a loss, but one advantage a completion, and
    # a mean per completion weighs both alike.
    scenario = build_scenario(
        rewards=[[1, 0]],
        mask=[[[1, 1, 1], [1, 0, 0]]],
        conventions=of(advantage="mean_only", whitening="tokens"),
    )
    assert evaluate(scenario).loss > 0.1
    assert not {"on_policy_loss_of_tokens", "on_policy_loss_not_zero"} & findings(scenario).keys()


def test_a_ratio_that_nothing_reads_does_not_overflow():
    assert "float32_overflow" in findings(
        build_scenario(rewards=[[1, 0]], logp_new=[[[-1.0], [-1.0]]],
                       logp_old=[[[-90.0], [-1.0]]], conventions=of())
    )  # fmt: skip
    reinforce = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-1.0], [-1.0]]],
        logp_old=[[[-90.0], [-1.0]]],
        conventions=of(surrogate="reinforce"),
    )
    assert "float32_overflow" not in findings(reinforce)


def test_the_absolute_difference_is_no_estimate_and_no_constant_pull():
    # Both tokens are on one side of the reference, so that their slopes agree by chance.
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-1.0], [-2.0]]],
        logp_ref=[[[-3.0], [-2.5]]],
        conventions=of(kl=("abs", {"beta": 0.1})),
    )
    assert "kl_same_pull_everywhere" not in findings(scenario)
    assert "kl_same_pull_everywhere" in findings(scenario.choose("kl", "k1", beta=0.1))
    assert "abs" not in ESTIMATES


def test_a_completion_that_left_the_loss_is_not_weighed():
    scenario = build_scenario(
        rewards=[[1, 0, 0]],
        mask=[[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]]],
        truncated=[[0, 0, 1]],
        conventions=of(truncated="drop"),
    )
    assert findings(scenario)["token_weight_by_length"].figures["lengths"] == (1, 2)


def test_step_credit_is_compared_after_whitening():
    scenario = build_scenario(
        rewards=[[0, 1]],
        step_rewards=[[[0.0, 1.0], [1.0, np.nan]]],
        step_ends=[[[0, 1], [0, np.nan]]],
        mask=[[[1, 1], [1, 0]]],
        conventions=Conventions({"advantage": Choice("process"), "whitening": Choice("tokens")}),
    )
    finding = findings(scenario)["credit_sign_changes"]
    outcome = evaluate(scenario.choose("advantage", "mean_std")).token_advantages
    assert finding.figures["before"] == outcome[finding.where]
