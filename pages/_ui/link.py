"""Links: a scenario and what is looked at, as the value of ``?s=``, to the last bit.

Format 1 is ``1-`` and base64url without padding of

    CRC-32 of the rest (4 bytes) · hard length · hard bytes · deflated soft bytes

where the soft bytes begin with the length of a JSON header and the header itself. A header
describes one scenario: its ``size``, the arrays that are ``set`` (with ``V``, ``S`` and ``K``,
the lengths of axes of their own, where they have any), ``conventions``, ``terms``, texts and
drift; the ``view``, and what was chosen on a ``page``. With ``base`` it names a shipped example
(and its ``mark``, so that an example that has changed since is noticed) and says only what
differs. The ``pinned`` scenario is a header inside the header; an empty ``base`` there is the
main scenario.

Behind the header stand the arrays (see `codec`). Only cells that count are kept; the
others come back as their array's default.
"""

import base64
import binascii
import json
import re
import struct
import zlib

from grpo_core import ScenarioError

from .codec.integers import Damaged, Reader, TooLarge, Writer, deflated_size
from .codec.scenarios import Changed, describe, mark, resemblance, restore
from .limits import BeyondLimits
from .view import View

VERSION = 1
LIMIT = 8_000  # characters of a whole address, which every server and browser takes
ENCODED_LIMIT = 16_384  # characters that `decode` reads
SHORT = 64  # bytes that no other base need be tried for
_CHOICES = 64  # pages, choices on one, and keys in one choice
_KEY = re.compile(r"[\w.@+-]{1,40}", re.ASCII)
INFLATED_LIMIT = 1_000_000  # bytes that they may unfold to

# What most headers hold, so that it costs next to nothing. Part of the format: never edit.
_DICTIONARY = (
    b'"f4":["rewards","advantages","logged_loss"],"drop":["tokens":[["prompts":["'
    b'"words":["<end>","0","1","2","3","4","5","6","7","8","9","+","=",";"],"all":true'
    b'"given",{}"mean_only",{}"sequence",{}"dual_clip",{,"dual_clip":3.0}"token_mean",{}'
    b'"constant",{"length":0}"k1"k2",{"beta":0.02"place":"reward""beta":0.0'
    b'"drift":0.5,"view":[0,0,1],"pinned":{"base":"","mark":,"base":"four-answers",'
    b'"conventions":{"kl":["k3",{"beta":0.04,"place":"objective"}],'
    b'"rewards":["outcome",{"missing":"leave_out"}],'
    b'"advantage":["mean_std",{"ddof":1,"eps":0.0001"ddof":0,"eps":1e-08}],"ratio":["token",{}],'
    b'"surrogate":["clip",{"epsilon_low":0.2,"epsilon_high":0.2}],'
    b'"aggregation":["completion_mean",{"empty":"count"}]},'
    b'"set":["mask","present","rewards","logp_new","logp_old","logp_ref"]{"size":[1,4,8],'
)

_DAMAGED = "This link is damaged: part of it is missing or changed."


class LinkError(ValueError):
    """A link that cannot be opened; the message is one plain sentence for the page."""


def encode(scenario, view=None, examples=None):
    """Write a scenario and a view as the value of ``?s=``.

    Parameters
    ----------
    scenario : Scenario
    view : View, optional
    examples : mapping from key to Example, optional
        Shipped examples that the link may build on, where that makes it shorter.

    Returns
    -------
    str
        Letters, digits, ``-`` and ``_`` only; the same for the same input. It may be longer
        than `LIMIT`, and than what `decode` reads.

    Raises
    ------
    LinkError
        The example is larger than any link may unfold to, or a text holds half of a
        character (a lone surrogate), which cannot be written.
    """
    view, examples = view or View(), examples or {}
    try:
        header, body = _shortest(scenario, _likely_bases(scenario, examples))
        if any(view.selected):
            header["view"] = [int(index) for index in view.selected]
        if view.choices:
            header["page"] = {page: dict(chosen) for page, chosen in view.choices.items()}
        if view.pinned is not None:
            bases = {"": scenario, **_likely_bases(view.pinned, examples)}
            header["pinned"], more = _shortest(view.pinned, bases)
            body.append(more)
        return f"{VERSION}-{_sealed(header, body)}"
    except TooLarge:
        raise LinkError("This example is too large for a link.") from None
    except UnicodeEncodeError:
        raise LinkError("A text of this example holds half of a character.") from None


def decode(text, examples=None):
    """Read the value of ``?s=``: the reverse of `encode`.

    Returns
    -------
    scenario : Scenario
    view : View

    Raises
    ------
    LinkError
        Whatever is wrong with the link, in one plain sentence.
    """
    examples = examples or {}
    if len(text) > ENCODED_LIMIT:
        raise LinkError(
            f"This link is too long: it has {len(text):,} characters, "
            f"and at most {ENCODED_LIMIT:,} are read."
        )
    found = re.fullmatch(r"([0-9]{1,4})-(.+)", text, re.DOTALL)
    if not found:
        raise LinkError("This link does not hold an example of GRPO Explorer.")
    version = int(found[1])
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise LinkError(
            f"This link was made by {age} version of GRPO Explorer, which this one cannot read."
        )
    try:
        header, reader = _opened(found[2])
        return _restored(header, reader, examples)
    except (Changed, BeyondLimits) as error:
        raise LinkError(str(error)) from None
    except ScenarioError:
        raise LinkError(
            "This link holds an example with a value or a setting that this version does not know."
        ) from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise LinkError(_DAMAGED) from error
    except (zlib.error, struct.error, RecursionError, MemoryError):
        raise LinkError(_DAMAGED) from None


