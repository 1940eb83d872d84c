"""The length page: lengths as a table, weights, the four combinations, and the pull on length."""

import numpy as np
import plotly.graph_objects as go
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import ScenarioError, build_scenario, evaluate
from grpo_core.breakdown import aggregations
from grpo_core.recipes import under_recipes
from pages._ui import length_charts, length_corners, length_pull, length_words
from pages._ui.examples import load_examples
from pages._ui.length_pull_chart import pull_chart
from pages._ui.length_tables import (
    frame_to_lengths,
    lengths_frame,
    options_frame,
    recipes_frame,
    short_and_long,
    short_texts,
    with_some_lengths,
)
from pages._ui.palette import PALETTES
from tests.length_batches import length_scenario

EXAMPLES = load_examples()
LIGHT = PALETTES["light"]
# Right answers of 4 and 10 tokens, wrong ones of 2 and 8.
BATCH = length_scenario([[4, 2, 10, 8]], [[1, 0, 1, 0]])


def typed(scenario, row, column, value, prompt=0):
    frame = lengths_frame(scenario, prompt)
    frame.iloc[row, frame.columns.get_loc(column)] = value
    return frame_to_lengths(scenario, frame, prompt)


def lengths(scenario):
    return np.sum(scenario.valid, axis=2)


# --- the table ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", EXAMPLES)
def test_an_unchanged_table_is_the_same_scenario(key):
    scenario = EXAMPLES[key].scenario
    for prompt in range(scenario.sizes["P"]):
        frame = lengths_frame(scenario, prompt)
        assert frame_to_lengths(scenario, frame, prompt) is scenario


def test_a_shorter_and_a_longer_answer():
    assert lengths(typed(BATCH, 0, "tokens", 3)).tolist() == [[3, 2, 10, 8]]
    longer = typed(BATCH, 0, "tokens", 15)
    assert lengths(longer).tolist() == [[15, 2, 10, 8]]
    assert longer.sizes["L"] == 15


def test_a_reward_and_a_length_in_one_edit():
    frame = lengths_frame(BATCH, 0)
    frame.loc["1", "rewards"], frame.loc["2", "tokens"] = 0.5, 0
    changed = frame_to_lengths(BATCH, frame, 0)
    assert changed["rewards"].tolist() == [[1, 0.5, 1, 0]]
    assert lengths(changed).tolist() == [[4, 2, 0, 8]]


def test_an_edited_reward_leaves_a_mask_with_a_hole_alone():
    scenario = EXAMPLES["mask-with-hole"].scenario
    changed = typed(scenario, 1, "rewards", 0.25)
    assert_array_equal(changed["mask"], scenario["mask"])


@pytest.mark.parametrize("value", [2.5, -1, np.inf, np.nan, 1e9])
def test_what_is_no_length_is_refused_with_its_place(value):
    with pytest.raises(ScenarioError, match="tokens, completion 2: .*wanted a whole number"):
        typed(BATCH, 2, "tokens", value)


def test_a_batch_that_would_be_too_large_is_refused():
    with pytest.raises(ScenarioError):
        typed(BATCH.replace(rewards=BATCH["rewards"]), 0, "tokens", 32_769)
    wide = length_scenario(np.full((64, 64), 2), np.zeros((64, 64)))
    with pytest.raises(ScenarioError, match="at most"):
        typed(wide, 0, "tokens", 20_000)


def test_a_completion_that_is_not_there_stays_blank():
    scenario = length_scenario([[4, np.nan]], [[1, 0]])
    assert np.isnan(lengths_frame(scenario, 0)["tokens"].iloc[1])
    with pytest.raises(ScenarioError, match="not there"):
        typed(scenario, 1, "tokens", 3)


def test_only_a_batch_of_single_tokens_gets_lengths_that_are_made_up():
    single = build_scenario(rewards=[[1, 0, 0, 1]])
    made = with_some_lengths(single)
    assert lengths(made).tolist() == [[4, 12, 8, 16]]
    assert with_some_lengths(made) is made
    empty = build_scenario(rewards=[[1, 0]], mask=np.zeros((1, 2, 1)))
    assert with_some_lengths(empty) is empty


