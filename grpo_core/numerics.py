"""Arithmetic that stays right at the edges: zero times infinity, tiny and huge numbers."""

import numpy as np

# The largest float32 whose exponential is one too. Trainers run in float32.
FLOAT32_LOG_MAX = 88.72283172607422

# Coefficients 2/(n+2)! of k3(d) = d^2/2 * sum_n c_n d^n. Fifteen terms leave a relative
# rest below 1e-17 at |d| = 0.5.
_K3_SERIES = tuple(2.0 / float(np.prod(np.arange(1, n + 3, dtype=float))) for n in range(15))


def floating(*arrays):
    """float32 if every floating array is float32, else float64."""
    kinds = {array.dtype for array in arrays if array.dtype.kind == "f"}
    return np.dtype(np.float32) if kinds == {np.dtype(np.float32)} else np.dtype(np.float64)


def times(left, right):
    """Multiply with ``0 * inf = 0``; underflow to 0 and overflow to infinity are silent."""
    left, right = np.asarray(left), np.asarray(right)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        product = left * right
    return np.where((left == 0) | (right == 0), product.dtype.type(0), product)


def plus(left, right):
    """Add; where infinities of opposite sign meet the result is -inf, never NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add(left, right)
    return np.where(np.isnan(total), total.dtype.type(-np.inf), total)


def cast(values, dtype):
    """Convert to another number type; what is beyond its range becomes infinite, silently."""
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(dtype)


def total(values, axis=None):
    """Sum in double precision; a sum of +inf and -inf is -inf, never NaN.

    A sum within range is right also where a part of it is not: those are summed again in
    units of 2**64.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result = np.sum(values, axis=axis, dtype=np.float64)
        if not np.all(np.isfinite(result)):
            units = np.ldexp(np.asarray(values, dtype=np.float64), -64)
            again = np.ldexp(np.sum(units, axis=axis), 64)
            result = np.where(np.isfinite(result), result, again)
    return np.where(np.isnan(result), -np.inf, result)


def nested_total(values):
    """Sum of a (P, G, L) array by completion, then prompt, then batch.

    The sums `total` gives of completions and of prompts add up to it to the last bit.
    """
    result = total(total(total(values, axis=2), axis=1))
    return float(result if np.isfinite(result) else total(values))


def norm(values):
    """Euclidean norm of all values together; their squares neither overflow nor vanish."""
    size = np.abs(values, dtype=np.float64)
    peak = np.max(size, initial=0.0)
    if peak in (0.0, np.inf):
        return float(peak)
    _, exponent = np.frexp(peak)
    with np.errstate(over="ignore", under="ignore"):
        squares = np.square(np.ldexp(size, -exponent))
        return float(np.ldexp(np.sqrt(total(squares)), exponent))


def difference(left, right):
    """Subtract log-probabilities; two equal infinities differ by 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.subtract(left, right)
    return np.where(np.equal(left, right), result.dtype.type(0), result)


def exp(log):
    """Exponential whose overflow to infinity is silent."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(log)


def expm1(log):
    """``exp(log) - 1``, exact near 0, silent at overflow."""
    with np.errstate(over="ignore", under="ignore"):
        return np.expm1(log)


def k3(d):
    """``exp(d) - d - 1`` to full precision for every d, never negative.

    Written out as is, the formula loses all digits below ``|d|`` of 1e-4 in float32 and
    1e-8 in float64, and turns negative. Up to ``|d| = 0.5`` its power series is used.
    """
    d = np.asarray(d)
    near = np.where(np.abs(d) <= 0.5, d, d.dtype.type(0))
    series = np.full_like(near, _K3_SERIES[-1])
    for coefficient in _K3_SERIES[-2::-1]:
        series = series * near + near.dtype.type(coefficient)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = series * near * near * near.dtype.type(0.5)
        far = np.where(d == np.inf, d, np.expm1(d) - d)
    return np.where(np.abs(d) <= 0.5, small, far)


def row_count(valid):
    """Number of valid positions along the last axis, as a float, kept as a length-1 axis."""
    return np.sum(valid, axis=-1, keepdims=True, dtype=np.float64)
