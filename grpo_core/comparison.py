"""The same batch under several conventions: how they differ, and which choices make them differ."""

from dataclasses import dataclass, replace

import numpy as np

from .comparison_choices import (
    GIVEN,
    OWN,
    apart,
    applied,
    label_of,
    setting,
    spoilt_by_missing,
)
from .evaluation import Evaluation, evaluate_batch
from .numerics import norm
from .presets import Difference
from .scenario import as_batch

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
        Choices in which the setting is not the base, see `apart`.
    gap : ndarray, (P, G, L)
        Gradient of this setting less that of the base; NaN where either is not a number.
    largest : float
        Largest size in `gap`; NaN where there is nothing to compare.
    where : tuple of int or None
        The token with it; None where nothing differs.
    base_largest : float
        Largest size in the gradient of the base.
    causes : tuple of (Difference, float)
        The one choice that, changed alone in the base, leaves least of the difference at the
        token `where`, and, while more than 2% is left, the choice that adds most to it. Each
        with the share of that difference which it and those before it explain together: 1 if
        the gradient there is the setting's, 0 if it is as far from it as the base's.
    spoilt : ndarray of bool, (P, G)
        Completions whose advantage is NaN in the trainer, since it handles no missing reward.
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
    spoilt: np.ndarray

    @property
    def cause(self):
        """The first of `causes`, None where there is none."""
        return self.causes[0][0] if self.causes else None

    @property
    def share(self):
        """What `cause` alone explains."""
        return self.causes[0][1] if self.causes else 0.0


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
    reference = setting(scenario, base)
    start = _evaluated(scenario, batch, reference)
    spoilt = spoilt_by_missing(scenario, base)
    return {
        key: _compared(scenario, batch, key, reference, start, spoilt, causes)
        for key in dict.fromkeys(keys)
    }


def _evaluated(scenario, batch, conventions):
    """`evaluate` with the arrays prepared once for all conventions."""
    arrays, held = batch
    evaluation = evaluate_batch(arrays, conventions, held=held)
    return replace(evaluation, scenario=scenario.with_conventions(conventions))


def _compared(scenario, batch, key, reference, start, base_spoilt, causes):
    conventions = setting(scenario, key)
    evaluation = _evaluated(scenario, batch, conventions)
    spoilt = spoilt_by_missing(scenario, key)
    known = ~(spoilt | base_spoilt)[..., None]
    gap = np.where(known, _finite(evaluation.gradient) - _finite(start.gradient), np.nan)
    # A loss that is NaN has no gradient to compare, also where single terms of it are finite.
    lost = np.any(spoilt) or np.any(base_spoilt)
    size = np.nan_to_num(np.abs(gap), nan=0.0)
    top = float(np.max(size, initial=0.0))
    largest = float(np.max(np.abs(_finite(start.gradient)), initial=0.0))
    differs = top > _SAME * largest and not lost
    found = _telling(scenario, apart(reference, conventions))
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(size)), size.shape))
    explain = differs and causes
    return Compared(
        key=key,
        label=label_of(key),
        evaluation=evaluation,
        differences=found,
        gap=gap,
        largest=np.nan if lost else top if differs else 0.0,
        where=at if differs else None,
        base_largest=largest,
        causes=_causes(batch, reference, conventions, found, gap, at) if explain else (),
        spoilt=spoilt,
    )


def _telling(scenario, found):
    """Without terms a sum is one reward: that they are called otherwise is no difference."""
    if scenario.terms:
        return found
    return tuple(one for one in found if not {one.left, one.right} <= GIVEN)


def _finite(gradient):
    """Infinite gradients as a huge number, so that they can be compared."""
    return np.clip(gradient.astype(np.float64), -_FAR, _FAR)


def _causes(batch, reference, conventions, found, gap, at):
    """Choices that, made in the base one after another, leave least of the difference at a token.

    Of those that leave as much of it, to rounding, the first is the one that leaves least of all.
    """
    arrays, path, left, rest = batch[0], [], (1.0, 1.0), list(found)
    target = _finite(evaluate_batch(arrays, conventions).gradient)
    while rest and left[0] > _EXPLAINED and len(path) < _CHOICES:
        tried = [
            _left(target - _gradient(arrays, reference, one, conventions), gap, at) for one in rest
        ]
        best = min(range(len(rest)), key=lambda i: (round(tried[i][0], 9), tried[i][1]))
        if not tried[best][0] < left[0] * (1 - 1e-9):
            break
        chosen, before, left = rest[best], left, tried[best]
        # What changed nothing will change nothing now, unless it is of the same stage.
        rest = [
            one
            for one, after in zip(rest, tried, strict=True)
            if one is not chosen and (_moved(before, after) or one.stage == chosen.stage)
        ]
        reference = applied(reference, chosen, conventions)
        path.append((chosen, 1.0 - left[0]))
    return tuple(path)


@np.errstate(over="ignore")
def _left(remaining, gap, at):
    """What is left of a difference: at the token `at`, and of all tokens together."""
    unit = np.max(np.abs(gap))
    return abs(float(remaining[at] / gap[at])), norm(remaining / unit) / norm(gap / unit)


def _moved(before, after):
    return any(abs(a - b) > _SAME for a, b in zip(before, after, strict=True))


def _gradient(arrays, reference, difference, conventions):
    changed = applied(reference, difference, conventions)
    return _finite(evaluate_batch(arrays, changed).gradient)


__all__ = ["OWN", "Compared", "compare", "label_of", "setting"]