def _likely_bases(scenario, examples):
    """The example most like a scenario, if any is, and its scenario."""
    scores = {key: resemblance(scenario, row.scenario) for key, row in examples.items()}
    best = max(scores, key=scores.get, default=None)
    return {best: examples[best].scenario} if best is not None and scores[best] > 0 else {}


def _shortest(scenario, bases):
    """Header and arrays of a scenario, on the base that makes them shortest or on none."""
    options = []
    for key, base in bases.items():
        header, body = describe(scenario, base)
        name = {"base": key, "mark": mark(base)} if key else {"base": ""}
        options.append(({**name, **header}, body))
        if _cost(*options[-1]) <= SHORT:
            return options[-1]
    options.append(describe(scenario))
    return min(options, key=lambda option: _cost(*option)) if bases else options[0]


def _cost(header, body):
    return deflated_size(_json(header) + bytes(body.soft), _DICTIONARY) + len(body.hard)


def _json(header):
    return json.dumps(header, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _sealed(header, body):
    front = Writer()
    text = _json(header)
    front.count(len(text))
    soft = bytes(front.soft) + text + bytes(body.soft)
    if len(soft) > INFLATED_LIMIT:
        raise TooLarge("the arrays are too large")
    level = 9 if len(soft) <= 16_384 else 6  # 9 is slow on much
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, zdict=_DICTIONARY)
    length = Writer()
    length.count(len(body.hard))
    data = bytes(length.soft) + bytes(body.hard) + packer.compress(soft) + packer.flush()
    data = struct.pack("<I", zlib.crc32(data)) + data
    return _base64url(data)


def _base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _opened(text):
    """The header of a link and a reader of what stands behind it."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True)
    except (binascii.Error, ValueError):
        raise Damaged("not base64url") from None
    if _base64url(data) != text:
        raise Damaged("another spelling of the same bytes")
    (checksum,) = struct.unpack("<I", data[:4])
    data = data[4:]
    if zlib.crc32(data) != checksum:
        raise Damaged("the checksum differs")
    length = Reader(data, b"")
    hard = length.take(length.count())
    soft = _inflated(length.rest())
    reader = Reader(soft, hard)
    return _read_json(reader.take(reader.count())), reader


def _inflated(data):
    unpacker = zlib.decompressobj(-15, zdict=_DICTIONARY)
    soft = unpacker.decompress(data, INFLATED_LIMIT)
    if not unpacker.eof or unpacker.unused_data:
        raise Damaged("the compressed part is too large or not whole")
    return soft


def _read_json(data):
    def refuse(name):
        raise Damaged(f"{name} in the header")

    header = json.loads(data.decode(), parse_constant=refuse)
    if not isinstance(header, dict):
        raise Damaged("the header is not a table")
    return header


def _restored(header, reader, examples):
    scenario = restore(header, reader, _base(header, None, examples))
    pinned = header.get("pinned")
    if pinned is not None:
        pinned = restore(pinned, reader, _base(pinned, scenario, examples))
    if not reader.finished():
        raise Damaged("there is more than was announced")
    selected = _selected(header.get("view", [0, 0, 0]), scenario)
    return scenario, View(selected, pinned, _choices(header.get("page", {})))


def _base(header, main, examples):
    """The scenario that a header builds on, if it does."""
    key = header.get("base")
    if key is None:
        return None
    if key == "" and main is not None:
        return main
    if key not in examples:
        raise Changed("This link builds on an example that is not shipped any more.")
    base = examples[key].scenario
    if mark(base) != header.get("mark"):
        raise Changed("This link builds on an example that has changed since it was made.")
    return base


def _selected(view, scenario):
    """The selected token; one beyond the edge, from before a resize, is held inside."""
    if len(view) != 3 or any(type(index) is not int or index < 0 for index in view):
        raise Damaged("the selected token is none")
    sizes = scenario.sizes.values()
    return tuple(min(index, size - 1) for index, size in zip(view, sizes, strict=True))


def _choices(pages):
    """What was chosen on pages: keys that the page may know or not, and only so many."""
    found = {
        _key(page): {_key(name): _choice(value) for name, value in _few(chosen).items()}
        for page, chosen in _few(pages).items()
    }
    return {page: chosen for page, chosen in found.items() if chosen}


def _choice(value):
    return tuple(_key(text) for text in _few(value)) if isinstance(value, list) else _key(value)


def _few(values):
    if len(values) > _CHOICES:
        raise Damaged("too much is chosen")
    return values


def _key(text):
    if not _KEY.fullmatch(text):
        raise Damaged("what is chosen is no key")
    return text
