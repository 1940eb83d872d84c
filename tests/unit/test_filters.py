"""Stages truncated, tied and selection: which tokens take part, and what the loss is divided by."""

import numpy as np
import pytest

from grpo_core import STAGES, Conventions, Term, build_scenario, evaluate

NAN = np.nan


def evaluated(advantages, lengths, aggregation="token_mean", arrays=None, **stages):
    """On policy with given advantages: the loss of each token is -A."""
    lengths = np.asarray(lengths)
    mask = np.arange(lengths.max()) < lengths[..., None]
    kl = stages.pop("kl", ("k3", {"beta": 0.0}))
    return evaluate(
        build_scenario(
            **{
                "advantages": np.asarray(advantages, float),
                "rewards": np.asarray(advantages, float),
                "logp_new": np.full(mask.shape, -1.0),
                "mask": mask,
                **(arrays or {}),
            },
            conventions=Conventions.of(advantage="given", aggregation=aggregation, kl=kl, **stages),
        )
    )


def test_a_cut_completion_leaves_the_loss_and_its_denominator():
    # 2 tokens of loss -1; 4 of loss 0 that were cut.
    case = {"advantages": [[1, 0]], "lengths": [[2, 4]], "arrays": {"truncated": [[0, 1]]}}
    assert evaluated(**case).loss == pytest.approx(-1 / 3)
    dropped = evaluated(**case, truncated="drop")
    assert dropped.loss == -1
    assert dropped.kept.tolist() == [[[True, True, False, False], [False] * 4]]
    assert dropped.valid.sum() == 6


def test_the_reward_of_a_cut_completion_still_counts_in_its_group():
    result = evaluate(
        build_scenario(
            rewards=[[1, 0, 0]],
            truncated=[[0, 1, 0]],
            conventions=Conventions.of(truncated="drop"),
        )
    )
    assert result.mean.tolist() == pytest.approx([1 / 3])
    assert result.gradient[0, 1].tolist() == [0]
    assert result.gradient[0, 2].all()


def test_a_dropped_completion_may_stay_in_the_number_of_completions():
    case = {"advantages": [[1, 0]], "lengths": [[2, 4]], "arrays": {"truncated": [[0, 1]]}}
    for empty, loss in (("count", -0.5), ("drop", -1)):
        mean = ("completion_mean", {"empty": empty})
        assert evaluated(**case, truncated="drop", aggregation=mean).loss == loss


TIED = {"advantages": [[1, -2], [0, 0]], "lengths": [[1, 2], [4, 3]]}


@pytest.mark.parametrize(
    ("stage", "loss"),
    [
        # losses -1 | 2 2 over 10 tokens, over the 3 of the group that is not tied, or over 10
        ("keep", 3 / 10),
        ("drop", 1.0),
        (("drop", {"denominator": "counted"}), 3 / 10),
        ("zero", 1.0),
    ],
    ids=str,
)
def test_tied_groups_dilute_the_mean_unless_dropped(stage, loss):
    result = evaluated(**TIED, tied=stage)
    assert result.loss == pytest.approx(loss)
    assert result.tied.tolist() == [False, True]
    assert result.kept[1].any() == (stage == "keep")


def test_a_dropped_group_does_not_pull_to_the_reference():
    ref = np.full((2, 2, 4), -2.0)
    for stage, pulls in (("keep", True), ("drop", False)):
        result = evaluated(**TIED, tied=stage, kl="k3", arrays={"logp_ref": ref})
        assert result.gradient[1].any() == pulls
        assert result.gradient[0].any()
        assert result.kl[1].any()  # it is still shown


def test_tokens_of_advantage_0_leave_one_by_one():
    result = evaluated([[1, 0], [0, -1]], [[2, 2], [3, 1]], tied="zero")
    assert result.kept.sum(axis=2).tolist() == [[2, 0], [0, 1]]
    # -1 -1 | 1 over 3
    assert result.loss == pytest.approx(-1 / 3)


def dropping(conventions=None, **arrays):
    """The evaluation of a small batch under ``tied='drop'``."""
    given = {"rewards": [[0.0, 0.0]], "logp_new": np.full((1, 2, 2), -1.0), **arrays}
    chosen = Conventions.of(tied="drop", **(conventions or {}))
    return evaluate(build_scenario(conventions=chosen, **given))


STEPS = {"step_ends": [[[0, 1], [0, 1]]]}
TERM = {"terms": (Term("a", 1 / 3),), "term_values": [[[0.0], [3.0]]]}


