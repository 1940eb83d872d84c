"""TERMS: what may be added to a task reward, one row for each formula.

A term gives a number for each completion, NaN where it does not apply, or one for each token.
"""

from dataclasses import dataclass, field

import numpy as np

from .errors import ScenarioError
from .variants import Choice, Number, OneOf, Option, Stage, Variant, complete_choice, table

NAME_LIMIT = 40  # characters
_LEAST_DIVISOR = 1e-6  # tokens; the penalty of any length stays finite
_WEIGHT = Number(low=-1e6, high=1e6)


@dataclass(frozen=True)
class Term:
    """One shaping term: what it is called, how much it counts, and how it is computed.

    Parameters
    ----------
    name : str
    weight : float
        What the term's value is multiplied by; may be negative.
    formula : Choice
        A row of `TERMS` with its options; options left open take their defaults.

    Raises
    ------
    ScenarioError
        An empty or long name, a weight that is no finite number, an unknown formula.
    """

    name: str
    weight: float = 1.0
    formula: Choice = field(default_factory=lambda: Choice("given"))

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name.strip():
            raise ScenarioError("a term has no name; give it one", field="terms")
        if self.name.strip() == "task":
            raise ScenarioError(
                "a term is called 'task', which is the task reward's name; give it another",
                field="terms",
            )
        if len(self.name) > NAME_LIMIT:
            raise ScenarioError(
                f"the name of a term has {len(self.name):,} characters; at most {NAME_LIMIT}",
                field="terms",
            )
        weight = _WEIGHT.coerce(self.weight)
        if weight not in _WEIGHT:
            raise ScenarioError(
                f"the weight of term {self.name!r} is {self.weight!r}; wanted {_WEIGHT}",
                field="terms",
            )
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "formula", complete_choice(FORMULAS, self.formula))

    @property
    def variant(self):
        """The row of `TERMS` that computes this term."""
        return TERMS[self.formula.variant]


@dataclass(frozen=True, eq=False)
class TermValues:
    """A term as it enters a batch: (P, G), NaN where it does not apply, or (P, G, L)."""

    name: str
    weight: float
    values: np.ndarray


def given(batch, column):
    """The values of the term's column in ``term_values``."""
    return column


def format_bonus(batch, column, *, bonus, otherwise):
    """`bonus` where the column is not 0, else `otherwise`; blank stays blank."""
    found = np.where(column != 0, bonus, otherwise)
    return np.where(np.isnan(column), np.nan, found)


def length_linear(batch, column, *, free, per):
    """``-max(n - free, 0) / per`` for a completion of n tokens."""
    return -np.maximum(batch.lengths - free, 0) / per


def overlong(batch, column, *, limit, buffer, beyond):
    """Soft overlong punishment: 0 up to ``limit - buffer``, then down to -1 at `limit`.

    DAPO (arXiv 2503.14476) equation 13. Beyond `limit` it stays at -1 there, in TRL and in
    OpenRLHF; verl, NeMo-RL and AReaL let it fall on.
    """
    over = (batch.lengths - (limit - buffer)) / buffer
    over = np.maximum(over, 0.0)
    return 0.0 - (np.minimum(over, 1.0) if beyond == "held" else over)  # not -0.0


def cosine_length(
    batch, column, *, limit, right_above, right_short, right_long, wrong_short, wrong_long, beyond
):
    """A half cosine in n / limit: from ``short`` at length 0 to ``long`` at `limit`.

    open-r1's ``cosine_scaled_reward``, which counts characters and not tokens, and does not
    hold the value beyond `limit`: the cosine rises again there.
    """
    progress = batch.lengths / limit
    if beyond == "held":
        progress = np.minimum(progress, 1.0)
    share = (1 + np.cos(np.pi * progress)) / 2  # 1 at length 0, 0 at the limit
    right = np.nan_to_num(batch.rewards, nan=-np.inf) > right_above
    short = np.where(right, right_short, wrong_short)
    long = np.where(right, right_long, wrong_long)
    return long + (short - long) * share


