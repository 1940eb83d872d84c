"""What a Parquet file promises is read and checked before anything is unpacked."""

import io
import tracemalloc
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pages._ui.runs import bounds
from pages._ui.runs.archive import sources_of_path, sources_of_uploads
from pages._ui.runs.compact import Damaged, Reader
from pages._ui.runs.parquet_footer import promise
from pages._ui.runs.records import RunFileError
from tests.unit.run_files import cells, parquet, trl, uploaded


def source(data):
    return sources_of_uploads([("a.parquet", data)])[0]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_sizes_are_those_that_pyarrow_knows(version, compression, use_dictionary, tmp_path):
    messages = [[{"role": "user", "content": "hello"}] * at for at in range(200)]
    data = parquet(
        {"a": np.arange(200) % 7, "m": messages, "t": ["text"] * 200},
        compression=compression,
        data_page_version=version,
        use_dictionary=use_dictionary,
        row_group_size=64,
        data_page_size=100,
    )
    (tmp_path / "a.parquet").write_bytes(data)
    metadata = pq.read_metadata(io.BytesIO(data))
    for found in (promise(source(data)), promise(*sources_of_path(str(tmp_path / "a.parquet")))):
        groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        assert found.rows == tuple(group.num_rows for group in groups)
        for at, column in enumerate(found.columns):
            chunks = [group.column(at) for group in groups]
            assert ".".join(column.path) == chunks[0].path_in_schema
            assert column.values == sum(chunk.num_values for chunk in chunks)
            assert column.size <= sum(chunk.total_uncompressed_size for chunk in chunks)
            assert column.text == (chunks[0].physical_type == "BYTE_ARRAY")


def test_a_page_that_claims_more_than_the_footer_is_believed(monkeypatch):
    data = parquet({"prompt": ["x" * 5_000_000]}, use_dictionary=False, compression="zstd")
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    real = promise(source(data)).columns[0].size
    lying = footer.replace(varint(real), varint(900))
    assert lying != footer
    data = data[: -8 - length] + lying + len(lying).to_bytes(4, "little") + b"PAR1"
    assert promise(source(data)).columns[0].size > 5_000_000
    monkeypatch.setitem(bounds.BOUNDS, "text bytes", (1_000_000, "bytes", "Open less"))
    with pytest.raises(RunFileError):
        uploaded({"a.parquet": data})


def varint(number):
    """A whole number as Thrift's compact protocol writes it."""
    number, found = number << 1, bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def test_a_footer_on_which_pyarrow_ends_the_process_is_only_damaged():
    """A column that calls itself required, not optional, has histograms of another length.

    PyArrow 26 ends the process when it is asked for the sizes of such a column.
    """
    messages = [[{"role": "user", "content": "a"}]] * 4
    data = parquet(trl(prompt=messages, completion=messages))
    optional, required = b"\x25\x02\x18", b"\x25\x00\x18"
    parts = data.split(optional)
    assert len(parts) > 5
    for at in range(1, len(parts)):
        broken = optional.join(parts[:at]) + required + optional.join(parts[at:])
        with suppress(RunFileError):
            uploaded({"a.parquet": broken})


class TestCompact:
    def test_fields_that_are_not_wanted_are_passed_over(self):
        #       1: true, 2: i32 -3, 3: binary, 5: list of 2 i32, 6: struct, 7: double, 9: map
        data = (
            b"\x11" + b"\x15\x05" + b"\x18\x02hi" + b"\x29\x25\x02\x04" + b"\x1c\x15\x0a\x00"
            b"\x17" + bytes(8) + b"\x2b\x01\x88\x01a\x01b" + b"\x00"
        )
        assert Reader(data).structure({2: None}) == {2: -3}
        found = Reader(data).structure({1: None, 3: None, 5: None, 6: {1: None}})
        assert found == {1: True, 3: b"hi", 5: [1, 2], 6: {1: 5}}

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\x15",
            b"\x18\xff\xff\xff\xff\x0f",
            b"\x1c" * 100,
            b"\x19\xf5\xff\xff\xff\xff\x0f",
            b"\x15" + b"\xff" * 20,
            b"\x1f\x00",
        ],
    )
    def test_what_is_no_structure(self, data):
        with pytest.raises(Damaged):
            Reader(data).structure({})

    def test_long_lists_end(self):
        with pytest.raises(Damaged):
            Reader(b"\x19\xf5\xff\xff\xff\xff\x0f" + b"\x02" * 5000, parts=1000).structure({})


