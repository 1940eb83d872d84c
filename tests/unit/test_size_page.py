"""The group size page: kinds of prompts, its pictures and tables, and what its sentences say."""

import numpy as np
import plotly.graph_objects as go
import pytest
from numpy.testing import assert_allclose

from grpo_core import ScenarioError, build_scenario, evaluate, same_scenario
from pages._ui import size_batch, size_charts, size_curves, size_kinds, size_noise, size_words
from pages._ui.examples import load_examples
from pages._ui.palette import PALETTES
from pages._ui.size_tables import batches_frame, kinds_frame, noise_frame

EXAMPLES = load_examples()
LIGHT = PALETTES["light"]
PLAIN = build_scenario(rewards=[[1, 0, 0, 0], [1, 1, 0, 0]])
# Answer probabilities .4 .3 .2 .1; answers 1 and 3 are right: a true value of 0.4.
FOUR = np.log([[4.0, 3.0, 2.0, 1.0]])
RIGHT = np.array([[0.0, 1.0, 0.0, 1.0]])


def view(G=8, budget=256, logits=FOUR, rewards=RIGHT):
    policy = size_kinds.small_policy(PLAIN.replace(answer_logits=logits, answer_rewards=rewards))
    return size_kinds.size_view(policy, G, budget)


def default_view(G=8, budget=256):
    return size_kinds.size_view(size_kinds.small_policy(PLAIN), G, budget)


# --- kinds of prompts --------------------------------------------------------------------


def test_an_example_without_tables_gets_several_right_and_several_wrong_answers():
    made = size_kinds.with_answers(PLAIN)
    assert size_kinds.with_answers(made) is made
    assert np.all(np.sum(made["answer_rewards"] > 0, axis=1) >= 2)
    assert np.all(np.sum(made["answer_rewards"] == 0, axis=1) >= 2)


def test_tables_that_are_there_are_kept_and_a_missing_one_is_made_to_fit():
    given = PLAIN.replace(answer_logits=np.zeros((2, 6)))
    made = size_kinds.with_answers(given)
    assert made["answer_logits"].tolist() == given["answer_logits"].tolist()
    assert made["answer_rewards"].tolist() == [[0, 1, 0, 1, 0, 1]] * 2


def test_answers_score_as_the_kinds_of_prompts_that_an_example_has():
    rates = np.array([0.05, 0.5, 0.9])
    chances = np.column_stack([1 - rates, rates])
    given = PLAIN.replace(reward_chances=chances, reward_values=np.array([0.0, 2.0]))
    policy = size_kinds.small_policy(given)
    assert_allclose(policy.value, 2 * rates, atol=0.01)  # logits are rounded to two digits


