"""Scenarios as files: JSON to read and edit, npz for NumPy. Nothing in a file is trusted.

A JSON file holds ``arrays`` (nested lists; null is padding or a missing score, "-inf" minus
infinity; ``mask`` and ``present`` are 0 and 1 and may be left out), ``conventions``, ``terms``,
``texts`` and ``drift``. A shaping term is a table of ``name``, ``weight``, ``formula`` and the
options of its formula, in the order of the columns of ``term_values``. The tokens of a
completion are a list of texts or one string with a character for each token; shorter than the
row, they begin at the first valid position. Arrays named in ``float32`` are float32. An npz
file holds the same, the parts that are not arrays as JSON.
"""

import io
import json
import zipfile

import numpy as np

from grpo_core import ARRAYS, ScenarioError
from grpo_core.arrays import as_array

from .documents import assembled, check_table, laid_out, listed_arrays, said, with_infinities
from .limits import check_lists, check_sizes
from .npz_member import BROKEN_ZIP, BadMember, read_member

FORMAT = "grpo-explorer 1"
JSON_LIMIT = 20_000_000  # characters
NPZ_LIMIT = 20_000_000  # bytes, unpacked

_PARTS = ("format", "arrays", "float32", "conventions", "terms", "texts", "drift")
_ABOUT = ("title", "teaches", "order", "source")  # what the shipped examples say of themselves
_OTHER_NAMES = {"loss": "logged_loss"}  # in the npz files that trainers' recorders write


def scenario_to_json(scenario):
    """Write a scenario as readable JSON, a line for each completion."""
    document = {"format": FORMAT, "arrays": listed_arrays(scenario)}
    single = [key for key, array in scenario.arrays.items() if array.dtype == np.float32]
    if single:
        document["float32"] = single
    return laid_out({**document, **said(scenario)}) + "\n"


def scenario_from_json(text):
    """Read a scenario from JSON.

    Raises
    ------
    ScenarioError
        What is wrong with the file, in one sentence.
    """
    return scenario_from_document(document_from_json(text))


def document_from_json(text):
    """The table that a JSON file holds, not yet looked into."""
    if len(text) > JSON_LIMIT:
        raise ScenarioError(f"The file is too large: at most {JSON_LIMIT:,} characters are read.")
    try:
        document = json.loads(text.removeprefix("\ufeff"))  # some editors put it in front
    except json.JSONDecodeError as error:
        raise ScenarioError(
            f"The file is not JSON: line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise ScenarioError("The file is nested too deeply.") from None
    except ValueError:
        raise ScenarioError("The file holds a number with too many digits.") from None
    return document


def scenario_from_document(document):
    """The scenario in the table that a JSON file holds; see `scenario_from_json`."""
    check_table(document, "The file", (*_PARTS, *_ABOUT))
    if document.get("format", FORMAT) != FORMAT:
        raise ScenarioError(f"The file has another format than {FORMAT!r}, the one that is read.")
    given = document.get("arrays", {})
    check_table(given, "arrays", ARRAYS)
    single = document.get("float32", [])
    if not isinstance(single, list) or not all(isinstance(key, str) for key in single):
        raise ScenarioError("float32 has to be a list of names of arrays.")
    arrays = {}
    for key, value in given.items():
        check_lists(value, ARRAYS[key].axes)
        array = as_array(key, with_infinities(key, value), ARRAYS[key])
        with np.errstate(over="ignore"):
            arrays[key] = array.astype(np.float32) if key in single else array
    return assembled(arrays, document)


def scenario_to_npz(scenario, evaluation=None):
    """Write a scenario, and what was computed from it, as the bytes of an npz file.

    The arrays have their own names, those of an `Evaluation` the prefix ``result_``.
    ``np.load`` reads them; conventions, terms, texts and drift stand in ``about`` as JSON.
    """
    members = dict(scenario.arrays)
    if evaluation is not None:
        members |= {
            f"result_{key}": value
            for key, value in vars(evaluation).items()
            if isinstance(value, (np.ndarray, float))
        }
    members["about"] = json.dumps({"format": FORMAT, **said(scenario)})
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **members)
    return buffer.getvalue()


def scenario_from_npz(data):
    """Read a scenario from the bytes of an npz file, written here or with ``np.savez``.

    Sizes are checked before anything is unpacked; objects (pickles) are never loaded.

    Raises
    ------
    ScenarioError
        What is wrong with the file, in one sentence.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _members(archive)
    except ScenarioError:
        raise
    except BROKEN_ZIP:
        raise ScenarioError("The file is not an npz file, or it is damaged.") from None
    document = document_from_json(str(members.pop("about", "{}")))
    check_table(document, "about", _PARTS)
    if document.get("format", FORMAT) != FORMAT:
        raise ScenarioError(f"The file has another format than {FORMAT!r}, the one that is read.")
    prompts = members.pop("prompts", None)
    if "texts" not in document and prompts is not None:
        document["texts"] = {"prompts": prompts.ravel().tolist()}
    for key, array in members.items():
        check_sizes(dict(zip(ARRAYS[key].axes, array.shape, strict=False)))
    arrays = {key: as_array(key, array, ARRAYS[key]) for key, array in members.items()}
    return assembled(arrays, document)


def _members(archive):
    """The arrays of an npz file that mean something here, none of them an object."""
    entries = {}
    for entry in archive.infolist():
        name = entry.filename.removesuffix(".npy")
        key = _OTHER_NAMES.get(name, name)
        if key in (*ARRAYS, "about", "prompts"):
            entries.setdefault(key, entry)
    if sum(entry.file_size for entry in entries.values()) > NPZ_LIMIT:
        raise ScenarioError(f"The file is too large: at most {NPZ_LIMIT:,} bytes are unpacked.")
    return {key: _member(archive, entry, key) for key, entry in entries.items()}


def _member(archive, entry, key):
    try:
        return read_member(archive, entry, "fiub" if key in ARRAYS else "U")
    except BadMember:
        wanted = "numbers" if key in ARRAYS else "text"
        raise ScenarioError(f"The array {key!r} of the file is damaged or not {wanted}.") from None
