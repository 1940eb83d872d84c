"""Whole numbers and columns in few bytes: every bit comes back, and the cheap way is found."""

import numpy as np
import pytest

from pages._ui.codec.columns import (
    BINARY,
    DECIMAL,
    DOUBLE,
    KNOWN,
    SINGLE,
    plan_column,
    read_column,
    write_column,
)
from pages._ui.codec.integers import (
    Damaged,
    Reader,
    Writer,
    plan_integers,
    read_integers,
    write_integers,
)
from pages._ui.codec.tables import read_flags, write_flags

RNG = np.random.default_rng(7)


def through(write, read, *args):
    writer = Writer()
    write(writer, *args)
    reader = Reader(bytes(writer.soft), bytes(writer.hard))
    found = read(reader)
    assert reader.finished()
    return found, writer.cost


def column_through(values, references=(), default=0.0):
    plan = plan_column(values, references, default)
    found, size = through(
        write_column,
        lambda reader: read_column(reader, values.size, values.dtype, references, default),
        plan,
    )
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()
    return plan, size


@pytest.mark.parametrize(
    "integers",
    [
        [],
        [0],
        [0, 0, 0],
        [1, 2, 3],
        [-1, -2, -300],
        [-1, 1, 0],
        [2**63 - 1, -(2**63), 0, -1],
        [-(2**63), 0],
        [2**53, 2**53 - 1],
        [2**53 - 1, 0, 1],
        RNG.integers(-(2**20), 2**20, 5000),
        RNG.integers(0, 256, 5000),
        np.repeat(RNG.integers(0, 2**40, 10), 500),
    ],
    ids=range(13),
)
def test_whole_numbers_come_back(integers):
    integers = np.array(integers, dtype=np.int64)
    found, _ = through(
        lambda writer: write_integers(writer, plan_integers(integers)),
        lambda reader: read_integers(reader, integers.size),
    )
    np.testing.assert_array_equal(found, integers)


def test_a_reader_refuses_to_read_past_the_end():
    with pytest.raises(Damaged):
        Reader(b"\x01", b"").take(2)
    with pytest.raises(Damaged):
        read_integers(Reader(bytes([0b1000, 0]), b""), 5)  # one soft plane of five bytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hundredths_are_written_as_decimals(dtype):
    plan, size = column_through((RNG.integers(-500, 0, 200) / 100).astype(dtype))
    assert (plan.kind, plan.scale) == (DECIMAL, 2)
    assert size < 250 + 30  # 500 values are 9 bits; 1.25 bytes each and what goes round it


def test_multiples_of_a_power_of_two_are_written_as_such():
    plan, size = column_through(RNG.integers(-(2**12), 0, 200) / 2**21)
    assert (plan.kind, plan.scale) == (BINARY, 21)
    assert size < 300 + 30  # 12 bits each


def test_float32_in_float64_takes_no_more_than_float32():
    plan, size = column_through(RNG.normal(size=500).astype(np.float32).astype(np.float64))
    assert plan.kind == SINGLE
    assert size < 500 * 4 + 50


def test_any_float64_takes_little_more_than_it_has():
    plan, size = column_through(RNG.normal(size=500))
    assert plan.kind == DOUBLE
    assert size < 500 * 8 + 50


def test_what_is_known_is_not_written():
    known = RNG.normal(size=300)
    for plan, size in (
        column_through(known, (known,)),
        column_through(np.full(300, -1.0), (), -1.0),
    ):
        assert plan.kind == KNOWN
        assert size <= 3  # one byte, deflated


def test_one_changed_cell_is_written_alone():
    known = RNG.normal(size=300)
    changed = known.copy()
    changed[123] = -0.3
    plan, size = column_through(changed, (known,))
    assert plan.kind == KNOWN
    assert size < 16


def test_a_column_near_a_known_one_is_written_as_the_difference():
    known = RNG.integers(-(2**16), 0, 300) / 2**21
    near = known + RNG.integers(-8, 8, 300) / 2**21
    plan, size = column_through(near, (np.zeros(300), known))
    assert plan.reference == 2
    assert size < 350


def test_odd_cells_do_not_spoil_the_rest():
    values = RNG.integers(-500, 0, 200) / 100
    values[[3, 50, 199]] = -0.0, -np.inf, -1 / 3
    plan, _ = column_through(values)
    assert (plan.kind, plan.scale) == (DECIMAL, 2)
    np.testing.assert_array_equal(plan.places, [3, 50, 199])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_special_value_comes_back(dtype):
    info = np.finfo(dtype)
    special = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, info.max, info.smallest_subnormal]
    values = np.array([*special, -info.tiny, 1.0, 1 / 3], dtype=dtype)
    odd_nan = values.copy()
    odd_nan.view(f"u{info.bits // 8}")[2] += 1  # a NaN with another payload
    for column in (values, odd_nan, values[:0], np.repeat(values, 30)):
        column_through(column)
        column_through(column, (column[::-1].astype(np.float64), column[::-1]))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 5), (4, 8, 33)])
def test_masks_come_back(shape):
    lengths = RNG.integers(0, shape[-1] + 1, shape[:-1])[..., None]
    padded = np.arange(shape[-1]) < lengths
    masks = [padded, ~padded, RNG.random(shape) < 0.5, np.ones(shape, bool), np.zeros(shape, bool)]
    for mask in masks:
        found, _ = through(write_flags, lambda reader: read_flags(reader, shape), mask)
        np.testing.assert_array_equal(found, mask)
