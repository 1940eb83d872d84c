"""Our own layout of arrays: every form of it reads the same, and what is wrong is named."""

import io
import json
import struct
import zipfile

import numpy as np
import pytest

from pages._ui.runs import layout_text
from pages._ui.runs.bounds import BOUNDS
from pages._ui.runs.tokens_batch import renamed
from pages._ui.runs.tokens_files import batch_again
from tests.unit.token_files import (
    columns_of,
    json_lines,
    npz,
    on_disk,
    opened,
    read,
    read_source,
    refusal,
)

P, G, L = 2, 3, 4
RNG = np.random.default_rng(7)
LOGP = np.round(-RNG.random((P, G, L)), 6)
LENGTHS = [[4, 2, 1], [3, 4, 0]]
MASK = np.arange(L) < np.array(LENGTHS)[..., None]
NAME = "run/step_0012.npz"


def members(**changes):
    """A batch as NumPy arrays; None leaves one out."""
    found = {
        "step": 12,
        "logp_new": LOGP,
        "logp_old": LOGP - 0.25,
        "logp_ref": LOGP - 0.5,
        "mask": MASK.astype(np.int8),
        "rewards": np.arange(6.0).reshape(P, G),
        "advantages": np.arange(6.0).reshape(P, G) - 2,
        "prompts": np.array(["p", "q"]),
        "completions": np.array([["abcd", "ab", "a"], ["abc", "dcba", ""]]),
        "token_ids": np.array([[[7, 8, 9, 10]] * 3, [[7, 8, 9, 10], [10, 9, 8, 7], [0] * 4]]),
        "loss": 0.5,
        **changes,
    }
    return {key: value for key, value in found.items() if value is not None}


def ragged(array):
    """Nested lists, a completion as long as its tokens."""
    return [
        [array[p, g, : LENGTHS[p][g]].tolist() for g in range(array.shape[1])]
        for p in range(len(array))
    ]


def document(**changes):
    """The same batch as nested lists without a mask."""
    given = members(mask=None)
    lists = {
        key: ragged(value) if np.ndim(value) == 3 else np.asarray(value).tolist()
        for key, value in given.items()
    }
    return {key: value for key, value in (lists | changes).items() if value is not None}


def flat(**changes):
    """The same batch with its completions in one list."""
    given = members()
    found = {
        key: value.reshape(P * G, *value.shape[2:]) if np.ndim(value) > 1 else value
        for key, value in given.items()
    }
    return found | {"prompts": np.repeat(given["prompts"], G)} | changes


def as_json(**changes):
    return json.dumps(document(**changes)).encode()


def same_records(one, other):
    assert one.step.tolist() == other.step.tolist()
    assert one.lengths.tolist() == other.lengths.tolist()
    assert one.numbers.keys() == other.numbers.keys()
    for name, values in one.numbers.items():
        assert np.array_equal(values, other.numbers[name], equal_nan=True)
    rows = range(len(one.step))
    assert one.texts(rows) == other.texts(rows)
    assert [len(set(g.group[:3].tolist())) for g in (one, other)] == [1, 1]
    for row in rows:
        mine, yours = one.tokens(row), other.tokens(row)
        assert (mine.step, mine.pieces, mine.loss) == (yours.step, yours.pieces, yours.loss)
        assert mine.arrays.keys() == yours.arrays.keys()
        for key, array in mine.arrays.items():
            assert np.array_equal(array, yours.arrays[key])


