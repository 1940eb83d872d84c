"""How the lines of a script spell their arithmetic, and what a stage's code needs to know.

Where a batch holds infinities (a log-probability of -inf, a ratio that overflows), the same
lines are written with the helpers of `CAREFUL` instead of operators.
"""

from collections.abc import Callable
from dataclasses import dataclass

from grpo_core import Evaluation

from .computed import acts, kl_place

CAREFUL = '''\
# This batch holds infinities or comes near them, and 0 * inf and inf - inf would be NaN.
np.seterr(over="ignore", invalid="ignore")


def times(left, right):
    """Product in which 0 * inf is 0."""
    return np.where((left == 0) | (right == 0), 0.0, left * right)


def plus(left, right):
    """Sum in which inf - inf is -inf."""
    return np.nan_to_num(left + right, nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def minus(left, right):
    """Difference of log-probabilities: two equal infinities differ by 0."""
    return np.where(left == right, 0.0, left - right)


def summed(values, **axis):
    """Sum in which inf - inf is -inf."""
    return np.nan_to_num(values.sum(**axis), nan=-np.inf, posinf=np.inf, neginf=-np.inf)'''


@dataclass(frozen=True)
class Plain:
    """How arithmetic is spelled where every number is finite."""

    def times(self, left, right):
        return f"{left} * {right}"

    def plus(self, left, right):
        return f"{left} + {right}"

    def minus(self, left, right):
        return f"{left} - {right}"

    def less(self, left, right):
        return f"{left} - {right}"

    def summed(self, values, axis=""):
        return f"{values}.sum({axis})"

    def summed_of(self, values, axis=""):
        return f"({values}).sum({axis})"

    def less_summed(self, left, values, axis=""):
        return f"{left} - {values}.sum({axis})"


@dataclass(frozen=True)
class Careful(Plain):
    """How arithmetic is spelled where infinities occur."""

    def times(self, left, right):
        return f"times({left}, {right})"

    def plus(self, left, right):
        return f"plus({left}, {right})"

    def minus(self, left, right):
        return f"minus({left}, {right})"

    def less(self, left, right):
        return f"plus({left}, -{right})"

    def summed(self, values, axis=""):
        return f"summed({values}{', ' + axis if axis else ''})"

    summed_of = summed

    def less_summed(self, left, values, axis=""):
        return f"plus({left}, {self.summed(f'-{values}', axis)})"


@dataclass(frozen=True, kw_only=True)
class Writing:
    """What a snippet needs to know: its options, the spelling, and facts about the batch."""

    options: dict
    spelling: Plain
    single: bool  # float32 arrays: stay in float32, as trainers do
    extreme: bool  # scores so large or small that their squares leave double range
    endless: bool  # infinite scores, from a KL penalty in the reward
    evaluation: Evaluation

    @property
    def place(self):
        """Where the KL penalty enters."""
        return kl_place(self.evaluation)

    @property
    def in_reward(self):
        """Whether that is the reward."""
        return self.place == "reward"

    def acts(self, stage):
        """Whether a stage changes anything."""
        return acts(self.scenario.conventions, stage)

    @property
    def filters(self):
        """Whether tokens may leave the loss."""
        return self.acts("truncated") or self.acts("tied")

    @property
    def kept(self):
        """Name of the tokens that stay in the loss."""
        return "kept" if self.filters else "valid"

    @property
    def counted(self):
        """Name of the tokens that denominators count."""
        return "counted" if self.filters else "valid"

    @property
    def scenario(self):
        """The scenario that the script is about."""
        return self.evaluation.scenario

    def row(self, stage):
        """Key of a stage's chosen variant."""
        return self.scenario.conventions[stage].variant

    def option(self, stage, key):
        """An option of any stage's chosen variant."""
        return self.scenario.conventions[stage].options[key]


@dataclass(frozen=True)
class Snippet:
    """Code of one variant; ``back`` is the gradient that flows through it.

    ``back(w, pull, name)`` of a ratio leads dJ/dratio, called ``pull``, to the gradient
    ``name``; ``back(w, ratio)`` of a KL assigns ``kl_gradient``, with the snippet of the ratio
    at hand; ``back(w, pull)`` of a surrogate assigns ``policy_gradient`` past the ratio, and
    is None where the ratio leads there.
    """

    code: Callable
    back: Callable | None = None
