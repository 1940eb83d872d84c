"""The KL page in words and tables: means, estimators against the exact KL, the two places."""

import numpy as np
import pandas as pd

from grpo_core.kl_curves import mean_estimates
from grpo_core.numerics import difference, norm, total
from grpo_core.words import listing

from .numbers import count, number, percent

_SUM_ROUNDING = 1e-9
_KLS = {"reverse": "KL(policy ‖ reference)", "forward": "KL(reference ‖ policy)"}


def mean_line(evaluation):
    """Mean KL under the chosen row, and what the other rows make of the same tokens."""
    means = mean_estimates(evaluation)
    chosen = evaluation.scenario.conventions.variant("kl")
    others = [f"{key} {number(mean)}" for key, mean in means.items() if key != chosen.key]
    below = int(np.sum(evaluation.kl < 0))
    text = f"Mean KL {number(evaluation.mean_kl)} by {chosen.label}."
    if others:
        text += f" On the same tokens: {', '.join(others)}."
    if any(mean < 0 for mean in means.values()):
        text += " A mean below 0 is chance: the KL that it estimates never is."
    if below:
        text += f" {count(below, 'token')} of {int(np.sum(evaluation.valid)):,} below 0."
    return text


def estimator_frame(comparison, samples):
    """Exact moments of each estimator beside those of many sampled means, a row each."""
    rows = comparison.estimators
    last = {key: held.counts[-1] for key, held in samples.items()}
    n = int(next(iter(last.values())))
    return pd.DataFrame(
        {
            "mean": [number(row.expected) for row in rows.values()],
            "bias": [_bias(row) for row in rows.values()],
            "std of 1": [number(row.std) for row in rows.values()],
            f"std of {n:,}": [number(row.std / np.sqrt(n)) for row in rows.values()],
            "mean, sampled": [number(samples[key].mean[-1]) for key in rows],
            f"std of {n:,}, sampled": [number(samples[key].std[-1]) for key in rows],
        },
        index=pd.Index([row.label for row in rows.values()], name="estimator"),
    )


def _bias(row):
    return number(row.bias) if np.isfinite(row.expected) else "–"


def exact_lines(comparison):
    """What the two distributions are and how far apart, in sentences."""
    lines = [
        f"{_KLS['reverse']} is {_nats(comparison.reverse)}, "
        f"{_KLS['forward']} is {_nats(comparison.forward)}.",
    ]
    for name, given in zip(("policy", "reference"), comparison.sums, strict=True):
        if abs(given - 1) > _SUM_ROUNDING:
            total = f"add up to {number(given)}" if np.isfinite(given) else "are huge"
            lines.append(f"The numbers of the {name} {total}; they are scaled to add up to 1.")
    if np.isinf(comparison.reverse):
        tokens = _tokens((comparison.new > 0) & (comparison.ref == 0))
        lines.append(
            f"{_KLS['reverse']} is infinite, as the policy gives {tokens} and the reference "
            "never does."
        )
    if comparison.missing:
        tokens = _tokens((comparison.ref > 0) & (comparison.new == 0))
        lines.append(
            f"The policy never gives {tokens}, where the reference has "
            f"{percent(comparison.missing)} of its mass: no sample shows it"
            + (
                f", and k3 is too low by {number(comparison.missing)}."
                if np.isfinite(comparison.reverse)
                else "."
            )
        )
    return lines


def _nats(value):
    return f"{number(value)} nats" if np.isfinite(value) else "infinite"


def _tokens(flags):
    found = [str(token) for token in np.flatnonzero(flags).tolist()]
    return f"token{'' if len(found) == 1 else 's'} {listing(found)}"


def gradient_line(comparison):
    """Whose gradient each estimator has as a loss, in sentences."""
    if not comparison.reverse:
        return "The distributions are equal, and every gradient is 0."
    return " ".join(_gradient_words(row) for row in comparison.estimators.values())


def _gradient_words(row):
    if row.gradient is None:
        return f"{row.label}: the gradient is infinite."
    if not np.any(row.gradient):
        return f"{row.label} pulls nowhere: 0 at every logit, and one sample's gradient is noise."
    if row.gradient_of in _KLS:
        return f"{row.label} descends {_KLS[row.gradient_of]}."
    which = "both KLs" if row.gradient_of == "both" else "neither KL"
    return f"{row.label} has the gradient of {which}."


def place_frame(places, words):
    """Loss, objective, mean KL and gradient norm with the penalty in each place, a row each.

    Parameters
    ----------
    places : mapping of str to Evaluation
        As `grpo_core.kl_curves.in_each_place` gives them.
    words : mapping of str to str
        How each place is called.
    """
    rows = list(places.values())
    return pd.DataFrame(
        {
            "loss": [number(row.loss) for row in rows],
            "objective": [number(row.objective) for row in rows],
            "mean KL": [number(row.mean_kl) for row in rows],
            "gradient norm": [number(row.metrics["gradient_norm"]) for row in rows],
            "largest |A|": [number(np.max(np.abs(row.advantages))) for row in rows],
        },
        index=pd.Index([words[place] for place in places], name="penalty"),
    )


def penalty_frame(places, prompt):
    """Reward, penalty and score of each completion, and its advantage with either place."""
    objective, reward = places["objective"], places["reward"]
    present = reward.scenario["present"][prompt]
    penalty = total(reward.reward_penalty[prompt], axis=1)
    columns = {
        "reward": reward.scenario["rewards"][prompt],
        "penalty": penalty,
        "score": np.where(reward.scored[prompt], reward.scores[prompt], np.nan),
        "A, in the objective": objective.advantages[prompt],
        "A, in the reward": reward.advantages[prompt],
    }
    frame = pd.DataFrame({name: [number(v) for v in column] for name, column in columns.items()})
    frame.index = pd.Index([str(g) for g in range(len(frame))], name="completion")
    return frame[present]


def place_line(places):
    """What moving the penalty changes on this batch, in sentences."""
    objective, reward = places["objective"], places["reward"]
    beta = reward.scenario.conventions["kl"].options["beta"]
    if beta == 0:
        return "beta is 0: the penalty is 0 in both places."
    moved = difference(reward.advantages, objective.advantages)
    moved = float(np.max(np.abs(moved), initial=0.0))
    pull = norm(objective.kl_gradient)
    text = (
        "In the objective the penalty has a gradient of its own: here of norm "
        f"{number(pull)}. In the reward it has none and changes the advantages: here by up to "
        f"{number(moved)}."
    )
    if not np.any(reward.reward_penalty):
        text += " There it reads the old policy, which is the reference on these tokens."
    elif not moved:
        text += " These do not follow the scores."
    return text
