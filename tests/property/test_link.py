"""Links and files, drawn at random: what goes in comes out, and nothing else gets in."""

import base64
import io
import struct
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from grpo_core import ARRAYS, STAGES, Conventions, Scenario, ScenarioError, Texts
from grpo_core.arrays import DISTRIBUTIONS, LARGEST_SEED, OWN_AXES
from grpo_core.scenario import same_scenario
from pages._ui.codec.integers import Reader
from pages._ui.examples import Example
from pages._ui.files import (
    scenario_from_json,
    scenario_from_npz,
    scenario_to_json,
    scenario_to_npz,
)
from pages._ui.link import _DICTIONARY, LinkError, decode, encode
from pages._ui.step_tables import STEP_KEYS
from pages._ui.view import View
from tests.property import drawn

TINY = float(np.nextafter(0, 1))
TEXT = st.text(st.characters(codec="utf-8"), max_size=4)


def numbers(low, high, width):
    """Round ones, binary fractions, signed zeros, subnormals and any others."""
    decimals = st.integers(int(max(low, -50)) * 100, int(min(high, 50)) * 100).map(
        lambda n: n / 100
    )
    binary = st.integers(int(max(low, -50)) * 2**21, int(min(high, 50)) * 2**21).map(
        lambda n: n / 2**21
    )
    special = st.sampled_from([v for v in (0.0, -0.0, -1.0, -TINY, TINY) if low <= v <= high])
    anything = st.floats(low, high, width=width, allow_nan=False, allow_infinity=False)
    return st.one_of(decimals, binary, special, anything)


# For arrays that have no strategy of their own: whichever of these their rule allows.
ANY = (0.0, 0.5, 1 / 3, -1.5, 2.0, 8.0, 256.0)
CELLS = {
    "rewards": lambda width: st.one_of(
        st.just(float("nan")), numbers(-(2.0**100), 2.0**100, width)
    ),
    "advantages": lambda width: numbers(-(2.0**100), 2.0**100, width),
    "logged_loss": lambda width: numbers(-(2.0**100), 2.0**100, width),
    "dist_new": lambda width: numbers(0.0, 2.0**100, width),
    "dist_ref": lambda width: numbers(0.0, 2.0**100, width),
    "seed": lambda width: st.integers(0, LARGEST_SEED).map(float),
    "term_values": lambda width: st.one_of(
        st.just(float("nan")), numbers(-(2.0**100), 2.0**100, width)
    ),
    "token_rewards": lambda width: numbers(-(2.0**100), 2.0**100, width),
    "token_ids": lambda width: st.integers(0, 2**24).map(float),
    "logp": lambda width: st.one_of(st.just(-np.inf), numbers(-(2.0**100), 0.0, width)),
}


def cells_of(spec, width):
    name = "logp" if spec.key.startswith("logp_") else spec.key
    if name in CELLS:
        return CELLS[name](width)
    return st.sampled_from([value for value in ANY if spec.rule.holds(value)])


@st.composite
def conventions(draw, optional):
    choices = {}
    for key, stage in STAGES.items():
        usable = [v for v in stage.variants.values() if set(v.needs) <= set(optional)]
        variant = draw(st.sampled_from(usable))
        choices[key] = (variant.key, draw(drawn.options_of(variant)))
    return Conventions.of(**choices)


@st.composite
def texts(draw, shape):
    P, G, L = shape
    prompts = tuple(draw(st.lists(TEXT, max_size=P)))
    if draw(st.booleans()):
        return Texts(prompts)
    words = draw(st.lists(TEXT, min_size=1, max_size=3))
    return Texts(
        prompts,
        tuple(
            tuple(tuple(draw(st.sampled_from(words)) for _ in range(L)) for _ in range(G))
            for _ in range(P)
        ),
    )


