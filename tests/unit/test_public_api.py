"""What `grpo_core` promises by name."""

import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import grpo_core

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = sorted(grpo_core.__all__)
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(grpo_core.__path__, prefix="grpo_core.")
)


def test_all_lists_each_name_once_and_each_exists():
    assert len(set(PUBLIC)) == len(PUBLIC)
    for name in PUBLIC:
        assert hasattr(grpo_core, name), name


def test_all_lists_every_public_thing_of_the_package():
    public = {
        name
        for name, value in vars(grpo_core).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(PUBLIC)


PROMISED = {
    *("ARRAYS", "STAGES", "TERMS", "Conventions", "Choice", "Term"),
    *("Scenario", "Evaluation", "ScenarioError"),
    *("evaluate", "group_advantages", "grpo_objective", "process_advantages", "shaped_rewards"),
}


def test_promised_names_are_there():
    assert set(PUBLIC) >= PROMISED


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("group_advantages", "(rewards, eps=1e-08)"),
        (
            "grpo_objective",
            "(logp, old_logp, ref_logp, rewards, mask, epsilon=0.2, beta=0.04, eps=1e-08)",
        ),
    ],
)
def test_promised_signatures(name, signature):
    assert str(inspect.signature(getattr(grpo_core, name))) == signature


def test_promised_arguments_of_process_advantages_and_shaped_rewards():
    def promised(function, *wanted):
        parameters = inspect.signature(function).parameters.values()
        positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        named = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        assert positional == list(wanted)
        return named

    steps = promised(grpo_core.process_advantages, "step_rewards", "step_ends", "mask")
    assert steps == {"ddof": 0, "eps": 1e-8, "over": "group"}
    shaping = promised(grpo_core.shaped_rewards, "task", "terms", "weights")
    assert shaping["combine"] == "sum_then_normalize"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_classes_and_functions_have_docstrings(name):
    value = getattr(grpo_core, name)
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return
    assert value.__doc__
    assert value.__doc__.strip(), name


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name):
    assert import_module(name).__doc__


@pytest.mark.parametrize(
    "name", ["group_advantages", "grpo_objective", "process_advantages", "shaped_rewards"]
)
def test_numpydoc_sections_of_the_promised_functions(name):
    text = getattr(grpo_core, name).__doc__
    sections = ("Parameters", "Returns", "Raises", "Notes", "Examples")
    positions = [text.index(f"{section}\n    {'-' * len(section)}\n") for section in sections]
    assert positions == sorted(positions)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    import doctest

    result = doctest.testmod(import_module(name))
    assert result.failed == 0


def test_core_loads_without_plotting_tables_or_pages():
    heavy = ("streamlit", "pandas", "plotly", "pages")
    code = f"import sys, grpo_core; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_errors_are_value_errors_that_know_their_place():
    error = grpo_core.ScenarioError("words", field="rewards", where=(0, 1))
    assert isinstance(error, ValueError)
    assert (str(error), error.field, error.where) == ("words", "rewards", (0, 1))
