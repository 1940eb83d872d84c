"""The page Silent groups: its pictures, sentences and tables say what the core computes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import Conventions, build_scenario, evaluate
from grpo_core.remedies import REMEDIES
from grpo_core.silent import leftover, tied_groups
from grpo_core.terms import Term
from pages._ui import silent_charts, silent_remedies, silent_words
from pages._ui.palette import PALETTES
from pages._ui.rate_tables import batch_rewards
from pages._ui.silent_bonus import bonus_note, bonus_of
from pages._ui.silent_worlds import drawing, silent
from tests.unit.drawable import check_drawable

LIGHT = PALETTES["light"]
NAN = np.nan
REWARDS = [[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 1, 0]]


def batch(rewards=REWARDS, *, beta=0.04, moved=0.1, **arrays):
    """Tokens of unequal number, the policy `moved` above its reference."""
    P, G = np.shape(rewards)
    mask = np.arange(3) <= np.arange(P * G).reshape(P, G, 1) % 3
    new = np.full((P, G, 3), -0.5)
    return build_scenario(
        rewards=rewards, mask=mask, logp_new=new, logp_old=new, logp_ref=new - moved,
        conventions=Conventions.of(kl=("k3", {"beta": beta})), **arrays,
    )  # fmt: skip


def kinds(rates, scenario=None, **arrays):
    rates = np.array(rates, dtype=float)
    return (scenario or batch()).replace(
        reward_chances=np.column_stack([1 - rates, rates]),
        reward_values=np.array([0.0, 1.0]),
        **{key: np.array(float(value)) for key, value in arrays.items()},
    )


def trace(chart, name):
    return next(trace for trace in chart.data if trace.name == name)


def says(words, *parts):
    for part in parts:
        assert part in words, (part, words)


def tied_words(scenario):
    evaluation = evaluate(scenario)
    return silent_words.tied_line(evaluation, leftover(evaluation))


# --- what a tied group contributes -------------------------------------------------------


def test_a_tied_group_has_no_policy_gradient_and_keeps_its_kl():
    # Tokens: 1 + 2 + 3 + 1 of 7, then 2 + 3 + 1 + 2 and 3 + 1 + 2 + 3: 7 of 24 are tied.
    words = tied_words(batch())
    says(words, "group of prompt 0 is tied: 33.3% of the groups and 29.2% of the tokens")
    says(words, "policy gradient is exactly 0", "What stays is the KL term")


def test_the_pull_of_the_kl_is_set_against_the_largest_policy_gradient():
    # A completion of L tokens adds 1 / (12^2 L) to a squared norm. KL in the tied group, lengths
    # 1 2 3 1: 0.04 (1 - exp(-0.1)) sqrt(2.8333) / 12 = 0.000534. Policy in 1 0 1 0, lengths
    # 3 1 2 3: sqrt(2.1667) / 12 = 0.1227. The ratio is 0.435%.
    says(tied_words(batch()), "norm 0.0005339, 0.435% of the largest policy gradient beside it")


def test_without_beta_nothing_stays():
    says(tied_words(batch(beta=0.0)), "With beta = 0 nothing stays")


def test_a_policy_at_its_reference_is_not_pulled():
    says(tied_words(batch(moved=0.0)), "the policy is where the reference is")


def test_no_tied_group_is_an_invitation():
    says(tied_words(batch([[1, 0], [0, 1]])), "No group of this batch is tied", "see what stays")


def test_two_tied_groups_are_named_together():
    says(tied_words(batch([[1, 1], [0, 0], [1, 0]])), "groups of prompts 0 and 1 are tied", "Their")


def test_a_kl_in_the_reward_breaks_the_tie_and_is_said_to():
    scenario = batch().choose("kl", place="reward")
    moved = scenario.replace(
        logp_new=scenario["logp_new"] - 0.1 * np.arange(4.0)[None, :, None] * scenario["mask"]
    )
    moved = moved.replace(logp_old=moved["logp_new"])
    evaluation = evaluate(moved)
    tied = tied_groups(batch_rewards(moved))
    says(silent_words.broken_line(evaluation, tied), "group of prompt 0", "breaks the tie")
    assert silent_words.broken_line(evaluate(batch()), tied) == ""


# --- how often ---------------------------------------------------------------------------


def test_dots_and_curve_are_the_probability_of_a_tie():
    now = silent(kinds([0.1, 0.5], group_size=4))
    # 0.9**4 + 0.1**4 and 2/16
    assert_allclose(now.probability, [0.6562, 0.125])
    chart = silent_charts.rate_chart(now, palette=LIGHT)
    assert_array_equal(trace(chart, "groups of 4").y, now.curve)
    dots = [t for t in chart.data if t.mode == "markers"]
    assert_array_equal(dots[0].y, now.probability)


def test_the_expected_share_is_the_mean_and_has_a_cost():
    words = silent_words.expected_line(silent(kinds([0.1, 0.5], group_size=4)))
    # (0.6562 + 0.125)/2 = 0.3906; 4 x 0.3906; 1/(1 - 0.3906); at 8: (0.4305 + 0.0078)/2
    says(words, "silent in 39.1%", "1.56 are generated for nothing", "1.64 groups for each")
    says(words, "Groups of 8 would be silent in 21.9%")


def test_prompts_that_always_tie_cost_everything():
    says(silent_words.expected_line(silent(kinds([0, 1]))), "100%", "No prompt can have a mixed")


def test_the_batch_is_seen_at_every_size_up_to_its_own():
    now = silent(batch())
    assert now.batch_sizes.tolist() == [2, 3, 4]
    # pairs of 1000: 3 of 6 equal; of 1010: 2 of 6; triples: 1 of 4 and none; whole: none
    assert_allclose(now.batch_ties, [(1 + 3 / 6 + 2 / 6) / 3, (1 + 1 / 4) / 3, 1 / 3])


def test_expected_and_observed_share_stand_side_by_side():
    words = silent_words.observed_line(silent(kinds([0.1, 0.5])))
    # groups of 4: 39.1% expected; sd sqrt(.3906 x .6094 / 3) = .2817; gap .0573
    says(words, "1 of 3 groups is tied, 33.3%", "39.1% would be expected", "0.203 standard dev")
    says(words, "that may be chance")


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        ([[1, 0]], "0 of 1 group is tied"),
        ([[1, 1]], "1 of 1 group is tied"),
        ([[1, 1], [1, 0]], "1 of 2 groups is tied"),
        ([[1, 0], [0, 1]], "0 of 2 groups are tied"),
    ],
)
def test_the_verb_agrees_with_the_groups_counted(rewards, words):
    says(silent_words.observed_line(silent(kinds([0.5], batch(rewards)))), words)


def test_ties_beyond_chance_say_which_way():
    many = batch(np.ones((40, 4)))
    says(silent_words.observed_line(silent(kinds([0.5], many))), "easier or harder than")
    few = batch(np.tile([1, 0, 1, 0], (40, 1)))
    says(silent_words.observed_line(silent(kinds([0.01], few))), "more often of a middle rate")
    says(silent_words.observed_line(silent(kinds([0], batch([[1, 0]])))), "always")


def test_groups_of_unequal_size_are_expected_to_tie_each_at_its_own():
    now = silent(kinds([0.5], batch([[1, 1, NAN, NAN], [1, 0, 1, 0], [1, NAN, NAN, NAN]])))
    assert now.batch_groups == 2
    assert_allclose(now.batch_expected, (0.5 + 0.125) / 2)


def test_a_large_batch_is_counted_at_its_own_size_only():
    now = silent(batch(np.tile([1.0, 0.0], (1200, 8))))
    assert now.batch_sizes.tolist() == [16]
    assert now.batch_ties.tolist() == [0]


# --- dynamic sampling --------------------------------------------------------------------


def test_the_budget_says_how_many_groups_are_wanted():
    drawn = drawing(kinds([0.1, 0.5], group_size=4, budget=64))
    assert drawn.exact.wanted == 16
    # 16 / 0.6094
    says(silent_words.draws_line(drawn), "keep 16 mixed groups of 4, 26.26 are generated")
    assert drawing(kinds([0.5], group_size=512, budget=4)).exact.wanted == 1


def test_closed_form_and_samples_of_the_draws_agree():
    drawn = drawing(kinds([0.05, 0.3, 0.5], group_size=8))
    for name in ("draws", "batches", "kept_share", "kept_observed"):
        assert np.all(getattr(drawn.sampled, name).agrees(getattr(drawn.exact, name))), name
    frame = silent_words.draws_frame(drawn)
    assert all("±" in cell for cell in frame["sampled"])


def test_hard_prompts_become_rare_among_the_groups_kept():
    scenario = kinds([0.1, 0.5], group_size=4)
    now, drawn = silent(scenario), drawing(scenario)
    # 0.3438 and 0.875 of 1.2188
    says(silent_words.selection_line(now, drawn), "rate 0.1 go from 50%", "28.2%", "71.8%")
    says(silent_words.selection_line(now, drawn), "1.64 times as large and keeps its direction")
    says(silent_words.means_line(drawn), "drawn 0.3, of those kept 0.3872")
    kept = trace(silent_charts.kept_chart(now, drawn, palette=LIGHT), "kept")
    assert_allclose(kept.y, 100 * drawn.exact.kept_share)


def test_waiting_without_end_is_said_and_not_sampled():
    now, drawn = silent(kinds([0, 1])), drawing(kinds([0, 1]))
    says(silent_words.draws_line(drawn), "would never end")
    assert drawn.sampled is None
    assert silent_words.selection_line(now, drawn) == silent_words.means_line(drawn) == ""
    rare = drawing(kinds([1e-9]))
    assert rare.sampled is None
    says(silent_words.means_line(rare), "too rare")


def test_an_edit_of_the_batch_does_not_sample_anew():
    assert drawing(kinds([0.2])) is drawing(kinds([0.2], batch([[1, 0, 0, 0]])))


# --- remedies ----------------------------------------------------------------------------


def test_every_remedy_has_a_row_a_line_and_its_place_in_the_picture():
    made = silent_remedies.remedies(evaluate(batch()))
    assert set(made.found) == set(REMEDIES)
    assert len(silent_remedies.remedies_frame(made)) == len(REMEDIES)
    lines = silent_remedies.remedy_lines(made)
    assert len(lines) == len(REMEDIES)
    assert all("Price: " in line for line in lines)
    chart = silent_remedies.remedy_map(made, palette=LIGHT)
    shares = np.array(chart.data[0].z)
    assert shares.shape == (len(REMEDIES), 3)
    assert_allclose(shares.sum(axis=1), 1)


def test_only_refilling_and_a_bonus_end_the_silence():
    made = silent_remedies.remedies(evaluate(batch()))
    teaching = {key: done.teaching for key, done in made.found.items()}
    assert teaching == {
        "nothing": 2, "filter": 2, "refill": 3, "batch": 2, "leave_one_out": 2, "shape": 3
    }  # fmt: skip
    words = silent_remedies.remedies_line(made)
    says(words, "2 of 3 groups teach", "1.5 times the weight", "equal rewards have no order")


def test_the_bonus_trains_itself_at_full_size_whatever_its_weight():
    made = silent_remedies.remedies(evaluate(batch()))
    words = silent_remedies.shape_line(made)
    # Lengths 1, 2, 3, 1: brevity deviates by 1/4, -1/12, -5/12, 1/4, std 0.27639: 1.5076
    says(words, "brevity", "group of prompt 0", "advantages up to 1.51, and 1.51 at a tenth")
    cells = np.array(silent_remedies.remedy_map(made, palette=LIGHT).data[0].text)
    assert "bonus 100%" in cells[list(made.found).index("shape"), 0]


def test_the_examples_own_term_is_the_bonus():
    values = np.zeros((3, 4, 1))
    values[0, 2] = 1
    scenario = batch(terms=(Term("politeness", 0.25),), term_values=values).choose(
        "rewards", "sum_then_normalize"
    )
    bonus = bonus_of(evaluate(scenario))
    assert (bonus.name, bonus.weight, bonus.own) == ("the term 'politeness'", 0.25, True)
    assert_array_equal(bonus.values, values[..., 0])
    says(bonus_note(bonus), "the term 'politeness', 0.25; change it under Shaping")
    # Undivided: 1 - 1/4 of 0.25.
    undivided = silent_remedies.remedies(evaluate(scenario.choose("advantage", "mean_only")))
    assert undivided.found["shape"].advantages[0, 2] == pytest.approx(0.1875)
    says(silent_remedies.shape_line(undivided), "up to 0.188, and 0.0187 at a tenth")


def test_where_lengths_are_equal_confidence_breaks_the_tie():
    scenario = build_scenario(rewards=[[1, 1]], logp_new=[[[-0.5], [-0.1]]])
    bonus = bonus_of(evaluate(scenario))
    says(bonus.name, "confidence")
    assert_allclose(bonus.values, np.exp([[-0.5, -0.1]]))


def test_a_bonus_that_is_equal_breaks_nothing():
    made = silent_remedies.remedies(evaluate(build_scenario(rewards=[[1, 1], [1, 0]])))
    says(silent_remedies.shape_line(made), "breaks no tie")


def test_a_bonus_that_works_against_the_task_or_outdoes_it_counts_as_none_or_all():
    # Sums 1 and 0.25: the bonus has -1/3 of the spread. Sums 1 and 2: it has twice the spread.
    # Both groups push alike, so half of the push is the bonus.
    scenario = batch(
        [[1, 0], [1, 0]],
        terms=(Term("bonus", 1.0),),
        term_values=np.array([[[0.0], [0.25]], [[0.0], [2.0]]]),
    ).choose("rewards", "sum_then_normalize")
    made = silent_remedies.remedies(evaluate(scenario))
    assert_allclose(made.found["shape"].bonus_share, [-1 / 3, 2])
    frame = silent_remedies.remedies_frame(made)
    assert frame.loc[REMEDIES["shape"].label, "of it by the bonus"] == "50%"


def test_the_weight_of_a_made_up_bonus_is_the_examples_own():
    heavy = batch(bonus_weight=np.array(2.0))
    made = silent_remedies.remedies(evaluate(heavy))
    says(silent_remedies.shape_line(made), "weight 2) ends")
    assert silent_remedies.remedies(evaluate(batch())).bonus.weight == 0.1
    assert bonus_note(made.bonus) == ""
    none = silent_remedies.remedies(evaluate(batch(bonus_weight=np.array(0.0))))
    says(silent_remedies.shape_line(none), "has the weight 0, so it breaks no tie")
    far = silent_remedies.remedies(evaluate(batch(bonus_weight=np.array(1e9))))
    assert "bonus_weight is 1000000000.0; wanted" in far.refused["shape"]


@pytest.mark.parametrize(
    ("choice", "largest", "label"),
    [
        # In 1 0 0 0 the first deviates by 3/4; std sqrt(3)/4; of all 7 of 12, sqrt(35)/12.
        (("mean_std", {}), 3 / np.sqrt(3), "std of the group (GRPO)"),
        (("mean_std", {"ddof": 1, "eps": 0.0}), 1.5, "std of the group (GRPO)"),
        (("mean_only", {}), 0.75, "nothing (Dr. GRPO)"),
        (("batch_std", {"ddof": 0, "eps": 0.0}), 9 / np.sqrt(35), "std of the batch"),
        (("leave_one_out", {}), 1.0, "nothing, mean of the others (RLOO)"),
    ],
)
def test_what_a_remedy_leaves_alone_is_the_examples_own_scale(choice, largest, label):
    scenario = batch().choose("advantage", choice[0], **choice[1])
    made = silent_remedies.remedies(evaluate(scenario))
    kept = ("nothing", "filter") if choice[0] == "batch_std" else ("nothing", "filter", "refill")
    for key in kept:
        assert made.found[key].advantages[1, 0] == pytest.approx(largest)
    assert_allclose(made.found["nothing"].advantages, evaluate(scenario).advantages)
    says(silent_remedies.scale_line(made), f"divided by: {label}.")


@pytest.mark.parametrize("choice", [("over_mean", {}), ("mean_std", {"floor": 0.5})])
def test_a_scale_that_is_none_of_the_rows_is_said_to_be_replaced(choice):
    made = silent_remedies.remedies(evaluate(batch().choose("advantage", choice[0], **choice[1])))
    says(silent_remedies.scale_line(made), "so here the std of the group is taken instead")


def test_a_batch_without_ties_needs_no_remedy():
    made = silent_remedies.remedies(evaluate(batch([[1, 0, 1, 0]])))
    says(silent_remedies.remedies_line(made), "Every group of this batch teaches")
    says(silent_remedies.shape_line(made), "No group is tied")


def test_prompts_that_never_mix_cannot_refill_a_batch():
    made = silent_remedies.remedies(evaluate(kinds([0, 1])))
    assert set(made.refused) == {"refill"}
    assert "too rare to wait for" in silent_remedies.remedy_lines(made)[-1]


AWKWARD = {
    "default": batch(),
    "always": kinds([0, 1]),
    "rare": kinds([1e-9, 5e-324, 1]),
    "large": kinds([0.2, 0.5], group_size=512, budget=65536),
    "pairs": kinds([0, 0.2, 0.8], group_size=2, budget=4),
    "graded": batch(
        reward_chances=np.array([[0.5, 0, 0.5], [1, 8, 1]]), reward_values=np.array([0, 0.5, 1])
    ),
    "huge": batch(
        reward_chances=np.array([[0.5, 0, 0.5], [1, 8, 1]]),
        reward_values=np.array([-1e308, 0, 1e308]),
    ),
    "no score": build_scenario(rewards=[[NAN, NAN], [NAN, 1]]),
    "one completion": build_scenario(rewards=[[1.0]]),
    "nothing present": build_scenario(rewards=[[1, 0]], present=[[0, 0]]),
    "huge rewards": build_scenario(rewards=[[1e308, -1e308], [1e308, 1e308]]),
    "minus infinity": build_scenario(rewards=[[1, 1]], logp_new=[[[-np.inf], [-0.1]]]),
    "many": batch(np.tile([1.0, 0.0, 0.0, 1.0], (40, 1))),
}  # fmt: skip


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_batches_and_tables_can_be_drawn_and_described(name):
    scenario = AWKWARD[name]
    evaluation = evaluate(scenario)
    now, drawn, made = silent(scenario), drawing(scenario), silent_remedies.remedies(evaluation)
    for former in (None, silent(kinds([0.3, 0.9], group_size=3))):
        check_drawable(silent_charts.rate_chart(now, palette=LIGHT, former=former))
        check_drawable(silent_charts.size_chart(now, palette=LIGHT, former=former))
    check_drawable(silent_charts.kept_chart(now, drawn, palette=LIGHT))
    check_drawable(silent_remedies.remedy_map(made, palette=LIGHT))
    said = [
        silent_words.tied_line(evaluation, leftover(evaluation)),
        silent_words.broken_line(evaluation, tied_groups(batch_rewards(scenario))),
        silent_words.expected_line(now), silent_words.observed_line(now),
        silent_words.draws_line(drawn), silent_words.selection_line(now, drawn),
        silent_words.means_line(drawn), silent_remedies.remedies_line(made),
        silent_remedies.shape_line(made), *silent_remedies.remedy_lines(made),
    ]  # fmt: skip
    frames = silent_words.draws_frame(drawn), silent_remedies.remedies_frame(made)
    cells = [str(cell) for frame in frames for cell in frame.to_numpy().flat]
    assert not [text for text in (*said, *cells) if "nan" in text.split()]
