"""Over the steps of a run: means, shares, ties; the turn of a hacked term; what a run says."""

import numpy as np
import pytest

from grpo_core import evaluate
from grpo_core.errors import ScenarioError
from grpo_core.presets import PRESETS
from grpo_core.runs.example import GroupTokens, example
from grpo_core.runs.explain import RUN_FINDINGS, explain, say
from grpo_core.runs.rules import RULES, judge
from grpo_core.runs.run import Run, RunLog
from grpo_core.runs.say_course import ends
from grpo_core.runs.series import guess_task, logged, series
from grpo_core.runs.turn import level_cut, turns

from .judged_runs import made_run, recorded, with_fields


def small_run(**fields):
    """Two steps: step 0 has two groups, step 5 one; terms 'correct' and 'bonus'.

    Group 0: correct 1, 0; bonus 0, 0. Group 1: correct 1, 1; bonus 0, 1. Group 2: all equal.
    """
    terms = [
        [[1.0, 0.0], [0.0, 0.0]],
        [[1.0, 0.0], [1.0, 1.0]],
        [[0.0, 1.0], [0.0, 1.0]],
    ]
    given = {
        "steps": [0, 0, 5],
        "present": np.ones((3, 2)),
        "names": ("correct", "bonus"),
        "terms": terms,
        "lengths": [[10, 20], [30, 40], [50, 60]],
        **fields,
    }
    return Run(**given)


def test_series_by_hand():
    shown = series(small_run(), np.array([1.0, 0.5]), "correct")
    assert shown.steps.tolist() == [0, 5]
    assert shown.groups.tolist() == [2, 1]
    assert shown.completions.tolist() == [4, 2]
    # totals: 1, 0, 1, 1.5; then 0.5, 0.5
    np.testing.assert_allclose(shown.reward, [3.5 / 4, 0.5])
    np.testing.assert_allclose(shown.terms, [[0.75, 0.25], [0.0, 1.0]])
    np.testing.assert_allclose(shown.task, [0.75, 0.0])
    np.testing.assert_allclose(shown.length, [25.0, 55.0])
    # right: lengths 10, 30, 40; wrong: 20. In step 5 all are wrong.
    np.testing.assert_allclose(shown.length_right, [80 / 3, np.nan])
    np.testing.assert_allclose(shown.length_wrong, [20.0, 55.0])
    assert shown.tied.tolist() == [0, 1]
    assert shown.shaped_only.tolist() == [1, 0]  # group 1: correct in both
    # Spread within groups: 0.5 of correct in group 0, 0.125 of the bonus in group 1.
    np.testing.assert_allclose(shown.shares, [[0.8, 0.2], [np.nan, np.nan]])


def test_shares_sum_to_one_and_may_be_negative():
    run = made_run("group_sample", [1.0, 0.7, -0.4])
    shares = series(run, np.array([1.0, 0.7, -0.4]), "correct").shares
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # A term that works against the total: value 1 where the other is 0, with a smaller weight.
    terms = np.stack([np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])], axis=-1)
    run = Run(steps=[0], present=np.ones((1, 2)), names=("a", "b"), terms=terms)
    np.testing.assert_allclose(series(run, np.array([1.0, 0.5]), "a").shares, [[2.0, -1.0]])


@pytest.mark.parametrize(("step", "share"), [(73, 0.1), (77, 0.46), (81, 0.87)])
def test_share_of_the_step_bonus_in_the_recorded_run(step, share):
    opened = recorded("trl-addition-step-bonus")
    shown = series(opened.run, np.array([1.0, 0.3]), "correctness")
    assert shown.shares[shown.steps == step, 1][0] == pytest.approx(share, abs=0.01)


def test_absent_completions_count_nowhere():
    run = small_run(present=[[1, 1], [1, 0], [1, 1]])
    shown = series(run, np.array([1.0, 0.5]), "correct")
    assert shown.completions.tolist() == [3, 2]
    np.testing.assert_allclose(shown.reward, [2 / 3, 0.5])
    assert shown.tied.tolist() == [0, 1]  # one completion alone is not tied


@pytest.mark.parametrize(
    ("names", "task"),
    [
        (("format", "accuracy_reward"), "accuracy_reward"),
        (("length", "correctness"), "correctness"),
        (("a", "b"), "a"),
        (("incorrect_penalty", "accuracy_reward"), "accuracy_reward"),
        (("format_correctness", "accuracy"), "accuracy"),
        (("FormatReward", "AnswerReward"), "AnswerReward"),
        (("accept_rate", "b"), "accept_rate"),
    ],
)
def test_the_task_is_guessed_by_its_name_and_is_else_the_first_term(names, task):
    run = Run(steps=[0], present=[[1]], names=names, terms=[[[0.0, 0.0]]])
    assert guess_task(run) == task


