"""Groups of a run as a scenario, under the convention that was found: an example like any other."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..arrays import ARRAYS
from ..errors import ScenarioError
from ..scenario import Texts, build_scenario
from ..stages import DEFAULT_CONVENTIONS, Conventions
from ..terms import NAME_LIMIT, Term

_SUM = "sum_then_normalize"
_LONGEST = 512  # tokens of a completion of which only the length is known
_TEXT = 160  # characters of a completion that stands in one cell


@dataclass(frozen=True, eq=False)
class GroupTokens:
    """Per-token arrays of one group, (G, L) each, by the keys of `ARRAYS`, and token texts."""

    arrays: Mapping[str, np.ndarray]
    pieces: tuple[tuple[str, ...], ...] = ()


def example(
    shown,
    groups,
    *,
    tokens=(),
    prompts=(),
    completions=(),
    conventions=DEFAULT_CONVENTIONS,
    whole=MappingProxyType({}),
):
    """Groups of a run as a `Scenario`.

    Parameters
    ----------
    shown : Explained
    groups : sequence of int
        Indices of the groups, P of them.
    tokens : sequence of GroupTokens, (P,) or empty
        Without them there is one token a completion, or as many as its length in tokens says,
        with log-probabilities of 0: advantages are right then, ratios and KL say nothing.
    prompts : sequence of str, (P,) or empty
    completions : sequence of sequence of str, (P, G) or empty
    conventions : Conventions
        For the stages that advantages do not tell: ratio, surrogate, KL, aggregation.
    whole : mapping, optional
        ``completions`` and ``tokens`` of the batch that the groups are part of: what each token
        weighs is then as it was in the run, where the aggregation has an option for it.

    Returns
    -------
    Scenario
        Judged as the run was: the task is the reward, other rewards are terms with the weights
        found. Where no rule was found it holds the logged advantages, and takes them as given.

    Raises
    ------
    ScenarioError
        No group, or more terms than a scenario may hold.
    """
    run, groups = shown.run, np.asarray(groups, dtype=np.int64).reshape(-1)
    if not groups.size:
        raise ScenarioError("No group was chosen.")
    G = int(max(run.sizes[groups].max(), 1))
    # Absent completions stand last, whatever their place was.
    order = np.argsort(~run.present[groups], axis=1, kind="stable")[:, :G]
    at = groups[:, None], order
    first, others = _parts(shown)
    arrays = {"rewards": run.terms[..., first][at], "present": run.present[at]}
    if others:
        arrays["term_values"] = run.terms[at][..., others]
    arrays |= _token_arrays(run, at, tokens, order) if tokens else _lengths(run, at)
    if _takes_logged(shown):
        arrays["advantages"] = run.advantages[at]
    return build_scenario(
        **arrays,
        conventions=_conventions(shown, first, others, _as_part(conventions, whole)),
        terms=_terms(shown, others),
        texts=_texts(prompts, completions, tokens, order, arrays),
    )


def _as_part(conventions, whole):
    """Conventions that divide by the numbers of the whole batch, as far as they have options."""
    options = conventions.variant("aggregation").options
    given = {option.key: float(whole[option.key]) for option in options if option.key in whole}
    return conventions.replace("aggregation", **given) if given else conventions


def _parts(shown):
    """Index of the term that stands as the reward, and of the others."""
    names = shown.run.names
    first = names.index(shown.task) if shown.task in names else 0
    return first, [k for k in range(len(names)) if k != first]


def _terms(shown, others):
    names = []
    for k in others:
        name = "".join(c for c in shown.run.names[k] if c.isprintable()).strip() or f"term {k}"
        name = name[:NAME_LIMIT] if name != "task" else "task term"
        names.append(name if name not in names else f"{name[: NAME_LIMIT - 4]} {k}")
    return tuple(
        Term(name, float(shown.fit.weights[k])) for name, k in zip(names, others, strict=True)
    )


def _takes_logged(shown):
    logged = shown.run.advantages
    return (
        shown.fit.rule is None
        and logged is not None
        and bool(np.all(np.isfinite(logged[shown.run.present])))
    )


def _conventions(shown, first, others, conventions):
    """The run's own rewards and advantages; all else as in `conventions`."""
    rule, weight = shown.fit.rule, float(shown.fit.weights[first])
    choices = {**conventions.choices}
    rewards = ("outcome", {})
    batch = rule is not None and rule.batch
    if others or weight != 1.0 or batch:
        rewards = (rule.order if rule else _SUM, {"task_weight": weight})
        if batch:
            rewards[1].update(batch_scale="completion", batch_eps=shown.fit.eps)
    advantage = ("given", {}) if _takes_logged(shown) else None
    if rule is not None:
        eps = {"eps": shown.fit.eps} if rule.eps else {}
        advantage = (rule.variant, {**rule.options, **eps})
    made = Conventions(choices).replace("rewards", rewards[0], **rewards[1])
    return made if advantage is None else made.replace("advantage", advantage[0], **advantage[1])


def _token_arrays(run, at, tokens, order):
    """Arrays (P, G, L) of groups that may differ in length, by the keys that all of them have."""
    keys = [
        key
        for key, spec in ARRAYS.items()
        if spec.axes == "PGL" and all(key in each.arrays for each in tokens)
    ]
    L = max(each.arrays["mask"].shape[1] for each in tokens)
    arrays = {}
    for key in keys:
        like = tokens[0].arrays[key]
        filler = False if key == "mask" else ARRAYS[key].default
        filled = np.full((*order.shape, L), filler, dtype=like.dtype)
        for p, each in enumerate(tokens):
            own = each.arrays[key][order[p]]
            filled[p, :, : own.shape[1]] = own
        arrays[key] = filled
    arrays["mask"] = arrays["mask"].astype(bool)
    return arrays


def _lengths(run, at):
    """A mask of as many tokens as each completion is known to have, if that is known."""
    if run.unit != "tokens" or run.lengths is None:
        return {}
    lengths = np.where(run.present[at], run.lengths[at], 0.0)
    most = int(np.nanmax(lengths, initial=0.0))
    if np.isnan(lengths).any() or not 1 <= most <= _LONGEST:
        return {}
    return {"mask": np.arange(most) < lengths[..., None]}


def _texts(prompts, completions, tokens, order, arrays):
    pieces = ()
    if tokens and all(any(map(any, each.pieces)) for each in tokens):
        pieces = tuple(
            tuple(each.pieces[g] if g < len(each.pieces) else () for g in row.tolist())
            for each, row in zip(tokens, order, strict=True)
        )
    elif not tokens and completions and arrays.get("mask") is None:
        pieces = tuple(
            tuple((_cut(texts[g]),) if g < len(texts) and texts[g] else () for g in row.tolist())
            for texts, row in zip(completions, order, strict=True)
        )
    return Texts(tuple(_cut(prompt) for prompt in prompts), pieces)


def _cut(text):
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
