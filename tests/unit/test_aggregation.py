"""Stage aggregation: what each token counts."""

import numpy as np
import pytest

from grpo_core import Conventions, build_scenario, evaluate

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


@pytest.mark.parametrize(("variant", "options"), VARIANTS)
def test_without_any_valid_token_every_weight_is_zero(variant, options):
    assert not weights(variant, mask=np.zeros((1, 4, 4)), **options).any()
    assert not weights(variant, present=[[0, 0, 0, 0]], **options).any()


@pytest.mark.parametrize(("variant", "options"), VARIANTS)
def test_equal_lengths_make_all_aggregations_agree(variant, options):
    computed = weights(variant, mask=np.ones((2, 3, 4)), present=np.ones((2, 3)), **options)
    np.testing.assert_allclose(computed, np.full((2, 3, 4), 1 / 24), rtol=1e-15)


@pytest.mark.parametrize(("variant", "options"), VARIANTS)
def test_float32_stays_float32(variant, options):
    assert weights(variant, dtype=np.float32, **options).dtype == np.float32
