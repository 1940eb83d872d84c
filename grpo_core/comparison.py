"""The same batch under several conventions: how they differ, and which choices make them differ."""

from dataclasses import dataclass, replace

import numpy as np

from .evaluation import Evaluation, evaluate_batch
from .numerics import norm
from .presets import PRESETS, Difference, differences
from .scenario import as_batch
from .stages import Conventions

OWN = "own"  # the key of the scenario's own conventions
_SAME = 1e-12  # of the larger one; a smaller difference is rounding
_EXPLAINED = 0.02  # what is left of a difference once no further choice is looked for
_CHOICES = 3  # that a difference is explained by, at most
_FAR = 1e300  # infinite gradients are taken as this, so that they can be compared


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """One setting beside a base, on one batch.

    Attributes
    ----------
    key, label : str
    evaluation : Evaluation
    differences : tuple of Difference
        Choices in which the setting is not the base.
    gap : ndarray, (P, G, L)
        Gradient of this setting less that of the base.
    largest : float
        Largest size in `gap`.
    where : tuple of int or None
        The token with it; None where nothing differs.
    base_largest : float
        Largest size in the gradient of the base.
    cause : Difference or None
        The one choice that, changed alone in the base, brings most of the difference.
    share : float
        How much of it remains to be explained by the others is ``1 - share``: 1 if the cause
        alone gives the setting's gradient, 0 if no single choice brings it nearer.
    causes : tuple of (Difference, float)
        The cause and, while more than 2% is left, the choice that adds most to it; each with
        the share that it and those before it explain together.
    """

    key: str
    label: str
    evaluation: Evaluation
    differences: tuple[Difference, ...]
    gap: np.ndarray
    largest: float
    where: tuple[int, int, int] | None
    base_largest: float
    causes: tuple[tuple[Difference, float], ...]

    @property
    def cause(self):
        """The first of `causes`, None where there is none."""
        return self.causes[0][0] if self.causes else None

    @property
    def share(self):
        """What `cause` alone explains."""
        return self.causes[0][1] if self.causes else 0.0


def label_of(key):
    """What a setting is called."""
    return "as chosen here" if key == OWN else PRESETS[key].label


def setting(scenario, key):
    """Conventions of a preset, or of the scenario itself for `OWN`."""
    return scenario.conventions if key == OWN else PRESETS[key].conventions


def compare(scenario, keys, base, *, causes=True):
    """A batch under the presets `keys`, each against the preset `base`.

    Parameters
    ----------
    scenario : Scenario
        Its own conventions are not used, unless a key is ``'own'``.
    keys : sequence of str
        Keys of `PRESETS`, or ``'own'``.
    base : str
        Likewise.
    causes : bool
        Whether to look for what makes them differ: an evaluation for each difference.

    Returns
    -------
    dict from key to Compared
    """
    batch = as_batch(scenario)
    start = _evaluated(scenario, batch, setting(scenario, base))
    reference = setting(scenario, base)
    return {
        key: _compared(scenario, batch, key, reference, start, causes)
        for key in dict.fromkeys(keys)
    }


def _evaluated(scenario, batch, conventions):
    """`evaluate` with the arrays prepared once for all conventions."""
    arrays, held = batch
    evaluation = evaluate_batch(arrays, conventions, held=held)
    return replace(evaluation, scenario=scenario.with_conventions(conventions))


def _compared(scenario, batch, key, reference, start, causes):
    conventions = setting(scenario, key)
    evaluation = _evaluated(scenario, batch, conventions)
    gap = _finite(evaluation.gradient) - _finite(start.gradient)
    size = np.abs(gap)
    top = float(np.max(size, initial=0.0))
    largest = float(np.max(np.abs(_finite(start.gradient)), initial=0.0))
    differs = top > _SAME * largest
    found = differences(reference, conventions)
    at = np.unravel_index(int(np.argmax(size)), size.shape)
    explain = differs and causes
    return Compared(
        key=key,
        label=label_of(key),
        evaluation=evaluation,
        differences=found,
        gap=gap,
        largest=top if differs else 0.0,
        where=tuple(int(i) for i in at) if differs else None,
        base_largest=largest,
        causes=_causes(batch, reference, conventions, found, gap) if explain else (),
    )


def _finite(gradient):
    """Infinite gradients as a huge number, so that they can be compared."""
    return np.clip(gradient.astype(np.float64), -_FAR, _FAR)


@np.errstate(over="ignore")
def _causes(batch, reference, conventions, found, gap):
    """Choices that, made in the base one after another, leave least of the difference."""
    unit = np.max(np.abs(gap))
    whole, arrays = norm(gap / unit), batch[0]
    target = _finite(evaluate_batch(arrays, conventions).gradient)
    path, left, rest = [], 1.0, list(found)
    while rest and left > _EXPLAINED and len(path) < _CHOICES:
        tried = [
            norm((target - _gradient(arrays, reference, one, conventions)) / unit) / whole
            for one in rest
        ]
        best = int(np.argmin(tried))
        if not tried[best] < left * (1 - 1e-9):
            break
        chosen, before, left = rest[best], left, float(tried[best])
        # What changed nothing will change nothing now, unless it is of the same stage.
        rest = [
            one
            for one, distance in zip(rest, tried, strict=True)
            if one is not chosen and (abs(distance - before) > _SAME or one.stage == chosen.stage)
        ]
        reference = applied(reference, chosen, conventions)
        path.append((chosen, 1.0 - left))
    return tuple(path)


def _gradient(arrays, reference, difference, conventions):
    changed = applied(reference, difference, conventions)
    return _finite(evaluate_batch(arrays, changed).gradient)


def applied(reference, difference, conventions):
    """Conventions with one difference taken over from others."""
    if difference.option:
        return reference.replace(difference.stage, **{difference.option: difference.right})
    other = conventions[difference.stage]
    return Conventions({**reference.choices, difference.stage: other})
