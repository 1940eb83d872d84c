"""Whole numbers to as few bytes as possible, and back.

Two streams go side by side: `soft` bytes are deflated at the end, `hard` bytes are as good
as random and stay as they are. `Writer` fills them, `Reader` takes them apart again and
refuses to read past the end.

A run of whole numbers is made unsigned (as it is, negated, or zigzag) and then written in
the shorter of two ways:

- *planes*: all lowest bytes, then all second bytes, and so on, each plane soft or hard;
- *lengths*: the number of bits of each value, soft, and the bits below the leading one, hard.
"""

import zlib
from dataclasses import dataclass

import numpy as np

PLAIN, NEGATED, ZIGZAG = range(3)
PLANES, LENGTHS = range(2)
EXACT = 2.0**53  # whole numbers below this are exact as float64


class Damaged(ValueError):
    """Bytes that no `Writer` wrote."""


class TooLarge(ValueError):
    """More than a link may unfold to."""


class Writer:
    """Two growing streams of bytes."""

    def __init__(self):
        self.soft = bytearray()
        self.hard = bytearray()

    def byte(self, value):
        self.soft.append(value)

    def count(self, value):
        """A whole number of at least 0, seven bits a byte, lowest first."""
        while value > 0x7F:
            self.soft.append(value & 0x7F | 0x80)
            value >>= 7
        self.soft.append(value)

    def append(self, other):
        self.soft += other.soft
        self.hard += other.hard

    @property
    def cost(self):
        return deflated_size(bytes(self.soft)) + len(self.hard)


class Reader:
    """Two streams of bytes, read from the front."""

    def __init__(self, soft, hard):
        self._streams = {"soft": soft, "hard": hard}
        self._at = {"soft": 0, "hard": 0}

    def take(self, size, stream="soft"):
        start = self._at[stream]
        if size > len(self._streams[stream]) - start:
            raise Damaged("the bytes end too early")
        self._at[stream] = start + size
        return self._streams[stream][start : start + size]

    def byte(self):
        return self.take(1)[0]

    def count(self):
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise Damaged("a count is too large")

    def rest(self):
        return self.take(len(self._streams["soft"]) - self._at["soft"])

    def finished(self):
        return all(self._at[name] == len(stream) for name, stream in self._streams.items())


def deflated_size(data, dictionary=b""):
    """How long `data` gets, near enough to choose by."""
    if not data:
        return 0
    level = 6 if len(data) <= 8192 else 1
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, zdict=dictionary)
    return len(packer.compress(data)) + len(packer.flush())


@dataclass(frozen=True, eq=False)
class Plan:
    """How a run of whole numbers is best written, and what that costs in bytes."""

    cost: float
    sign: int
    coder: int
    values: np.ndarray  # uint64
    detail: tuple  # which planes are hard, or the bit lengths


def plan_integers(integers):
    """The cheapest way of writing an int64 array of one axis."""
    if integers.size == 0 or not integers.any():
        return Plan(1, PLAIN, PLANES, integers.view(np.uint64), ())
    sign, values = _unsigned(integers)
    planes = _planes(values)
    sizes = [_plane_size(plane) for plane in planes]
    hard = tuple(size >= values.size for size in sizes)
    cost = 2 + sum(sizes)
    best = Plan(cost, sign, PLANES, values, hard)
    if values.max() < EXACT:
        lengths = _bit_lengths(values)
        below = int(np.maximum(lengths, 1).sum()) - values.size
        cost = 1 + deflated_size(lengths.tobytes()) + -(-below // 8)
        if cost < best.cost:
            best = Plan(cost, sign, LENGTHS, values, (lengths,))
    return best


def write_integers(writer, plan):
    """Write what `plan_integers` planned."""
    if plan.coder == LENGTHS:
        writer.byte(plan.sign | LENGTHS << 2)
        (lengths,) = plan.detail
        writer.soft += lengths.tobytes()
        writer.hard += _bits_below(plan.values, lengths)
        return
    writer.byte(plan.sign | PLANES << 2 | len(plan.detail) << 3)
    if plan.detail:
        writer.byte(sum(bit << i for i, bit in enumerate(plan.detail)))
    for plane, hard in zip(_planes(plan.values), plan.detail, strict=False):
        (writer.hard if hard else writer.soft).extend(plane.tobytes())


def read_integers(reader, size):
    """Read `size` whole numbers, an int64 array."""
    head = reader.byte()
    sign, coder, width = head & 3, head >> 2 & 1, head >> 3
    if sign > ZIGZAG or width > 8 or (coder == LENGTHS and width):
        raise Damaged("unknown way of writing numbers")
    values = _read_lengths(reader, size) if coder == LENGTHS else _read_planes(reader, size, width)
    return _signed(values, sign)


def _unsigned(integers):
    if integers.min() >= 0:
        return PLAIN, integers.view(np.uint64)
    if integers.max() <= 0:
        return NEGATED, (-integers).view(np.uint64)
    return ZIGZAG, ((integers << 1) ^ (integers >> 63)).view(np.uint64)


def _signed(values, sign):
    if sign == ZIGZAG:
        return (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64)
    return -values.view(np.int64) if sign == NEGATED else values.view(np.int64)


def _planes(values):
    width = (int(values.max(initial=0)).bit_length() + 7) // 8
    return np.ascontiguousarray(values.astype("<u8").view(np.uint8).reshape(-1, 8).T[:width])


def _plane_size(plane):
    """Bytes that a plane takes, soft or hard; a long one that looks random is not tried."""
    if plane.size > 4096:
        share = np.bincount(plane) / plane.size
        share = share[share > 0]
        if -(share * np.log2(share)).sum() > 7.7:
            return plane.size
    return min(deflated_size(plane.tobytes()), plane.size)


def _read_planes(reader, size, width):
    hard = reader.byte() if width else 0
    planes = np.zeros((8, size), dtype=np.uint8)
    for i in range(width):
        data = reader.take(size, "hard" if hard >> i & 1 else "soft")
        planes[i] = np.frombuffer(data, dtype=np.uint8)
    return np.ascontiguousarray(planes.T).view("<u8").reshape(size).astype(np.uint64)


def _bit_lengths(values):
    """Bits needed for each value below `EXACT`; 0 for 0."""
    return np.frexp(values.astype(np.float64))[1].astype(np.uint8)


def _spread(lengths):
    """For each bit below a leading one: the index of its value, and its place in it."""
    below = np.maximum(lengths.astype(np.int64), 1) - 1
    ends = np.cumsum(below)
    owner = np.repeat(np.arange(lengths.size), below)
    place = np.repeat(ends, below) - 1 - np.arange(owner.size)
    return owner, place


def _bits_below(values, lengths):
    owner, place = _spread(lengths)
    bits = values[owner] >> place.astype(np.uint64) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8)).tobytes()


def _read_lengths(reader, size):
    lengths = np.frombuffer(reader.take(size), dtype=np.uint8)
    if lengths.max(initial=0) > 53:
        raise Damaged("a number has too many bits")
    total = int(np.maximum(lengths, 1).sum(dtype=np.int64)) - size
    data = reader.take(-(-total // 8), "hard")
    owner, place = _spread(lengths)
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=total).astype(np.int64)
    values = np.where(lengths > 0, np.int64(1) << np.maximum(lengths.astype(np.int64), 1) - 1, 0)
    # At most 53 bits each, so that float64 sums are exact.
    values += np.bincount(owner, weights=bits << place, minlength=size).astype(np.int64)
    return values.view(np.uint64)
