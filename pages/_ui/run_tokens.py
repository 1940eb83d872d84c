"""Per-token numbers of one group: what is coloured in its texts, and the scenario behind it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from grpo_core import Evaluation, Scenario, evaluate
from grpo_core.runs.example import GroupTokens, example

from .limits import CELLS

_LOOKED = 60  # steps around one, for tokens


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """What a token can be coloured by."""

    label: str
    note: str
    read: Callable[[Evaluation], np.ndarray]


QUANTITIES: Mapping[str, Quantity] = MappingProxyType(
    {
        "advantage": Quantity(
            label="advantage",
            note="what its completion was judged to be worth",
            read=lambda e: e.token_advantages,
        ),
        "log_ratio": Quantity(
            label="log-ratio",
            note="how far the policy moved since the tokens were sampled; 0 at the first use of "
            "a batch",
            read=lambda e: e.log_ratio,
        ),
        "kl": Quantity(
            label="KL", note="k3 estimate of the distance to the reference", read=lambda e: e.kl
        ),
        "contribution": Quantity(
            label="contribution",
            note="what the token adds to the objective",
            read=lambda e: e.contribution,
        ),
        "gradient": Quantity(
            label="gradient",
            note="of the objective, by the token's log-probability: above 0 it is made likelier",
            read=lambda e: e.gradient,
        ),
    }
)


@dataclass(frozen=True, eq=False)
class TokenView:
    """One use of a batch, evaluated: the group is prompt ``p`` of the evaluation."""

    step: int
    scenario: Scenario
    evaluation: Evaluation
    p: int
    pieces: tuple[tuple[str, ...], ...]
    whole: bool  # whether the whole step was evaluated, so that weights are those of the run


def uses(opened, q):
    """Steps at which per-token arrays of a group were recorded, in order."""
    return [use.step for use in opened.tokens(q)]


def nearest_with_tokens(found, opened, step):
    """The scored step nearest to a step of whose groups tokens were recorded; None without."""
    steps = found.series.steps
    for near in steps[np.argsort(np.abs(steps - step), kind="stable")][:_LOOKED].tolist():
        if opened.tokens(int(found.run.at(near)[0])):
            return near
    return None


def scenario_of(found, opened, groups, conventions, *, use=None, texts=True):
    """Groups of a run as one scenario, with their tokens where all of them have some.

    Parameters
    ----------
    found : Explained
    opened : OpenedRun
    groups : sequence of int
    conventions : Conventions
    use : int or None
        The step of the use whose tokens are taken; the last one where None.
    texts : bool
        Whether prompts and completions are read, too.
    """
    tokens = [_use_of(opened.tokens(q), use) for q in groups]
    tokens = [] if any(each is None for each in tokens) else tokens
    read = [opened.texts(q) for q in groups] if texts else []
    prompts = [next((prompt for prompt, _ in each if prompt), "") for each in read]
    completions = [[completion for _, completion in each] for each in read]
    return example(
        found,
        groups,
        tokens=[GroupTokens(each.arrays, each.pieces) for each in tokens],
        prompts=prompts,
        completions=completions,
        conventions=conventions,
        whole=_whole(found, opened, groups, use) if tokens else {},
    )


def _whole(found, opened, groups, use):
    """Completions, and tokens where all were recorded, of the step that groups are part of."""
    step = found.run.at(int(found.run.steps[groups[0]]))
    if len(step) == len(groups):
        return {}
    whole = {"completions": int(found.run.sizes[step].sum())}
    each = [_use_of(opened.tokens(int(q)), use) for q in step]
    if all(one is not None for one in each):
        whole["tokens"] = sum(int(one.arrays["mask"].sum()) for one in each)
    return whole


def _use_of(of_group, step):
    if not of_group:
        return None
    return next((each for each in of_group if each.step == step), of_group[-1])


def token_view(found, opened, q, conventions, use=None):
    """The tokens of a group under the run's convention; None where none were recorded.

    The whole step is evaluated where it has tokens and is small enough, because the weight of a
    token depends on its batch.
    """
    own = _use_of(opened.tokens(q), use)
    if own is None:
        return None
    step = found.run.at(int(found.run.steps[q]))
    cells = len(step) * own.arrays["mask"].size
    whole = cells <= CELLS and all(opened.tokens(int(each)) for each in step)
    groups = [int(each) for each in step] if whole else [q]
    scenario = scenario_of(found, opened, groups, conventions, use=own.step, texts=False)
    return TokenView(
        own.step, scenario, evaluate(scenario), groups.index(q), tuple(own.pieces), whole
    )


def values_of_completion(view, key, g):
    """A quantity at the valid tokens of one completion, (T,)."""
    valid = view.evaluation.valid[view.p, g]
    return QUANTITIES[key].read(view.evaluation)[view.p, g][valid]


def largest_of(view, key):
    """Largest size of a quantity in the group, for one scale for all of its completions."""
    values = np.where(
        view.evaluation.valid[view.p], QUANTITIES[key].read(view.evaluation)[view.p], 0
    )
    return float(np.max(np.abs(values), initial=0.0))
