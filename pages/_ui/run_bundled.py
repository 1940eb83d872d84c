"""Runs that ship with the app, and the one that its command line names."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from .runs.opening import look, open_run, sources_of_path
from .runs.records import RolesNeeded

_FOLDER = Path(__file__).parents[2] / "assets" / "runs"
_RECORDED = (
    "GRPOConfig(num_generations=8, num_iterations=2, epsilon=0.2, beta=0.02, "
    'loss_type="grpo", scale_rewards="group", use_bias_correction_kl=False, reward_weights={})'
)


@dataclass(frozen=True, kw_only=True)
class Bundled:
    """A run that ships: its file in ``assets/runs``, and the settings it was made with."""

    key: str
    label: str
    about: str
    settings: str

    @property
    def path(self):
        """Where the file lies."""
        return str(_FOLDER / f"{self.key}.zip")


# The first opens first.
BUNDLED: Mapping[str, Bundled] = MappingProxyType(
    {
        row.key: row
        for row in (
            Bundled(
                key="trl-addition-step-bonus",
                label="Additions, with a bonus for steps",
                about="A small model learns worked additions with TRL 1.16.0. It is paid for "
                "the right result and, 0.3 each, for the steps that it writes.",
                settings=_RECORDED.format([1.0, 0.3]),
            ),
            Bundled(
                key="trl-addition",
                label="Additions",
                about="A small model learns worked additions with TRL 1.16.0. It is paid for "
                "the right result and, 0.2, for the right form.",
                settings=_RECORDED.format([1.0, 0.2]),
            ),
        )
    }
)

# Which preset stands for what a file does not tell, by the format of its reader.
PRESET_OF = MappingProxyType(
    {
        "trl": "trl-1.16",
        "swift": "swift-grpo",
        "verl": "verl-0.9.1-grpo",
        "nemo": "nemo-rl-grpo",
        "nemo_validation": "nemo-rl-grpo",
        "prime_tokens": "prime-rl-grpo",
        "platform": "prime-rl-grpo",
        "areal": "areal-default",
    }
)


def opened_path(path):
    """(Survey, OpenedRun) of the run at a path, with the roles that are guessed.

    Where the guesses make no run, the `RolesNeeded` stands in for it. Raises `RunFileError`.
    """
    survey = look(sources_of_path(path))
    try:
        return survey, open_run(survey)
    except RolesNeeded as asked:
        return survey, asked


def path_of(arguments):
    """The path behind ``--run``, as in ``streamlit run app.py -- --run PATH``; None without.

    Examples
    --------
    >>> path_of(["app.py", "--run", "out/completions"])
    'out/completions'
    >>> path_of(["app.py", "--run=out"])
    'out'
    """
    for at, argument in enumerate(arguments[1:], 1):
        if argument == "--run" and at + 1 < len(arguments):
            return os.path.expanduser(arguments[at + 1])
        if argument.startswith("--run="):
            return os.path.expanduser(argument.removeprefix("--run="))
    return None
