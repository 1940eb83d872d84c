"""What every trick on a step would bring, tried on the scenario at hand."""

from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError
from .process import step_advantages
from .scenario import Scenario
from .step_credit import mass
from .step_edits import EDITS, StepEdit

_ROUNDING = 1e-12  # of what was added up; a sum below it is 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    """One edit of one step, and what the completion's tokens get by it.

    ``scenario`` is the edited one, None where the edit does not apply; ``refusal`` says why.
    ``first`` is the advantage that the steps give to the completion's first token, ``mass``
    the sum over its tokens; both without what an outcome reward may add.
    """

    edit: StepEdit
    scenario: Scenario | None
    first: float = np.nan
    mass: float = np.nan
    refusal: str = ""


def standing(scenario, where):
    """``(first, mass)`` of a completion as it is, see `Trial`."""
    first, masses = credited(scenario)
    return float(first[where[:2]]), float(masses[where[:2]])


def credited(scenario):
    """``first`` and ``mass`` of every completion, (P, G) each, see `Trial`; rounding is 0."""
    steps, _ = normalised_steps(scenario)
    ends, _ = present_steps(scenario)
    first, largest = np.sum(steps, axis=-1), mass(np.abs(steps), ends, scenario.valid)
    dust = _ROUNDING * np.sum(np.abs(steps), axis=-1)
    masses = mass(steps, ends, scenario.valid)
    return (
        np.where(np.abs(first) <= dust, 0.0, first),
        np.where(np.abs(masses) <= _ROUNDING * largest, 0.0, masses),
    )


def normalised_steps(scenario):
    """Normalised step rewards (P, G, S), and their sums from each token on (P, G, L)."""
    options = scenario.conventions["advantage"].options
    ends, rewards = present_steps(scenario)
    return step_advantages(
        rewards,
        ends,
        scenario.valid,
        **{key: options[key] for key in ("ddof", "eps", "over")},
    )


def present_steps(scenario):
    """Ends and rewards of the steps that count, (P, G, S) each; NaN in absent completions too."""
    there = ~np.isnan(scenario["step_ends"]) & scenario["present"][..., None]
    return tuple(np.where(there, scenario[key], np.nan) for key in ("step_ends", "step_rewards"))


def try_edits(scenario, where):
    """Every row of `EDITS` on one step.

    Parameters
    ----------
    scenario : Scenario
        Under process supervision.
    where : (int, int, int)
        Prompt, completion and step; step -1 is none, to which only some edits apply.

    Returns
    -------
    tuple of Trial
    """
    return tuple(_tried(scenario, edit, where) for edit in EDITS.values())


def _tried(scenario, edit, where):
    at = where if where[2] >= 0 else where[:2]
    try:
        with np.errstate(over="ignore"):  # an infinite reward is refused below
            ends, rewards = edit.function(
                scenario["step_ends"], scenario["step_rewards"], scenario.valid, at
            )
        edited = scenario.replace(step_ends=ends, step_rewards=rewards)
    except ScenarioError as error:
        return Trial(edit=edit, scenario=None, refusal=str(error))
    first, masses = standing(edited, where)
    return Trial(edit=edit, scenario=edited, first=first, mass=masses)