@pytest.mark.parametrize(
    ("conventions", "arrays", "tied"),
    [
        ({}, {}, True),
        ({}, {"rewards": [[1.0, 0.0]]}, False),
        # One score, or none, has nothing to be equal to; verl keeps the only answer of a prompt.
        ({}, {"rewards": [[1.0, NAN]]}, False),
        ({}, {"rewards": [[NAN, NAN]]}, False),
        ({"advantage": ("mean_std", {"alone": "reward"})}, {"rewards": [[0.7, NAN]]}, False),
        # Steps are compared, and not rewards.
        ({"advantage": "process"}, {**STEPS, "step_rewards": [[[1, 0], [0, 0]]]}, False),
        (
            {"advantage": "process"},
            {**STEPS, "step_rewards": [[[1, 1], [1, 1]]], "rewards": [[1.0, 0.0]]},
            True,
        ),
        # Advantages that were given, and no reward.
        ({"advantage": "given"}, {"advantages": [[1, -1]], "rewards": [[NAN, NAN]]}, False),
        # Sums 1 and 1 of unlike parts: judged as one they are equal, each on its own they are not.
        ({"rewards": "sum_then_normalize"}, {**TERM, "rewards": [[1.0, 0.0]]}, True),
        ({"rewards": "normalize_then_sum"}, {**TERM, "rewards": [[1.0, 0.0]]}, False),
        ({"rewards": "add_after"}, {**TERM, "rewards": [[1.0, 0.0]]}, False),
        ({"rewards": "normalize_then_sum"}, {**TERM, "term_values": [[[3.0], [3.0]]]}, True),
    ],
)
def test_what_is_dropped_is_what_is_tied(conventions, arrays, tied):
    result = dropping(conventions, **arrays)
    assert result.tied.tolist() == [tied]
    assert result.kept.any() == (not tied)
    if tied:
        assert (result.loss, result.metrics["gradient_norm"]) == (0, 0)


def entropies(share):
    values = np.arange(1, 11) / 10
    return evaluated(
        [[1.0]], [[10]], arrays={"entropy": values.reshape(1, 1, 10)},
        selection=("entropy", {"share": share}),
    )  # fmt: skip


def test_the_tokens_of_highest_entropy_stay_and_all_are_counted():
    # Entropies .1 to 1: the quantile of .8 is .82, above it .9 and 1.
    result = entropies(0.2)
    assert result.factor[0, 0].tolist() == [0.0] * 8 + [1.0] * 2
    assert result.loss == pytest.approx(-2 / 10)
    assert np.count_nonzero(result.gradient) == 2
    assert result.kept.all()
    assert entropies(1.0).factor.all()


def test_the_quantile_is_over_valid_tokens_of_the_whole_batch():
    # Valid: 1 2 | 3 4; padding of 9 would fill the top half alone.
    result = evaluated(
        [[1.0, -1.0]], [[2, 3]],
        arrays={
            "entropy": [[[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]]],
            "mask": [[[1, 1, 0], [1, 1, 0]]],
        },
        selection=("entropy", {"share": 0.5}),
    )  # fmt: skip
    assert result.factor.tolist() == [[[0, 0, 0], [1, 1, 0]]]


@pytest.mark.parametrize(
    ("advantage", "sampler", "stays"),
    [
        # log-probability now -1; it was -.2 and -.6 when sampled: mean drop .6
        (-1.0, [-0.2, -0.6], False),
        (1.0, [-0.2, -0.6], True),
        (0.0, [-0.2, -0.6], True),
        (-1.0, [-0.5, -0.5], True),  # exactly at the threshold of .5
        (-1.0, [-3.0, -3.0], True),  # it has become more likely
        (-1.0, [-0.2, NAN], True),  # one is not known: mean drop .4
    ],
)
def test_bad_completions_that_are_far_off_policy_go(advantage, sampler, stays):
    result = evaluated(
        [[advantage]], [[2]], arrays={"logp_sampler": [[sampler]]}, selection="on_policy"
    )
    assert result.factor.tolist() == [[[float(stays)] * 2]]


def test_both_selections_at_once_multiply():
    # Of eight tokens the top half: 4 to 1 in the first and the last completion. Entropies of a
    # completion that goes count in the quantile. Its drop is .6; that of the others is 0.
    arrays = {
        "entropy": [[[4, 3], [0, 0], [0, 0], [2, 1]]],
        "logp_sampler": [[[-0.4, -0.4], [-1, -1], [-1, -1], [-1, -1]]],
    }
    rewards, lengths = [[-1.0, -1.0, 1.0, 1.0]], [[2, 2, 2, 2]]
    found = {
        row: evaluated(rewards, lengths, arrays=arrays, selection=(row, options)).factor
        for row, options in {
            "entropy": {"share": 0.5},
            "on_policy": {},
            "entropy_on_policy": {"share": 0.5},
        }.items()
    }
    assert found["entropy"].tolist() == [[[1, 1], [0, 0], [0, 0], [1, 1]]]
    assert found["on_policy"].tolist() == [[[0, 0], [1, 1], [1, 1], [1, 1]]]
    product = found["entropy"] * found["on_policy"]
    assert found["entropy_on_policy"].tolist() == product.tolist()
    assert product.tolist() == [[[0, 0], [0, 0], [0, 0], [1, 1]]]


def test_selection_leaves_the_kl_alone():
    ref = np.full((1, 1, 10), -2.0)
    result = evaluate(entropies(0.2).scenario.replace(logp_ref=ref).choose("kl", beta=0.04))
    assert np.count_nonzero(result.policy_gradient) == 2
    assert np.count_nonzero(result.kl_gradient) == 10


ROWS = [(key, row) for key in ("truncated", "tied", "selection") for row in STAGES[key].variants]


@pytest.mark.parametrize(("stage", "row"), ROWS)
def test_a_batch_without_a_token_is_worth_0(stage, row):
    shape = (1, 2, 2)
    arrays = {
        "mask": np.zeros(shape),
        "entropy": np.ones(shape),
        "logp_sampler": np.full(shape, NAN),
        "truncated": [[1, 0]],
    }
    result = evaluated([[1, -1]], [[2, 2]], arrays=arrays, **{stage: row})
    assert (result.loss, result.metrics["gradient_norm"]) == (0, 0)