class TestWhatIsRead:
    def test_numbers_lengths_texts_and_step(self):
        found = read(NAME, npz(**members()))
        assert found.step.tolist() == [12] * 6
        assert found.lengths.tolist() == [4, 2, 1, 3, 4, 0]
        assert found.numbers["rewards"].tolist() == [0, 1, 2, 3, 4, 5]
        assert found.numbers["advantages"].tolist() == [-2, -1, 0, 1, 2, 3]
        assert found.texts([4, 0]) == [("q", "dcba"), ("p", "abcd")]
        assert np.unique(found.group, return_counts=True)[1].tolist() == [3, 3]
        assert found.notes == ()

    def test_tokens_are_the_valid_ones_in_order(self):
        row = read(NAME, npz(**members())).tokens(3)
        assert row.arrays["logp_new"].tolist() == LOGP[1, 0, :3].tolist()
        assert row.arrays["mask"].tolist() == [True] * 3
        assert row.pieces == ("a", "b", "c")
        assert (row.step, row.loss) == (12, 0.5)

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.json", as_json()),
            ("a.json", json.dumps([document()]).encode()),
            ("a.jsonl", json_lines(document())),
            ("a.npz", npz(**flat())),
            ("a.npz", npz(**members(token_ids=None, completion_ids=members()["token_ids"]))),
            ("a.npz", npz(**members(mask=MASK))),
            ("a.npz", npz(**members(extra=np.zeros(3), result_ratio=np.zeros(2)))),
        ],
        ids=["json", "list", "lines", "flat", "completion_ids", "bool mask", "other arrays"],
    )
    def test_every_form_reads_the_same(self, name, data):
        same_records(read(name, data), read(NAME, npz(**members())))

    def test_left_padding_is_no_token(self):
        turned = {
            key: np.flip(value, axis=2) if np.ndim(value) == 3 else value
            for key, value in members().items()
        }
        found = read(NAME, npz(**turned))
        assert found.tokens(1).arrays["logp_new"].tolist() == LOGP[0, 1, 1::-1].tolist()
        assert found.lengths.tolist() == [4, 2, 1, 3, 4, 0]

    def test_whatever_stands_in_padding_changes_nothing(self):
        noise = np.where(MASK, LOGP, np.nan)
        noise[0, 2, 3] = np.inf
        same_records(read(NAME, npz(**members(logp_new=noise))), read(NAME, npz(**members())))

    def test_float32_stays_float32(self):
        found = read(NAME, npz(**members(logp_new=LOGP.astype(np.float32))))
        assert found.tokens(0).arrays["logp_new"].dtype == np.float32
        assert found.tokens(0).arrays["token_ids"].dtype == np.float64

    def test_several_steps_in_one_file(self):
        other = document(step=13, rewards=[[9, 8, 7], [6, 5, 4]])
        for name, data in (
            ("a.json", json.dumps([document(), other]).encode()),
            ("a.jsonl", json_lines(document(), other)),
        ):
            found = read(name, data)
            assert found.step.tolist() == [12] * 6 + [13] * 6
            assert found.tokens(6).step == 13
            assert found.numbers["rewards"][6:].tolist() == [9, 8, 7, 6, 5, 4]
            assert found.texts([0, 11, 1])[1] == ("q", "")

    def test_terms_have_their_names_and_the_total_is_one(self):
        terms = np.stack([np.ones((P, G)), np.arange(6.0).reshape(P, G)], axis=-1)
        data = npz(**members(rewards_per_term=terms, term_names=np.array(["right", "form"])))
        _, columns = columns_of(NAME, data)
        roles = {name: column.role for name, column in columns.items()}
        assert roles["right"] == roles["form"] == "term"
        assert roles["rewards"] == "total"
        assert read(NAME, data).numbers["form"].tolist() == [0, 1, 2, 3, 4, 5]

    @pytest.mark.parametrize("names", [None, ["only one"], ["twice", "twice"]])
    def test_terms_without_a_name_each_are_numbered(self, names):
        data = as_json(rewards_per_term=np.ones((P, G, 2)).tolist(), term_names=names)
        _, columns = columns_of("a.json", data)
        assert [name for name in columns if name.startswith("term")] == ["term 0", "term 1"]

    def test_a_term_may_not_hide_another_column(self):
        terms = np.ones((P, G, 1)).tolist()
        found = read("a.json", as_json(rewards_per_term=terms, term_names=["rewards"]))
        assert found.numbers.keys() == {"rewards (term)", "rewards", "advantages"}

    def test_the_only_reward_is_the_term(self):
        assert columns_of(NAME, npz(**members()))[1]["rewards"].role == "term"

    def test_advantages_per_token(self):
        spread = np.where(MASK, np.arange(6.0).reshape(P, G, 1), 99.0)
        spread[0, 0] = [1, 2, 3, 6]
        for data in (
            npz(**members(advantages=spread)),
            npz(**flat(advantages=spread.reshape(6, L))),
        ):
            found = read(NAME, data)
            assert found.numbers["advantages"][:5].tolist() == [3, 1, 2, 3, 4]
            assert np.isnan(found.numbers["advantages"][5])  # it has no token
            assert found.tokens(0).arrays["token_advantages"].tolist() == [1, 2, 3, 6]

    def test_absent_completions_are_no_records(self):
        present = [[1, 1, 0], [1, 1, 1]]
        bad = LOGP.copy()
        bad[0, 2] = np.nan
        found = read(NAME, npz(**members(present=np.array(present), logp_new=bad)))
        assert len(found.step) == 5
        assert found.texts([2]) == [("q", "abc")]
        assert found.tokens(2).arrays["logp_new"].tolist() == LOGP[1, 0, :3].tolist()

    def test_groups_of_unequal_size_in_json(self):
        line = {
            "logp_new": [[[-1, -2]], [[-3], [-4, -5, -6]]],
            "rewards": [[1], [0, 1]],
            "prompts": ["p", "q"],
        }
        found = read("step_3.json", json.dumps(line).encode())
        assert found.group[1] == found.group[2] != found.group[0]
        assert found.lengths.tolist() == [2, 1, 3]
        assert found.texts([0, 1, 2]) == [("p", ""), ("q", ""), ("q", "")]

    def test_groups_of_the_flat_form_by_id_or_by_prompt(self):
        given = flat(group=np.array([5, 5, 9, 9, 9, 5]))
        del given["prompts"]
        found = read(NAME, npz(**given))
        assert found.group[0] == found.group[1] == found.group[5]
        assert len(set(found.group.tolist())) == 2
        words = read(NAME, npz(**flat(group=np.array(list("aabbba")))))
        other = read("run/other.npz", npz(**flat(group=np.array(list("aabbba")))))
        assert words.group.tolist() == other.group.tolist()
        numbers = read("run/other.npz", npz(**given))
        assert not set(numbers.group.tolist()) & set(found.group.tolist())

    def test_a_prompt_twice_in_a_grid_is_two_groups(self):
        found = read(NAME, npz(**members(prompts=np.array(["p", "p"]))))
        assert found.group[0] != found.group[3]

    def test_the_step_may_stand_in_the_name(self):
        found = read("micro_0021.npz", npz(**members(step=None)))
        assert found.step.tolist() == [21] * 6
        assert any("names no step" in note for note in found.notes)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"logp_new": None}, "no logp_new: logp_old stands in"),
            ({"logp_old": None}, "no logp_old: logp_new stands in"),
            (
                {"logp_new": None, "logp_old": None, "logp_ref": None, "logp_sampler": LOGP},
                "no logp_new and logp_old: logp_sampler stands in",
            ),
        ],
        ids=["new", "old", "both"],
    )
    def test_what_stands_in_for_a_missing_policy_is_said(self, changes, words):
        found = read(NAME, npz(**members(**changes)))
        assert any(words in note for note in found.notes)
        row = found.tokens(0).arrays
        assert np.array_equal(row["logp_new"], row["logp_old"])

    def test_rewards_alone_are_a_run_without_tokens(self):
        found = read(NAME, npz(rewards=np.eye(2), prompts=np.array(["p", "q"])))
        assert found.tokens is None
        assert found.numbers["rewards"].tolist() == [1, 0, 0, 1]

    def test_pieces_that_are_given_are_those_that_are_shown(self):
        texts = [[["w", "x", "y", "z"]] * 3] * 2
        assert read(NAME, npz(**members(pieces=np.array(texts)))).tokens(1).pieces == ("w", "x")
        short = [[["w"], [], [None]], [[], ["a", 7], []]]
        found = read("a.json", as_json(pieces=short))
        assert found.tokens(0).pieces == ("w", "", "", "")
        assert found.tokens(4).pieces == ("a", "", "", "")

    def test_opens_as_a_run_with_every_use_of_a_batch(self):
        found = opened(
            ("a/step_12.npz", npz(**members())),
            ("a/step_13.npz", npz(**members(step=13, logp_new=LOGP - 1))),
        )
        assert found.format.key == "arrays"
        assert found.run.steps.tolist() == [12, 12]
        assert [group.step for group in found.tokens(0)] == [12, 13]
        assert found.tokens(1)[1].arrays["logp_new"][1].tolist() == (LOGP[1, 1] - 1).tolist()

    def test_a_file_is_read_again_for_its_tokens_and_the_last_ones_are_held(self, tmp_path):
        path = tmp_path / "a.jsonl"
        path.write_bytes(json_lines(document(), document(step=13)))
        found = read_source(on_disk(path))
        row = found.tokens(6)
        assert row is not found.tokens(6)
        assert batch_again(found.tokens.args[0], 1) is batch_again(found.tokens.args[0], 1)
        path.unlink()
        assert np.array_equal(found.tokens(7).arrays["logp_new"], LOGP[0, 1, :2])
        assert "a.jsonl" in refusal(found.tokens, 0)


