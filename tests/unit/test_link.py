"""The link: short, the same every time, and closed to whatever is not one."""

import base64
import json
import re
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

from grpo_core import Choice, Conventions, Texts, build_scenario
from grpo_core.scenario import same_scenario
from grpo_core.terms import Term
from pages._ui.codec.scenarios import mark
from pages._ui.examples import Example
from pages._ui.link import ENCODED_LIMIT, LIMIT, LinkError, decode, encode
from pages._ui.view import View

RECORDED = Path(__file__).parents[1] / "data" / "trl_addition_0041.npz"
# Token ids of the recorded run: 0 padding, 1 end, 2 unknown, 3 to 12 the digits, then + = ;
WORDS = ["", "<end>", "", *"0123456789", "+", "=", ";"]
HOST = "https://some-host.example/Advantages?s="
TRL = Conventions.of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}), kl=("k3", {"beta": 0.02}))
DAMAGED = "This link is damaged: part of it is missing or changed."


def recorded(dtype=np.float64, prompts=4):
    """A batch of TRL 1.16.0's GRPOTrainer: 8 completions for each of the first prompts."""
    with np.load(RECORDED) as data:
        arrays = {
            key: data[key][:prompts].astype(dtype) for key in ("logp_new", "logp_old", "logp_ref")
        }
        ids = data["completion_ids"][:prompts].tolist()
        texts = Texts(
            tuple(data["prompts"][:prompts].tolist()),
            tuple(tuple(tuple(WORDS[i] for i in row) for row in group) for group in ids),
        )
        return build_scenario(
            **arrays,
            mask=data["mask"][:prompts],
            rewards=data["rewards"][:prompts],
            texts=texts,
            conventions=TRL,
        )


def small():
    return build_scenario(
        rewards=[[1.0, 0.0, np.nan, 0.25]],
        logp_new=[[[-0.5, -1.25], [-0.1, -np.inf], [-0.3, -0.2], [-2.0, -0.7]]],
        mask=[[[1, 1], [1, 1], [0, 1], [1, 0]]],
        texts=Texts(("2+2=",), ((("4", "."), ("5", "."), ("", "4"), ("3", "")),)),
    )


STEPS = {
    "step_ends": [[[0, 1, 1], [1, np.nan, np.nan], [np.nan] * 3, [np.nan, 0, np.nan]]],
    "step_rewards": [
        [[1.0, 0.0, -0.5], [1 / 3, np.nan, np.nan], [np.nan] * 3, [np.nan, 1, np.nan]]
    ],
}
TERMS = (Term("format", 0.1), Term("Länge", -2.0, Choice("length_linear", {"per": 10.0})))


def stepped(**changes):
    return small().replace(**{**STEPS, **changes})


def shaped(terms=TERMS, values=(((1.0, np.nan), (0.0, -1.0), (1.0, 2.0), (0.1 + 0.2, np.nan)),)):
    return small().with_terms(terms, values)


def example(key, scenario):
    return {key: Example(key, key, "", scenario)}


