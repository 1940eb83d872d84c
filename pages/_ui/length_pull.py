"""The pull on length: a small policy that may stop after each token, with and without a hunch."""

from dataclasses import dataclass, replace

import numpy as np

from grpo_core import ARRAYS
from grpo_core.arrays import OWN_AXES
from grpo_core.errors import ScenarioError
from grpo_core.recipes import RECIPES
from grpo_core.stop_worlds import hunch_world
from grpo_core.stopping import expected_update, pull, slopes
from grpo_core.stopping_trials import sampled_pull

SHOWN = ("grpo", "dapo", "dr_grpo")
_LOGIT, _PLACES = -1.5, 12  # of an example without a table: stops after a token in 18 of 100 cases
_STEEPEST = 30.0  # beyond this a stop is certain, or never comes
_ACCURACIES = np.linspace(0.5, 1.0, 11)
_BATCHES = 100
_LARGEST = (8, 16)  # prompts and group size of the batches that are simulated
PARTS = (("change_right", "right answers"), ("change_wrong", "wrong answers"))


def with_stops(scenario):
    """The scenario with a table of stop logits; the same object if it has one."""
    if "stop_logits" in scenario:
        return scenario
    return scenario.replace(stop_logits=np.full(_PLACES, _LOGIT))


def with_places(scenario, places):
    """As many places to stop as wanted; new ones are like the last.

    Raises
    ------
    ScenarioError
        More or fewer than a table can hold.
    """
    own = OWN_AXES["T"]
    if not own.low <= places <= own.high:
        raise ScenarioError(
            f"{places} {own.noun} are wanted; a table holds {own.low} to {own.high}"
        )
    logits = with_stops(scenario)["stop_logits"]
    return scenario.replace(stop_logits=logits[np.minimum(np.arange(places), logits.size - 1)])


def right_share(evaluation, prompt):
    """Share of a prompt's pushed completions that are pushed up; None if none is pushed."""
    filled = evaluation.lengths[prompt] > 0
    advantages = evaluation.advantages[prompt]
    right = int(np.sum((advantages > 0) & filled))
    pushed = right + int(np.sum((advantages < 0) & filled))
    return right / pushed if pushed else None


def hunch_of(scenario):
    """How often the small policy's hunch of being wrong is right."""
    return float(scenario.arrays.get("hunch", ARRAYS["hunch"].default))


def batch_of(scenario):
    """Prompts and group size of the batches that pull: those of the scenario, up to a limit."""
    sizes = scenario.sizes
    return min(sizes["P"], _LARGEST[0]), min(max(sizes["G"], 2), _LARGEST[1])


def stop_world(logits, rate, accuracy):
    """A policy with these stop logits in both branches, and a hunch of that accuracy."""
    stops = 1 / (1 + np.exp(-np.clip(logits.astype(np.float64), -_STEEPEST, _STEEPEST)))
    world = hunch_world(rate, 0.5, accuracy=accuracy, width=stops.size + 1)
    return replace(world, stops=np.tile(np.append(stops, 1.0), (2, 1)))  # the last one ends it


@dataclass(frozen=True, eq=False, kw_only=True)
class PullView:
    """The exact pull under each of `SHOWN`, against the accuracy of the hunch.

    ``curves[recipe][part]`` (A,) belongs to ``accuracies`` (A,); ``now[recipe]`` is a `Pull` at
    ``accuracy``. Per unit of learning rate, in tokens. ``assumed`` is whether ``rate`` is one
    half for want of a batch that says otherwise. Curves and pulls are empty where a choice that the
    recipes leave alone has no closed form, see `grpo_core.stopping.expected_update`.
    """

    logits: np.ndarray
    rate: float
    assumed: bool
    accuracy: float
    prompts: int
    G: int
    length: float
    accuracies: np.ndarray
    curves: dict
    now: dict


def pull_view(scenario, rate, accuracy):
    """What the stop logits are pulled by, exactly, see `PullView`.

    ``rate`` is as `right_share` gives it.
    """
    assumed, rate = rate is None, 0.5 if rate is None else rate
    logits = with_stops(scenario)["stop_logits"]
    prompts, G = batch_of(scenario)

    def exact(key, sharp):
        world = stop_world(logits, rate, sharp)
        conventions = RECIPES[key].applied(scenario.conventions)
        update = expected_update(world, conventions, prompts=prompts, G=G, shared=False)
        return None if update is None else pull(world, update)

    now = {key: exact(key, accuracy) for key in SHOWN}
    known = all(now.values())
    curves = {}
    for key in SHOWN if known else ():
        found = [exact(key, float(sharp)) for sharp in _ACCURACIES]
        curves[key] = {
            part: np.array([getattr(each, part) for each in found])
            for part in ("change_right", "change_wrong", "change")
        }
    return PullView(
        logits=logits,
        rate=rate,
        assumed=assumed,
        accuracy=accuracy,
        prompts=prompts,
        G=G,
        length=slopes(stop_world(logits, rate, accuracy), shared=False).length,
        accuracies=_ACCURACIES,
        curves=curves,
        now=now if known else {},
    )


def simulated(scenario, view, seed=0):
    """The same by simulated batches at the chosen accuracy: {recipe: SampledPull}."""
    world = stop_world(view.logits, view.rate, view.accuracy)
    return {
        key: sampled_pull(
            world, RECIPES[key].applied(scenario.conventions), prompts=view.prompts, G=view.G,
            batches=_BATCHES, seed=seed, shared=False,
        )
        for key in SHOWN
    }  # fmt: skip


def pull_rows(view, trials):
    """Closed form and simulation of each recipe: (label, part, exact, mean, error) rows.

    ``exact`` is None where there is no closed form.
    """
    return [
        (RECIPES[key].label, label, getattr(view.now.get(key), part, None),
         getattr(trials[key].mean, part), getattr(trials[key].error, part))
        for key in SHOWN
        for part, label in (*PARTS, ("change", "all answers"))
    ]  # fmt: skip
