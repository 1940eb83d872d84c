"""NumPy core of GRPO: group-relative advantages, clipped objective, KL penalty, gradient."""

from .arrays import ARRAYS
from .errors import ScenarioError
from .evaluation import Evaluation, evaluate
from .objective import group_advantages, grpo_objective
from .process import process_advantages
from .scenario import (
    Scenario,
    Texts,
    build_scenario,
    effective_logp_new,
    resize,
    same_scenario,
)
from .shaping import Shaped, shaped_rewards
from .stages import DEFAULT_CONVENTIONS, STAGES, Conventions
from .terms import TERMS, Term
from .variants import Choice

__all__ = [
    "ARRAYS",
    "DEFAULT_CONVENTIONS",
    "STAGES",
    "TERMS",
    "Choice",
    "Conventions",
    "Evaluation",
    "Scenario",
    "ScenarioError",
    "Shaped",
    "Term",
    "Texts",
    "build_scenario",
    "effective_logp_new",
    "evaluate",
    "group_advantages",
    "grpo_objective",
    "process_advantages",
    "resize",
    "same_scenario",
    "shaped_rewards",
]
