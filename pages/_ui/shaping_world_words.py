"""What to log, and what a bonus or a potential does to the best policy, in sentences."""

import numpy as np

from grpo_core.findings.shaping import DOMINATES
from grpo_core.shaping_potential import CREDITS

from .numbers import count, number, percent
from .shaping_words import quoted

_ALIKE = 0.1  # a correlation within groups of that size says little


def log_line(log, names):
    """What in these numbers betrays a term that is collected without solving the task."""
    signs = []
    for k, name in enumerate(names[1:]):
        if log.correlation[k] < -_ALIKE:
            signs.append(
                f"within groups {quoted(name)} goes against the task (correlation "
                f"{number(log.correlation[k], 3)})"
            )
    heavy = 1 + int(np.argmax(log.mean_shares[1:]))
    if log.mean_shares[heavy] > DOMINATES:
        signs.append(
            f"{quoted(names[heavy])} has {percent(log.mean_shares[heavy])} of the spread, the task "
            f"{percent(log.mean_shares[0])}"
        )
    if log.decided.any():
        signs.append(f"shaping alone decides {percent(log.decided_share)} of the groups")
    if signs:
        return f"What betrays a term here: {'; '.join(signs)}. Watch the task reward by itself."
    return (
        "Nothing betrays a term here: none goes against the task within groups, none has more than "
        "half of the spread, and no group is decided by shaping alone."
    )


def bandit_line(view):
    """Which answer is worth more at this weight, and which one GRPO learns."""
    worth = "A" if view.reward_gap_now > 0 else "B" if view.reward_gap_now < 0 else "neither"
    learned = "A" if view.update_now > 1e-12 else "B" if view.update_now < -1e-12 else "neither"
    now, end = number(view.weight), percent(float(view.path[-1]))
    if worth == learned:
        text = f"At weight {now} {_worth(worth)}, and the expected update agrees: "
    else:
        text = f"At weight {now} {_worth(worth)}, yet the expected update favours {learned}: "
    text += f"after {len(view.path) - 1} steps A is given {end} of the time, from 50%."
    return f"{text} {_turns(view)}"


def _turns(view):
    """From which weight on B is worth more, and from which on it is learned."""
    worth, learned = view.optimum_flip, view.update_flip
    flip = number(worth)
    if not worth:
        favoured = f"below {number(learned)}" if learned else "at none"
        return (
            "Without its bonus B is right as often as A, or more often: no weight makes A worth "
            f"more, and the update favours it {favoured}."
        )
    if not learned:
        return f"The update favours A at no weight, though A is worth more up to {flip}."
    if np.isclose(learned, worth, rtol=1e-3):
        why = "" if view.divided else ": nothing is divided by a spread, so size counts"
        return f"Both turn at {flip}{why}."
    if learned > worth:
        return f"B is worth more from {flip} on, but is learned only from {number(learned)} on."
    return (
        f"B is worth more only from {flip} on, but is learned from {number(learned)} on. In "
        f"{percent(view.decided)} of the groups both answers come up and the task does not tell "
        "them apart; there the bonus pushes at full size."
    )


def _worth(answer):
    return "both answers are worth the same" if answer == "neither" else f"{answer} is worth more"


def size_line(asked, size):
    """That groups of the small worlds are enumerated, and so are not large."""
    return (
        "" if asked == size else f"Computed for a group of {size}, the largest that is summed over."
    )


def potential_line(view):
    """Where a potential is harmless and where it is not."""
    kept, moved = ([CREDITS[key].label for key in keys] for keys in (view.kept, view.moved))
    if not moved:
        return (
            "This potential changes no gradient: it is equal everywhere, or it cancels. Give the "
            "middle another value."
        )
    turned = [CREDITS[key].label for key in view.moved if view.now[key][0] * view.plain[key][0] < 0]
    text = f"Harmless for {count(len(kept), 'rule')}: {'; '.join(kept)}. " if kept else ""
    text += f"Not for {'; '.join(moved)}: mean or std are taken over what the potential moves."
    if turned:
        text += f" With {'; '.join(turned)} the first token is even pushed the other way."
    return text


def prompt_weight_line(view):
    """How unequally two prompts count once a std divides."""
    divided = [key for key in CREDITS if CREDITS[key].divides]
    first = next((key for key in divided if abs(view.wide[key]) > 1e-6), None)
    if first is None:
        return ""
    ratio = view.close[first] / view.wide[first]
    return (
        "Dividing by a standard deviation still changes how much each prompt counts, without any "
        f"potential: under “{CREDITS[first].label}” a prompt whose rewards lie ten times closer "
        f"weighs {number(ratio, 3)} times as much."
    )