def test_texts_beside_the_table_are_short():
    texts = short_texts(EXAMPLES["recorded-steps"].scenario, 0)
    assert max(len(text) for text in texts.to_numpy().flat) <= 12


# --- weights and combinations --------------------------------------------------------------


def test_a_token_of_the_longest_against_one_of_the_shortest():
    # lengths 2 and 10: 1/10 over 1/2 by the mean per completion, the same by the other two.
    said = length_words.weight_line(evaluate(BATCH), 0)
    assert "counts, by mean per completion (GRPO): 0.2 times as much; by mean over all tok" in said
    assert "(DAPO) and constant length (Dr. GRPO): as much." in said
    assert said.count("as much") == 2
    # wrong answers: advantage -1, weights 1/(4*8) and 1/(4*2)
    assert "answer 3 is pushed down by 0.0312, one of the short wrong answer 1 by 0.125" in said


def test_equal_lengths_say_so():
    said = length_words.weight_line(evaluate(length_scenario([[5, 5]], [[1, 0]])), 0)
    assert "every aggregation gives their tokens the same weight" in said


def test_shares_of_every_recipe_are_of_the_whole_update():
    for result in under_recipes(BATCH).values():
        whole = length_corners.shares(result, "whole")
        token = length_corners.shares(result, "token")
        assert np.sum(np.abs(whole)) == pytest.approx(1)
        assert_allclose(token * lengths(BATCH), whole)


def test_with_one_prompt_the_std_shifts_nothing_and_with_two_it_does():
    one = length_words.corner_line(under_recipes(BATCH), 0)
    assert "the std changes the size of the step and nothing else" in one
    two = length_scenario([[4, 2, 10, 8], [4, 4, 4, 4]], [[1, 0, 1, 0], [1, 0, 0, 0]])
    said = length_words.corner_line(under_recipes(two), 0)
    # Without std: prompt 0 has sizes 4 x 1/2 = 2, prompt 1 3/4 + 3 x 1/4 = 1.5: shares 4/7, 3/7.
    # With std 1/2 and sqrt(3)/4: 4 and 3.4641, so 53.6% and 46.4%.
    assert "prompt 0 gets 53.6% of the update with it and 57.1% without" in said


def test_the_longest_answer_gets_more_without_1_over_length():
    # With 1/length all four get a quarter; without it 10 of 4 + 2 + 10 + 8 tokens: 41.7%.
    assert "gets 25% with it and 41.7% without" in length_words.corner_line(under_recipes(BATCH), 0)


def test_that_recipes_judge_the_outcome_is_said_where_the_example_does_not():
    assert length_words.judged_line(BATCH) == ""
    assert length_words.judged_line(BATCH.choose("advantage", "mean_only")) == ""
    given = BATCH.replace(advantages=[[5.0, 0, 0, 0]]).choose("advantage", "given")
    said = length_words.judged_line(given)
    assert said.startswith("This example's advantages are “given, not computed”. Here and in")
    assert np.array_equal(under_recipes(given)["grpo"].whole, under_recipes(BATCH)["grpo"].whole)
    steps = EXAMPLES["recorded-steps"].scenario
    assert "judged by their groups instead" in length_words.judged_line(
        steps.choose("advantage", "process")
    )


def test_a_tied_batch_is_not_pushed():
    tied = under_recipes(length_scenario([[4, 2]], [[1, 1]]))
    assert "No answer of this batch is pushed" in length_words.corner_line(tied, 0)
    assert "does not push" in length_words.batch_pull_line(tied)


def test_shortest_and_longest_have_tokens():
    assert short_and_long(np.array([0, 3, 9, 2])) == (3, 2)
    assert short_and_long(np.zeros(3)) is None