def sealed(soft, hard=b""):
    """A link of format 1 around any bytes, written from the format's description alone."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return sealed_raw(packer.compress(soft) + packer.flush(), hard)


def sealed_raw(deflated, hard=b""):
    data = bytes([len(hard)]) + hard + deflated
    data = struct.pack("<I", zlib.crc32(data)) + data
    return "1-" + base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def with_header(header, rest=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = bytes([len(text) & 0x7F | 0x80, len(text) >> 7 & 0x7F | 0x80, len(text) >> 14])
    return sealed(length + text + rest)


# `small`, as the first version wrote it. Links like it are out there: never edit.
GOLDEN = (
    "1-NUSf7RwDAAFkAAAZAgAAwH8AAQIBAAMyfQoAFMgDAACAW8SMImIUSw1LBlP0DtKYRC"
    "o_jLSNbEFhBi9GQMWFHrTIMFaKrWVm5mBkYGDgZOJgZORgZGZQ4GfgYORk4oTwJNkFBAA"
)


# The same with steps and terms, as the first version that had them wrote it.
GOLDEN_SHAPED = (
    "1-bmAfNF0DAAFkAAAZAgAAwH8AAAAABwYACQIAAAEEAAEDADQAMwAzADMAMwAz-NN_PwABAgEAAzJ9CgAUyAMAAIAA"
    "AQEBAAQAAMB_FAAJAAADAFUAVQBVAFUAVQBVANX4P3_byIIiYgR0WTAwDekoeStZGVHBQqARJakF8cCMUQxjI_SWpB"
    "blxpcl5pSmgrPZ4EkTgzT6QeEFKX7S8otyE4ERYaAHTL7w8iJWJ1rJ5_CSPKC3dHSN9IC-gGT2-JzMvNTEIpCpaUWp"
    "qWD_FaQWAf0HDNHaWFAGRhRnRtpGtqDYgJdqoNJLD1qCGSvF1jIzczAyMDBwMnEwMnIwMjMo8HMxcjJwMQL5LAwO_x"
    "k4GDmZOCFSkuwCAlwMYMAIApxsnAxwXZyMcD0A"
)


class TestRoundTrip:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_recorded_batch_comes_back_bit_for_bit(self, dtype):
        scenario = recorded(dtype)
        assert same_scenario(decode(encode(scenario))[0], scenario)

    def test_missing_scores_infinities_holes_and_texts_come_back(self):
        assert same_scenario(decode(encode(small()))[0], small())

    def test_view_comes_back(self):
        other = small().replace(rewards=[[0.0, 0.0, 1.0, 0.5]])
        scenario, view = decode(encode(small(), View((0, 3, 1), other)))
        assert same_scenario(scenario, small())
        assert view.selected == (0, 3, 1)
        assert same_scenario(view.pinned, other)

    def test_choices_of_a_page_come_back_and_none_leave_the_link_as_it_was(self):
        view = View().choosing("Conventions", {"keys": ("trl-1.16", "pass@k"), "base": "rloo"})
        choices = decode(encode(small(), view))[1].choices
        assert choices == {"Conventions": {"keys": ("trl-1.16", "pass@k"), "base": "rloo"}}
        assert encode(small(), view.choosing("Conventions", {})) == encode(small(), View())

    def test_pinned_scenario_may_have_other_sizes(self):
        pinned = build_scenario(rewards=[[1, 2], [3, 4]])
        assert same_scenario(decode(encode(small(), View(pinned=pinned)))[1].pinned, pinned)

    def test_selection_beyond_the_edge_is_held_inside(self):
        assert decode(encode(small(), View((9, 1, 7))))[1].selected == (0, 1, 1)

    def test_texts_of_any_form_that_fits_come_back(self):
        padded = ((("4", "."), ("5", "."), ("<pad>", "4"), ("3", "<pad>")),)
        for tokens in ((), padded, ((("4",), ()),), ((),), (((),) * 4,)):
            scenario = small().with_texts(Texts(("é\u2028<b>",), tokens))
            assert same_scenario(decode(encode(scenario))[0], scenario)

    def test_padding_comes_back_as_the_default(self):
        noisy = small().replace(logp_old=np.where(small()["mask"], small()["logp_old"], 1e300))
        assert decode(encode(noisy))[0]["logp_old"][0, 2, 0] == -1.0
        assert encode(noisy) == encode(small())

    def test_optional_arrays_may_be_added_to_an_example_or_taken_out(self):
        bare = recorded()
        full = bare.replace(advantages=np.ones((4, 8)), logged_loss=0.125)
        for base, scenario in ((bare, full), (full, bare)):
            shipped = example("recorded", base)
            link = encode(scenario, None, shipped)
            assert len(link) < 200
            assert same_scenario(decode(link, shipped)[0], scenario)

    def test_distributions_of_any_size_come_back_whatever_the_example_holds(self):
        bare = small().replace(seed=7)
        two = bare.replace(dist_new=[0.5, 0.5], dist_ref=[0.9, 0.1])
        three = bare.replace(dist_new=[0.2, 0.3, 0.5], dist_ref=np.float32([0.1, 0.2, 0.7]))
        alone = bare.replace(dist_ref=[0.1] * 8)
        edited = two.replace(dist_ref=[0.8, 0.2])
        states = (bare, two, three, alone, edited)
        for base in states:
            shipped = example("small", base)
            for scenario in states:
                link = encode(scenario, View(pinned=base), shipped)
                back, view = decode(link, shipped)
                assert same_scenario(back, scenario)
                assert same_scenario(view.pinned, base)

    def test_steps_and_terms_come_back_whatever_the_example_holds(self):
        narrow = {key: [[row[:1] for row in group] for group in STEPS[key]] for key in STEPS}
        single = {key: np.float32(value) for key, value in STEPS.items()}
        blank = dict.fromkeys(STEPS, np.full((1, 4, 2), np.nan))
        narrow = {
            key: np.where(np.isnan(narrow["step_ends"]), np.nan, narrow[key]) for key in STEPS
        }
        states = (
            small(), stepped(), stepped(**narrow), stepped(**single), stepped(**blank), shaped(),
            shaped(TERMS[::-1]), shaped((Term("format", 0.2),), [[[1.0]] * 4]), shaped((), None),
            shaped(TERMS[1:], None), shaped().replace(**STEPS),
        )  # fmt: skip
        for base in states:
            shipped = example("small", base)
            for scenario in states:
                link = encode(scenario, View(pinned=base), shipped)
                back, view = decode(link, shipped)
                assert same_scenario(back, scenario)
                assert same_scenario(view.pinned, base)

    def test_a_blank_cell_comes_back_with_the_bits_of_its_nan(self):
        odd = np.array(STEPS["step_rewards"])
        odd.view(np.uint64)[np.isnan(odd)] += 1  # a NaN with another payload
        assert same_scenario(
            decode(encode(stepped(step_rewards=odd)))[0], stepped(step_rewards=odd)
        )

    def test_terms_of_an_example_of_another_size_are_known(self):
        larger = build_scenario(rewards=np.zeros((2, 9)), terms=TERMS[1:])
        scenario = shaped(TERMS[1:], None)
        shipped = example("larger", larger)
        assert same_scenario(decode(encode(scenario, None, shipped), shipped)[0], scenario)


class TestLength:
    def test_steps_of_a_recorded_batch_cost_little(self):
        scenario = recorded()
        ends = scenario["mask"].sum(axis=-1, keepdims=True) - [1, 1]  # two at the last token
        ends = np.where([True, False] | (ends > 4), ends, np.nan)
        both = scenario.replace(step_ends=ends, step_rewards=ends * 0 + 1.0)
        assert len(encode(both)) - len(encode(scenario)) < 120

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_recorded_batch_fits_without_naming_an_example(self, dtype):
        address = HOST + encode(recorded(dtype))
        assert len(address) < 3_000 < LIMIT

    def test_recorded_batch_fits_with_a_pinned_state_far_from_it(self):
        scenario = recorded()
        step = scenario["logp_new"] - scenario["logp_old"]
        drifted = scenario.replace(logp_new=np.minimum(scenario["logp_old"] + 2.5 * step, 0))
        assert len(HOST + encode(drifted, View((1, 2, 3), scenario))) < 4_000

    def test_unchanged_example_is_named_only(self):
        shipped = example("recorded-batch", recorded())
        link = encode(recorded(), None, shipped)
        assert len(link) < 60
        assert decode(link, shipped)[0] is shipped["recorded-batch"].scenario

    def test_edited_example_carries_what_differs(self):
        shipped = example("recorded-batch", recorded())
        logp_new = recorded()["logp_new"].copy()
        logp_new[1, 2, 3] = -0.3
        edited = recorded().replace(logp_new=logp_new)
        link = encode(edited, View(pinned=recorded()), shipped)
        assert len(link) < 120
        scenario, view = decode(link, shipped)
        assert same_scenario(scenario, edited)
        assert same_scenario(view.pinned, recorded())

    def test_example_that_does_not_help_is_not_named(self):
        other = example("recorded-batch", recorded().replace(rewards=np.ones((4, 8))))
        assert encode(small(), None, other) == encode(small())

    def test_the_number_of_shipped_examples_does_not_matter(self):
        shipped = example("a", small()) | example("b", recorded())
        assert encode(small(), None, shipped) == encode(small(), None, example("a", small()))


class TestForm:
    def test_only_letters_digits_hyphens_and_underscores(self):
        assert re.fullmatch(r"[A-Za-z0-9_-]+", encode(recorded()))

    def test_same_scenario_same_link(self):
        assert encode(recorded(), View((0, 0, 1))) == encode(recorded(), View((0, 0, 1)))

    def test_links_of_format_1_stay_readable(self):
        assert same_scenario(decode(GOLDEN)[0], small())
        assert same_scenario(decode(GOLDEN_SHAPED)[0], shaped().replace(**STEPS))

    def test_the_mark_of_what_was_linked_to_before_there_were_steps_stays(self):
        assert (mark(small()), mark(recorded())) == (1628395875, 3580747478)
        blank = dict.fromkeys(STEPS, np.full((1, 4, 2), np.nan))
        assert mark(small().replace(**blank)) == mark(small())

    def test_the_mark_tells_steps_and_terms(self):
        states = (
            small(), stepped(), shaped(), shaped(TERMS[::-1]), shaped(TERMS[1:], None),
            shaped((Term("other", 0.1), TERMS[1])),
        )  # fmt: skip
        assert len({mark(scenario) for scenario in states}) == len(states)


class TestRefusal:
    """Whatever is wrong, `decode` says so in one sentence."""

    @pytest.mark.parametrize(
        ("link", "message"),
        [
            ("", "does not hold an example"),
            ("hello world", "does not hold an example"),
            ("1-", "does not hold an example"),
            ("2-AAAA", "made by a newer version"),
            ("0-AAAA", "made by an older version"),
            ("1-AAAA", DAMAGED),
            ("1-!!!!", DAMAGED),
            ("1-\ud800", DAMAGED),
            ("1-\u00e9\u00e9", DAMAGED),
            ("1-" + "A" * ENCODED_LIMIT, "too long"),
        ],
    )
    def test_what_is_no_link(self, link, message):
        with pytest.raises(LinkError, match=re.escape(message)):
            decode(link)

    def test_every_truncation(self):
        link = encode(small())
        for length in range(len(link)):
            with pytest.raises(LinkError):
                decode(link[:length])

    def test_every_changed_character(self):
        link = encode(small(), View((0, 1, 1)))
        for i, character in enumerate(link):
            changed = link[:i] + ("A" if character != "A" else "B") + link[i + 1 :]
            with pytest.raises(LinkError):
                decode(changed)

    def test_two_spellings_of_one_link(self):
        link = encode(small())
        for other in (link + "=", link + "==", link + " ", link + "\n", link[:9] + "\n" + link[9:]):
            with pytest.raises(LinkError):
                decode(other)

    def test_decompression_bombs(self):
        bomb = sealed_raw(zlib.compress(bytes(10_000_000), 9)[2:-4])
        assert len(bomb) < ENCODED_LIMIT
        tracemalloc.start()
        with pytest.raises(LinkError, match=DAMAGED):
            decode(bomb)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3_000_000

    def test_what_follows_the_compressed_part(self):
        whole = zlib.compressobj(9, zlib.DEFLATED, -15)
        deflated = whole.compress(b"\x02{}") + whole.flush()
        for data in (deflated + b"more", deflated[:-1], b""):
            with pytest.raises(LinkError):
                decode(sealed_raw(data))

    @pytest.mark.parametrize(
        "header",
        [
            b"[" * 100_000,
            b'{"size":' + b"[" * 50_000,
            b"[]",
            b"null",
            b"\xff\xfe",
            b'{"drift":NaN}',
            b'{"drift":Infinity}',
            b'{"drift":1e999}',
            b'{"drift":' + b"9" * 5000 + b"}",
            {},
            {"size": [1, 4]},
            {"size": [-1, 4, -2]},
            {"size": [0, 4, 2]},
            {"size": [1.0, 4, 2]},
            {"size": [True, 4, 2]},
            {"size": ["1", 4, 2]},
            {"size": {"P": 1}},
            {"size": [1, 4, 10**30]},
            {"size": [200_001, 1, 1]},
            {"size": [1, 4, 2], "set": ["mask"]},
            {"size": [1, 4, 2], "set": ["mask", "mask"]},
            {"size": [1, 4, 2], "set": ["secret"]},
            {"size": [1, 4, 2], "set": [["mask"]]},
            {"size": [1, 4, 2], "set": 7},
            {"base": "", "mark": 0},
            {"base": ["a"]},
            {"base": 5},
        ],
        ids=lambda header: str(header)[:40],
    )
    def test_hostile_headers(self, header):
        with pytest.raises(LinkError) as caught:
            decode(with_header(header, b"\x00" * 50))
        assert one_sentence(str(caught.value))

    @pytest.mark.parametrize(
        "change",
        [
            {"conventions": {}, "drift": "1"},
            {"conventions": {"kl": ["k9", {}]}},
            {"conventions": {"kl": ["k3", {"beta": -1}]}},
            {"conventions": {"kl": ["k3", {"beta": 10**400}]}},
            {"conventions": {"kl": ["k3", {"bata": 1}]}},
            {"conventions": {"kl": "k3", "magic": "on"}},
            {"conventions": {"cls": "k3"}},
            {"conventions": {"kl": [["k3"], {}]}},
            {"conventions": {"advantage": "given"}},
            {"conventions": [1]},
            {"prompts": "34+82="},
            {"prompts": [1]},
            {"prompts": ["\ud800"]},
            {"prompts": ["a" * 500_000]},
            {"prompts": [], "tokens": [[["a", 1]]]},
            {"prompts": [], "tokens": 5},
            {"view": [0, 0]},
            {"view": [0, -1, 0]},
            {"view": [0, 0.5, 0]},
            {"view": "abc"},
            {"page": 5},
            {"page": [1]},
            {"page": {"Conventions": "base"}},
            {"page": {"Conventions": {"base": 1}}},
            {"page": {"Conventions": {"base": "<b>"}}},
            {"page": {"Conventions": {"base": "a" * 41}}},
            {"page": {"Conventions": {"keys": ["\ud800"]}}},
            {"page": {"Conventions": {"keys": ["a"] * 65}}},
            {"page": {"Conventions": {"keys": [["a"]]}}},
            {"page": {str(k): {} for k in range(65)}},
            {"pinned": 5},
            {"pinned": {"base": "", "pinned": {}, "drop": ["mask"]}},
            {"drift": 10**400},
            {"V": 10**9, "set": ["mask", "present", "rewards", "dist_new"]},
            {"V": 1, "set": ["mask", "present", "rewards", "dist_new"]},
            {"V": "2"},
            {"S": 10**9, "set": ["mask", "present", "rewards", "step_ends", "step_rewards"]},
            {"S": 0, "set": ["mask", "present", "rewards", "step_ends", "step_rewards"]},
            {"S": True, "set": ["mask", "present", "rewards", "step_ends", "step_rewards"]},
            {"set": ["mask", "present", "rewards", "step_ends", "step_rewards"]},
            {"S": 1, "set": ["mask", "present", "rewards", "logp_new", "logp_old", "step_ends"]},
            {"K": 2, "set": ["mask", "present", "rewards", "logp_new", "logp_old", "term_values"]},
            {"K": 17},
            {"K": [1]},
            {"terms": None},
            {"terms": {}},
            {"terms": 5},
            {"terms": "abcd"},
            {"terms": [5]},
            {"terms": [[]]},
            {"terms": [["a", 1.0, "given", {}]] * 2},
            {"terms": [["a", 1.0, "length_linear", {}]] * 100_000},
            {"terms": [["a" * 41, 1.0, "length_linear", {}]]},
            {"terms": [["", 1.0, "length_linear", {}]]},
            {"terms": [["\ud800", 1.0, "length_linear", {}]]},
            {"terms": [[["a"], 1.0, "length_linear", {}]]},
            {"terms": [["a", "1", "length_linear", {}]]},
            {"terms": [["a", 10**400, "length_linear", {}]]},
            {"terms": [["a", True, "length_linear", {}]]},
            {"terms": [["a", 1.0, "magic", {}]]},
            {"terms": [["a", 1.0, ["given"], {}]]},
            {"terms": [["a", 1.0, "length_linear", ["per"]]]},
            {"terms": [["a", 1.0, "length_linear", {"per": 0}]]},
            {"terms": [["a", 1.0, "length_linear", {"bad": 1}]]},
            {"terms": [["a", 1.0, "length_linear", {}, 1]]},
            {"terms": [["a", 1.0, "given", {}]]},
            {"set": ["mask", "present", "rewards", "logp_new", "logp_old", "dist_new"]},
        ],
        ids=lambda change: str(change)[:40],
    )
    def test_hostile_entries_in_a_good_header(self, change):
        header = {
            "size": [1, 2, 1],
            "set": ["mask", "present", "rewards", "logp_new", "logp_old", "logp_ref"],
            "conventions": {},
        }
        # Masks: rows without gaps (0), numbers that are all 0 (0). A table: rows as they come
        # (0), then a 0 for each column: its default.
        arrays = bytes([0, 0] * 2 + [0, 0] + [0, 0, 0, 0])
        assert decode(with_header(header, arrays))[0].sizes == {"P": 1, "G": 2, "L": 1}
        with pytest.raises(LinkError) as caught:
            decode(with_header(header | change, arrays))
        assert one_sentence(str(caught.value))

    def test_short_text_for_many_tokens(self):
        header = {"size": [1, 1, 200_000], "set": [], "prompts": [], "words": ["x" * 1000]}
        with pytest.raises(LinkError):
            decode(with_header(header, bytes(50)))

    def test_example_that_is_gone_or_has_changed(self):
        shipped = example("recorded-batch", recorded())
        link = encode(recorded(), None, shipped)
        with pytest.raises(LinkError, match="not shipped any more"):
            decode(link, {})
        changed = recorded().replace(rewards=np.ones((4, 8)))
        with pytest.raises(LinkError, match="has changed since"):
            decode(link, example("recorded-batch", changed))

    def test_no_text_of_the_link_is_in_the_message(self):
        conventions = {"kl": ["[click](javascript:alert(1))", {}]}
        with pytest.raises(LinkError) as caught:
            decode(with_header({"size": [1, 1, 1], "conventions": conventions}))
        assert "click" not in str(caught.value)

    def test_example_too_large_for_any_link(self):
        with pytest.raises(LinkError, match="too large for a link"):
            encode(build_scenario(rewards=np.zeros((500, 401))))
        with pytest.raises(LinkError, match="too large for a link"):
            encode(small().with_texts(Texts(("a" * 500_000,))))

    def test_text_that_cannot_be_written(self):
        with pytest.raises(LinkError, match="half of a character"):
            encode(small().with_texts(Texts(("\ud800",))))


def one_sentence(message):
    return message.count(".") == 1 and message.endswith(".") and "\n" not in message