def test_a_measure_can_be_the_task():
    run = Run(
        steps=[0], present=[[1, 1]], names=("score",), terms=[[[0.5], [1.0]]],
        measures={"acc": [[0.0, 1.0]]},
    )  # fmt: skip
    assert guess_task(run) == "acc"
    assert series(run, np.array([1.0]), "acc").task.tolist() == [0.5]


def test_an_unknown_task_is_refused():
    with pytest.raises(ScenarioError, match="no reward or measure named 'x'"):
        series(small_run(), np.array([1.0, 1.0]), "x")


def test_a_level_cut_is_where_two_levels_meet():
    assert level_cut(np.array([0.0] * 5 + [1.0] * 7)) == 5
    assert level_cut(np.array([np.nan, 0, 0, np.nan, 0, 0, 1, 1, np.nan, 1])) == 6
    assert level_cut(np.zeros(20)) is None
    assert level_cut(np.array([0.0, 1.0])) is None


def hacked_run(turn=30, S=60, task_falls=True, seed=0):
    """A run in which the bonus rises from a step on, and the task falls or does not."""
    rng = np.random.default_rng(seed)
    late = np.arange(S) >= turn
    chance = np.where(late & task_falls, 0.05, 0.5)
    task = (rng.random((S, 4, 8)) < chance[:, None, None]).astype(float)
    spread = np.where(late, 8.0, 0.1)[:, None, None]
    bonus = spread * rng.random((S, 4, 8)) + late[:, None, None] * 5
    terms = np.stack([task, bonus], axis=-1).reshape(S * 4, 8, 2)
    return Run(
        steps=np.repeat(np.arange(S), 4), present=np.ones((S * 4, 8)),
        names=("correct", "bonus"), terms=terms,
    )  # fmt: skip


@pytest.mark.parametrize("turn", [12, 30, 50])
def test_the_turn_of_a_hacked_term_is_dated(turn):
    run = hacked_run(turn)
    (found,) = turns(series(run, np.array([1.0, 0.3]), "correct"), run.names, "correct")
    assert (found.term, found.step) == (1, turn)
    assert found.task_after < 0.1 < 0.4 < found.task_before


def test_a_term_that_takes_over_while_the_task_holds_is_not_hacked():
    run = hacked_run(task_falls=False)
    assert not turns(series(run, np.array([1.0, 0.3]), "correct"), run.names, "correct")


def test_too_few_steps_say_nothing():
    run = hacked_run(turn=2, S=4)
    assert not turns(series(run, np.array([1.0, 0.3]), "correct"), run.names, "correct")


def test_one_reward_that_parts_from_a_measure_is_dated_too():
    run = hacked_run(30)
    lone = Run(
        steps=run.steps, present=run.present, names=("score",), terms=run.terms[..., 1:],
        measures={"acc": run.terms[..., 0]},
    )  # fmt: skip
    (found,) = turns(series(lone, np.array([1.0]), "acc"), lone.names, "acc")
    assert abs(found.step - 30) <= 1


def test_recorded_hack_is_named_and_its_turn_lies_between_step_65_and_85():
    opened = recorded("trl-addition-step-bonus")
    shown = explain(opened.run, opened.log)
    first = say(shown)[0]
    assert first.code == "reward_hacked"
    assert 65 <= first.where["step"] <= 85
    assert "“step_count” is being hacked" in first.sentence


def test_recorded_healthy_run_is_not_called_hacked():
    opened = recorded("trl-addition")
    said = {one.code: one.sentence for one in say(explain(opened.run, opened.log))}
    assert "reward_hacked" not in said
    assert "122 of 1,600 groups (7.62%) are tied" in said["tied_recounted"]
    assert "The log reports none" in said["tied_recounted"]
    assert "0.00119" in said["residue"]
    assert "sample standard deviation plus 0.0001" in said["convention"]
    assert "“correctness” 1 and “format_ok” 0.2" in said["convention"]
    assert "rose" in said["task_course"]


def test_every_finding_of_a_run_can_be_said_and_is_in_plain_words():
    for one in every_said().values():
        assert one.sentence.endswith(".")
        assert "nan" not in one.sentence.lower()
        assert "undefined" not in one.sentence


def test_every_finding_of_a_run_is_met_by_a_made_up_one():
    assert every_said().keys() == RUN_FINDINGS.keys()


