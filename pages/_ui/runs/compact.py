"""Thrift's compact protocol, in which Parquet writes its footer and the heads of its pages.

PyArrow ends the whole process on some damaged footers (`parquet_footer`), so that the few
numbers that bounds need are read here first. A structure becomes a table of field numbers.
"""

DEPTH = 12
STOP, TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
INTEGERS = (4, 5, 6)


class Damaged(ValueError):
    """Bytes that are no such structure."""


class Reader:
    """Reads structures from bytes, one after the other.

    Parameters
    ----------
    data : bytes
    start : int
    parts : int
        How many values are read at most, so that time is bounded.
    """

    def __init__(self, data, start=0, parts=2_000_000):
        self._data = data
        self.at = start
        self._left = parts

    def structure(self, wanted, depth=0):
        """Field number -> value of the fields that are wanted; the others are passed over.

        Parameters
        ----------
        wanted : mapping from field number to None or a mapping like this one
            None for numbers, texts and lists of them; a mapping for a structure, or for each
            structure of a list.
        """
        found, field = {}, 0
        while True:
            head = self._byte()
            kind = head & 15
            if kind == STOP:
                return found
            field = field + (head >> 4) if head >> 4 else _signed(self._number())
            value = self._value(kind, wanted.get(field, ...), depth)
            if field in wanted:
                found[field] = value

    def _value(self, kind, wanted, depth):
        self._left -= 1
        if self._left < 0 or depth > DEPTH:
            raise Damaged
        if kind in INTEGERS:
            return _signed(self._number())
        if kind == BINARY:
            return self._bytes(self._number())
        if kind == STRUCT:
            return self.structure(wanted if isinstance(wanted, dict) else {}, depth + 1)
        if kind in (LIST, SET):
            return self._list(wanted, depth)
        return self._rare(kind, depth)

    def _rare(self, kind, depth):
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        if kind != MAP:
            raise Damaged
        count = self._number()
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._value(kinds >> 4, ..., depth + 1)
            self._value(kinds & 15, ..., depth + 1)
        return None

    def _list(self, wanted, depth):
        head = self._byte()
        count, kind = head >> 4, head & 15
        count = self._number() if count == 15 else count
        if kind in (TRUE, FALSE):  # in a list each takes a byte
            return self._bytes(count)
        if wanted is ...:
            for _ in range(count):
                self._value(kind, ..., depth + 1)
            return None
        return [self._value(kind, wanted, depth + 1) for _ in range(count)]

    def _byte(self):
        try:
            value = self._data[self.at]
        except IndexError:
            raise Damaged from None
        self.at += 1
        return value

    def _bytes(self, count):
        end = self.at + count
        if end > len(self._data):
            raise Damaged
        value = self._data[self.at : end]
        self.at = end
        return value

    def _number(self):
        value, shift = 0, 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise Damaged


def _signed(number):
    return (number >> 1) ^ -(number & 1)
