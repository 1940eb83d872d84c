"""Optional arrays that rows ask for, made up for a scenario that does not hold them."""

import numpy as np

GIVEN = np.array([1.5, -0.5, 0.0, -2.0, 0.25])


def _per_completion(scenario):
    return np.resize(GIVEN, scenario["rewards"].shape)


def _per_token(scenario):
    return np.resize(GIVEN, scenario["mask"].shape)


def _step_ends(scenario):
    """One step, at the first token that counts."""
    valid = scenario.valid
    first = np.argmax(valid, axis=-1).astype(float)
    return np.where(valid.any(axis=-1), first, np.nan)[..., None]


def _step_rewards(scenario):
    ends = _step_ends(scenario)
    return np.where(np.isnan(ends), np.nan, _per_completion(scenario)[..., None])


def _sampler(scenario):
    """A little off the old policy; the first token's is not known."""
    step = _per_token(scenario) / 10
    step[0, 0, 0] = np.nan
    with np.errstate(invalid="ignore"):
        return np.minimum(scenario["logp_old"] + step, 0.0)


MAKERS = {
    "advantages": _per_completion,
    "step_ends": _step_ends,
    "step_rewards": _step_rewards,
    "token_advantages": _per_token,
    "token_rewards": _per_token,
    "token_ids": lambda scenario: np.abs(np.rint(4 * _per_token(scenario))),
    "logp_sampler": _sampler,
    "sampler_weights": lambda scenario: np.abs(_per_token(scenario)),
    "entropy": lambda scenario: np.abs(_per_token(scenario)),
    "truncated": lambda scenario: (_per_completion(scenario) < 0).astype(float),
}


def with_needed(scenario, *keys):
    """The scenario with made-up arrays for the keys that it does not hold."""
    return scenario.replace(**{key: MAKERS[key](scenario) for key in keys if key not in scenario})