@st.composite
def scenarios(draw, shape=None):
    """Any valid scenario: holes, left padding, absent completions, missing scores, both dtypes.

    With or without steps and shaping terms.
    """
    shape = shape or draw(st.tuples(*[st.integers(1, 4)] * 3))
    optional = {k for k, spec in ARRAYS.items() if not spec.required and draw(st.booleans())}
    terms = draw(drawn.terms(optional))
    optional -= {"term_values", *STEP_KEYS} - ({"term_values"} if terms else set())
    own = {axis: draw(st.integers(o.low, min(o.high, o.low + 6))) for axis, o in OWN_AXES.items()}
    sizes = {**dict(zip("PGL", shape, strict=True)), **own, "K": len(terms)}
    arrays = {key: draw(hnp.arrays(bool, shape[:n])) for key, n in (("mask", 3), ("present", 2))}
    if draw(st.booleans()):
        rewards = CELLS["token_rewards"](64)
        steps = draw(drawn.steps(arrays["mask"], arrays["present"], rewards))
        arrays |= zip(STEP_KEYS, steps, strict=True)
        optional |= set(STEP_KEYS)
    for key, spec in ARRAYS.items():
        if key in arrays or not (spec.required or key in optional):
            continue
        axes = tuple(sizes[axis] for axis in spec.axes)
        width = draw(st.sampled_from([32, 64]))
        cells = cells_of(spec, width)
        if width == 32:
            cells = cells.map(lambda v: float(np.float32(v)))
        array = draw(hnp.arrays(f"f{width // 8}", axes, elements=cells))
        if key in DISTRIBUTIONS:  # each row needs a chance above 0
            array[..., 0] = np.where(np.any(array, axis=-1), array[..., 0], 1)
        arrays[key] = array
    drift = draw(st.one_of(st.just(1.0), st.floats(-5, 5)))
    return Scenario(arrays, draw(conventions(optional)), draw(texts(shape)), drift, terms)


def links_of(scenario, view=None, examples=None):
    link = encode(scenario, view, examples)
    return decode(link, examples)


@given(scenarios())
def test_a_link_brings_back_every_bit(scenario):
    assert same_scenario(links_of(scenario)[0], scenario)


@given(scenarios(), scenarios(), st.data())
def test_a_link_brings_back_the_view(scenario, pinned, data):
    selected = tuple(data.draw(st.integers(0, size - 1)) for size in scenario.sizes.values())
    back, view = links_of(scenario, View(selected, pinned))
    assert same_scenario(back, scenario)
    assert view.selected == selected
    assert same_scenario(view.pinned, pinned)


@given(scenarios((2, 3, 2)), scenarios((2, 3, 2)), scenarios((2, 3, 2)), st.data())
def test_a_link_on_an_example_brings_back_every_bit(one, two, three, data):
    """Arrays are taken from an example at random, so that some differ and some do not."""
    examples = {"one": Example("one", "", "", one), "two": Example("two", "", "", two)}
    keys = data.draw(st.sets(st.sampled_from(sorted(one.arrays))))
    arrays = {**three.arrays, **one.arrays, **{key: three[key] for key in keys if key in three}}
    arrays = {
        key: array for key, array in arrays.items() if not set(ARRAYS[key].axes) & {*OWN_AXES}
    }
    # What belongs together comes from one scenario: distributions, terms, steps and masks.
    vocabulary, termed = data.draw(st.sampled_from([(one, three), (three, one), (one, one)]))
    arrays |= {key: vocabulary[key] for key in vocabulary.arrays if "P" not in ARRAYS[key].axes}
    arrays |= {key: termed[key] for key in termed.arrays if ARRAYS[key].axes == "PGK"}
    stepped = {0: one, 1: None, 2: three}[len(keys & {"mask", "present"})]
    if stepped is not None:
        arrays |= {key: stepped[key] for key in STEP_KEYS if key in stepped}
    needs = {key for stage in STAGES for key in one.conventions.variant(stage).needs}
    mixed = Scenario(
        arrays,
        one.conventions if needs <= arrays.keys() else Conventions.of(),
        data.draw(st.sampled_from([one.texts, three.texts])),
        one.drift,
        termed.terms,
    )
    for pinned in (None, one, two, mixed):
        back, view = links_of(mixed, View((1, 0, 1), pinned), examples)
        assert same_scenario(back, mixed)
        assert pinned is None or same_scenario(view.pinned, pinned)