def placed(key, where, value, dtype=None):
    array = np.array(members()[key], dtype=dtype or float)
    array[where] = value
    return {key: array}


class TestBadValues:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            (
                placed("logp_new", (1, 0, 2), 0.5),
                "logp_new at prompt 1, completion 0, token 2 is 0",
            ),
            (
                placed("logp_new", (0, 0, 0), np.nan),
                "prompt 0, completion 0, token 0 is nan; wanted",
            ),
            (placed("logp_old", (1, 1, 3), np.inf), "logp_old at prompt 1, completion 1, token 3"),
            (placed("logp_ref", (0, 1, 1), 7), "logp_ref at prompt 0, completion 1, token 1 is 7"),
            (placed("token_ids", (0, 1, 1), -4), "token_ids at prompt 0, completion 1, token 1"),
            (
                placed("mask", (0, 2, 3), 3),
                "mask at prompt 0, completion 2, token 3 is 3; wanted 0",
            ),
            (placed("rewards", (1, 2), np.inf), "rewards at prompt 1, completion 2 is inf"),
            ({"present": np.full((P, G), 0.5)}, "present at prompt 0, completion 0 is 0.5"),
            ({"present": np.zeros((P, G))}, "no completion that is present"),
            ({"logp_old": LOGP[:, :2]}, "logp_old has shape (2, 2, 4); wanted (2, 3)"),
            ({"logp_old": LOGP[:, :, :3]}, "logp_old of prompt 0, completion 0 has 3 values"),
            ({"logp_new": LOGP[0, 0]}, "logp_new has 1 axes; wanted (P, G, L) or (N, L)"),
            ({"rewards": np.zeros(P)}, "rewards has shape (2,); wanted (2, 3)"),
            ({"rewards": np.zeros((P, G, 1))}, "rewards has shape (2, 3, 1)"),
            ({"logp_new": np.zeros((0, 3, 4))}, "logp_new is empty"),
            ({"step": -1}, "step is -1; wanted a whole number of at least 0"),
            ({"step": 2.5}, "step is 2.5"),
            ({"step": [1, 2]}, "step is [1, 2]"),
            ({"completions": np.array(["a", "b", "c"])}, "completions has shape (3,)"),
            ({"rewards_per_term": np.zeros((P, G, 65))}, "65 terms; at most 64"),
        ],
        ids=lambda value: str(value)[:50] if isinstance(value, str) else "",
    )
    def test_in_arrays(self, changes, words):
        message = refusal(read, NAME, npz(**members(**changes)))
        assert message.startswith(NAME)
        assert words in message

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"logp_old": [[[-1.0]] * 3] * 2}, "logp_old of prompt 0, completion 0 has 1 values"),
            (
                {"logp_old": [[-1.0]]},
                "logp_old does not fit the other arrays (completions: 6, groups: 2)",
            ),
            ({"logp_new": [[["a"]]]}, "'a' at position 0 of 'logp_new'"),
            ({"logp_new": [[["-1"]]]}, "'-1' at position 0 of 'logp_new'"),
            ({"logp_new": [[[{}]]]}, "wanted a number"),
            ({"logp_new": [[5, [1]]]}, "row 0 has [1] at position 1 of 'logp_new'"),
            ({"logp_new": [[[1], 5]]}, "completion 1 is 5; wanted a list of numbers"),
            ({"logp_new": "much"}, "logp_new has 0 axes"),
            ({"logp_new": [[[[[[-1]]]]]]}, "axes; wanted"),
            ({"logp_new": []}, "logp_new"),
            ({"logp_new": [[]]}, "does not fit the other arrays (completions: 1)"),
            ({"rewards": [[1, 2, "x"], [1, 2, 3]]}, "'x' at position 2 of 'rewards'"),
            ({"rewards": 7}, "rewards is 7; wanted a list"),
            ({"prompts": [["p"], ["q"]]}, "prompts does not fit"),
            ({"rewards_per_term": [[[1], [1, 2], [1]], [[1], [1], [1]]]}, "has fewer values"),
            ({"step": "twelve"}, "step is 'twelve'"),
            ({"step": -3}, "step is -3"),
            ({"prompts": ["p", {"a": 1}]}, "prompts is not made of texts"),
            ({"logp_old": [None, [[-1]]]}, "logp_old does not fit"),
            ({"rewards": [None, [1, 2, 3]]}, "rewards does not fit"),
            ({"rewards_per_term": [[1, 2, 3], [4, 5, 6]]}, "wanted a list of numbers"),
            ({"step": True, "loss": [[1], [2, 3]]}, None),
            ({"term_names": {"a": 1}, "loss": "x"}, None),
            ({"rewards": [[None, 1, 2], [3, 4, 5]]}, None),
        ],
        ids=lambda value: str(value)[:50],
    )
    def test_in_lists(self, changes, words):
        if words is None:
            assert len(read("a.json", as_json(**changes)).step) == 6
        else:
            message = refusal(read, "a.json", as_json(**changes))
            assert message.startswith("a.json")
            assert words in message

    def test_the_flat_form_names_the_row(self):
        wrong = flat()
        wrong["logp_new"] = wrong["logp_new"].copy()
        wrong["logp_new"][3, 2] = 1
        assert "logp_new at row 3, token 2 is 1" in refusal(read, NAME, npz(**wrong))

    def test_the_flat_form_without_groups_says_what_to_add(self):
        given = flat()
        del given["prompts"]
        assert "add group" in refusal(read, NAME, npz(**given))

    def test_a_batch_of_several_is_named(self):
        wrong = document(step=-1)
        data = json.dumps([document(), wrong]).encode()
        assert refusal(read, "a.json", data).startswith("a.json, batch 1: step is -1")
        lines = json_lines(document(), wrong)
        assert refusal(read, "a.jsonl", lines).startswith("a.jsonl, line 2: step is -1")

    def test_a_line_that_is_cut_off_is_left_out(self):
        found = read("a.jsonl", json_lines(document(), document(step=13))[:-30])
        assert found.step.tolist() == [12] * 6
        assert any("line 2" in note for note in found.notes)