def every_said():
    """One `Said` for each code, from runs made to meet it."""
    plain = made_run("group_sample", [1.0, 0.2])
    steps = plain.every_step
    flat = plain.terms.copy()
    flat[..., 1] = 0.5
    blank = plain.terms.copy()
    blank[0, 0], blank[1, 1, 1] = np.nan, np.nan
    sizes = plain.present.copy()
    sizes[0, 1:] = False
    noise = np.random.default_rng(0).normal(size=plain.present.shape)
    long = np.repeat(np.linspace(10, 40, 20), 8)[:, None] + np.arange(8)
    explained = (
        explain(hacked_run()),
        explain(plain, RunLog(steps, {"reward": np.zeros(20), "kl": np.linspace(0, 9, 20),
                                      "clip_ratio/region_mean": np.zeros(20)}),
                weights=[1.0, 0.2]),
        explain(with_fields(plain, terms=flat)),
        explain(with_fields(plain, terms=blank)),
        explain(with_fields(plain, present=sizes)),
        explain(with_fields(plain, advantages=noise)),
        explain(with_fields(plain, lengths=long)),
        explain(made_run("group_sample", [1.0, 0.2], damaged=2)),
        explain(plain, stand_ins=True),
        explain(small_run(advantages=[[1.0, -1.0], [-1.0, 1.0], [0.001, 0.001]])),
    )  # fmt: skip
    return {one.code: one for each in explained for one in say(each)}


def test_tied_share_in_the_log_that_agrees_is_said_to_agree():
    run = small_run()
    log = RunLog([0, 5], {"frac_reward_zero_std": [0.0, 1.0]})
    (said,) = [one for one in say(explain(run, log)) if one.code == "tied_recounted"]
    assert "says the same" in said.sentence


def test_a_log_gives_values_at_steps_and_blanks_elsewhere():
    log = RunLog([1, 2, 2, 4], {"kl": [0.1, 0.2, 0.3, np.nan], "other": [np.nan] * 4})
    np.testing.assert_allclose(
        log.at("kl", np.array([0, 1, 2, 3, 4])), [np.nan, 0.1, 0.3, np.nan, np.nan]
    )
    assert logged(log, "kl")[0] == "kl"
    assert logged(log, "entropy") is None
    assert logged(None, "kl") is None


def test_a_group_opens_as_an_example_that_gives_the_logged_advantages():
    run = made_run("group_sample", [1.0, 0.2, -0.5], absent=0.2)
    shown = explain(run)
    scenario = example(shown, [3, 7])
    result = evaluate(scenario)
    for p, q in enumerate((3, 7)):
        wanted = run.advantages[q][run.present[q]]
        np.testing.assert_allclose(result.advantages[p][: len(wanted)], wanted, atol=1e-5)


@pytest.mark.parametrize("rule", ["apart_sample", "mean_only", "leave_one_out", "batch_sample"])
def test_a_whole_step_opens_under_any_rule(rule):
    run = made_run(rule, [1.0, 0.2], G=4)
    step = run.at(3)
    result = evaluate(example(explain(run), step))
    np.testing.assert_allclose(result.advantages, run.advantages[step], atol=1e-4)


def test_advantages_that_no_rule_gives_are_taken_as_they_were_logged():
    run = made_run("group_sample", [1.0, 0.2])
    noise = np.random.default_rng(0).normal(size=run.present.shape)
    scenario = example(explain(with_fields(run, advantages=noise)), [0])
    assert scenario.conventions["advantage"].variant == "given"
    np.testing.assert_array_equal(evaluate(scenario).advantages, noise[:1])


def test_a_recorded_step_opens_with_its_tokens_and_gives_the_logged_loss_but_for_the_residue():
    # The logged loss holds the residue of tied groups, at most 1.5e-4 in this run.
    opened = recorded("trl-addition-step-bonus")
    shown = explain(opened.run, opened.log)
    groups = opened.run.at(41)
    tokens = [opened.tokens(int(q))[-1] for q in groups]
    given = [GroupTokens(each.arrays, each.pieces) for each in tokens]
    setting = PRESETS["trl-classic"].conventions.replace("kl", beta=0.02)
    result = evaluate(example(shown, groups, tokens=given, conventions=setting))
    logged_loss = opened.log.at("loss", np.array([42]))[0]
    assert result.loss == pytest.approx(logged_loss, abs=1.5e-4)


