"""No file, however made, ends in anything but a run or one clear sentence."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages._ui.runs import bounds
from pages._ui.runs import parquet as parquet_module
from pages._ui.runs.records import RunFileError
from tests.unit.run_files import lines, parquet, trl, trl_name, uploaded, zipped


def refusal(files):
    with pytest.raises(RunFileError) as error:
        uploaded(files)
    return str(error.value)


def tries(files, roles=None):
    """'' for a run that can be drawn, else what was said."""
    try:
        run = uploaded(files, roles)
    except RunFileError as error:
        said = str(error)
        assert said[-1] in ".!"
        return said
    for q in range(min(3, len(run.run.steps))):
        assert len(run.texts(q)) == run.run.present.shape[1]
        run.tokens(q)
    assert all(isinstance(note, str) for note in run.notes)
    return ""


class TestParquet:
    def test_cut_off_anywhere(self):
        data = parquet(trl())
        for end in range(0, len(data), 7):
            said = refusal({trl_name(1): data[:end]})
            assert trl_name(1) in said

    @pytest.mark.parametrize("seed", range(60))
    def test_bytes_that_changed_on_the_way(self, seed):
        random = np.random.default_rng(seed)
        data = bytearray(parquet(trl(size=20)))
        for place in random.integers(4, len(data) - 8, size=random.integers(1, 8)):
            data[place] = random.integers(256)
        tries({trl_name(1): bytes(data)})

    def test_a_huge_footer_is_refused_before_it_is_read(self):
        length = bounds.BOUNDS["footer bytes"][0] + 1
        data = b"PAR1" + bytes(length) + length.to_bytes(4, "little") + b"PAR1"
        assert "bytes of Parquet footer" in refusal({"a.parquet": data})

    def test_a_footer_longer_than_the_file(self):
        assert "damaged" in refusal(
            {"a.parquet": b"PAR1" + bytes(20) + (9999).to_bytes(4, "little") + b"PAR1"}
        )

    def test_many_columns(self):
        data = parquet({f"c{at}": [0.0] for at in range(2000)})
        assert "2,000 columns; at most 300" in refusal({"a.parquet": data})

    def test_so_many_columns_that_the_footer_is_too_large_in_itself(self):
        schema = pa.schema([(f"{at}" * 12, pa.int8()) for at in range(30_000)])
        file = io.BytesIO()
        pq.write_table(schema.empty_table(), file, store_schema=False)
        assert refusal({"a.parquet": file.getvalue()})

    def test_one_long_text_repeated_is_not_unpacked(self):
        count = 20_000
        text = "x" * 1_000_000
        columns = trl(prompts=("a", "b"), size=count // 2)
        columns["completion"] = pa.DictionaryArray.from_arrays(pa.array([0] * count), [text])
        data = parquet(columns)
        assert len(data) < 2_000_000
        before = pa.total_allocated_bytes()
        run = uploaded({trl_name(1): data})
        assert run.run.lengths[0, 0] == 1_000_000
        assert pa.total_allocated_bytes() - before < 50_000_000

    def test_one_long_message_repeated_is_refused(self, monkeypatch):
        monkeypatch.setitem(bounds.BOUNDS, "text bytes", (10_000_000, "bytes of text", "Open less"))
        monkeypatch.setattr(parquet_module, "PLAIN_BYTES", 1_000_000)
        messages = [[{"role": "assistant", "content": "x" * 100_000}]] * 200
        columns = trl(prompts=("a", "b"), size=100, completion=messages)
        data = parquet(columns)
        assert len(data) < 100_000
        assert "20,000,000 bytes of text; at most 10,000,000" in refusal({trl_name(1): data})

    def test_many_rows_in_few_bytes(self):
        count = bounds.BOUNDS["rows"][0] + 1
        zeros = pa.array(np.zeros(count, dtype=np.int8))
        assert "2,000,001 completions" in refusal({"a.parquet": parquet({"step": zeros})})

    def test_lists_that_are_long_without_any_values(self):
        length = bounds.BOUNDS["values"][0] + 1
        blank = pa.ListArray.from_arrays(
            pa.array([0, length], pa.int32()), pa.nulls(length, pa.string())
        )
        columns = trl(prompts=("a",), size=1, completion=blank)
        assert "values in one column" in refusal({trl_name(1): parquet(columns)})

    def test_two_columns_of_one_name(self):
        table = pa.table([pa.array([1.0]), pa.array([2.0])], names=["reward", "reward"])
        file = io.BytesIO()
        pq.write_table(table, file)
        assert "two columns called 'reward'" in refusal({"a.parquet": file.getvalue()})

    def test_no_rows(self):
        table = pa.table({name: pa.array(values)[:0] for name, values in trl().items()})
        file = io.BytesIO()
        pq.write_table(table, file)
        assert "holds no completion" in refusal({trl_name(1): file.getvalue()})

    @pytest.mark.parametrize(
        ("columns", "words"),
        [
            (trl(prompt=None), "no column with the prompt; its columns are 'step'"),
            (trl(accuracy_reward=None), "no column with a reward"),
            (trl(accuracy_reward=[None] * 4), "every one is blank"),
            (trl(step=["x"] * 4), "column 'step', row 0 is 'x'"),
            (trl(prompt=[[1, 2]] * 4), "no column with the prompt"),
        ],
    )
    def test_columns_that_are_missing_or_wrong(self, columns, words):
        assert words in refusal({trl_name(1): parquet(columns)})

    @pytest.mark.parametrize(
        "values",
        [
            ["good", "1", "0", "1"],
            [[1.0, 2.0]] * 4,
            [b"\xff\xfe"] * 4,
            [{"a": 1}] * 4,
            pa.array([0, 1, 2, 3], pa.timestamp("s")),
            pa.array([[{"k": "v"}]] * 4),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("role", ["term", "advantage", "step", "length", "prompt", "group"])
    def test_whatever_role_a_column_is_given(self, values, role):
        files = {trl_name(1): parquet(trl(strange=values) | {"step": [1] * 4})}
        roles = {"strange": role}
        roles |= {name: "ignore" for name in ("prompt", "step") if name == role}
        said = tries(files, roles)
        assert not said or ("'strange'" in said and trl_name(1) in said)

    def test_a_million_rows_of_one_prompt(self):
        count = 1_000_000
        same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), ["a"])
        flags = pa.array(np.arange(count) % 2 == 0)
        columns = {"prompt": same, "completion": same, "reward": flags}
        run = uploaded({trl_name(1): parquet(columns)})
        assert run.run.present.shape == (1, count)
        other = {"prompt": [f"p{at}" for at in range(100)], "completion": ["x"] * 100}
        other["reward"] = [True] * 100
        files = {trl_name(1): parquet(columns), trl_name(2): parquet(other)}
        assert "cells, all groups padded to the largest" in refusal(files)


class TestNamesAndTexts:
    NAMES = ("<img src=x onerror=alert(1)>", "a\x00b", "\x1b[31mred", "*bold* `code`", "‮x", " ")

    @pytest.mark.parametrize("name", NAMES)
    def test_names_are_only_data(self, name):
        run = uploaded({trl_name(1): parquet(trl(**{name: [1.0, 2, 3, 4]}))})
        assert name in run.run.names
        run = uploaded({"m.jsonl": lines([{"prompt": "a", "completion": "b", name: 1.0}])})
        assert run.run.names == (name,)
        assert uploaded({f"{name}.parquet": parquet(trl())}).run.present.all()


@settings(max_examples=60, deadline=None)
@given(
    data=st.binary(max_size=200),
    name=st.sampled_from(("a.parquet", "a.jsonl", "a.csv", "a.npz", "a")),
)
def test_noise(data, name):
    tries({name: data})
    tries({name: b"PAR1" + data + b"PAR1"})
    tries({name: b"PK\x03\x04" + data})
    tries({name: b'{"prompt": ' + data})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = (
    *("input", "output", "score", "step", "uid", "prompt", "completion", "advantages", "reward"),
    *("task_id", "seqlen", "prompt_len", "rewards", "idx", "token_ids", "token_loss_mask"),
    *("loss_mask", "trainer_logprobs", "logp_new", "mask", "log_history"),
)


@settings(max_examples=150, deadline=None)
@given(records=st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=8), max_size=4))
def test_records_of_any_values(records):
    tries({"1.jsonl": lines(records)})
    tries({"1.json": json.dumps(records).encode()})
    tries({"1.json": json.dumps(records[0] if records else {}).encode()})


@pytest.mark.parametrize(
    "files",
    [
        {"1.jsonl": lines([{"input": "a", "output": "b", "score": 1.0, "step": 1}] * 4)},
        {"c.csv": b"prompt,completion,reward\na,b,1\na,c,0\n"},
        {"r.zip": zipped({trl_name(1): parquet(trl())})},
    ],
    ids=["lines", "csv", "zip"],
)
def test_cut_off_anywhere(files):
    ((name, data),) = files.items()
    for end in range(len(data)):
        tries({name: data[:end]})


def test_a_line_that_is_too_long_is_refused_without_reading_on(monkeypatch):
    monkeypatch.setitem(bounds.BOUNDS, "line bytes", (1000, "bytes in one line", "Write shorter"))
    assert "1.jsonl, line 1" in refusal({"1.jsonl": b'{"a": "' + b"x" * 50_000_000})
