"""The shipped examples: one JSON file each in ``assets/examples``, read once."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from grpo_core import Scenario, ScenarioError

from .files import document_from_json, scenario_from_document

FOLDER = Path(__file__).parents[2] / "assets" / "examples"


@dataclass(frozen=True, eq=False)
class Example:
    """A scenario, its title and one sentence on what it teaches; the key is the file's name."""

    key: str
    title: str
    teaches: str
    scenario: Scenario


@cache
def load_examples(folder=FOLDER):
    """Every example by key, in their ``order``; the first is the default.

    Raises
    ------
    ScenarioError
        A file that cannot be read, by name.
    """
    ordered = sorted((_read(path) for path in folder.glob("*.json")), key=lambda row: row[0])
    return MappingProxyType({example.key: example for _, example in ordered})


def _read(path):
    try:
        document = document_from_json(path.read_text(encoding="utf-8"))
        scenario = scenario_from_document(document)
    except ScenarioError as error:
        raise ScenarioError(f"{path.name}: {error}") from None
    missing = [key for key in ("title", "teaches", "order") if key not in document]
    if missing:
        raise ScenarioError(f"{path.name}: {missing[0]} is missing")
    example = Example(path.stem, document["title"], document["teaches"], scenario)
    return (document["order"], path.stem), example