def test_every_rule_has_its_price_and_the_chosen_one_comes_first():
    found = evaluate(BATCH)
    rows = aggregations(found)
    lines = length_words.price_lines(found, rows)
    assert lines[0].startswith("mean per completion (GRPO): each token of the longest answer "
                               "counts only 0.2")  # fmt: skip
    assert "counts 5 times the shortest" in lines[1]
    frame = options_frame(found, rows)
    assert frame["token: longest / shortest"].tolist()[:3] == ["0.2", "1", "1"]
    assert frame["answer: longest / shortest"].tolist()[:3] == ["1", "5", "5"]


# --- the pull ------------------------------------------------------------------------------


def pulled(accuracy, rewards=((1, 0, 1, 0),), logits=None):
    scenario = length_scenario(np.full(np.shape(rewards), 5), rewards)
    if logits is not None:
        scenario = scenario.replace(stop_logits=np.asarray(logits, dtype=float))
    rate = length_pull.right_share(evaluate(scenario), 0)
    return scenario, length_pull.pull_view(scenario, rate, accuracy)


def test_without_a_hunch_nothing_is_pulled_under_any_rule():
    _, view = pulled(0.5)
    for change in view.now.values():
        assert abs(change.change_right) < 1e-12
        assert abs(change.change_wrong) < 1e-12
    assert "no rule pulls at lengths" in length_words.hunch_line(view)


@pytest.mark.parametrize("logits", [None, [0.0], [-3, 2, -1, 0.5], [100, -100, 0]])
def test_with_a_hunch_1_over_length_pulls_and_a_constant_does_not(logits):
    _, view = pulled(0.9, logits=logits)
    grpo, dapo, dr_grpo = (view.now[key] for key in length_pull.SHOWN)
    assert grpo.change_wrong >= dapo.change_wrong >= 0
    assert grpo.change_right <= dapo.change_right <= 0
    assert abs(dr_grpo.change_wrong) < 1e-12
    if logits is None:
        assert grpo.change_wrong > 5 * dapo.change_wrong > 0


@pytest.mark.parametrize(("right", "sign", "word"), [(1, 1, "grows"), (3, -1, "falls")])
def test_the_mean_length_grows_where_fewer_than_half_are_right(right, sign, word):
    rewards = [[1] * right + [0] * (4 - right)]
    _, view = pulled(0.9, rewards)
    assert view.rate == right / 4
    assert np.sign(view.now["grpo"].change) == sign
    assert word in length_words.hunch_line(view)


def test_what_dapo_keeps_is_its_pull_over_that_of_grpo():
    _, view = pulled(0.9)
    grpo, dapo = (view.now[key].change_wrong for key in ("grpo", "dapo"))
    assert (grpo, dapo) == (pytest.approx(0.0315742, rel=1e-5), pytest.approx(0.0051636, rel=1e-5))
    # 0.0051636 / 0.0315742 = 0.1635
    assert "DAPO keeps 16.4% of the pull" in length_words.hunch_line(view)


def test_simulation_agrees_with_the_closed_form():
    scenario, view = pulled(0.9)
    for *_, exact, mean, error in length_pull.pull_rows(
        view, length_pull.simulated(scenario, view)
    ):
        assert abs(mean - exact) < 4 * error


def test_without_a_closed_form_the_simulation_stands_alone():
    scenario = length_scenario([[5, 5, 5, 5]], [[1, 0, 1, 0]]).choose("whitening", "tokens")
    view = length_pull.pull_view(scenario, 0.5, 0.9)
    assert not view.now
    assert not view.curves
    trials = length_pull.simulated(scenario, view)
    assert "simulated batches alone" in length_words.hunch_line(view)
    frame = length_words.pull_frame(view, trials)
    assert set(frame["change of length"]) == {"–"}
    assert all("±" in cell for cell in frame["simulated"])
    chart = pull_chart(view, trials, palette=LIGHT)
    go.Figure(chart.to_dict())
    assert ", simulated: GRPO: right" in chart.layout.meta["alt"]


def test_stops_are_the_sigmoids_of_the_table_and_the_last_token_stops():
    world = length_pull.stop_world(np.array([0.0, np.log(3)]), 0.5, 0.9)
    # 1/2; then 3/4 of what is left; the rest is 1/8.
    assert_allclose(np.sum(world.chances, axis=0), [0.5, 0.375, 0.125])
    assert world.rate == pytest.approx(0.5)


