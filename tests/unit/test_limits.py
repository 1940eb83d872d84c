"""Nothing from outside is larger, deeper or longer than the app can take, and it says so."""

import io
import json
import tracemalloc

import numpy as np
import pytest

from grpo_core import ARRAYS, ScenarioError, Texts, build_scenario
from pages._ui import limits
from pages._ui.codec.integers import Writer
from pages._ui.files import scenario_from_json, scenario_from_npz
from pages._ui.limits import LARGEST, BeyondLimits, check_sizes
from pages._ui.link import LinkError, _sealed, decode
from pages._ui.paste import MAX_CHARACTERS, parse_numbers, parse_rewards
from pages._ui.tables import paste_array
from pages._ui.token_text import visible

MEGABYTE = 2**20
BEYOND = [
    {"P": LARGEST["P"] + 1}, {"G": LARGEST["G"] + 1}, {"L": LARGEST["L"] + 1},
    {"P": 1, "S": 257}, {"K": 17}, {"P": 40, "G": 40, "L": 1, "S": 126},
    {"P": 2_000, "G": 101}, {"P": 100, "G": 100, "L": 21}, {"G": 200_000}, {"P": 10**9, "L": 10**9},
]  # fmt: skip
by_sizes = pytest.mark.parametrize("sizes", BEYOND, ids=str)


def refusal(read, *given):
    """The sentence of a refusal, which is short and made without much memory."""
    tracemalloc.start()
    try:
        with pytest.raises((ScenarioError, LinkError)) as caught:
            read(*given)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert len(message) < 600
    assert "\n" not in message
    assert peak < 64 * MEGABYTE
    return message


def npz(**members):
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def written(**arrays):
    return json.dumps({"arrays": arrays})


def linked(size):
    return f"1-{_sealed({'size': size, 'conventions': {}}, Writer())}"


@pytest.mark.parametrize(
    "sizes", [{"P": 4096, "G": 48, "L": 1}, {"P": 1, "G": 6, "L": 32_768}, {"G": 512, "L": 390}]
)
def test_sizes_up_to_the_limits_are_taken(sizes):
    check_sizes(sizes)
    assert limits.within(sizes)


@by_sizes
def test_sizes_beyond_the_limits_are_refused_with_their_numbers(sizes):
    with pytest.raises(BeyondLimits) as caught:
        check_sizes(sizes)
    assert any(f"{size:,}" in str(caught.value) for size in sizes.values())
    assert str(caught.value).count(".") == 1
    assert not limits.within(sizes)


@pytest.mark.parametrize("sizes", [s for s in BEYOND if not {"S", "K"} & s.keys()], ids=str)
def test_a_link_beyond_the_limits_says_so(sizes):
    size = [sizes.get(axis, 1) for axis in "PGL"]
    message = refusal(decode, linked(size))
    assert "too large" in message
    assert any(f"{n:,}" in message for n in size)


def test_a_link_with_more_steps_than_all_cells_says_so():
    header = {"size": [40, 40, 1], "conventions": {}, "S": 126, "set": ["step_ends"]}
    message = refusal(decode, f"1-{_sealed(header, Writer())}")
    assert "40 prompts x 40 completions x 126 steps" in message


def test_a_file_with_more_steps_than_all_cells_says_so():
    steps = np.zeros((40, 40, 126), dtype="i1")
    assert "126 steps" in refusal(scenario_from_npz, npz(step_ends=steps))
    assert "126 steps" in refusal(scenario_from_json, written(step_ends=steps.tolist()))


@pytest.mark.parametrize("key", ["rewards", "mask", "logp_new", "advantages", "present"])
def test_a_file_beyond_the_limits_says_so(key):
    axes = ARRAYS[key].axes
    shapes = [(5_000, 1, 1), (1, 600, 1), (600, 400, 1), (64, 64, 64)]
    for shape in shapes[: 4 if axes == "PGL" else 3]:
        array = np.zeros(shape[: len(axes)], dtype="i1")
        for read, data in (
            (scenario_from_npz, npz(**{key: array})),
            (scenario_from_json, written(**{key: array.tolist()})),
        ):
            assert "too large" in refusal(read, data)


WIDE = "0 " * 95_000
PASTES = {
    "a long first row": ("logp_new", f"[[[{'0,' * 50_000}0]{',[0]' * 20_000}]]"),
    "a long last row": ("logp_new", f"[[{'[0],' * 20_000}[{'0,' * 50_000}0]]]"),
    "a long tabbed row": ("rewards", "0\t" * 50_000 + "0\n" * 40_000),
    "one line": ("rewards", WIDE),
    "one line of a mask": ("mask", WIDE),
    "one column": ("present", "1\n" * 50_000),
    "many prompts": ("rewards", f"[{'[0],' * 30_000}[0]]"),
    "a long row of steps": ("step_ends", f"[[{'0,' * 50_000}0],[0],[0]]"),
    "many completions of steps": ("step_rewards", f"[{'[0],' * 30_000}[0]]"),
    "a table": ("rewards", "\n".join(["0 " * 200] * 450)),
}


@pytest.mark.parametrize("name", PASTES)
def test_a_paste_beyond_the_limits_says_so_before_it_is_made(name):
    key, text = PASTES[name]
    assert len(text) <= MAX_CHARACTERS
    start = build_scenario(logp_new=np.full((1, 3, 400), -1.0))
    assert "too large" in refusal(paste_array, start, key, text, 0)


