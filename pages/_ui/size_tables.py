"""Tables of the group size page: kinds of prompts, baselines, and batches of each group size."""

import numpy as np
import pandas as pd

from grpo_core.baselines import BASELINES

from .numbers import change, number
from .size_noise import measured, sampled_variance


def kinds_frame(view, former=None):
    """What is exactly known of each kind of prompt, with what it was before the last edit."""
    now = _kinds(view)
    before = now if former is None or len(former.now) != len(view.now) else _kinds(former)
    columns = {
        name: [change(a, b, 3) for a, b in zip(before[name].tolist(), values.tolist(), strict=True)]
        for name, values in now.items()
    }
    return pd.DataFrame(columns, index=_index(len(view.now), "kind"))


def _kinds(view):
    policy = view.policy
    return {
        "true value": policy.value,
        "group mean off by": np.sqrt(policy.reward_variance / view.G),
        "constant off by": np.abs(view.constant - policy.value),
        "best constant": policy.best_constant,
        "signal": view.now,
    }


def _index(n, name):
    return pd.Index([str(i) for i in range(n)], name=name)


def noise_frame(view, sampled, kind=None):
    """Each baseline's noise in closed form beside the simulation, and its signal to noise."""
    noise, signal = (measured(view, measure, kind) for measure in ("variance", "signal"))
    columns = {"variance × G": [number(value) for value in noise.values()]}
    if sampled is not None:
        means, errors = sampled_variance(view, sampled, kind)
        columns["simulated"] = [
            f"{number(means[k], 3)} ± {number(2 * errors[k], 2)}" for k in noise
        ]
    columns["signal to noise"] = [number(value, 3) for value in signal.values()]
    columns["pull"] = [_pull(view.noise[key].factor, kind) for key in noise]
    rows = [BASELINES[key] for key in noise]
    columns["known while training"] = ["no" if row.needs_value else "yes" for row in rows]
    return pd.DataFrame(columns, index=pd.Index([row.label for row in rows], name="baseline"))


def _pull(factor, kind):
    """Mean gradient over the true one: of one kind, or the range over all that have a gradient."""
    if kind is not None:
        return number(factor[kind], 3)
    live = factor[factor > 0]
    if not live.size:
        return "0"
    ends = [number(end, 3) for end in (float(np.min(live)), float(np.max(live)))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def batches_frame(view, batches):
    """Noise of a batch at a few group sizes: closed form beside simulation, with two errors."""
    curve, columns = view.curve, {}
    for part, name in (("fresh", "fresh prompts"), ("same", "same prompts")):
        noise = dict(zip(curve.sizes.tolist(), getattr(curve, part).tolist(), strict=True))
        columns[name] = [number(noise[G]) for G in batches]
        columns[f"{name}, simulated"] = [
            f"{number(getattr(held, part), 3)} ± {number(2 * getattr(held, f'{part}_error'), 2)}"
            for held in batches.values()
        ]
    return pd.DataFrame(columns, index=pd.Index([str(G) for G in batches], name="G"))