def test_the_platforms_table_groups_by_problem():
    answers = [[{"role": "assistant", "content": f"r{at}"}] for at in range(4)]
    columns = {
        "run_id": ["r"] * 4,
        "step": [3] * 4,
        "problem_id": [7, 8, 7, 8],
        "sample_id": [0, 1, 2, 3],
        "prompt": ["same"] * 4,
        "completion": answers,
        "reward": [1.0, 0.0, 0.5, 0.0],
        "advantage": [0.25, 0, -0.25, 0],
        "num_input_tokens": [5] * 4,
        "num_output_tokens": [9, 8, 7, 6],
        "metrics": ["{}"] * 4,
    }
    run = uploaded({"samples.parquet": parquet(columns)})
    assert run.format.key == "platform"
    assert run.run.steps.tolist() == [3, 3]
    assert cells(run) == [["r0", "r2"], ["r1", "r3"]]
    assert run.run.lengths.tolist() == [[9, 7], [8, 6]]
    assert run.run.unit == "tokens"
    assert run.run.names == ("reward",)
    assert run.run.advantages[0].tolist() == [0.25, -0.25]


def test_a_table_of_other_names_asks_for_every_column():
    columns = {"question": ["a", "a"], "output": ["x", "y"], "grade": [1, 0]}
    run = uploaded({"mine.parquet": parquet(columns)})
    assert run.format.key == "table"
    assert run.run.names == ("grade",)
    assert cells(run) == [["x", "y"]]


def test_a_column_with_a_dot_in_its_name():
    run = uploaded({"a.parquet": parquet(trl(**{"reward.format": [1.0, 2, 3, 4]}))})
    assert run.run.names == ("accuracy_reward", "reward.format")


def test_every_type_of_column_can_stand_beside_the_others():
    rows = pa.array([[1, 2]] * 4), pa.array([b"x"] * 4), pa.array([{"a": [1]}] * 4)
    columns = trl(**{f"other{at}": values for at, values in enumerate(rows)})
    found = {
        column.name: column.role for column in uploaded({"a.parquet": parquet(columns)}).columns
    }
    assert [found[f"other{at}"] for at in range(3)] == ["ignore"] * 3


def wide(count):
    """A Parquet file whose footer promises many columns of one number, and holds none of them."""
    text = [b"%06d" % at for at in range(count)]
    schema = b"".join(b"\x15\x0a\x25\x02\x18\x06" + name + b"\x00" for name in text)
    # Type, encodings, path, codec, values, bytes of both kinds, place of the pages.
    end = b"\x15\x00\x16\x02\x16\x50\x16\x50\x26\x08\x00\x00"
    start = b"\x26\x08\x1c\x15\x0a\x19\x15\x00\x19\x18\x06"
    chunks = b"".join(start + name + end for name in text)
    size = bytes(_plain(count))
    footer = b"\x15\x02\x19\xfc" + bytes(_plain(count + 1)) + b"\x48\x01s\x15" + varint(count)
    footer += b"\x00" + schema + b"\x16\x02\x19\x1c\x19\xfc" + size + chunks + b"\x16\x50\x16\x02"
    footer += b"\x00\x00"
    return b"PAR1" + bytes(60) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _plain(number):
    """A count as Thrift's compact protocol writes it: without a sign."""
    while number > 127:
        yield number & 127 | 128
        number >>= 7
    yield number


class TestManyColumns:
    def test_a_million_are_refused_before_their_names_are_read(self):
        data = wide(1_000_000)
        tracemalloc.start()
        with pytest.raises(RunFileError, match="bytes of Parquet footer; at most 8,000,000"):
            uploaded({"a.parquet": data})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1_000_000

    def test_as_many_as_a_footer_may_name_are_counted_and_nothing_of_them_is_unpacked(self):
        data = wide(30_000)
        tracemalloc.start()
        with pytest.raises(RunFileError, match="30,000 columns; at most 300 are read. Leave out"):
            uploaded({"a.parquet": data})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 50_000_000

    def test_the_writer_of_these_files_writes_what_is_meant(self, tmp_path):
        (tmp_path / "a.parquet").write_bytes(wide(3))
        found = promise(*sources_of_path(str(tmp_path / "a.parquet")))
        assert found.rows == (1,)
        assert [column.path for column in found.columns] == [("000000",), ("000001",), ("000002",)]
