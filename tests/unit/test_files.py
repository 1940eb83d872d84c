"""Scenario files: readable, lossless, and closed to whatever is not one."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from grpo_core import Choice, Conventions, Scenario, ScenarioError, Texts, build_scenario, evaluate
from grpo_core.scenario import same_scenario
from grpo_core.terms import TERMS, Term
from pages._ui.files import (
    NPZ_LIMIT,
    scenario_from_json,
    scenario_from_npz,
    scenario_to_json,
    scenario_to_npz,
)

RECORDED = Path(__file__).parents[1] / "data" / "trl_addition_0041.npz"


SHAPING = (
    Term("format → 1", 0.1),
    Term("length", -1e-3, Choice("length_linear", {"free": 2, "per": 10.0})),
)


def scenario():
    """Two completions with a hole and padding, one absent, one without a score."""
    return build_scenario(
        rewards=[[1.0, np.nan, 0.1 + 0.2, 7.0]],
        present=[[1, 1, 1, 0]],
        mask=[[[0, 1, 0, 1], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]],
        logp_new=-np.arange(16.0).reshape(1, 4, 4) / 3,
        logp_old=np.full((1, 4, 4), -np.inf, dtype=np.float32),
        advantages=[[0.5, -0.0, 1e-320, 0.0]],
        logged_loss=-1e300,
        dist_new=[0.1 + 0.2, 0.0, 1e-320],
        dist_ref=np.float32([0.1, 0.2, 0.7]),
        seed=123_456,
        step_ends=[[[1, 3, 3], [np.nan, 0, np.nan], [np.nan] * 3, [7, 7, 7]]],
        step_rewards=np.float32([[[0.1, 0, -1], [np.nan, 2, np.nan], [np.nan] * 3, [1, 1, 1]]]),
        term_values=[[[1.0, np.nan], [0.1 + 0.2, -0.0], [np.nan, np.nan], [5, 5]]],
        token_ids=np.arange(16.0).reshape(1, 4, 4),
        terms=SHAPING,
        conventions=Conventions.of(advantage="given", surrogate=("clip", {"epsilon_high": 0.28})),
        texts=Texts(
            ("34+82=",),
            (
                (
                    ("", "1", "→", "6"),
                    ("<end>", "", "", ""),
                    ("1", "1", "6", "."),
                    ("", "", "", ""),
                ),
            ),
        ),
        drift=0.5,
    )


def document(**changes):
    """A small valid file as a table, with changes."""
    return {"format": "grpo-explorer 1", "arrays": {"rewards": [[1, 0]]}, **changes}


def read(**changes):
    return scenario_from_json(json.dumps(document(**changes)))


def npz(**members):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **members)
    return buffer.getvalue()


def zipped(name, data, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data, **options)
    return buffer.getvalue()


def refusal(read, given):
    with pytest.raises(ScenarioError) as caught:
        read(given)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


class TestJson:
    def test_comes_back_bit_for_bit(self):
        assert same_scenario(scenario_from_json(scenario_to_json(scenario())), scenario())

    def test_reads_well(self):
        text = scenario_to_json(scenario())
        found = json.loads(text)
        assert found["format"] == "grpo-explorer 1"
        assert found["arrays"]["rewards"] == [[1, None, 0.1 + 0.2, None]]
        assert found["arrays"]["logp_old"][0][0] == [None, "-inf", None, "-inf"]
        assert found["conventions"]["surrogate"] == {
            "variant": "clip",
            "epsilon_low": 0.2,
            "epsilon_high": 0.28,
        }
        assert found["arrays"]["step_ends"] == [
            [[1, 3, 3], [None, 0, None], [None] * 3, [None] * 3]
        ]
        assert found["terms"] == [
            {"name": "format → 1", "weight": 0.1, "formula": "given"},
            {"name": "length", "weight": -1e-3, "formula": "length_linear", "free": 2, "per": 10.0},
        ]
        assert '    {"name": "format → 1", "weight": 0.1, "formula": "given"},\n' in text
        # One character for each token, from the first valid position, is one string.
        assert found["texts"]["tokens"] == [["1→6", ["<end>", "", "", ""], "116.", ""]]
        assert '        [null, "-inf", null, "-inf"],\n' in text

    def test_a_byte_order_mark_in_front_does_no_harm(self):
        text = "\ufeff" + scenario_to_json(scenario())
        assert same_scenario(scenario_from_json(text), scenario())

    def test_rewards_are_enough(self):
        assert same_scenario(read(), build_scenario(rewards=[[1, 0]]))

    def test_mask_follows_from_the_gaps_in_the_log_probabilities(self):
        found = read(arrays={"rewards": [[1, 0]], "logp_new": [[[-1, None], [-2, -3]]]})
        assert found["mask"].tolist() == [[[True, False], [True, True]]]
        assert found["logp_new"][0, 0, 1] == -1.0

    def test_mask_follows_from_the_only_log_probabilities_there_are(self):
        found = read(arrays={"rewards": [[1, 0]], "logp_old": [[[-1, None], [-2, -3]]]})
        assert found["mask"].tolist() == [[[True, False], [True, True]]]

    def test_short_lists_of_tokens_begin_at_the_first_valid_position(self):
        arrays = {"rewards": [[1, 0]], "logp_new": [[[None, -1, -1], [-2, -3, None]]]}
        found = read(arrays=arrays, texts={"tokens": [["ab", ["cd"]]]})
        assert found.texts.tokens == ((("", "a", "b"), ("cd", "", "")),)

    def test_tokens_have_a_text_for_every_position_of_every_completion(self):
        arrays = {"rewards": [[1, 0], [1, 0]], "logp_new": [[[-1, -1]] * 2] * 2}
        found = read(arrays=arrays, texts={"tokens": [["a"]]})
        assert found.texts.tokens == ((("a", ""), ("", "")), (("", ""), ("", "")))

    def test_terms_need_a_name_and_take_the_rest_from_their_defaults(self):
        arrays = {"rewards": [[1, 0]], "term_values": [[[1], [None]]]}
        found = read(arrays=arrays, terms=[{"name": "format"}])
        assert found.terms == (Term("format", 1.0, Choice("given")),)

    def test_no_formula_has_an_option_by_the_name_of_another_entry(self):
        options = {option.key for row in TERMS.values() for option in row.options}
        assert not options & {"name", "weight", "formula"}

    def test_float32_stays_float32(self):
        values = np.float32([[0.1, 1 / 3]])
        found = scenario_from_json(scenario_to_json(build_scenario(rewards=values)))
        assert found["rewards"].dtype == np.float32
        assert found["rewards"].tobytes() == values.tobytes()

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "line 1, column 1"),
            ("{\n  rewards", "line 2, column 3"),
            ("[" * 100_000, "nested too deeply"),
            ('{"arrays": ' + "[" * 50_000, "nested too deeply"),
            ("[1, 2]", "not a table"),
            ("null", "not a table"),
            ('{"drift": ' + "9" * 5000 + "}", "too many digits"),
            ("{}", "no arrays"),
        ],
        ids=lambda value: value[:20],
    )
    def test_what_is_no_file_of_ours(self, text, words):
        assert words in refusal(scenario_from_json, text)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"format": "grpo-explorer 2"}, "another format"),
            ({"format": ["x"]}, "another format"),
            ({"reward": 1}, "'reward'"),
            ({"arrays": [1]}, "arrays is not a table"),
            ({"arrays": {}}, "no arrays"),
            ({"arrays": {"logged_loss": 1}}, "no arrays"),
            ({"arrays": {"reward": [[1]]}}, "'reward'"),
            ({"arrays": {"rewards": [1, 0]}}, "rewards has 1 axes"),
            ({"arrays": {"rewards": [[1, 0], [1]]}}, "prompt 1"),
            ({"arrays": {"rewards": [["one", 0]]}}, "'one'"),
            ({"arrays": {"rewards": [[{}, 0]]}}, "completion 0"),
            ({"arrays": {"rewards": [[10**400, 0]]}}, "completion 0"),
            ({"arrays": {"rewards": [["-inf", 0]]}}, "prompt 0, completion 0"),
            ({"arrays": {"rewards": None}}, "rewards"),
            ({"arrays": {"rewards": [[]]}}, "at least 1"),
            ({"arrays": {"rewards": [[1]], "logp_new": [[[0.5]]]}}, "at most 0"),
            ({"arrays": {"rewards": [[1]], "logp_new": [[[-1]]], "mask": [[[2]]]}}, "mask"),
            ({"arrays": {"rewards": [[1]], "logp_new": [[[-1]], [[-1]]]}}, "shape"),
            ({"float32": "rewards"}, "float32"),
            ({"float32": [[1]]}, "float32"),
            ({"drift": "1"}, "drift"),
            ({"drift": True}, "drift"),
            ({"drift": None}, "drift"),
            ({"drift": float("inf")}, "drift"),
            ({"drift": 10**400}, "too large"),
            ({"conventions": 1}, "conventions"),
            ({"conventions": {"kl": "k3"}}, "'kl'"),
            ({"conventions": {"kl": {}}}, "'kl'"),
            ({"conventions": {"kl": {"variant": ["k3"]}}}, "'kl'"),
            ({"conventions": {"kl": {"variant": "k9"}}}, "'k9'"),
            ({"conventions": {"kl": {"variant": "k3", "beta": -1}}}, "kl.beta"),
            ({"conventions": {"kl": {"variant": "k3", "beta": [1]}}}, "kl.beta"),
            ({"conventions": {"kl": {"variant": "k3", "beta": float("nan")}}}, "kl.beta"),
            ({"conventions": {"kl": {"variant": "k3", "beta": 10**400}}}, "too large"),
            ({"conventions": {"magic": {"variant": "k3"}}}, "'magic'"),
            ({"conventions": {"cls": {"variant": "k3"}}}, "'cls'"),
            ({"conventions": {"advantage": {"variant": "given"}}}, "'advantages'"),
            ({"terms": {}}, "terms is no list"),
            ({"terms": None}, "terms is no list"),
            ({"terms": [{"name": "a"}] * 17}, "at most 16"),
            ({"terms": ["a"]}, "term 0 is no table"),
            ({"terms": [{}]}, "term 0: a term has no name"),
            ({"terms": [{"name": 5}]}, "term 0: a term has no name"),
            ({"terms": [{"name": "a" * 41}]}, "at most 40"),
            ({"terms": [{"name": "\ud800", "formula": "overlong"}]}, "half of a character"),
            ({"terms": [{"name": "a", "weight": "1"}]}, "the weight of term 0"),
            ({"terms": [{"name": "a", "weight": True}]}, "the weight of term 0"),
            ({"terms": [{"name": "a", "weight": None}]}, "the weight of term 0"),
            ({"terms": [{"name": "a", "weight": float("nan")}]}, "the weight of term 0"),
            ({"terms": [{"name": "a", "weight": 10**400}]}, "too large"),
            ({"terms": [{"name": "a", "weight": 1e300}]}, "term 0: the weight of term 'a' is"),
            ({"terms": [{"name": "a", "formula": ["given"]}]}, "term 0 is no table"),
            ({"terms": [{"name": "a", "formula": "magic"}]}, "term 0: formula: unknown variant"),
            ({"terms": [{"name": "a", "formula": "overlong", "limit": [1]}]}, "'term 0.limit'"),
            ({"terms": [{"name": "a", "formula": "overlong", "limit": -1}]}, "formula.limit is -1"),
            ({"terms": [{"name": "a", "formula": "overlong", "lim": 1}]}, "no option 'lim'"),
            ({"terms": [{"name": "a"}]}, "needs the array 'term_values'"),
            ({"terms": [{"name": "a", "formula": "overlong"}] * 2}, "two terms are called 'a'"),
            ({"arrays": {"rewards": [[1]], "term_values": [[[1, 2]]]}}, "for each of the 0 terms"),
            ({"arrays": {"rewards": [[1]], "step_ends": [[[0]]]}}, "step_rewards is missing"),
            (
                {"arrays": {"rewards": [[1]], "step_ends": [[[2]]], "step_rewards": [[[1]]]}},
                "completion 0, step 0 is 2; wanted a token position",
            ),
            ({"arrays": {"rewards": [[1]], "step_ends": [[[0] * 257]]}}, "257 steps; at most 256"),
            ({"arrays": {"rewards": [[1]], "token_ids": [[[0.5]]]}}, "token_ids"),
            ({"texts": []}, "texts"),
            ({"texts": {"tokens": 5}}, "tokens"),
            ({"texts": {"tokens": [["a", "b"], ["c", "d"]]}}, "at most 1"),
            ({"texts": {"tokens": [["a", "b", "c"]]}}, "at most 2"),
            ({"texts": {"tokens": [["ab"]]}}, "completion 0"),
            ({"texts": {"tokens": [[["a", 1]]]}}, "not a text"),
            ({"texts": {"tokens": [[7]]}}, "neither"),
            ({"texts": {"prompts": "a"}}, "prompts"),
            ({"texts": {"prompts": [1]}}, "not a text"),
            ({"texts": {"prompts": ["a", "b"]}}, "at most 1"),
            ({"texts": {"prompts": ["\ud800"]}}, "half of a character"),
            ({"texts": {"prompts": ["a" * 500_000]}}, "characters"),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_a_wrong_file_is_refused_with_the_place(self, changes, words):
        assert words in refusal(scenario_from_json, json.dumps(document(**changes)))

    def test_too_many_cells(self):
        assert "too large" in refusal(
            scenario_from_json, json.dumps({"arrays": {"rewards": [[0] * 500_001]}})
        )


class TestNpz:
    def test_comes_back_bit_for_bit(self):
        data = scenario_to_npz(scenario(), evaluate(scenario()))
        assert same_scenario(scenario_from_npz(data), scenario())

    def test_numpy_reads_arrays_and_results_by_name(self):
        result = evaluate(scenario())
        with np.load(io.BytesIO(scenario_to_npz(scenario(), result))) as data:
            np.testing.assert_array_equal(data["rewards"], scenario()["rewards"])
            np.testing.assert_array_equal(data["result_ratio"], result.ratio)
            assert float(data["result_loss"]) == result.loss
            about = json.loads(str(data["about"]))
            assert about["drift"] == 0.5
            assert [term["name"] for term in about["terms"]] == ["format → 1", "length"]

    def test_plain_arrays_are_enough(self):
        found = scenario_from_npz(npz(rewards=[[1, 0]], other=[[["x"]]]))
        assert same_scenario(found, build_scenario(rewards=[[1, 0]]))

    def test_recorded_batch_opens_with_its_prompts_and_loss(self):
        with np.load(RECORDED) as data:
            members = dict(data)
        found = scenario_from_npz(npz(**members, loss=0.25))
        assert found.sizes == {"P": 4, "G": 8, "L": 33}
        assert found["logp_new"].dtype == np.float32
        assert found["logged_loss"] == 0.25
        assert found.texts.prompts[0] == "89+75="
        np.testing.assert_array_equal(found["mask"], members["mask"] == 1)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"PK\x03\x04",
            b"not a zip",
            scenario_to_npz(scenario())[:-40],
            scenario_to_npz(scenario())[40:],
            zipped("rewards.npy", b""),
            zipped("rewards.npy", b"\x93NUMPY\x01\x00"),
            zipped("rewards.npy", b"\x93NUMPY\x07\x00" + bytes(100)),
            zipped("rewards.npy", bytes(100)),
            zipped("rewards.npy", bytes(100), compress_type=zipfile.ZIP_LZMA),
            zipped("about.npy", b"{}"),
        ],
    )
    def test_what_is_no_npz_file(self, data):
        assert "damaged" in refusal(scenario_from_npz, data)

    def test_pickles_are_not_loaded(self):
        class Trap:
            def __reduce__(self):
                return (pytest.fail, ("a pickle was loaded",))

        trap = np.array([[Trap()]], dtype=object)
        assert "not numbers" in refusal(scenario_from_npz, npz(rewards=trap))

    def test_bombs_are_not_unpacked(self):
        bomb = npz(rewards=np.zeros((1, NPZ_LIMIT // 8 + 1)))
        assert len(bomb) < 100_000
        assert "too large" in refusal(scenario_from_npz, bomb)

    def test_what_is_not_read_may_be_large(self):
        found = scenario_from_npz(npz(rewards=[[1, 0]], other=np.zeros(NPZ_LIMIT // 8 + 1)))
        assert found.sizes == {"P": 1, "G": 2, "L": 1}

    @pytest.mark.parametrize("header", ["(" * 9000, "{'descr': " + "[" * 9000, "[" * 200, "\\"])
    def test_a_header_that_is_no_header(self, header):
        data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
        assert "damaged" in refusal(scenario_from_npz, zipped("rewards.npy", data))

    def test_a_header_that_promises_more_than_there_is(self):
        header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 100000000000000), }"
        header = header.ljust(117) + "\n"
        data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
        assert "damaged" in refusal(scenario_from_npz, zipped("rewards.npy", data + bytes(80)))

    def test_a_directory_that_promises_less_than_there_is(self):
        data = bytearray(npz(rewards=np.zeros((1, 1000))))
        entry = data.rindex(b"PK\x01\x02")
        data[entry + 24 : entry + 28] = (200).to_bytes(4, "little")
        assert "damaged" in refusal(scenario_from_npz, bytes(data))

    @pytest.mark.parametrize(
        ("members", "words"),
        [
            ({}, "no arrays"),
            ({"rewards": ["a"]}, "not numbers"),
            ({"rewards": np.zeros((1, 1), dtype=complex)}, "not numbers"),
            ({"rewards": np.zeros((1, 1), dtype="M8[s]")}, "not numbers"),
            ({"rewards": np.zeros(3)}, "axes"),
            ({"rewards": np.zeros((1, 2)), "mask": np.zeros((1, 2, 1)) + 2}, "mask"),
            ({"rewards": np.zeros((1, 2)), "about": "{"}, "not JSON"),
            ({"rewards": np.zeros((1, 2)), "about": "[]"}, "not a table"),
            ({"rewards": np.zeros((1, 2)), "about": '{"format": "x"}'}, "another format"),
            ({"rewards": np.zeros((1, 2)), "about": '{"texts": 3}'}, "texts"),
            ({"rewards": np.zeros((1, 2)), "about": 3}, "not text"),
            ({"rewards": np.zeros((1, 2)), "about": '{"terms": 3}'}, "terms is no list"),
            ({"rewards": np.zeros((1, 2)), "term_values": np.zeros((1, 2, 20))}, "at most 16"),
            ({"rewards": np.zeros((1, 2)), "step_ends": np.zeros((1, 2, 0))}, "wanted 1 to 256"),
            ({"rewards": np.zeros((1, 2)), "prompts": ["a", "b"]}, "at most 1"),
            ({"rewards": np.zeros((1, 2)), "prompts": [1]}, "not text"),
            ({"rewards": np.zeros((1, 500_001), dtype="i1")}, "too large"),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_wrong_arrays_are_refused_with_their_name(self, members, words):
        assert words in refusal(scenario_from_npz, npz(**members))


class TestConventionsOfAFileThatNamesNone:
    """A file brings advantages in order that they are used."""

    def test_recorded_arrays_open_with_the_advantages_that_they_hold(self):
        found = scenario_from_npz(RECORDED.read_bytes())
        assert found.conventions == Conventions.of(advantage="given")
        with np.load(RECORDED) as file:
            assert np.array_equal(evaluate(found).advantages, file["advantages"])

    def test_so_does_a_table_of_lists(self):
        found = read(arrays={"rewards": [[1, 0]], "advantages": [[0.25, -3]]})
        assert evaluate(found).advantages.tolist() == [[0.25, -3]]

    def test_without_advantages_everything_is_at_its_default(self):
        assert read(arrays={"rewards": [[1, 0]]}).conventions == Conventions.of()
        assert scenario_from_npz(npz(rewards=np.eye(2))).conventions == Conventions.of()

    def test_a_file_that_names_conventions_is_obeyed(self):
        arrays = {"rewards": [[1, 0]], "advantages": [[0.25, -3]]}
        for conventions in ({}, {"advantage": {"variant": "mean_only"}}):
            found = read(arrays=arrays, conventions=conventions)
            assert found.conventions["advantage"].variant != "given"


def test_what_stands_in_padding_is_the_same_after_either_file():
    noisy = scenario().replace(
        logp_new=np.where(scenario().valid, scenario()["logp_new"], np.float64(1e308))
    )
    for found in (
        scenario_from_json(scenario_to_json(noisy)),
        scenario_from_npz(scenario_to_npz(noisy)),
    ):
        assert isinstance(found, Scenario)
        assert np.all(found["logp_new"][~found.valid] == -1.0)