def test_a_second_paste_counts_with_the_sizes_that_are_there():
    start = build_scenario(logp_new=np.full((1, 2, 400), -1.0))
    first = paste_array(start, "rewards", "1 " * 500)
    assert first.sizes == {"P": 1, "G": 500, "L": 400}
    assert "too large" in refusal(paste_array, first, "rewards", "1 2\n" * 300)


@pytest.mark.parametrize("text", ["inf, 0", "-inf 0", "[nan, inf]", "0;inf", "[[1, -inf]]"])
def test_an_infinite_reward_in_a_pasted_line_is_refused(text):
    assert "wanted a finite number" in refusal(parse_rewards, text)


@pytest.mark.parametrize("text", [",", ";", ", ,", ",;,", ",\n,", ";\t;"])
def test_separators_alone_are_no_score(text):
    for read in (parse_rewards, lambda line: parse_numbers(line, "PG")):
        assert "no number" in refusal(read, text)


def test_a_pasted_line_is_a_group_of_at_most_so_many_rewards():
    assert parse_rewards("1 " * 512).size == 512
    assert "513 completions" in refusal(parse_rewards, "1 " * 513)
    assert np.isnan(parse_rewards("1, nan, 0")[1])


@pytest.mark.parametrize("key", ARRAYS)
@pytest.mark.parametrize("depth", [5, 60, 900, 5_000, 200_000])
def test_lists_that_are_nested_deeply_are_refused(key, depth):
    nested = "[" * depth + "0" + "]" * depth
    assert "deep" in refusal(scenario_from_json, f'{{"arrays": {{"{key}": {nested}}}}}')


LONG = "x" * 3_000_000
LONG_FILES = [
    {"arrays": {"rewards": [[1]]}, "terms": LONG},
    {"arrays": {"rewards": [[1]]}, "terms": [{"name": LONG}]},
    {"arrays": {"rewards": [[1]]}, "terms": [{"name": "a", "weight": LONG}]},
    {"arrays": {"rewards": [[1]]}, "terms": [{"name": "a", "weight": 10**4000}]},
    {"arrays": {"rewards": [[1]]}, "terms": [{"name": "a", "formula": LONG}]},
    {"arrays": {"rewards": [[1]]}, "terms": [{"name": "a", "formula": "overlong", LONG: 1}]},
    {"arrays": {"rewards": [[1]]}, "terms": [{"name": "a", "formula": "overlong", "limit": LONG}]},
    {LONG: 1},
    {"format": LONG},
    {"arrays": {LONG: 1}},
    {"arrays": {"rewards": LONG}},
    {"arrays": {"rewards": [[LONG]]}},
    {"arrays": {"rewards": [[1]]}, "conventions": {LONG: {"variant": "k3"}}},
    {"arrays": {"rewards": [[1]]}, "conventions": {LONG: 1}},
    {"arrays": {"rewards": [[1]]}, "conventions": {"kl": {"variant": LONG}}},
    {"arrays": {"rewards": [[1]]}, "conventions": {"kl": {"variant": "k3", LONG: 1}}},
    {"arrays": {"rewards": [[1]]}, "conventions": {"kl": {"variant": "k3", LONG: [1]}}},
    {"arrays": {"rewards": [[1]]}, "conventions": {"kl": {"variant": "k3", "beta": LONG}}},
    {"arrays": {"rewards": [[1]]}, "texts": {LONG: 1}},
    {"arrays": {"rewards": [[1]]}, "texts": {"prompts": [LONG]}},
    {"arrays": {"rewards": [[1]]}, "drift": LONG},
    {"arrays": {"rewards": [[1]]}, "float32": LONG},
]  # fmt: skip


@pytest.mark.parametrize("document", LONG_FILES, ids=lambda value: str(value).replace(LONG, "…"))
def test_no_message_is_as_long_as_the_file(document):
    refusal(scenario_from_json, json.dumps(document))


TOKENS = ((("a", "b"), ("c", "d")),)
TOO_MANY = [
    Texts(("p", "q")),
    Texts((), TOKENS * 2),
    Texts((), ((("a",),) * 3,)),
    Texts((), ((("a", "b", "c"),),)),
    Texts((), ((), (("a",),))),
]


@pytest.mark.parametrize("texts", TOO_MANY, ids=str)
def test_texts_of_what_is_not_there_are_refused(texts):
    arrays = {"logp_new": np.full((1, 2, 2), -1.0)}
    assert "the batch has" in refusal(lambda: build_scenario(**arrays, texts=texts))


@pytest.mark.parametrize(
    "texts", [Texts(), Texts(("p",)), Texts(("p",), TOKENS), Texts((), ((("a",),),))], ids=str
)
def test_texts_may_be_fewer_than_the_batch(texts):
    assert build_scenario(logp_new=np.full((1, 2, 2), -1.0), texts=texts).texts == texts


@pytest.mark.parametrize("tokens", [[[["a"]] * 3], [[["a", "b", "c"]]], [[["a"]], [["b"]]]])
def test_a_link_with_texts_of_another_shape_is_refused(tokens):
    header = {"size": [1, 2, 2], "conventions": {}, "prompts": [], "tokens": tokens}
    header["set"] = ["mask", "present", "rewards", "logp_new", "logp_old", "logp_ref"]
    body = Writer()
    body.soft += bytes([0, 0] * 2 + [0, 0] + [0, 0, 0, 0])
    with pytest.raises(LinkError):
        decode(f"1-{_sealed(header, body)}")


def test_a_label_shows_no_invisible_or_endless_text():
    assert len(visible("a\u202e" * 1_000)) <= 40