def test_where_nothing_is_pushed_half_right_is_assumed_and_said():
    scenario = length_scenario([[3, 4]], [[1, 1]])
    assert length_pull.right_share(evaluate(scenario), 0) is None
    view = length_pull.pull_view(scenario, None, 0.9)
    assert (view.rate, view.assumed) == (0.5, True)
    said = length_words.world_line(view)
    assert "half of them right, since no answer of the prompt above is pushed" in said
    assert "25% right, as of the pushed" in length_words.world_line(pulled(0.9, [[1, 0, 0, 0]])[1])


@pytest.mark.parametrize(("rate", "word"), [(1.0, "right"), (0.0, "wrong")])
def test_where_all_are_right_or_wrong_nothing_is_pulled(rate, word):
    view = length_pull.pull_view(BATCH, rate, 0.9)
    for change in view.now.values():
        assert (change.change_right, change.change_wrong, change.change) == (0, 0, 0)
    said = length_words.hunch_line(view)
    assert said.startswith(f"All answers are {word} here, so every group is tied")


def test_certain_stops_cannot_be_pulled():
    said = length_words.hunch_line(pulled(0.9, logits=[1e6])[1])
    assert said == "Where these answers stop is certain, so there is nothing to pull."


def test_places_to_stop_are_kept_added_and_refused():
    more = length_pull.with_places(BATCH.replace(stop_logits=[1.0, 2.0]), 4)
    assert more["stop_logits"].tolist() == [1, 2, 2, 2]
    with pytest.raises(ScenarioError, match="a table holds 1 to 32"):
        length_pull.with_places(BATCH, 33)


# --- pictures --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", EXAMPLES)
@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_every_figure_of_every_example_is_one_that_plotly_knows(key, palette):
    scenario = with_some_lengths(EXAMPLES[key].scenario)
    found, results = evaluate(scenario), under_recipes(scenario)
    charts = [
        length_charts.weight_chart(
            found, 0, palette=palette, former=found, selected=(0, 1, 0)
        ),
        *(
            length_corners.corner_chart(
                results, 0, measure=measure, palette=palette, former=results
            )
            for measure in length_corners.MEASURES
        ),
    ]  # fmt: skip
    for chart in charts:
        go.Figure(chart.to_dict())
        assert "nan" not in chart.layout.meta["alt"]
    recipes_frame(results, 0)
    assert "nan" not in length_words.weight_line(found, 0)


def test_the_pull_is_drawn_with_and_without_simulation():
    scenario, view = pulled(0.9)
    for trials in ({}, length_pull.simulated(scenario, view)):
        chart = pull_chart(view, trials, palette=LIGHT)
        go.Figure(chart.to_dict())
        assert "GRPO: right −0.0316, wrong 0.0316" in chart.layout.meta["alt"]


def test_the_recipes_aggregations_are_compared_and_the_chosen_one():
    def drawn(scenario):
        chart = length_charts.weight_chart(evaluate(scenario), 0, palette=LIGHT)
        return [t.name for t in chart.data if t.mode == "lines" and t.showlegend is not False]

    three = drawn(BATCH)
    assert len(three) == 3
    assert drawn(BATCH.choose("aggregation", "token_sum")) == [*three, "sum over all tokens"]


def test_right_answers_stand_above_and_wrong_ones_below():
    chart = length_charts.weight_chart(evaluate(BATCH), 0, palette=LIGHT)
    points = next(t for t in chart.data if t.name == "mean per completion (GRPO), completions")
    # 1/(4 L): 1/16, -1/8, 1/40, -1/32
    assert_allclose(points.y, [1 / 16, -1 / 8, 1 / 40, -1 / 32])
    assert list(points.x) == [4, 2, 10, 8]
    assert points.marker.symbol[0] == "triangle-up"
    assert points.marker.symbol[1] == "triangle-down"
