"""Numbers of an account: as few digits as make the shown parts add up to the shown sum."""

import math
from decimal import ROUND_HALF_EVEN, Decimal

from .numbers import MINUS, number, percent

_DIGITS = 4  # of a sum, unless it is far below its parts
_MORE = 6  # further digits to try until the parts add up
_PLAIN = (1e-4, 1e6)  # sizes that are written without a power of ten


def column(parts, whole):
    """Parts and their sum with one number of decimals, under which the sum is right as shown.

    Parameters
    ----------
    parts : sequence of float
    whole : float
        Their sum.

    Returns
    -------
    tuple of (list of str, str)
        Signed texts of the parts and of the whole. Where no few decimals do it they still
        stand in a column; where they are too large or small for one, each is rounded alone.

    Examples
    --------
    >>> column([0.02592, -0.00094], 0.02498)
    (['+0.02592', '−0.00094'], '+0.02498')
    """
    size = max(abs(float(value)) for value in (*parts, whole))
    if not _PLAIN[0] <= size < _PLAIN[1]:
        return [_alone(part) for part in parts], _alone(whole)
    first = _places(whole if abs(whole) >= 1e-3 * size else size)
    fits = (n for n in range(first, first + _MORE) if _adds_up(parts, whole, n))
    places = next(fits, first)
    return [_text(part, places) for part in parts], _text(whole, places)


def _places(value):
    return max(_DIGITS - 1 - math.floor(math.log10(abs(value))), 0)


def _adds_up(parts, whole, places):
    return sum(_rounded(part, places) for part in parts) == _rounded(whole, places)


def _rounded(value, places):
    return Decimal(float(value)).quantize(Decimal((0, (1,), -places)), rounding=ROUND_HALF_EVEN)


def _text(value, places):
    if not value:
        return "0"
    return f"{'+' if value > 0 else MINUS}{abs(_rounded(value, places)):f}"


def _alone(value):
    return number(value, _DIGITS, signed=True)


def objective_line(parts, evaluation):
    """The objective as policy part and KL part, as gains and drains, and what is special in it.

    Parameters
    ----------
    parts : grpo_core.breakdown.Contributions
    evaluation : Evaluation
        The one that was taken apart.
    """
    whole = parts.both.whole
    (policy, kl), both = column([parts.policy.whole, parts.kl.whole], whole)
    said = [f"Policy part {policy}, KL part {kl}: J = {both}, and the loss is {_negated(both)}."]
    if parts.gain > 0 > parts.drain:
        up, down = _alone(parts.gain), _alone(parts.drain)
        said.append(f"Completions that raise J add {up}, those that lower it {down}.")
    turnover = parts.gain - parts.drain
    if 0 < turnover < math.inf and abs(whole) <= 1e-12 * turnover:
        said.append("They cancel: the loss is 0 although the contributions are not.")
    elif turnover == 0:
        said.append("No completion contributes anything.")
    return " ".join(said + _tied(parts, evaluation))


def _tied(parts, evaluation):
    """What prompts whose advantages are all 0 add: nothing but their KL part."""
    prompts = [
        p for p, idle in enumerate((evaluation.advantages == 0).all(axis=1).tolist()) if idle
    ]
    if not prompts:
        return []
    added = sum(float(parts.both.prompts[p]) for p in prompts)
    named = f"Prompt {prompts[0]} has" if len(prompts) == 1 else f"{len(prompts):,} prompts have"
    rest = f"the KL part there adds {_alone(added)}" if added else "nothing is added there"
    return [f"{named} only advantages of 0, so no policy part: {rest}."]


def _negated(text):
    """A signed text with the other sign; without one where that is a plus."""
    return text[1:] if text.startswith(MINUS) else text.replace("+", MINUS)


def gradient_line(split):
    """How large both parts of the gradient are, and where they pull against each other.

    Parameters
    ----------
    split : grpo_core.breakdown.GradientSplit
    """
    if split.norm == 0:
        return "The gradient is 0: nothing moves."
    if split.kl_norm == 0:
        return f"Norm {number(split.norm)}, all of it from the rewards: the KL part is 0."
    if split.policy_norm == 0:
        return f"Norm {number(split.norm)}, all of it from the KL: the policy part is 0."
    said = [f"Norms: policy part {number(split.policy_norm)}, KL part {number(split.kl_norm)}"]
    said[0] += f", together {number(split.norm)}."
    if split.cosine is not None:
        said.append(f"The cosine between the parts is {number(split.cosine, 3)}.")
    if split.both:
        share = percent(split.against / split.both)
        tokens = f"{split.against:,} of the {split.both:,} tokens that both move ({share})"
        said.append(f"The KL pulls against the reward at {tokens}.")
    if split.only_kl:
        said.append(f"The KL alone moves {split.only_kl:,} more.")
    return " ".join(said)
