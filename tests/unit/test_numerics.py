"""The arithmetic at its edges: no NaN, no warning, no lost digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from grpo_core.numerics import (
    FLOAT32_LOG_MAX,
    cast,
    difference,
    exp,
    expm1,
    floating,
    k3,
    norm,
    plus,
    row_count,
    times,
    total,
)

INF = np.inf


def exact_k3(d):
    """exp(d) - d - 1 of the given float, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        value = Decimal(float(d))
        return value.exp() - value - 1


def largest_relative_error(ds):
    errors = []
    for d, computed in zip(ds, k3(ds), strict=True):
        exact = exact_k3(d)
        errors.append(abs((Decimal(float(computed)) - exact) / exact))
    return float(max(errors))


@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 1e-12), (np.float32, 1e-6)])
@pytest.mark.parametrize("sign", [1, -1])
def test_k3_is_accurate_for_tiny_differences(dtype, bound, sign):
    ds = np.append(np.geomspace(1e-9, 0.5, 400), [0.5, 1e-4, 1e-8]).astype(dtype) * dtype(sign)
    assert largest_relative_error(ds) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 2e-15), (np.float32, 1e-6)])
def test_k3_is_accurate_beyond_its_series_and_across_the_seam(dtype, bound):
    seam = np.nextafter(dtype(0.5), dtype(1))
    high = 88 if dtype is np.float32 else 700
    ds = np.concatenate([[seam, -seam], np.geomspace(0.5, high, 60), -np.geomspace(0.5, 1e6, 60)])
    assert largest_relative_error(ds.astype(dtype)) <= bound


def test_plain_formula_would_miss_the_bound():
    # Guards the tests above: at 1e-4 in float32 exp(d) - d - 1 has no right digit left.
    d = np.float32(1e-4)
    plain = np.exp(d) - d - np.float32(1)
    assert abs(float(plain) / float(exact_k3(d)) - 1) >= 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_k3_at_its_limits(dtype):
    d = np.array([0.0, -0.0, INF, -INF, np.finfo(dtype).max, np.finfo(dtype).min], dtype)
    expected = np.array([0, 0, INF, INF, INF, np.finfo(dtype).max], dtype)
    np.testing.assert_array_equal(k3(d), expected, strict=True)


def test_times_has_zero_times_infinity_zero():
    left, right = np.array([0.0, INF, -INF, 2.0, 1e308]), np.array([INF, 0.0, -2.0, 3.0, 1e308])
    np.testing.assert_array_equal(times(left, right), [0, 0, INF, 6, INF])
    assert not np.signbit(times(-0.0, 3.0))


def test_opposite_infinities_add_to_minus_infinity():
    np.testing.assert_array_equal(
        plus([INF, -INF, INF, 1.0], [-INF, INF, INF, 2]), [-INF] * 2 + [INF, 3]
    )
    assert total(np.array([INF, 1.0, -INF])) == -INF
    assert total(np.array([INF, 1.0])) == INF


def test_total_is_right_where_only_a_part_of_the_sum_is_beyond_range():
    values = np.array([[1e308, 1e308, -1e308, -1e308], [1e308, 1e308, 1, 1], [1, 2, 3, 4]])
    np.testing.assert_array_equal(total(values, axis=1), [0, INF, 10])


def test_total_sums_float32_in_double_precision():
    # 2**24 + 1 is no float32: a float32 sum would stay at 2**24.
    assert total(np.array([2**24, 1, 1], np.float32)) == 2**24 + 2


def test_equal_infinities_differ_by_zero():
    np.testing.assert_array_equal(
        difference([-INF, -INF, 0.0, -1e308], [-INF, 0.0, -INF, 1e308]), [0, -INF, INF, -INF]
    )


def test_exponentials_overflow_to_infinity_silently():
    np.testing.assert_array_equal(exp(np.array([1e308, -1e308, 0])), [INF, 0, 1])
    np.testing.assert_array_equal(expm1(np.array([1e308, -1e308, 0])), [INF, -1, 0])


def test_float32_limit_is_where_float32_overflows():
    # Itself a float32, so that comparing in either number type says the same.
    limit = np.float32(FLOAT32_LOG_MAX)
    assert limit == FLOAT32_LOG_MAX
    assert np.isfinite(exp(limit))
    assert exp(np.nextafter(limit, np.float32(100))) == INF


def test_norm_neither_overflows_nor_vanishes():
    # 3-4-5 triangles, at sizes whose squares no double holds.
    for unit in (1e-300, 1e-160, 1.0, 1e200, 1e307):
        assert norm(np.array([[3 * unit, -4 * unit]])) == pytest.approx(5 * unit, rel=1e-15)
    assert norm(np.zeros(3)) == norm(np.zeros(0)) == 0
    assert norm(np.array([INF, 1])) == INF
    assert norm(np.array([3, 4], np.float32)) == 5


def test_cast_turns_what_is_too_large_into_infinity():
    np.testing.assert_array_equal(
        cast(np.array([1e300, -1e300, 1.0]), np.dtype(np.float32)),
        np.array([INF, -INF, 1], np.float32),
        strict=True,
    )


def test_float32_only_if_all_floats_are():
    single, double, flag = np.zeros(1, np.float32), np.zeros(1), np.zeros(1, bool)
    assert floating(single, single, flag) == np.float32
    assert floating(single, double) == floating(flag) == np.float64


def test_row_count_keeps_its_axis():
    valid = np.array([[[True, False], [False, False]]])
    np.testing.assert_array_equal(row_count(valid), [[[1.0], [0.0]]], strict=True)
