"""Ways of judging a score against its group, at the numbers that trainers give."""

import numpy as np
import pytest

from grpo_core import Conventions, Term, build_scenario, evaluate

NAN = np.nan
TRL = ("mean_std", {"ddof": 1, "eps": 1e-4})
VERL = ("mean_std", {"ddof": 1, "eps": 1e-6, "alone": "reward_over_1"})


def advantages(rewards, row, **more):
    """Of rewards (P, G) under one row: its key, or key and options."""
    conventions = Conventions.of(advantage=row, **more.pop("stages", {}))
    return evaluate(build_scenario(rewards=rewards, conventions=conventions, **more)).advantages


@pytest.mark.parametrize(
    ("row", "right", "wrong"),
    [
        # mean .25; squares .5625 + 3 * .0625 = .75, sample std sqrt(.75/3) = .5
        (TRL, 0.75 / 0.5001, -0.25 / 0.5001),
        (VERL, 0.75 / 0.500001, -0.25 / 0.500001),
        # population std sqrt(.75/4) = .4330127: sqrt(3) and -1/sqrt(3)
        (("mean_std", {"ddof": 0, "eps": 0.0}), 3**0.5, -(3**-0.5)),
        ("mean_only", 0.75, -0.25),
        # mean of the others: 0, or 1/3
        ("leave_one_out", 1.0, -1 / 3),
        # the others of the right one are equal: not divided. Those of a wrong one are 1 0 0, with
        # sample std sqrt(1/3).
        ("leave_one_out_std", 1.0, -1 / 3 / (3**-0.5 + 1e-6)),
        ("uncompared", 1.0, 0.0),
        ("over_mean", 3.0, -1.0),
        # alpha = 4 completions / 1 that is not 0
        ("nonzero_scaled", 3.0, -1.0),
        (("nonzero_scaled", {"f_norm": 2.0}), 1.5, -0.5),
        # one group: the batch is the group
        ("batch_std", 0.75 / 0.5001, -0.25 / 0.5001),
        # without a token's difference in length the weights are equal
        ("length_weighted", 0.75, -0.25),
        (("best_over_second", {"eps": 1e-6}), 1 / 0.500001, 0.0),
        (("best_over_second", {"divide": "nothing"}), 1.0, 0.0),
    ],
    ids=str,
)
def test_one_right_answer_of_four(row, right, wrong):
    computed = advantages([[1, 0, 0, 0]], row)
    np.testing.assert_allclose(computed, [[right, wrong, wrong, wrong]], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (TRL, ["1.4997", "-0.4999"]),
        (VERL, ["1.5000", "-0.5000"]),
        (("mean_std", {"ddof": 0}), ["1.7321", "-0.5774"]),
        ("mean_only", ["0.7500", "-0.2500"]),
        ("leave_one_out_std", ["1.0000", "-0.5773"]),
    ],
    ids=str,
)
def test_one_right_answer_of_four_as_it_is_printed(row, shown):
    computed = advantages([[1, 0, 0, 0]], row)[0]
    assert [f"{value:.4f}" for value in computed[:2]] == shown


def test_best_over_second_with_partial_credit():
    # 1 .4 0 0: mean .35, squares .4225 + .0025 + 2 * .1225 = .67, std sqrt(.67/3) = .4725816;
    # the lead of .6 over it is 1.2696.
    computed = advantages([[1, 0.4, 0, 0]], "best_over_second")
    np.testing.assert_allclose(computed, [[0.6 / (0.67 / 3) ** 0.5, 0, 0, 0]], rtol=3e-6)
    assert advantages([[5.0]], "best_over_second").tolist() == [[0]]
    assert advantages([[2, 2, 0]], ("best_over_second", {"divide": "nothing"})).tolist() == [
        [0] * 3
    ]


