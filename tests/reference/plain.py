"""Cases of the formulas themselves, by the functions that the package promises."""

import numpy as np

from grpo_core import Conventions, group_advantages, grpo_objective, process_advantages
from tests.reference.recorded import Check, Groups, run

# Advantages of an objective case are compared at this; its tolerance is for the rest.
_ADVANTAGES = {"rtol": 1e-9, "atol": 1e-9}
_EMPTY = "if_empty_completions_are_left_out_of_the_mean"


def advantages(case):
    """`group_advantages`."""
    yield case.check("advantages", group_advantages(case.inputs["rewards"], eps=case.kwargs["eps"]))


def objective(case):
    """`grpo_objective`, and the gradient that `evaluate` gives."""
    settings = {key: case.kwargs[key] for key in ("epsilon", "beta", "eps")}
    computed = grpo_objective(**case.inputs, **settings)
    yield case.check("advantages", computed["advantages"], **_ADVANTAGES)
    for key in ("objective", "loss", "mean_kl"):
        yield case.check(key, computed[key])
    yield case.check("grad_objective_wrt_logp", _evaluation(case).gradient.reshape(
        np.shape(case.outputs["grad_objective_wrt_logp"])
    ))  # fmt: skip
    dropped = _evaluation(case, empty="drop") if _EMPTY in case.outputs else None
    for key, value in case.outputs.get(_EMPTY, {}).items():
        tolerance = (case.tolerance["rtol"], case.tolerance["atol"])
        yield Check(f"{_EMPTY}.{key}", value, getattr(dropped, key), *tolerance)


def _evaluation(case, **aggregation):
    mask = case.array("mask")
    P, G, L = mask.shape
    epsilon = case.kwargs["epsilon"]
    conventions = Conventions.of(
        kl=("k3", {"beta": case.kwargs["beta"]}),
        advantage=("mean_std", {"eps": case.kwargs["eps"]}),
        surrogate=("clip", {"epsilon_low": epsilon, "epsilon_high": epsilon}),
        aggregation=("completion_mean", aggregation),
    )
    names = {"logp_new": "logp", "logp_old": "old_logp", "logp_ref": "ref_logp"}
    return run(
        conventions,
        Groups.blocks(P * G, G),
        mask=mask.reshape(-1, L),
        rewards=case.array("rewards").ravel(),
        **{key: case.array(name).reshape(-1, L) for key, name in names.items()},
    )


def process(case):
    """`process_advantages`."""
    options = {key: case.kwargs[key] for key in ("ddof", "eps")}
    yield case.check("advantages", process_advantages(**case.inputs, **options))
