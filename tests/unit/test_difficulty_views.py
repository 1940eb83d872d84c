"""The page Difficulty: its pictures, sentences and tables say what the core computes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import build_scenario
from grpo_core.difficulty import difficulty
from grpo_core.prompt_rewards import prompts_from_rates
from pages._ui import difficulty_tables, difficulty_words, rate_tables
from pages._ui.difficulty_bars import MOST, prompt_bars
from pages._ui.difficulty_charts import advantage_chart, way_color, weight_chart
from pages._ui.difficulty_worlds import scale_of, weighing
from pages._ui.numbers import MISSING
from pages._ui.palette import PALETTES
from tests.unit.drawable import check_drawable

LIGHT = PALETTES["light"]
BATCH = build_scenario(rewards=[[1, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]])


def kinds(rates, scenario=BATCH, **arrays):
    rates = np.array(rates, dtype=float)
    return scenario.replace(
        reward_chances=np.column_stack([1 - rates, rates]),
        reward_values=np.array([0.0, 1.0]),
        **{key: np.array(float(value)) for key, value in arrays.items()},
    )


def graded(**arrays):
    """Mean 0.5 three times: right or wrong, mostly middling, and all three alike."""
    own = {
        "reward_chances": np.array([[0.5, 0, 0.5], [0.1, 0.8, 0.1], [1, 1, 1]]),
        "reward_values": np.array([0, 0.5, 1]),
    }
    return BATCH.replace(**{**own, **arrays})


def trace(chart, name):
    return next(trace for trace in chart.data if trace.name == name)


def says(words, *parts):
    for part in parts:
        assert part in words, (part, words)


# --- what is drawn -----------------------------------------------------------------------


def test_dots_and_curve_are_the_closed_form_of_the_chosen_way():
    now = weighing(kinds([0.01, 0.5], group_size=8))
    exact = difficulty(prompts_from_rates([0.01, 0.5]), 8, "group", ddof=0, eps=1e-8)
    assert_array_equal(now.weights, exact.prompt_weight)
    chart = weight_chart(now, palette=LIGHT)
    assert_array_equal(trace(chart, "table").y, exact.prompt_weight)
    curve = trace(chart, "std of the group (ddof 0)")
    assert curve.line.width == 3
    assert_allclose(curve.y[2], exact.prompt_weight[0])  # at rate 0.01 of steps of 0.005


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        (("mean_std", {"ddof": 0}), "std of the group (ddof 0)"),
        (("mean_std", {"ddof": 1}), "std of the group (ddof 1)"),
        (("mean_only", {}), "nothing"),
    ],
)
def test_the_examples_own_advantage_is_the_way_that_is_chosen(choice, name):
    variant, options = choice
    now = weighing(kinds([0.1, 0.5], BATCH.choose("advantage", variant, **options)))
    assert [way.name for way in now.ways if way.chosen] == [name]
    assert scale_of(BATCH.choose("advantage", variant, **options))[1]


def test_advantages_of_another_kind_are_said_to_be_replaced():
    given = BATCH.replace(advantages=np.zeros((3, 4))).choose("advantage", "given")
    _, followed = scale_of(given)
    assert not followed
    says(difficulty_words.followed_line(given, followed), "given", "std of the group instead")
    assert difficulty_words.followed_line(BATCH, True) == ""


def test_one_divisor_for_all_gives_every_rate_the_same_weight():
    now = weighing(kinds(np.linspace(0.05, 0.95, 19), group_size=8))
    batch = next(way for way in now.ways if way.name == "std of the batch")
    spread = np.ptp(batch.curve.prompt_weight) / np.mean(batch.curve.prompt_weight)
    assert spread < 0.01
    assert np.ptp(now.ways[0].curve.prompt_weight) > 0.5


def test_the_limit_for_endless_groups_leaves_the_picture():
    chart = weight_chart(weighing(kinds([0.01, 0.5], group_size=8)), palette=LIGHT)
    limit = trace(chart, "1/√(p(1 − p)), endless groups")
    assert np.nanmax(limit.y) <= chart.layout.yaxis.range[1]
    assert np.isnan(limit.y[0])


def test_graded_rewards_have_dots_of_every_way_and_no_curve():
    now = weighing(graded())
    assert now.graded
    assert [way.curve for way in now.ways] == [None] * 4
    chart = weight_chart(now, palette=LIGHT)
    assert not [t for t in chart.data if t.mode == "lines"]
    batch = next(way for way in now.ways if way.name == "std of the batch")
    assert batch.exact is None  # no closed form: sampled
    assert len(trace(chart, "std of the batch").x) == 3


def test_groups_too_large_to_enumerate_are_sampled():
    chances = np.ones((2, 8))
    now = weighing(
        BATCH.replace(
            reward_chances=chances, reward_values=np.arange(8.0), group_size=np.array(64.0)
        )
    )
    assert now.chosen.exact is None
    assert np.all(np.isfinite(now.weights))
    says(difficulty_words.agreement_line(now), "Sampled only")
    says(difficulty_words.story_line(now), "too many to enumerate")
    assert "weight sampled" in difficulty_tables.comparison_frame(now).columns


def test_every_closed_form_of_the_default_table_agrees_with_its_samples():
    now = weighing(BATCH)
    exact, seen = now.chosen.exact, now.sampled
    for name in ("prompt_weight", "expected_advantage", "silent"):
        assert np.all(getattr(seen, name).agrees(getattr(exact, name)))
    says(difficulty_words.agreement_line(now), "4,000 batches", "within four standard errors")


def test_the_seed_moves_the_samples_and_nothing_else():
    one, other = (weighing(kinds([0.1, 0.5], seed=seed)) for seed in (0, 1))
    assert_array_equal(one.weights, other.weights)
    assert np.all(one.sampled.prompt_weight.mean != other.sampled.prompt_weight.mean)


def test_the_former_state_is_a_ghost_only_where_it_differs():
    now, other = (weighing(kinds([0.1, 0.5], group_size=G)) for G in (8, 4))
    names = [t.name for t in weight_chart(now, palette=LIGHT, former=other, pinned=other).data]
    assert {"before", "A (pinned)"} <= set(names)
    assert "before" not in [t.name for t in weight_chart(now, palette=LIGHT, former=now).data]
    assert "before" in [t.name for t in advantage_chart(now, palette=LIGHT, former=other).data]


def test_every_way_has_a_colour_of_its_own_that_means_no_sign():
    now = weighing(BATCH)
    colors = [way_color(now, way, LIGHT) for way in now.ways]
    assert len(set(colors)) == 4
    assert not {LIGHT.positive, LIGHT.negative} & set(colors)


AWKWARD = {
    "always": kinds([0, 1]),
    "rare": kinds([1e-9, 1 - 1e-9, 5e-324]),
    "one": kinds([0.3]),
    "pairs": kinds([0, 0.2, 0.8], group_size=2),
    "large": kinds([0.2, 0.5], group_size=512),
    "eps": kinds([0.2, 0.5], BATCH.choose("advantage", eps=1e6)),
    "graded": graded(),
    "equal values": graded(reward_values=np.ones(3)),
    "huge values": graded(reward_values=np.array([-1e308, 0, 1e308])),
    "float32": graded(reward_values=np.float32([0, 0.5, 3e38])),
    "all tied": kinds([0.5], build_scenario(rewards=[[1, 1], [0, 0]])),
    "no score": kinds([0.5], build_scenario(rewards=[[np.nan, np.nan]])),
    "one completion": kinds([0.5], build_scenario(rewards=[[1.0]])),
    "many": kinds([0.5], build_scenario(rewards=np.tile([1.0, 0.0], (40, 2)))),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_tables_can_be_drawn_and_described(name):
    scenario = AWKWARD[name]
    now, other = weighing(scenario), weighing(BATCH)
    for former in (None, other):
        check_drawable(weight_chart(now, palette=LIGHT, former=former, pinned=former))
        check_drawable(advantage_chart(now, palette=LIGHT, former=former))
    check_drawable(weight_chart(other, palette=LIGHT, former=now, pinned=now))
    shares = difficulty_tables.batch_shares(scenario)
    notes = difficulty_tables.mean_notes(scenario)
    check_drawable(prompt_bars(shares, palette=LIGHT, title="share", notes=notes))
    said = [
        difficulty_words.weight_line(now), difficulty_words.story_line(now),
        difficulty_words.speed_line(now), difficulty_words.expected_line(now),
        difficulty_words.agreement_line(now), difficulty_words.shares_line(shares),
        difficulty_words.sizes_line(now),
    ]  # fmt: skip
    frames = [
        difficulty_tables.comparison_frame(now), difficulty_tables.options_frame(scenario),
        difficulty_tables.sizes_frame(now),
    ]  # fmt: skip
    cells = [str(cell) for frame in frames for cell in frame.to_numpy().flat]
    assert not [text for text in (*said, *cells) if "nan" in text.split()]


# --- what is said ------------------------------------------------------------------------


def test_hard_and_easy_prompts_count_more_by_a_factor():
    # c(0.01) = 2.609 and c(0.5) = 1.856 in groups of 8
    words = difficulty_words.weight_line(weighing(kinds([0.01, 0.5, 0.99], group_size=8)))
    says(words, "0.01 or 0.99 count 1.41 times", "2.609 against 1.856", "√(G − 1) = 2.646")


@pytest.mark.parametrize(("G", "weight"), [(2, "1."), (3, "1.414.")])
def test_groups_of_two_and_three_weigh_all_alike(G, weight):
    words = difficulty_words.weight_line(weighing(kinds([0.01, 0.1, 0.5], group_size=G)))
    says(words, f"counts the same, {weight}", "no weighting by difficulty at all", "groups of 4")


def test_the_cap_of_the_sample_std_is_smaller():
    scenario = kinds([0.01, 0.5], BATCH.choose("advantage", ddof=1), group_size=8)
    # 7/sqrt(8)
    says(difficulty_words.weight_line(weighing(scenario)), "(G − 1)/√G = 2.475")


def test_without_a_division_all_count_alike():
    now = weighing(kinds([0.01, 0.5], BATCH.choose("advantage", "mean_only"), group_size=8))
    says(difficulty_words.weight_line(now), "the same, 0.875", "Nothing is divided by")
    says(difficulty_words.story_line(now), "2.609 at rate 0.01", "not the 10.05")


def test_the_popular_story_is_set_right():
    words = difficulty_words.story_line(weighing(kinds([0.01, 0.5], group_size=16)))
    says(words, "10.05", "in groups of 16 it is 3.733")


def test_a_larger_weight_is_not_faster_learning():
    words = difficulty_words.speed_line(weighing(kinds([0.01, 0.5], group_size=8)))
    # 1.8557 / 4 and 2.6089 x 0.0099
    says(words, "0.464 at rate 0.5", "0.0258 at rate 0.01")


def test_rates_of_0_and_1_have_no_weight_to_speak_of():
    says(difficulty_words.weight_line(weighing(kinds([0, 1]))), "can have a mixed group")
    words = difficulty_words.weight_line(weighing(kinds([0, 0.5])))
    says(words, "Only one kind of prompt can have a mixed group")


def test_graded_prompts_of_one_mean_differ_in_weight():
    words = difficulty_words.weight_line(weighing(graded()))
    says(words, "mean reward 0.5 count", "times as much")


def test_a_prompt_whose_rewards_lie_to_one_side_changes_its_direction():
    says(difficulty_words.story_line(weighing(graded())), "is a straight line")
    skewed = weighing(graded(reward_chances=np.array([[0.6, 0.3, 0.1]])))
    says(difficulty_words.story_line(skewed), "no straight line", "a correlation of 0.99")


def test_right_and_wrong_are_apart_by_the_odds():
    words = difficulty_words.expected_line(weighing(kinds([0.1, 0.5], group_size=8)))
    says(words, "At rate 0.1 a right answer can expect 2.09", "(1 − p)/p = 9 ")


def test_the_batch_on_the_screen_is_shared_out():
    shares = difficulty_tables.batch_shares(BATCH)
    # Population std: one of four sqrt(3) + 3/sqrt(3) = 3.46 and two of four 4 of 7.46;
    # undivided 0.75 x 2 = 1.5 and 2 of 3.5.
    own, common = shares.values()
    assert_allclose(own, [46.41, 53.59, 0], atol=0.01)
    assert_allclose(common, [100 * 1.5 / 3.5, 100 * 2 / 3.5, 0])
    words = difficulty_words.shares_line(shares)
    says(words, "raises the share of prompt 0 from 42.9% to 46.4%", "prompt 1 from 57.1% to 53.6%")


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        ([[1, 1], [0, 0]], "Every group of this batch is tied"),
        ([[1, 0, 0]], "One prompt has all the push"),
        ([[1, 0, 0], [1, 1, 0]], "the same spread"),
    ],
)
def test_batches_that_a_divisor_does_not_share_out_anew(rewards, words):
    shares = difficulty_tables.batch_shares(build_scenario(rewards=rewards))
    says(difficulty_words.shares_line(shares), words)


def test_every_way_of_dividing_the_batch_has_a_row_and_the_chosen_one_a_mark():
    frame = difficulty_tables.options_frame(BATCH)
    assert [name for name in frame.index if name.startswith("●")] == [
        "● std of the group (GRPO), ddof 0"
    ]
    assert len(frame) == 5
    assert set(frame["groups that teach"]) == {"2"}
    lines = difficulty_tables.option_lines()
    assert len(lines) == len(difficulty_tables.PRICES) == 4
    assert all("Price: " in line and "TRL: " in line for line in lines)


def test_larger_groups_weigh_more_unevenly_and_tie_less():
    frame = difficulty_tables.sizes_frame(weighing(kinds([0.01, 0.5], group_size=8)))
    assert frame.index.tolist() == ["8", "16", "32"]
    # theory of the population std at G = 8 and 16: 2.6089/1.8557 and 3.7330/1.9341
    assert frame["largest weight against smallest"].tolist()[:2] == ["1.41", "1.93"]


def test_bars_stop_where_nobody_could_read_them_and_say_so():
    many = prompt_bars({"a": np.ones(MOST + 3)}, palette=LIGHT, title="push")
    assert len(many.data[0].y) == MOST
    assert f"first {MOST} prompts" in many.layout.xaxis.title.text


def test_a_missing_share_is_a_dash():
    tied = build_scenario(rewards=[[1, 1], [0, 0]])
    assert set(difficulty_tables.options_frame(tied)["largest share of a prompt"]) == {MISSING}
    assert rate_tables.is_graded(graded())