@given(scenarios())
def test_the_same_scenario_gives_the_same_link(scenario):
    assert encode(scenario) == encode(links_of(scenario)[0])


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda b: "1-" + base64url(b)))
def test_anything_else_is_refused(text):
    assert_opens_or_refuses(LinkError, decode, text)


@given(scenarios(), st.data())
def test_changed_bytes_under_a_right_checksum_open_validly_or_are_refused(scenario, data):
    """The checksum is no secret: whoever forges it gets no further than a valid scenario."""
    examples = {"one": Example("one", "", "", scenario)}
    base = data.draw(st.sampled_from([{}, examples]))
    raw = from_base64url(encode(scenario, View((0, 0, 0), scenario), base)[2:])[4:]
    size = data.draw(st.integers(1, 6))
    changed = bytearray(raw)
    for _ in range(size):
        changed[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    assert_opens_or_refuses(LinkError, decode, resealed(bytes(changed)), examples)


@given(scenarios(), st.data())
def test_changed_contents_open_validly_or_are_refused(scenario, data):
    """The same one layer deeper, behind the compression."""
    raw = from_base64url(encode(scenario, View((0, 0, 0), scenario))[2:])[4:]
    reader = Reader(raw, b"")
    reader.take(reader.count())  # the hard bytes
    front = raw[: -len(reader.rest())]
    unpacker = zlib.decompressobj(-15, zdict=_DICTIONARY)
    soft = bytearray(unpacker.decompress(raw[len(front) :]))
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, len(soft) - 1))
        what = data.draw(st.integers(0, 255))
        kind = data.draw(st.sampled_from(["set", "insert", "delete"]))
        soft[where : where + (kind != "insert")] = b"" if kind == "delete" else bytes([what])
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflated = packer.compress(bytes(soft)) + packer.flush()
    assert_opens_or_refuses(LinkError, decode, resealed(front + deflated))


@given(scenarios())
def test_files_bring_back_every_bit(scenario):
    # Any form of the texts is read; rows of all positions come back as they were.
    assert same_scenario(scenario_from_json(scenario_to_json(scenario)), scenario)
    assert same_scenario(scenario_from_npz(scenario_to_npz(scenario)), scenario)


@given(scenarios(), st.data())
def test_changed_files_open_validly_or_are_refused(scenario, data):
    for write, read in (
        (lambda s: scenario_to_json(s).encode(), lambda b: scenario_from_json(b.decode("latin-1"))),
        (scenario_to_npz, scenario_from_npz),
    ):
        changed = bytearray(write(scenario))
        for _ in range(data.draw(st.integers(1, 4))):
            where = data.draw(st.integers(0, len(changed) - 1))
            changed[where] = data.draw(st.integers(0, 255))
        assert_opens_or_refuses(ScenarioError, read, bytes(changed))


@given(st.dictionaries(st.sampled_from([*ARRAYS, "about", "loss", "prompts"]), st.data()))
def test_any_npz_opens_validly_or_is_refused(drawn):
    members = {
        key: data.draw(
            hnp.arrays(
                st.sampled_from(["f8", "f4", "f2", "i2", "u8", "b1", "U3", "S2", "c8", "M8[s]"]),
                hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3),
            )
        )
        for key, data in drawn.items()
    }
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    assert_opens_or_refuses(ScenarioError, scenario_from_npz, buffer.getvalue())


def assert_opens_or_refuses(refusal, read, *given):
    """What is read is valid, or the one error is raised, with one line of text."""
    try:
        found = read(*given)
    except refusal as error:
        lines = str(error).splitlines()
    else:
        scenario = found[0] if isinstance(found, tuple) else found
        lines = [""]
        assert isinstance(scenario, Scenario)
    assert len(lines) == 1


def resealed(data):
    return "1-" + base64url(struct.pack("<I", zlib.crc32(data)) + data)


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
