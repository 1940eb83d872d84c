"""Small runs made up for tests, the awkward ones among them."""

import numpy as np

from grpo_core.runs.explain import explain
from grpo_core.runs.run import Run, RunLog

HOSTILE = "</script><img src=x onerror=alert(1)> %{x} $a$ &amp; \u202e"


def made(Q=24, G=4, names=("correct", "format"), seed=3, steps=None, **more):
    """A run whose advantages were made by TRL's rule, two groups a step."""
    rng = np.random.default_rng(seed)
    terms = np.asarray(more.get("terms", rng.integers(0, 3, (Q, G, len(names))) / 2))
    weights = np.linspace(1.0, 0.25, len(names)) if len(names) > 1 else np.ones(1)
    totals = np.nan_to_num(terms) @ weights
    apart = totals - totals.mean(axis=1, keepdims=True)
    std = totals.std(axis=1, ddof=1, keepdims=True) if G > 1 else np.zeros((Q, 1))
    fields = {
        "steps": np.arange(Q) // 2 if steps is None else steps,
        "present": np.ones((Q, G), dtype=bool),
        "names": names,
        "terms": terms,
        "advantages": apart / (std + 1e-4),
        "lengths": rng.integers(1, 50, (Q, G)),
    }
    return Run(**{**fields, **more})


def made_log(steps, **values):
    """A log of some steps; by default with a reward and a share of tied groups."""
    steps = np.asarray(steps)
    ramp = np.linspace(0.0, 1.0, len(steps))
    fields = {"reward": ramp, "frac_reward_zero_std": np.zeros(len(steps)), "kl": ramp**2}
    return RunLog(steps, {**fields, **values})


def shown(run=None, log=None, name="mine", **more):
    """A made-up run with all that is found out about it."""
    return explain(made() if run is None else run, log, name=name, **more)


def hacked():
    """A term that takes over at step 20 while the task falls to 0."""
    rng = np.random.default_rng(1)
    Q, G = 80, 6
    late = (np.arange(Q) >= 40)[:, None]
    right = np.where(late, 0.0, rng.integers(0, 2, (Q, G)))
    bonus = np.where(late, rng.integers(4, 9, (Q, G)), 0.0)
    bonus[:4, 0] = 1.0
    terms = np.stack([right, bonus], axis=-1)
    return shown(made(Q, G, ("correct", "bonus"), terms=terms, advantages=None), weights=[1, 0.5])


def awkward():
    """Runs at the edges of what files hold: name -> Explained."""
    base, there = made(), np.ones((24, 4), dtype=bool)
    ragged = there.copy()
    ragged[:, 3] = np.arange(24) % 2
    ragged[5, 1:] = False
    gaps = base.terms.copy()
    gaps[::3, :, 1] = np.nan
    gaps[4:6] = np.nan
    ties = np.ones((24, 4, 2))
    ties[0] = base.terms[0]
    residue = np.full((24, 4), 1e-4)
    residue[0] = base.advantages[0]
    many = tuple(f"term {k}" for k in range(15))
    far = np.where(np.arange(4) % 2, 1e150, -1e150) * np.ones((24, 1))
    runs = {
        "plain": base,
        "one completion": made(1, 1),
        "one group": made(1, 4),
        "groups of one": made(6, 1),
        "all but one tied": made(terms=ties, advantages=residue),
        "nothing scored": made(terms=np.full((24, 4, 2), np.nan), advantages=None),
        "gaps": made(terms=gaps),
        "ragged": made(present=ragged),
        "no advantages, no lengths": made(advantages=None, lengths=None),
        "one term": made(names=("reward",)),
        "a measure is the task": made(names=("reward",), measures={"acc": base.terms[..., 0]}),
        "fifteen terms": made(names=many),
        "large": made(terms=np.stack([far, -far], axis=-1), advantages=None),
        "hostile names": made(names=(HOSTILE, "=cmd")),
        "names of columns": made(names=("total", "completion")),
        "far steps": made(steps=np.full(24, 2**62)),
        "characters": made(unit="characters"),
    }
    logs = {
        "plain": made_log(np.arange(12)),
        "gaps": made_log(np.arange(0, 24, 2), kl=np.where(np.arange(12) % 3, np.nan, 1e308)),
        "hostile names": made_log([3], **{HOSTILE: [1.0]}),
        "one term": made_log(np.arange(40), entropy=np.full(40, np.nan)),
    }
    return {name: shown(run, logs.get(name), name) for name, run in runs.items()}
