"""Export: the page's numbers as a NumPy script, a notebook and CSV tables."""

import json
import re
import textwrap

from grpo_core import STAGES

from .computed import RESULTS
from .export_sections import Section, sections_of
from .export_tables import tables_csv, tables_zip
from .trainer_names import named

__all__ = ["conventions_text", "notebook", "script", "tables_csv", "tables_zip"]


def script(scenario):
    """A Python program that computes the page's numbers with NumPy alone.

    Parameters
    ----------
    scenario : Scenario

    Returns
    -------
    str
        The arrays written out digit for digit, the chosen conventions as straight-line code,
        and at the end a dict ``results`` with every array by its name in `Evaluation`.
        A variant that has no such code is there as the arrays that it gave.
    """
    parts = [f'"""{_intro(scenario)}\n"""', "import numpy as np"]
    for section in _sections(scenario):
        parts.append("\n".join([f"# --- {section.title}", *section.lines]))
    return "\n\n".join(parts) + "\n"


def notebook(scenario, title):
    """The same program as a Jupyter notebook (nbformat 4.5), one cell for each stage.

    Parameters
    ----------
    scenario : Scenario
    title : str
        Shown as the heading.

    Returns
    -------
    str
        JSON.
    """
    intro = f"# {_plain_markdown(title)}\n\n```\n{_intro(scenario)}\n```"
    cells = [_markdown(intro), _code(["import numpy as np"])]
    for section in _sections(scenario):
        formula = f"\n\n${section.formula}$" if section.formula else ""
        cells += [_markdown(f"## {section.title}{formula}"), _code(section.lines)]
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _markdown(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(lines):
    source = "\n".join(lines).splitlines(keepends=True)
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def _plain_markdown(text):
    """A title on one line, its markup characters escaped."""
    line = " ".join(text.split())
    return "".join("\\" + char if char in r"\`*_{}[]<>#|$!~" else char for char in line)


def conventions_text(conventions):
    """The chosen conventions in plain words, each with its name in TRL, verl and OpenRLHF.

    Returns
    -------
    str
        A line for each stage and an indented one for each option.
    """
    lines = []
    for stage in STAGES.values():
        row = conventions.variant(stage.key)
        lines.append(_line("", stage.label, row.label, named(row, stage.key, row.key)))
        for key, value in conventions[stage.key].options.items():
            option = row.option(key)
            words = getattr(option.domain, "words", {}).get(value, value)
            names = named(option, stage.key, row.key, key)
            lines.append(_line("    ", option.label, words, names))
    return "\n".join(lines)


def _line(indent, label, words, names):
    return f"{indent}{label}: {words}. {names}"


def _intro(scenario):
    return "\n".join(
        [
            "One GRPO update, computed with NumPy alone.",
            "",
            "Shapes: P prompts, G completions per prompt, L token positions, all counted from 0.",
            "Conventions (behind each, its name and default in TRL and verl):",
            "",
            *(
                folded
                for line in conventions_text(scenario.conventions).splitlines()
                for folded in _folded(line)
            ),
        ]
    )


def _folded(line):
    indent = line[: len(line) - len(line.lstrip())] + "    "
    return textwrap.wrap(line, 96, subsequent_indent=indent, break_on_hyphens=False)


def _sections(scenario):
    sections = sections_of(scenario)
    return [*sections, _results(scenario, sections)]


def _results(scenario, sections):
    """Everything that the lines before assign under a name of `Evaluation`."""
    code = [line for section in sections for line in section.lines]
    assigned = {found[1] for found in map(re.compile(r"(\w+) = ").match, code) if found}
    lines = [
        "results = {",
        *(f'    "{name}": {name},' for name in RESULTS if name in assigned),
        "}",
        'for name in ("objective", "loss", "mean_kl"):',
        '    print(f"{name:<10} {results[name]:.10g}")',
        'print("advantages", advantages, sep="\\n")',
    ]
    if "logged_loss" in scenario:
        lines.append('print(f"logged loss {logged_loss:.10g}, here {loss - logged_loss:+.3g}")')
    return Section("Results", "", tuple(lines))
