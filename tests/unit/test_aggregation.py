"""Stage aggregation: what each token counts."""

import numpy as np
import pytest

from grpo_core import STAGES, Conventions, build_scenario, evaluate

# 1 prompt, completions with 3, 1 and no valid tokens (one of them with a hole), one absent.
MASK = [[[1, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]]
PRESENT = [[1, 1, 1, 0]]


def weights(variant, mask=MASK, present=PRESENT, dtype=float, **options):
    rewards = np.zeros(np.shape(mask)[:2], dtype)
    conventions = Conventions.of(aggregation=(variant, options))
    scenario = build_scenario(rewards=rewards, mask=mask, present=present, conventions=conventions)
    return evaluate(scenario).weight


@pytest.mark.parametrize(
    ("variant", "options", "long", "short"),
    [
        # 3 present completions: 1/3 each, shared by 3 tokens or by 1
        ("completion_mean", {"empty": "count"}, 1 / 9, 1 / 3),
        # without the empty one 2: 1/2 each
        ("completion_mean", {"empty": "drop"}, 1 / 6, 1 / 2),
        # 4 valid tokens in all
        ("token_mean", {}, 1 / 4, 1 / 4),
        # 3 completions times the padded width of 4, or times 10
        ("constant", {"length": 0}, 1 / 12, 1 / 12),
        ("constant", {"length": 10}, 1 / 30, 1 / 30),
        ("constant", {"length": 10, "empty": "drop"}, 1 / 20, 1 / 20),
        # a given number of completions or tokens, of a larger batch
        ("completion_mean", {"completions": 6}, 1 / 18, 1 / 6),
        ("completion_mean", {"count_eps": 0.5}, 1 / 3 / 3.5, 1 / 3 / 1.5),
        ("token_mean", {"tokens": 20}, 1 / 20, 1 / 20),
        # one length alone
        ("length_only", {"length": 0}, 1 / 4, 1 / 4),
        ("length_only", {"length": 8}, 1 / 8, 1 / 8),
        # 3 completions, or 2
        ("completion_sum", {}, 1 / 3, 1 / 3),
        ("completion_sum", {"empty": "drop"}, 1 / 2, 1 / 2),
        ("token_sum", {}, 1, 1),
        # one prompt: 4 tokens, or 2 completions that have any
        ("prompt_mean", {}, 1 / 4, 1 / 4),
        ("prompt_mean", {"inner": "completions"}, 1 / 6, 1 / 2),
    ],
)
def test_weights_by_hand(variant, options, long, short):
    expected = np.zeros((1, 4, 4))
    expected[0, 0, [0, 2, 3]] = long
    expected[0, 1, 0] = short
    np.testing.assert_allclose(weights(variant, **options), expected, rtol=1e-15, strict=True)


VARIANTS = [
    ("completion_mean", {"empty": "count"}),
    ("completion_mean", {"empty": "drop"}),
    ("token_mean", {}),
    ("constant", {}),
]
EVERY = [*VARIANTS, *((key, {}) for key in STAGES["aggregation"].variants)]


@pytest.mark.parametrize(("variant", "options"), EVERY)
def test_without_any_valid_token_every_weight_is_zero(variant, options):
    assert not weights(variant, mask=np.zeros((1, 4, 4)), **options).any()
    assert not weights(variant, present=[[0, 0, 0, 0]], **options).any()


@pytest.mark.parametrize(("variant", "options"), VARIANTS)
def test_equal_lengths_make_all_aggregations_agree(variant, options):
    computed = weights(variant, mask=np.ones((2, 3, 4)), present=np.ones((2, 3)), **options)
    np.testing.assert_allclose(computed, np.full((2, 3, 4), 1 / 24), rtol=1e-15)


@pytest.mark.parametrize(("variant", "options"), EVERY)
def test_float32_stays_float32(variant, options):
    assert weights(variant, dtype=np.float32, **options).dtype == np.float32


def loss(advantages, lengths, aggregation, *, kept=None, **stages):
    """On policy with these advantages (P, G) and lengths: loss -A at each token; width 4."""
    lengths = np.asarray(lengths)
    mask = np.arange(max(4, lengths.max())) < lengths[..., None]
    if kept is not None:
        mask &= np.asarray(kept, bool)[..., None]
    conventions = Conventions.of(advantage="given", aggregation=aggregation, **stages)
    return evaluate(
        build_scenario(
            advantages=np.asarray(advantages, float),
            logp_new=np.full(mask.shape, -1.0),
            mask=mask,
            conventions=conventions,
        )
    ).loss


DROP = {"empty": "drop"}


@pytest.mark.parametrize(
    ("aggregation", "both", "second"),
    [
        # A: 2 tokens, A +1; B: 4 tokens, A -1. Then with A masked out.
        ("completion_mean", 0, 0.5),
        (("completion_mean", DROP), 0, 1),
        ("token_mean", 1 / 3, 1),
        (("constant", {"length": 8}), 0.125, 0.25),
        (("constant", DROP), 0.25, 1),
        ("length_only", 0.5, 1),
        (("completion_sum", DROP), 1, 4),
        ("token_sum", 2, 4),
    ],
    ids=str,
)
def test_two_rows_under_every_aggregation(aggregation, both, second):
    assert loss([[1, -1]], [[2, 4]], aggregation) == pytest.approx(both, abs=1e-15)
    assert loss([[1, -1]], [[2, 4]], aggregation, kept=[[0, 1]]) == pytest.approx(second)


@pytest.mark.parametrize("key", list(STAGES["aggregation"].variants))
def test_a_fully_masked_batch_is_worth_0_and_never_nan(key):
    assert loss([[1, -1]], [[2, 4]], key, kept=[[0, 0]]) == 0


@pytest.mark.parametrize(
    ("surrogate", "aggregation", "shown"),
    [
        ("sapo", "completion_mean", "-0.0476"),
        (("cispo", {"bound": "absolute"}), "token_mean", "-0.0667"),
        ("vespo", "token_mean", "-0.3333"),
    ],
    ids=str,
)
def test_the_two_rows_under_other_surrogates(surrogate, aggregation, shown):
    assert f"{loss([[1, -1]], [[2, 4]], aggregation, surrogate=surrogate):.4f}" == shown


def test_token_mean_and_completion_mean_of_unequal_losses():
    # 4 tokens of loss 1 and one of loss 6
    assert loss([[-1, -6]], [[4, 1]], "token_mean") == 2
    assert loss([[-1, -6]], [[4, 1]], "completion_mean") == 3.5


def test_three_readings_of_a_token_mean():
    # Prompt 0: lengths 2 and 4 with losses -1 and +1; prompt 1: 8 and 2.
    case = ([[1, -1], [1, -1]], [[2, 4], [8, 2]])
    assert loss(*case, "token_mean") == pytest.approx(-0.25)
    # prompt 0: 2/6, prompt 1: -6/10
    assert loss(*case, "prompt_mean") == pytest.approx((2 / 6 - 6 / 10) / 2)
    assert loss(*case, "completion_mean") == pytest.approx(0, abs=1e-15)


def test_a_token_mean_depends_on_the_split_into_micro_batches():
    # Rows A and B alone: -1 and +1, mean 0; together 1/3. With the tokens of the whole batch
    # given, the parts add up.
    parts = [loss([[A]], [[n]], "token_mean") for A, n in ((1, 2), (-1, 4))]
    assert sum(parts) / 2 == 0
    whole = [loss([[A]], [[n]], ("token_mean", {"tokens": 6})) for A, n in ((1, 2), (-1, 4))]
    assert sum(whole) == pytest.approx(1 / 3)


def test_a_denominator_may_span_more_batches_than_the_update():
    # 4 micro-batches of 10 tokens with loss -1, two of them in one update: over all 40 tokens -.5,
    # over the 20 of the update -1.
    for tokens, total in ((40, -0.5), (20, -1.0)):
        part = loss([[1.0]], [[10]], ("token_mean", {"tokens": tokens}))
        assert 2 * part == pytest.approx(total)