def test_pass_at_4_with_two_of_eight_right():
    # none of 4 right: C(6,4) / C(8,4) = 15/70, s = sqrt(15/70 * 55/70) = .410326;
    # right: .214286 / s = .522232; wrong: (15/70 - C(5,3)/C(7,3)) / s = (.214286 - 10/35) / s.
    computed = advantages([[1, 1, 0, 0, 0, 0, 0, 0]], ("pass_at_k", {"k": 4, "eps": 0.0}))
    s = (15 / 70 * 55 / 70) ** 0.5
    np.testing.assert_allclose(computed[0, :2], 15 / 70 / s, rtol=1e-12)
    np.testing.assert_allclose(computed[0, 2:], (15 / 70 - 10 / 35) / s, rtol=1e-12)
    assert [f"{v:.6f}" for v in computed[0, 1:3]] == ["0.522233", "-0.174078"]


@pytest.mark.parametrize("rewards", [[0] * 8, [1] * 8, [1, 0, 0]])
def test_pass_at_k_says_nothing_where_the_outcome_is_sure_or_the_group_too_small(rewards):
    assert not advantages([rewards], ("pass_at_k", {"k": 4})).any()


def test_pass_at_1_is_the_group_mean_over_its_population_std():
    rewards = [[1, 0, 0, 1, 0]]
    one = advantages(rewards, ("pass_at_k", {"k": 1, "eps": 0.0}))
    np.testing.assert_allclose(one, advantages(rewards, ("mean_std", {"eps": 0.0})), rtol=1e-12)


def test_a_missing_reward_is_left_out_or_counted_as_0():
    # 1 0 0: mean 1/3, sample std sqrt(1/3): 2/3 / .57745 = 1.1545
    computed = advantages([[1, NAN, 0, 0]], TRL)
    assert [f"{v:.4f}" for v in computed[0]] == ["1.1545", "0.0000", "-0.5773", "-0.5773"]
    zero = {"stages": {"rewards": ("outcome", {"missing": "as_zero"})}}
    computed = advantages([[1, NAN, 0, 0]], TRL, **zero)
    assert [f"{v:.4f}" for v in computed[0]] == ["1.4997", "-0.4999", "-0.4999", "-0.4999"]


def test_a_floor_under_the_std_silences_nearly_equal_rewards():
    # In single precision 1.00001 is 1.00001001: std 7.0806e-6, and 5.0068e-6 / 8.0806e-6 = .6196;
    # over a floor of .001: .0050.
    rewards = np.float32([[1.0, 1.00001]])
    for floor, shown in ((0.0, "0.6196"), (1e-3, "0.0050")):
        computed = advantages(rewards, ("mean_std", {"ddof": 1, "eps": 1e-6, "floor": floor}))
        assert f"{computed[0, 1]:.4f}" == shown
        assert computed[0, 0] == -computed[0, 1]


@pytest.mark.parametrize(
    ("row", "worth"),
    [
        (TRL, 0.0),
        (VERL, 0.7 / 1.000001),
        ("mean_only", 0.0),
        (("mean_only", {"alone": "reward"}), 0.7),
        ("leave_one_out", 0.7),
        (("leave_one_out", {"alone": "zero"}), 0.0),
        ("leave_one_out_std", 0.0),
        ("length_weighted", 0.7),
        ("nonzero_scaled", 0.7),
        (("nonzero_scaled", {"f_norm": 2.0}), 0.35),
        ("uncompared", 0.7),
        ("best_over_second", 0.0),
        (("batch_std", {}), 0.0),
        ("over_mean", 0.0),
    ],
    ids=str,
)
def test_a_group_of_one(row, worth):
    assert advantages([[0.7]], row)[0].tolist() == pytest.approx([worth])
    # The only scored completion of a group is alone, too.
    assert advantages([[NAN, 0.7]], row)[0].tolist() == pytest.approx([0, worth])


@pytest.mark.parametrize("row", [TRL, VERL, "leave_one_out", "leave_one_out_std", "batch_std"])
@pytest.mark.parametrize("reward", [0.9, 0.1, 1e200, -3.0])
def test_equal_rewards_leave_nothing(row, reward):
    assert advantages([[reward] * 8], row).tolist() == [[0.0] * 8]