def test_terms_get_names_that_a_scenario_takes():
    names = ("task", "x" * 60, "x" * 61, "a\u202eb\n", "")
    run = Run(
        steps=[0], present=[[1, 1]], names=names,
        terms=np.arange(10.0).reshape(1, 2, 5),
    )  # fmt: skip
    scenario = example(explain(run, task="a\u202eb\n"), [0])
    assert len({term.name for term in scenario.terms}) == 4


def test_no_group_is_refused():
    with pytest.raises(ScenarioError, match="No group"):
        example(explain(small_run()), [])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": [5, 0, 0]}, "order of their steps"),
        ({"names": ("a", "a")}, "one name"),
        ({"names": ()}, "no reward"),
        ({"unit": "words"}, "unit is 'words'"),
        ({"lengths": [[1, 2]]}, "lengths has shape"),
        ({"present": np.ones((0, 2))}, "no completion"),
    ],
)
def test_a_run_that_does_not_fit_together_is_refused(fields, message):
    with pytest.raises(ScenarioError, match=message):
        small_run(**fields)


def wandering_run(seed, S=60, weight=1.0, correlation=0.9):
    """Nothing is hacked: the task's difficulty wanders, and a format is learned beside it."""
    rng = np.random.default_rng(seed)
    logit = np.zeros(S)
    for s in range(1, S):
        logit[s] = correlation * logit[s - 1] + 0.5 * rng.normal() * np.sqrt(1 - correlation**2)
    shape = (S, 8, 8)
    task = rng.random(shape) < (1 / (1 + np.exp(-logit)))[:, None, None]
    form = rng.random(shape) < np.linspace(0.2, 0.9, S)[:, None, None]
    terms = np.stack([task, form], axis=-1).astype(float).reshape(S * 8, 8, 2)
    return Run(
        steps=np.repeat(np.arange(S), 8), present=np.ones((S * 8, 8)),
        names=("correct", "format"), terms=terms,
    )  # fmt: skip


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_a_task_that_wanders_beside_a_term_that_is_learned_is_not_called_hacked(weight):
    weights = np.array([1.0, weight])
    said = [
        turns(series(run, weights, "correct"), run.names, "correct")
        for run in map(wandering_run, range(40))
    ]
    assert not any(said)


def test_a_total_that_fell_is_not_said_to_look_like_progress():
    run = hacked_run()
    terms = run.terms * [1.0, 0.001]
    terms[..., 1] += 0.1 * (run.steps >= 30)[:, None] * np.arange(8)
    small = Run(steps=run.steps, present=run.present, names=run.names, terms=terms)
    said = [one.sentence for one in say(explain(small, weights=[1.0, 0.1]))]
    for sentence in said:
        assert ("looks like progress" in sentence) == ("The total reward rose" in sentence)


def test_what_stands_at_an_absent_completion_changes_nothing():
    present = [[1, 1], [1, 0], [1, 1]]
    plain = small_run(present=present)
    terms = plain.terms.copy()
    terms[1, 1] = [99.0, -1e308]
    loud = small_run(present=present, terms=terms)
    weights = np.array([1.0, 0.5])
    a, b = series(plain, weights, "correct"), series(loud, weights, "correct")
    for name, value in vars(a).items():
        np.testing.assert_array_equal(value, getattr(b, name), err_msg=name)


def test_rewards_beyond_what_has_a_square_raise_no_warning():
    terms = small_run().terms * 1e200
    explained = explain(small_run(terms=terms), weights=[1.0, 0.5])
    assert say(explained)


def test_verls_distance_to_the_policy_before_is_no_distance_to_the_reference():
    log = RunLog(np.arange(20), {"actor/ppo_kl": np.linspace(0.1, 3, 20)})
    assert logged(log, "kl") is None


def test_a_log_that_averages_over_steps_is_not_held_against_single_ones():
    run = made_run("group_sample", [1.0, 0.2])
    steps = run.every_step * 10
    ten = with_fields(run, steps=run.steps * 10)
    log = RunLog(steps, {"reward": np.zeros(20), "frac_reward_zero_std": np.full(20, 0.5)})
    said = {one.code: one.sentence for one in say(explain(ten, log, weights=[1.0, 0.2]))}
    assert "log_disagrees" not in said
    assert "a record every 10 steps" in said.get("tied_recounted", "a record every 10 steps")


def test_a_single_reward_normalised_over_the_batch_opens_with_that_normalisation():
    run = made_run("apart_batch", [1.0], G=4)
    shown = explain(run)
    step = run.at(3)
    if shown.fit.rule.batch:
        result = evaluate(example(shown, step))
        np.testing.assert_allclose(result.advantages, run.advantages[step], atol=1e-3)