def repetition(batch, column, *, n):
    """``-(1 - distinct / all)`` over the n-grams of a completion's token ids; 0 if it has none.

    TRL's ``get_repetition_penalty_reward`` with a largest penalty of -1.
    """
    if batch.token_ids.shape[-1] < n:
        return np.zeros(batch.rewards.shape)
    # Valid tokens first, in their order: an n-gram spans what is masked between them.
    order = np.argsort(~batch.valid, axis=-1, kind="stable")
    ids = np.take_along_axis(batch.token_ids, order, axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(ids, n, axis=-1)  # (P, G, L - n + 1, n)
    grams = np.unique(windows.reshape(-1, n), axis=0, return_inverse=True)[1]
    count = np.maximum(batch.lengths - n + 1, 0)  # (P, G)
    there = np.arange(windows.shape[2]) < count[..., None]
    grams = np.where(there, grams.reshape(windows.shape[:3]), -1)
    ordered = np.sort(grams, axis=-1)
    first = np.diff(ordered, axis=-1, prepend=-1) != 0  # of each run of equal ones, save -1
    distinct = np.sum(first, axis=-1)
    return np.where(count > 0, distinct / np.maximum(count, 1) - 1, 0.0)


def per_token(batch, column):
    """The rewards per token, (P, G, L)."""
    return batch.token_rewards


def _number(key, default, label, text, *, low=-1e6, integer=False):
    return Option(
        key=key,
        default=default,
        domain=Number(low=low, high=1e6, integer=integer),
        label=label,
        help=text,
        trl="",
        verl="",
    )


_HELD = {"held": "stays where it is", "continued": "goes on"}

TERMS = table(
    Variant(
        key="given",
        label="given values",
        function=given,
        formula=r"f_i = \text{as given}",
        source="the array 'term_values'",
        trl="any function of reward_funcs",
        verl="reward_extra_info",
        choose_when="A reward function of your own, or the logged values of one.",
        needs=("term_values",),
    ),
    Variant(
        key="format_bonus",
        label="format bonus",
        function=format_bonus,
        formula=r"f_i = \mathrm{bonus}\ \text{if the format is right, else}\ \mathrm{otherwise}",
        source="DeepSeek-R1 (arXiv 2501.12948) section 2.2.2",
        trl="think_format_reward",
        verl="format_score of a reward function",
        choose_when="The answer has to be found by a program: tags, a box, JSON.",
        options=(
            _number("bonus", 1.0, "Format right", "Value of a completion in the right format."),
            _number("otherwise", 0.0, "Format wrong", "Value of every other completion."),
        ),
        needs=("term_values",),
    ),
    Variant(
        key="length_linear",
        label="linear length penalty",
        function=length_linear,
        formula=r"f_i = -\max(n_i - \mathrm{free}, 0) / \mathrm{per}",
        source="a straight line in the number of tokens",
        trl="a reward function of your own",
        verl="a reward function of your own",
        choose_when="Every token costs the same.",
        options=(
            _number("free", 0, "Free tokens", "Tokens that cost nothing.", low=0, integer=True),
            _number(
                "per",
                100.0,
                "Tokens that cost 1",
                "The penalty falls by 1 for as many tokens.",
                low=_LEAST_DIVISOR,
            ),
        ),
    ),
    Variant(
        key="overlong",
        label="soft overlong penalty",
        function=overlong,
        formula=r"f_i = -\min\left(\max\left(\tfrac{n_i - (L - c)}{c}, 0\right), 1\right)",
        source="DAPO (arXiv 2503.14476) equation 13",
        trl="get_soft_overlong_punishment(max_completion_len, soft_punish_cache)",
        verl="overlong_buffer.len, penalty_factor",
        choose_when="Answers are cut at a limit, and should learn to stop before it.",
        options=(
            _number("limit", 20480, "Limit L", "Length at which the penalty is 1.", low=1),
            _number(
                "buffer",
                4096,
                "Buffer c",
                "Tokens before the limit over which the penalty grows.",
                low=_LEAST_DIVISOR,
            ),
            Option(
                key="beyond",
                default="held",
                domain=OneOf(_HELD),
                label="Beyond the limit",
                help="verl does not cap the penalty; TRL and OpenRLHF hold it at 1.",
                trl="held",
                verl="continued",
            ),
        ),
    ),
    Variant(
        key="cosine_length",
        label="cosine of the length",
        function=cosine_length,
        formula=r"f_i = \mathrm{long} + (\mathrm{short} - \mathrm{long})"
        r"\tfrac{1 + \cos(\pi n_i / \mathrm{limit})}{2}",
        source="Demystifying Long CoT (arXiv 2502.03373); open-r1 cosine_scaled_reward, "
        "which counts characters",
        trl="a reward function of your own",
        verl="a reward function of your own",
        choose_when="Right answers should be short, wrong ones may think longer.",
        options=(
            _number("limit", 1000.0, "Limit", "Length at which the cosine has run down.", low=1),
            _number(
                "right_above", 0.5, "Right above", "Task reward above which an answer is right."
            ),
            _number("right_short", 1.0, "Right, short", "Value of a right answer of no length."),
            _number("right_long", 0.5, "Right, at the limit", "Value of a long right answer."),
            _number("wrong_short", -1.0, "Wrong, short", "Value of a wrong answer of no length."),
            _number("wrong_long", -0.5, "Wrong, at the limit", "Value of a long wrong answer."),
            Option(
                key="beyond",
                default="continued",
                domain=OneOf(_HELD),
                label="Beyond the limit",
                help="open-r1 lets the cosine go on, so that it turns back.",
                trl="",
                verl="",
            ),
        ),
    ),
    Variant(
        key="repetition",
        label="repetition of n-grams",
        function=repetition,
        formula=r"f_i = -\left(1 - \frac{\text{distinct n-grams}}{\text{all n-grams}}\right)",
        source="TRL get_repetition_penalty_reward, over token ids",
        trl="get_repetition_penalty_reward(ngram_size, max_penalty=-1)",
        verl="a reward function of your own",
        choose_when="Answers loop.",
        options=(
            Option(
                key="n",
                default=3,
                domain=Number(low=1, high=20, integer=True),
                label="n",
                help="Tokens in a row that are compared.",
                trl="ngram_size=3",
                verl="",
            ),
        ),
        needs=("token_ids",),
    ),
    Variant(
        key="per_token",
        label="given per token",
        function=per_token,
        formula=r"f_{i,t} = \text{as given}",
        source="the array 'token_rewards'",
        trl="not in its GRPO trainer",
        verl="token_level_scores",
        choose_when="A reward model scores tokens, or a penalty falls on some of them.",
        needs=("token_rewards",),
    ),
)

# `complete_choice` reads a stage; formulas of terms are not one, but are chosen alike.
FORMULAS = Stage(
    key="formula", label="Formula", contract="(batch, column, **options) -> values", variants=TERMS
)


def term_values(batch, terms):
    """The values of every term on a batch.

    Parameters
    ----------
    batch : Batch
    terms : sequence of Term
        Term k reads column k of ``batch.term_values``, if its formula reads any.

    Returns
    -------
    tuple of TermValues
        In the type of the batch; 0 where a token or a completion does not count, NaN where a
        term does not apply.
    """
    blank = np.full(batch.rewards.shape, np.nan)
    columns = [
        blank if batch.term_values is None else batch.term_values[..., k] for k in range(len(terms))
    ]
    return tuple(_values(batch, term, column) for term, column in zip(terms, columns, strict=True))


def _values(batch, term, column):
    values = term.variant.function(batch, column, **term.formula.options)
    counts = batch.present if np.ndim(values) == 2 else batch.valid
    return TermValues(term.name, term.weight, np.where(counts, values, 0).astype(batch.dtype))
