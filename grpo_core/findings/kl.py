"""Findings about the pull towards the reference policy."""

import numpy as np

from ..errors import place
from ..numerics import times, total
from ..words import groups, number, percent
from . import facts
from .row import FindingRow

# A spike holds this share of the mean KL; in a large batch less will do if it is this many
# times an even share.
SPIKE_SHARE, SPIKE_SHARE_OF_MANY, SPIKE_TIMES = 0.25, 0.05, 50
SPIKE_ABOVE_OTHERS = 10  # times the mean of the others
SPIKE_KL = 1.0  # below this a token's KL is no spike, however small the others are


def kl_spike(evaluation):
    """One token that holds a large part of the mean KL."""
    kl = np.abs(times(evaluation.weight, evaluation.kl))
    n, whole = np.sum(evaluation.valid), float(total(kl))
    if n < 2 or not 0 < whole < np.inf:
        return None
    spike = facts.largest(kl, evaluation.valid)
    share = float(kl[spike] / whole)
    alone = share >= SPIKE_SHARE or (share >= SPIKE_SHARE_OF_MANY and share * n >= SPIKE_TIMES)
    above = kl[spike] >= SPIKE_ABOVE_OTHERS * (whole - kl[spike]) / (n - 1)
    if not (np.abs(evaluation.kl[spike]) >= SPIKE_KL and alone and above):
        return None
    in_reward = facts.option(evaluation, "kl", "place") == "reward"
    policy = evaluation.logp_old if in_reward else evaluation.logp_new
    return {
        "places": (spike,),
        "kl": float(evaluation.kl[spike]),
        "share": share,
        "logp_ref": float(evaluation.logp_ref[spike]),
        "logp": float(policy[spike]),
        "policy": "old" if in_reward else "new",
        "beta": facts.option(evaluation, "kl", "beta"),
    }


def _say_kl_spike(figures):
    text = (
        f"One token makes up {percent(figures['share'])} of the mean KL: "
        f"{place(figures['places'][0])}, with KL {number(figures['kl'])}. Its log-probability is "
        f"{number(figures['logp_ref'])} under the reference and {number(figures['logp'])} under "
        f"the {figures['policy']} policy."
    )
    return f"{text} With beta 0 it changes nothing." if figures["beta"] == 0 else text


def tied_group_kl_pull(evaluation):
    """Tied groups that the KL term still moves."""
    norms = facts.group_norm(evaluation.kl_gradient)
    pulled = evaluation.tied & (norms > 0)
    if not pulled.any():
        return None
    (worst,) = facts.largest(norms, pulled)
    return {
        "places": facts.places_from((worst,), pulled),
        "norm": float(norms[worst]),
        "beta": facts.option(evaluation, "kl", "beta"),
    }


def _say_tied_group_kl_pull(figures):
    where = figures["places"]
    spot = "there" if len(where) == 1 else f"in group {where[0][0]}"
    return (
        f"The KL term still moves tied {groups(where)}: its gradient {spot} has norm "
        f"{number(figures['norm'])} (beta {number(figures['beta'])}), whatever the rewards are."
    )


ROWS = (
    FindingRow(
        code="kl_spike",
        severity="warning",
        page="KL",
        question="Where does the KL come from?",
        find=kl_spike,
        sentence=_say_kl_spike,
    ),
    FindingRow(
        code="tied_group_kl_pull",
        severity="note",
        page="KL",
        question="What still moves a tied group?",
        find=tied_group_kl_pull,
        sentence=_say_tied_group_kl_pull,
    ),
)
