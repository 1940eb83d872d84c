"""Unusual batches: a file that an evaluation at the same step may have overwritten."""

import numpy as np

LEAST = 4  # batches from which on one can be called unusual
SHOWN = 10


def unusual_batches(rows, kept, run):
    """Sentences naming the steps whose batch differs from all the others.

    TRL writes the completions of an evaluation over those of the training step; nothing in the
    file says so.

    Parameters
    ----------
    rows : rows.Rows
    kept : ndarray of int
        The rows that count.
    run : grpo_core.runs.run.Run

    Returns
    -------
    tuple of str
    """
    steps = run.every_step
    if len(steps) < LEAST:
        return ()
    step = np.searchsorted(steps, rows.step)
    counts = np.bincount(step[kept], minlength=len(steps))
    groups = np.searchsorted(steps, run.steps)
    largest = np.zeros(len(steps), dtype=np.int64)
    np.maximum.at(largest, groups, run.sizes)
    shared = _shared(step[kept], rows.group[kept], len(steps))
    found = {
        "another number of completions": _odd_ones(counts)[:-1],  # the last one may be cut short
        "groups of another size": _odd_ones(largest),
        "prompts of its own": (shared == 0) & (np.median(shared) > 0.5),
    }
    by_steps = {}
    for what, odd in found.items():
        if odd.any():
            by_steps.setdefault(tuple(steps[np.nonzero(odd)[0]]), []).append(what)
    return tuple(
        f"{_steps_listed(at)}: {' and '.join(whats)}, unlike nearly all others. An evaluation "
        "at that step may have overwritten the training file."
        for at, whats in by_steps.items()
    )


def _odd_ones(values):
    """Which values differ from the commonest, where that is nearly all of them."""
    kinds, counts = np.unique(values, return_counts=True)
    usual = kinds[np.argmax(counts)]
    odd = values != usual
    return odd if np.sum(odd) * 4 <= len(values) else np.zeros(len(values), dtype=bool)


def _shared(step, group, count):
    """The share of each step's prompts that some other step has, too, (count,)."""
    pairs = np.unique(np.stack([step.astype(np.uint64), group], axis=1), axis=0)
    _, prompt, times = np.unique(pairs[:, 1], return_inverse=True, return_counts=True)
    of = pairs[:, 0].astype(np.int64)
    known = np.bincount(of, minlength=count)
    return np.bincount(of, weights=times[prompt] > 1, minlength=count) / np.maximum(known, 1)


def _steps_listed(steps):
    shown = ", ".join(f"{step:,}" for step in steps[:SHOWN])
    more = f" and {len(steps) - SHOWN:,} more" if len(steps) > SHOWN else ""
    return f"Step {shown}" if len(steps) == 1 else f"Steps {shown}{more}"