def test_leave_one_out_is_the_distance_to_the_mean_stretched():
    rewards = np.array([[3.0, -1.0, 0.5, NAN, 2.0]])
    plain = advantages(rewards, "mean_only")
    np.testing.assert_allclose(advantages(rewards, "leave_one_out"), plain * 4 / 3, rtol=1e-14)


def test_leave_one_out_std_by_hand():
    # 4 2 0 1. Others of the first: 2 0 1, mean 1, std 1: (4 - 1) / 1.
    # Of the last: 4 2 0, mean 2, std 2: (1 - 2) / 2.
    computed = advantages([[4, 2, 0, 1]], ("leave_one_out_std", {"eps": 0.0}))
    np.testing.assert_allclose(computed[0, [0, 3]], [3, -0.5], rtol=1e-13)
    # Of two there is one other each, which has no std.
    assert advantages([[4, 1]], "leave_one_out_std").tolist() == [[3, -3]]


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_leave_one_out_std_does_not_depend_on_the_size_of_rewards(unit):
    computed = advantages([[4 * unit, 2 * unit, 0, unit]], ("leave_one_out_std", {"eps": 0.0}))
    np.testing.assert_allclose(computed[0, [0, 3]], [3, -0.5], rtol=1e-12)


def test_batch_std_is_that_of_the_rewards_and_not_of_deviations():
    # 1 0 0 0 | 1 1 1 0: batch mean .5, sample std sqrt(2/7) = .534522. Group: .75 and .25.
    computed = advantages([[1, 0, 0, 0], [1, 1, 1, 0]], "batch_std")
    assert [f"{v:.4f}" for v in computed[:, [0, 3]].ravel()] == [
        *("1.4029", "-0.4676"),
        *("0.4676", "-1.4029"),
    ]
    group = advantages([[1, 0, 0, 0], [1, 1, 1, 0]], TRL)
    assert [f"{v:.4f}" for v in group[1, [0, 3]]] == ["0.4999", "-1.4997"]


def test_a_spread_over_the_batch_is_no_signal_within_constant_groups():
    rewards = [[1, 1], [0, 0]]
    assert not advantages(rewards, TRL).any()
    assert not advantages(rewards, "batch_std").any()
    assert np.std(rewards, ddof=1) == pytest.approx(0.57735, abs=1e-5)


def test_groups_of_unequal_size_are_not_one_row():
    rewards = [[10, 10, 10, 0], [5, 5, 5, NAN], [6, 6, 4, 6]]
    present = [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]]
    computed = advantages(rewards, "mean_only", present=present)
    assert computed[1].tolist() == [0, 0, 0, 0]
    # all in one row: mean 67/11
    row = [[10, 10, 10, 0, 5, 5, 5, 6, 6, 4, 6]]
    assert f"{advantages(row, 'mean_only')[0, 4]:.4f}" == "-1.0909"


def test_which_std_for_1_1_2():
    shown = {
        0: ["-0.7071", "-0.7071", "1.4142"],
        1: ["-0.5774", "-0.5774", "1.1547"],
    }
    for ddof, words in shown.items():
        computed = advantages([[1, 1, 2]], ("mean_std", {"ddof": ddof, "eps": 0.0}))
        assert [f"{v:.4f}" for v in computed[0]] == words


def test_length_weighted_mean_by_hand():
    # rewards 1 and 0 with 3 and 1 tokens: baseline 3/4
    computed = evaluate(
        build_scenario(
            rewards=[[1, 0]],
            mask=[[[1, 1, 1], [0, 1, 0]]],
            conventions=Conventions.of(advantage="length_weighted"),
        )
    )
    assert computed.advantages.tolist() == [[0.25, -0.75]]
    assert computed.mean.tolist() == [0.75]