def zipped(name, data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def npy(header, body=b""):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


class TestBadFiles:
    @pytest.mark.parametrize(
        "header",
        [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (800000000000000,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2, 2, 2), }",
            "{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }",
            "((((",
        ],
    )
    def test_a_header_that_lies_is_refused(self, header):
        data = zipped("logp_new.npy", npy(header, b"\0" * 16))
        assert "'logp_new' is damaged or does not hold numbers" in refusal(read, NAME, data)

    def test_objects_are_never_loaded_and_the_remedy_is_named(self):
        rows = np.empty(2, dtype=object)
        rows[:] = [[1.0], [2.0, 3.0]]
        message = refusal(read, NAME, npz(**members(logp_new=rows)))
        assert "'logp_new' holds objects" in message
        assert "an npz file with objects" in message

    def test_objects_under_other_names_do_no_harm(self):
        rows = np.array([{}, []], dtype=object)
        same_records(read(NAME, npz(**members(notes=rows))), read(NAME, npz(**members())))

    def test_sizes_are_checked_before_anything_is_unpacked(self, monkeypatch):
        monkeypatch.setitem(BOUNDS, "upload bytes", (5000, "bytes once unpacked", "Open less"))
        data = npz(**members(entropy=np.zeros((P, G, 100_000))))
        assert len(data) < 10_000
        assert "at most 5,000 are read" in refusal(read, NAME, data)

    def test_lists_that_would_be_padded_to_too_many_cells_are_refused(self, monkeypatch):
        monkeypatch.setitem(BOUNDS, "values", (1000, "values in one column", "Open less"))
        line = {"logp_new": [[-1]] * 100 + [[-1] * 50], "group": [1] * 101}
        data = json.dumps(line).encode()
        assert "at most 1,000 are read" in refusal(read, "a.json", data)

    @pytest.mark.parametrize("cut", [10, 200, -30])
    def test_a_damaged_archive_is_refused(self, cut):
        refusal(read, NAME, npz(**members())[:cut])

    def test_texts_in_an_array_of_numbers_are_refused(self):
        data = npz(**members(logp_new=np.array([["a"]])))
        assert "does not hold numbers" in refusal(read, NAME, data)
        data = npz(**members(prompts=np.array([1, 2])))
        assert "'prompts' is damaged or does not hold texts" in refusal(read, NAME, data)

    @pytest.mark.parametrize(
        "text", ["[" * 100_000, '{"logp_new": ' + "[" * 100_000, '{"logp_new": [[[-1', "[]", "[1]"]
    )
    def test_json_that_is_none_is_refused(self, text):
        refusal(read, "a.json", text.encode())


class TestLayoutText:
    def test_every_name_that_is_told_is_read(self):
        names = {name.strip("`") for name, _, _ in layout_text.ROWS}
        assert renamed(dict.fromkeys(names, 0)).keys() == names

    def test_the_examples_open(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        logp, mask = np.full((1, 2, 3), -1.0), np.ones((1, 2, 3))
        given = {"logp_new": logp, "logp_old": logp, "logp_ref": logp, "mask": mask}
        exec(layout_text.EXAMPLE_NPZ, given | {"rewards": np.array([[1.0, 0.0]])})
        found = read("step_000010.npz", (tmp_path / "step_000010.npz").read_bytes())
        assert found.texts([1]) == [("2+2=?", "five")]
        found = read("a.json", layout_text.EXAMPLE_JSON.encode())
        assert found.lengths.tolist() == [1, 2]
        assert found.step.tolist() == [10, 10]

    def test_it_is_markdown_with_a_table_of_all_arrays(self):
        assert layout_text.MARKDOWN.count("\n| `") == len(layout_text.ROWS)