def test_kinds_of_rate_0_and_1_have_finite_logits():
    given = PLAIN.replace(reward_chances=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    made = size_kinds.with_answers(given)
    assert np.all(np.isfinite(made["answer_logits"]))
    assert_allclose(size_kinds.small_policy(given).value, [0, 1, 0], atol=1e-5)


def test_a_new_kind_is_like_the_last_and_a_new_answer_is_worth_nothing():
    made = size_kinds.resized(PLAIN, 5, 6)
    assert made["answer_logits"].shape == made["answer_rewards"].shape == (5, 6)
    assert made["answer_logits"][4].tolist() == made["answer_logits"][3].tolist()
    assert not np.any(made["answer_rewards"][:, 4:])
    assert size_kinds.resized(made, 4, 4)["answer_logits"].shape == (4, 4)


def test_kinds_elsewhere_keep_their_number():
    given = EXAMPLES["budget-of-samples"].scenario
    made = size_kinds.resized(given, 6, 4)
    assert made["answer_logits"].shape == (6, 4)
    assert made["reward_chances"].shape == given["reward_chances"].shape


@pytest.mark.parametrize(("kinds", "answers"), [(0, 4), (65, 4), (4, 1), (4, 13)])
def test_sizes_beyond_a_table_are_refused(kinds, answers):
    with pytest.raises(ScenarioError, match="a table holds"):
        size_kinds.resized(PLAIN, kinds, answers)


def test_logits_of_any_size_are_a_policy():
    found = view(logits=np.array([[1e308, 1e308, -1e308, 0.0]])).policy
    assert_allclose(found.probabilities, [[0.5, 0.5, 0, 0]])
    shifted = view(logits=FOUR + 5000).policy
    assert_allclose(shifted.probabilities, [[0.4, 0.3, 0.2, 0.1]], rtol=1e-9)


# --- numbers -----------------------------------------------------------------------------


def test_known_noise_of_one_sample():
    # Reference values: no baseline .252, leave-one-out .1417 at G = 8, true value .108.
    noise = size_noise.measured(view(), "variance")
    assert_allclose(
        [noise[key] for key in ("none", "leave_one_out", "true_value", "best_constant")],
        [0.252, 0.1417, 0.108, 0.1057],
        atol=5e-5,
    )


@pytest.mark.parametrize("G", [2, 3, 8, 64])
def test_the_own_answer_in_the_mean_changes_the_size_and_not_the_signal(G):
    found = view(G)
    noise, signal = (size_noise.measured(found, measure) for measure in size_noise.MEASURES)
    assert noise["own_included"] == pytest.approx(noise["leave_one_out"] * ((G - 1) / G) ** 2)
    assert signal["own_included"] == pytest.approx(signal["leave_one_out"])


@pytest.mark.parametrize("G", [2, 8])
def test_simulated_noise_agrees_with_the_closed_form(G):
    found = default_view(G)
    means, errors = size_noise.sampled_variance(found, size_kinds.sampled_baselines(found))
    for key, exact in size_noise.measured(found, "variance").items():
        assert abs(means[key] - exact) < 4 * errors[key], key


def test_simulated_batches_agree_with_the_closed_form():
    found = default_view()
    batches = size_kinds.sampled_sizes(found)
    assert len(batches) >= 4
    at = {int(G): index for index, G in enumerate(found.curve.sizes)}
    for G, held in batches.items():
        assert abs(held.fresh - found.curve.fresh[at[G]]) < 4 * held.fresh_error, G
        assert abs(held.same - found.curve.same[at[G]]) < 4 * held.same_error, G


def test_too_many_different_rewards_are_refused_in_words_and_the_rest_is_there():
    rewards = np.arange(8.0)[None] / 8
    found = view(G=64, logits=np.zeros((1, 8)), rewards=rewards)
    assert found.noise is None
    assert "different rewards" in found.refusal
    assert size_kinds.sampled_baselines(found) is None
    assert np.isfinite(found.curve.fresh).all()


def test_what_would_take_too_long_is_not_simulated():
    found = default_view(G=512, budget=65_536)
    assert size_kinds.sampled_sizes(found) == {}


# --- sentences ---------------------------------------------------------------------------


def test_pairs_are_noisier_than_no_baseline_for_the_known_policy():
    said = size_words.pair_line(view(2))
    assert "0.344 against 0.252" in said
    assert "GRPO is leave-one-out itself" in said


def test_the_true_value_is_not_the_best_baseline():
    # best constant 0.4571 has 2.1% less noise than the value 0.4: .1057 against .108
    assert "the constant 0.457 has 2.12% less noise than its true value 0.4" in (
        size_words.best_line(view())
    )


def test_a_true_value_can_be_worse_than_no_baseline():
    # Two answers at p = 0.9: none p q^3 = .0009, value p q (1 - 4 p q) = .0576.
    logits = np.log([[0.1, 0.9]])
    said = size_words.best_line(view(logits=logits, rewards=np.array([[0.0, 1.0]])))
    assert "worse than no baseline" in said


def test_two_answers_are_named_as_misleading():
    two = size_words.std_line(view(logits=np.zeros((1, 2)), rewards=np.array([[0.0, 1.0]])))
    assert "Add answers" in two
    assert "Two answers mislead" in size_words.std_line(view())


def test_the_factor_is_no_bias():
    assert "(G − 1)/G = 0.875" in size_words.factor_line(view())
    assert "no bias" in size_words.factor_line(view())


@pytest.mark.parametrize("G", [2, 8, 100])
def test_the_budget_sentence_names_the_best_sizes(G):
    found = default_view(G)
    said = size_words.budget_line(found)
    assert f"G = {found.curve.best_fresh} has the least noise" in said
    assert f"best G = {found.curve.best_same}" in said


def test_kinds_that_are_alike_make_the_choice_of_prompts_no_noise():
    assert "All kinds pull the same way" in size_words.budget_line(view())


def test_rewards_that_are_all_equal_have_no_noise_in_any_sentence():
    found = view(rewards=np.ones((1, 4)))
    said = [
        size_words.value_line(found), size_words.price_line(found), size_words.pair_line(found),
        size_words.best_line(found), size_words.std_line(found), size_words.signal_line(found),
        size_words.budget_line(found), *size_words.price_lines(found),
    ]  # fmt: skip
    assert "nan" not in " ".join(said)
    assert "No reward varies" in said[0]


def test_the_std_is_the_examples_own():
    # At G = 2 and rewards of 0 and 1 a mixed group has std 1/2, or sqrt(1/2) by the sample
    # formula: advantages 1 or 0.7071, so the pull is smaller by that, and by eps.
    def factor(scenario):
        policy = size_kinds.small_policy(scenario)
        found = size_kinds.size_view(policy, 2, 256, **size_kinds.std_of(scenario))
        return found.noise["over_std"].factor

    plain = factor(PLAIN)
    sample = factor(PLAIN.choose("advantage", "mean_std", ddof=1))
    assert_allclose(sample / plain, np.sqrt(1 / 2), rtol=1e-6)
    guarded = factor(PLAIN.choose("advantage", "mean_std", eps=0.5))
    assert_allclose(guarded / plain, 0.5, rtol=1e-6)
    assert size_kinds.std_of(PLAIN.choose("advantage", "mean_only")) == {}


def test_a_group_that_is_large_enough_for_the_rarest_kind_is_named():
    # p = .4: 1 - .6^2 - .4^2 = .48 at G = 2, above one half from G = 3 on.
    assert "it takes G = 3" in size_words.signal_line(view(2))


# --- the batch on the screen ---------------------------------------------------------------


def test_parts_of_a_group_say_how_often_smaller_ones_tie():
    # One right of four: of the six pairs three hold it, so half are mixed. Two right: 4 of 6.
    share, exact = size_batch.signal_share(evaluate(PLAIN), 2)
    assert share == pytest.approx((3 / 6 + 4 / 6) / 2)
    assert exact


def test_half_of_an_odd_number_of_prompts_is_whole():
    three = evaluate(build_scenario(rewards=[[1, 0], [1, 1], [0, 1]]))
    frame = size_batch.splits_frame(three)
    row = frame.loc["larger groups, fewer prompts"]
    assert row[["prompts × group", "samples"]].tolist() == ["1 × 4", "4"]
    assert frame.loc["as it is", "prompts × group"] == "3 × 2"


def test_of_tied_groups_nobody_knows_what_more_answers_would_score():
    tied = evaluate(build_scenario(rewards=[[1, 1], [1, 0]]))
    assert size_batch.signal_share(tied, 4) == (0.5, False)
    assert "at least" in size_batch.splits_frame(tied)["groups with a signal"].iloc[-1]
    assert size_batch.signal_share(tied, 1) == (0.0, True)


def test_the_standard_error_is_the_sample_formula():
    # 1, 0, 0, 0: sample variance 1/4, over 4, square root: 1/4.
    assert size_batch.standard_error(np.array([1.0, 0, 0, 0])) == pytest.approx(0.25)
    assert "0.25 ± 0.5" in size_batch.prompt_line(evaluate(PLAIN), 0)


@pytest.mark.parametrize("rewards", [[[1.0]], [[np.nan, np.nan]], [[1e308, -1e308]]])
def test_odd_groups_are_described(rewards):
    found = evaluate(build_scenario(rewards=rewards))
    said = [size_batch.batch_line(found), size_batch.prompt_line(found, 0)]
    assert "nan" not in " ".join(said)
    size_batch.splits_frame(found)


# --- pictures and tables -------------------------------------------------------------------


VIEWS = {
    "default": default_view(),
    "pair": default_view(2),
    "one kind": view(),
    "no noise": view(rewards=np.ones((1, 4))),
    "graded": view(rewards=np.array([[0.0, 0.5, -1.0, 2.0]])),
    "many kinds": view(logits=np.zeros((64, 3)), rewards=np.tile([0.0, 1, 1], (64, 1))),
}


def drawn(found, palette, former):
    baselines, batches = size_kinds.sampled_baselines(found), size_kinds.sampled_sizes(found)
    yield size_charts.value_chart(found, palette=palette, former=former)
    for measure in size_noise.MEASURES:
        for kind in (None, 0):
            yield size_noise.noise_bars(
                found, baselines, measure=measure, palette=palette, kind=kind, former=former
            )
    yield size_curves.signal_curves(found, palette=palette, former=former)
    yield size_curves.budget_chart(found, batches, palette=palette, former=former)
    yield size_curves.budget_chart(found, {}, palette=palette)


@pytest.mark.parametrize("key", VIEWS)
@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_every_figure_is_one_that_plotly_knows_and_says_its_numbers(key, palette):
    for former in (None, VIEWS["default"]):
        for chart in drawn(VIEWS[key], palette, former):
            go.Figure(chart.to_dict())
            assert len(chart.layout.meta["alt"]) > 30
            assert "nan" not in chart.layout.meta["alt"]


@pytest.mark.parametrize("key", EXAMPLES)
def test_the_batch_of_every_example_can_be_drawn(key):
    found = evaluate(EXAMPLES[key].scenario)
    chart = size_batch.group_means(found, palette=LIGHT, former=found, prompt=0)
    go.Figure(chart.to_dict())


def test_tables_have_a_row_for_each_thing_and_show_what_it_was_before():
    found, before = default_view(8), default_view(2)
    assert len(kinds_frame(found, before)) == 4
    assert "→" in kinds_frame(found, before)["signal"].iloc[0]
    assert len(noise_frame(found, size_kinds.sampled_baselines(found))) == len(found.noise)
    batches = size_kinds.sampled_sizes(found)
    assert batches_frame(found, batches).index.tolist() == [str(G) for G in batches]
    assert batches_frame(found, {}).empty


def test_nothing_of_this_changes_the_scenario():
    copy = build_scenario(rewards=[[1, 0, 0, 0], [1, 1, 0, 0]])
    size_kinds.with_answers(PLAIN)
    assert same_scenario(PLAIN, copy)