def test_over_mean_is_silent_where_the_mean_is_not_above_0():
    assert advantages([[0, 0], [1, -1], [-1, -3]], "over_mean").tolist() == [[0, 0]] * 3


def test_nonzero_scaled_counts_over_the_whole_batch():
    # 3 of 4 scores are not 0: alpha 4/3
    computed = advantages([[1, 0], [2, 4]], "nonzero_scaled")
    np.testing.assert_allclose(computed, np.array([[0.5, -0.5], [-1, 1]]) * 4 / 3)


def test_given_per_token_advantages_pass_through():
    given = [[[0.5, -1.0], [2.0, 7.0]]]
    computed = evaluate(
        build_scenario(
            rewards=[[1, 0]],
            mask=[[[1, 1], [1, 0]]],
            token_advantages=given,
            conventions=Conventions.of(advantage="given_per_token"),
        )
    )
    assert computed.token_advantages.tolist() == [[[0.5, -1.0], [2.0, 0.0]]]
    assert computed.advantages.tolist() == [[-0.25, 2.0]]


def combined(rewards, columns, row, mask=None, **options):
    """Advantages of a task and one more component of weight 1."""
    return evaluate(
        build_scenario(
            rewards=rewards,
            mask=mask,
            term_values=np.asarray(columns, float)[..., None],
            terms=[Term("other")],
            conventions=Conventions.of(
                rewards=(options.pop("combine", "normalize_then_sum"), options), advantage=row
            ),
        )
    )


def test_each_component_normalised_tells_apart_what_the_sum_does_not():
    # Components (0,0) (1,0) and (0,0) (1,1): the sums 0 1 and 0 2 give the same advantages.
    task, other = [[0, 1], [0, 1]], [[0, 0], [0, 1]]
    summed = combined(task, other, TRL, combine="sum_then_normalize").advantages
    assert [f"{v:.4f}" for v in summed[:, 1]] == ["0.7070", "0.7071"]
    apart = combined(task, other, TRL, batch_scale="completion").advantages
    assert [f"{v:.4f}" for v in apart.ravel()] == ["-0.5477", "0.5477", "-1.0954", "1.0954"]


def test_token_whitening_lets_long_completions_weigh_more():
    # The same with 1, 3, 2 and 2 tokens, verl's way: eps 1e-6, over all tokens.
    lengths = np.array([[1, 3], [2, 2]])
    mask = np.arange(3) < lengths[..., None]
    whole = combined([[0, 1], [0, 1]], [[0, 0], [0, 1]], VERL, mask=mask, batch_scale="token")
    assert [f"{v:.4f}" for v in whole.advantages.ravel()] == [
        *("-0.7489", "0.4494", "-1.3481", "1.0485")
    ]


def test_a_missing_component_does_not_make_the_batch_nan():
    whole = combined([[1, 0, 1, 0]], [[NAN, 1, 0, NAN]], TRL, batch_scale="completion")
    assert [f"{v:.4f}" for v in whole.advantages[0]] == ["1.2045", "-0.2210", "0.2210", "-1.2045"]


@pytest.mark.parametrize(
    "row",
    [
        *("uncompared", "length_weighted", "batch_std", "leave_one_out", "leave_one_out_std"),
        *("over_mean", "nonzero_scaled", ("mean_only", {"alone": "reward"}), VERL),
    ],
    ids=str,
)
def test_parts_of_the_components_add_up_to_the_advantages(row):
    # A full group, and one in which a single completion is scored.
    task, other = [[1.0, 0.5, NAN, -0.5], [0.7, NAN, NAN, NAN]], [[0.2, 0.9, 0.4, NAN], [NAN] * 4]
    mask = np.arange(4) < np.array([[4, 1, 2, 3], [2, 4, 1, 3]])[..., None]
    computed = combined(task, other, row, mask=mask, combine="sum_then_normalize")
    np.testing.assert_allclose(
        computed.attribution.parts.sum(axis=0), computed.advantages, atol=1e-13
    )