def test_where_terms_are_judged_apart_ties_and_shares_are_those_of_their_advantages():
    # Totals 1 + 0.5 x 0 and 0 + 0.5 x 2: equal. Each term by itself differs, so the group is no
    # tie under GDPO: the advantages are 0.707 - 0.5 x 0.707 and the opposite.
    terms = np.tile([[[1.0, 0.0], [0.0, 2.0]]], (12, 1, 1))
    terms[1::2] = [[1.0, 2.0], [0.0, 0.0]]
    plain = Run(
        steps=np.arange(12), present=np.ones((12, 2)), names=("correct", "format"), terms=terms
    )
    made = judge(plain, RULES["apart_sample"], np.array([1.0, 0.5]), 1e-4)
    shown = explain(with_fields(plain, advantages=made), weights=[1.0, 0.5])
    assert shown.fit.rule is RULES["apart_sample"]
    assert not shown.fit.tied.any()
    # cov(1 z, A) / var(A) with A = z (1 - 0.5): 1 / 0.5; the format takes the other part back.
    np.testing.assert_allclose(shown.series.shares[0], [2.0, -1.0], atol=1e-3)
    np.testing.assert_allclose(shown.series.shares[1], [2 / 3, 1 / 3], atol=1e-3)


def flat_run(seed, S=6):
    """Nothing changes: 48 answers a step, 4 of 10 right."""
    task = np.random.default_rng(seed).random((S * 6, 8, 1)) < 0.4
    return Run(
        steps=np.repeat(np.arange(S), 6), present=np.ones((S * 6, 8)), names=("correct",),
        terms=task.astype(float),
    )  # fmt: skip


@pytest.mark.parametrize("S", [4, 6, 16])
def test_a_flat_run_of_any_length_is_seldom_said_to_rise_or_fall(S):
    said = [
        one.sentence
        for run in (flat_run(seed, S) for seed in range(40))
        for one in say(explain(run))
        if one.code == "task_course"
    ]
    assert sum("rose" in each or "fell" in each for each in said) <= 6


def test_a_rise_that_chance_seldom_makes_is_not_called_chance():
    values = np.array([0.28, 0.30, 0.29, 0.33, 0.36, 0.38, 0.41, 0.42])
    assert ends(values)[2] > 3
    assert 0 < ends(values, np.full(8, 0.05))[2] < 3


def test_a_term_that_is_paid_for_falling_is_hacked_when_it_falls():
    run = hacked_run()
    terms = run.terms * [1.0, -1.0]
    turned = Run(steps=run.steps, present=run.present, names=run.names, terms=terms)
    for weight, expected in ((-0.3, 1), (0.3, 0)):
        weights = np.array([1.0, weight])
        found = turns(series(turned, weights, "correct"), run.names, "correct", weights)
        assert len(found) == expected


def test_rewards_that_stand_in_for_others_say_nothing_of_rewards():
    said = {one.code for one in say(explain(hacked_run(), stand_ins=True))}
    assert "stand_ins" in said
    assert not said & {"reward_hacked", "task_course", "driver", "convention", "tied_recounted"}


def test_weights_of_nothing_are_no_error():
    for one in say(explain(made_run("group_sample", [1.0, 0.2]), weights=[0.0, 0.0])):
        assert "undefined" not in one.sentence


def test_names_are_shown_as_they_are_and_cannot_turn_a_sentence_round():
    run = made_run("group_sample", [1.0, 0.2], names=("a\u202eb", "c\nd"))
    text = " ".join(one.sentence for one in say(explain(run)))
    assert "\u202e" not in text
    assert "“a\\u202eb”" in text


def test_one_group_of_a_step_weighs_as_it_did_in_the_run():
    opened = recorded("trl-addition-step-bonus")
    shown = explain(opened.run, opened.log)
    setting = PRESETS["trl-classic"].conventions
    groups = opened.run.at(81)
    tokens = {int(q): opened.tokens(int(q))[0] for q in groups}

    def as_example(chosen, **more):
        given = [GroupTokens(tokens[q].arrays, tokens[q].pieces) for q in chosen]
        return evaluate(example(shown, chosen, tokens=given, conventions=setting, **more))

    every = as_example(list(tokens))
    one = as_example([int(groups[1])], whole={"completions": 64})
    L = one.weight.shape[2]
    np.testing.assert_allclose(one.weight[0], every.weight[1, :, :L])
    np.testing.assert_allclose(one.gradient[0], every.gradient[1, :, :L])
