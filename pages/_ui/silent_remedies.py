"""The remedies against silent groups, each on the batch on the screen: tables and a picture."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from grpo_core import ScenarioError
from grpo_core.estimators import seed_of
from grpo_core.remedies import REMEDIES, Remedied, Situation, remedied
from grpo_core.scales import SCALES
from grpo_core.silent import silent_probability
from grpo_core.words import groups

from .difficulty_worlds import scale_of
from .figure import FAR, FONT_SIZE, axis, figure
from .numbers import MISSING, count, number, percent
from .palette import color_scale
from .rate_tables import batch_rewards, prompts_of, with_kinds
from .silent_bonus import Bonus, bonus_of

# Stage *advantage* -> SCALES: what a batch may be judged by before anything is done.
_ROWS = {
    "mean_std": "group",
    "mean_only": "none",
    "batch_std": "batch",
    "leave_one_out": "leave_one_out",
}
_MOST = 24  # prompts drawn
_SAMPLES = 1_000_000  # answers drawn to refill a batch
_ROW = 52  # pixels
_ROOM = (8, 4)  # prompts up to which cells hold numbers, and words


@dataclass(frozen=True, eq=False, kw_only=True)
class Remedies:
    """Every remedy that can be applied; key -> `Remedied`.

    Attributes
    ----------
    found : dict of str to Remedied
    refused : dict of str to str
        Why others cannot be.
    bonus : Bonus
    weaker : Remedied or None
        The bonus at a tenth of the weight.
    scale : str
        Label of the row of `SCALES` that the batch is judged by where a remedy leaves it alone.
    followed : bool
        Whether that is the example's own.
    """

    found: dict
    refused: dict
    bonus: Bonus
    weaker: Remedied | None
    scale: str
    followed: bool


@np.errstate(all="ignore")
def remedies(evaluation):
    """All rows of `REMEDIES` on the task rewards of an evaluated batch."""
    scenario = evaluation.scenario
    rewards, bonus = batch_rewards(scenario), bonus_of(evaluation)
    scale, followed = scale_of(scenario, _ROWS)

    def under(key, weight):
        situation = Situation(
            scale=scale.variant,
            options=dict(scale.options),
            bonus=bonus.values,
            bonus_weight=weight,
            prompts=prompts_of(with_kinds(scenario)),
            seed=seed_of(scenario),
        )
        return remedied(rewards, key, situation)

    found, refused = {}, {}
    for key in REMEDIES:
        if key == "refill" and _waits_too_long(scenario, rewards):
            refused[key] = "mixed groups of these prompts are too rare to wait for"
            continue
        try:
            found[key] = under(key, bonus.weight)
        except ScenarioError as error:
            refused[key] = str(error)
    return Remedies(
        found=found,
        refused=refused,
        bonus=bonus,
        weaker=under("shape", bonus.weight / 10) if "shape" in found else None,
        scale=SCALES[scale.variant].label,
        followed=followed,
    )


def _waits_too_long(scenario, rewards):
    """Whether refilling the batch would take more answers than are drawn in a moment."""
    P, G = rewards.shape
    if G < 2:
        return True
    mixed = np.mean(1 - silent_probability(prompts_of(with_kinds(scenario)), G))
    return mixed * _SAMPLES < P * G


def scale_line(made):
    """What is divided by where a remedy does not say so itself."""
    if made.followed:
        return f"Where a remedy says nothing else, advantages are divided by: {made.scale}."
    return (
        "The example's own advantages are not task rewards over one divisor, so here the std of "
        "the group is taken instead."
    )


def remedies_frame(made):
    """What each remedy makes of the batch, in numbers."""
    rows = {}
    for key, remedy in REMEDIES.items():
        done = made.found.get(key)
        rows[remedy.label] = (
            {"groups that teach": MISSING} if done is None else _numbers(done)
        )  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("remedy").fillna(MISSING)


def _numbers(done):
    counted = int(np.sum(done.factor > 0))
    return {
        "groups that teach": f"{done.teaching} of {counted}",
        "groups generated": number(done.generated),
        "cost of each that teaches": number(done.cost, 3),
        "largest advantage": number(np.max(np.abs(done.advantages), initial=0.0), 3),
        "push of the batch": number(float(np.sum(done.push)), 3),
        "of it by the bonus": percent(_bonus_part(done)) if np.any(done.bonus_share) else "0%",
    }


def _bonus_part(done):
    """Share of the push in groups whose spread the bonus makes, as far as it makes it."""
    total = float(np.sum(done.push))
    return float(np.sum(done.push * np.clip(done.bonus_share, 0, 1))) / total if total > 0 else 0.0


def remedy_lines(made):
    """What each remedy trains, and its price; a line each."""
    lines = [
        f"**{remedy.label}.** {remedy.does} Price: {remedy.price} TRL: {remedy.trl}. verl: "
        f"{remedy.verl}."
        for key, remedy in REMEDIES.items() if key in made.found
    ]  # fmt: skip
    return lines + [f"**{REMEDIES[key].label}.** {why}." for key, why in made.refused.items()]


def shape_line(made):
    """What the bonus really trains where the task is tied."""
    plain, shaped = made.found.get("nothing"), made.found.get("shape")
    if plain is None or shaped is None:
        return ""
    tied = np.flatnonzero(plain.silent)
    broken = tied[~shaped.silent[tied]]
    name, weight = made.bonus.name, made.bonus.weight
    if not tied.size:
        return "No group is tied, so the bonus wakes none; it only adds to the spread of the task."
    if not weight:
        return f"The bonus ({name}) has the weight 0, so it breaks no tie here."
    if not broken.size:
        return (
            f"The bonus ({name}) is the same for all answers of a tied group, so it "
            "breaks no tie here."
        )
    sizes = [np.max(np.abs(each.advantages[broken])) for each in (shaped, made.weaker)]
    where = [(int(p),) for p in broken]
    return (
        f"The bonus ({name}, weight {number(weight)}) ends the silence of "
        f"{groups(where)}. There all of the spread is the bonus, so the policy learns what it "
        f"pays for and nothing of the task: advantages up to {number(sizes[0], 3)}, and "
        f"{number(sizes[1], 3)} at a tenth of the weight."
    )


def remedies_line(made):
    """How many groups teach under each remedy, the best first."""
    plain = made.found["nothing"]
    silent, total = int(np.sum(plain.silent)), len(plain.silent)
    if not silent:
        return (
            "Every group of this batch teaches. Filtering and dynamic sampling change nothing; the "
            "others change sizes only, a small bonus those within a group, too."
        )
    refill = made.found.get("refill")
    teaching = total - silent
    verb = "teaches" if teaching == 1 else "teach"
    text = f"{teaching} of {count(total, 'group')} {verb}. Filtering gives them "
    factor = float(np.max(made.found["filter"].factor))
    text += f"{number(factor, 3)} times the weight." if factor > 0 else "nothing: none is left."
    if refill is not None and np.isfinite(refill.generated):
        more = refill.generated - total
        text += (
            f" Dynamic sampling generates {number(more)} more for {silent}, from the prompts of "
            "the table."
        )
    return text + " Another scale or baseline wakes none of them: equal rewards have no order."


def remedy_map(made, *, palette):
    """Push of each prompt's group under each remedy, a row a remedy, coloured by its share.

    Cells hold the sum of the sizes of the advantages as the mean counts them; groups drawn
    afresh and what the bonus decides are marked.
    """
    rows = {REMEDIES[key].label: done for key, done in made.found.items()}
    P = min(len(next(iter(rows.values())).push), _MOST)
    push = np.stack([np.minimum(done.push[:P], FAR) for done in rows.values()])
    largest = np.max(push, axis=1, keepdims=True)
    push = push / np.where(largest > 0, largest, 1.0)  # sums of huge ones would overflow
    totals = np.sum(push, axis=1, keepdims=True)
    shares = np.divide(push, totals, out=np.zeros_like(push), where=totals > 0)
    texts = [[_cell(done, p, P) for p in range(P)] for done in rows.values()]
    hover = [
        [f"{name}, prompt {p}: push {number(done.push[p])}{_mark(done, p)}" for p in range(P)]
        for name, done in rows.items()
    ]
    names = [f"{name} " for name in rows]
    trace = {
        "type": "heatmap", "name": "push", "z": shares, "x": list(range(P)),
        "y": list(range(len(rows))), "zmin": 0, "zmax": float(np.max(shares, initial=0.0)) or 1.0,
        "colorscale": color_scale(palette.sequential[:6]), "showscale": False, "xgap": 2,
        "ygap": 2, "text": texts, "texttemplate": "%{text}", "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "textfont": {"size": FONT_SIZE - 1, "color": palette.text},
    }  # fmt: skip
    return figure(
        [trace], palette=palette, height=_ROW * len(rows) + 60, margin=(112, 12, 8, 46),
        alt=_describe(rows, P),
        xaxis=axis("prompt (replaced by a new one where it says so)", palette=palette,
                   tickvals=list(range(P)), range=[-0.5, P - 0.5]),
        yaxis=axis("", palette=palette, tickvals=list(range(len(rows))), ticktext=names,
                   range=[len(rows) - 0.5, -0.5]),
    )  # fmt: skip


def _cell(done, p, many):
    """What stands in a cell, as far as there is room for it at the width of a phone."""
    if many > _ROOM[0]:
        return ""
    if done.factor[p] == 0:
        return "out"
    text = number(done.push[p], 3)
    return text + _mark(done, p).replace(", ", "<br>") if many <= _ROOM[1] else text


def _mark(done, p):
    """Where the push comes from, if not from the group's own task rewards alone."""
    if done.fresh[p] >= 0:
        return ", new group"
    if abs(done.bonus_share[p]) >= 0.005:
        return f", bonus {percent(done.bonus_share[p])}"
    return ""


def _describe(rows, P):
    said = [
        f"{name} {', '.join(number(value, 3) for value in done.push[: min(P, 8)].tolist())}"
        for name, done in rows.items()
    ]
    return f"Push of each prompt under each remedy: {'; '.join(said)}."
