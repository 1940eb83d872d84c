"""What a paste did besides putting numbers in: sizes, masks, and what still holds fillers."""

import numpy as np

from grpo_core import ARRAYS, Texts
from grpo_core.words import listing

from .numbers import count

_NOUNS = {
    "P": ("prompt", "prompts"),
    "G": ("completion per prompt", "completions per prompt"),
    "L": ("token position", "token positions"),
}
_LOGP = [
    key
    for key, spec in ARRAYS.items()
    if spec.axes == "PGL" and spec.kind == "float" and spec.required
]


def without_stale_texts(before, after):
    """The pasted scenario without texts that belonged to a batch of other sizes."""
    return after if after.sizes == before.sizes else after.with_texts(Texts())


def paste_notes(before, after, key):
    """Sentences on what else changed when an array was pasted.

    Parameters
    ----------
    before, after : Scenario
    key : str
        The array that was pasted.

    Returns
    -------
    tuple of str
        Empty if nothing but that array changed.
    """
    notes = []
    if before.sizes != after.sizes:
        sizes = ", ".join(count(after.sizes[letter], *names) for letter, names in _NOUNS.items())
        dropped = " Its texts were dropped." if before.texts != Texts() else ""
        notes.append(f"The example has new sizes: {sizes}.{dropped}")
        grown = any(after.sizes[letter] > before.sizes[letter] for letter in _NOUNS)
        fillers = [name for name in _LOGP if name != key and _has_fillers(after[name])]
        if grown and fillers:
            notes.append(
                f"Where nothing was pasted, {listing(fillers)} hold their filler "
                f"{ARRAYS[fillers[0]].default:g}: ratio and KL mean nothing there yet."
            )
    elif key != "mask":
        ended = int(np.sum(before["mask"] & ~after["mask"]))
        if ended:
            notes.append(f"{count(ended, 'position')} without a pasted number left the mask.")
    lost = _steps(before) - _steps(after)
    if before.sizes != after.sizes and lost > 0 and ARRAYS[key].axes != "PGS":
        notes.append(f"{count(lost, 'step')} went with the positions that are gone.")
    if ARRAYS[key].axes == "PGL" and key != "mask":
        hidden = ~after.valid & (after[key] != ARRAYS[key].default)
        changed = hidden & _differs(before, after, key)
        if np.any(changed):
            notes.append(
                f"{count(int(np.sum(changed)), 'pasted number')} at positions where the mask is "
                "off: not counted until they are switched on in the mask table."
            )
    return tuple(notes)


def _has_fillers(array):
    return bool(np.any(array == ARRAYS["logp_new"].default))


def _steps(scenario):
    """How many steps the completions have in all."""
    if "step_ends" not in scenario:
        return 0
    there = ~np.isnan(scenario["step_ends"]) & scenario["present"][..., None]
    return int(np.sum(there))


def _differs(before, after, key):
    if key not in before or before[key].shape != after[key].shape:
        return np.ones(after[key].shape, dtype=bool)
    return before[key] != after[key]
