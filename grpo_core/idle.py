"""Options that a choice of conventions holds and nothing reads."""

from .stages import DEFAULT_CONVENTIONS, STAGES, Conventions
from .variants import Choice


def without_idle(conventions):
    """The same conventions with every option that nothing reads at its default."""
    choices = dict(conventions.choices)
    if not _reads_ratio(conventions):
        choices["ratio"] = DEFAULT_CONVENTIONS["ratio"]
    for stage, choice in choices.items():
        idle = [key for key in choice.options if _idle(stage, key, choice.options)]
        defaults = {key: _default(stage, choice.variant, key) for key in idle}
        choices[stage] = Choice(choice.variant, {**choice.options, **defaults})
    return Conventions(choices)


def unread(difference, *sides):
    """Whether nothing reads what differs, a variant or an option, in any of some conventions.

    Where a KL has no weight on either side it says nothing how it would be estimated.
    """
    stage, option = difference.stage, difference.option
    return all(_unread(stage, option, conventions) for conventions in sides)


def _unread(stage, option, conventions):
    if stage == "ratio" and not _reads_ratio(conventions):
        return True
    if stage == "kl" and option != "beta" and not conventions["kl"].options.get("beta", 1.0):
        return True
    return _idle(stage, option, conventions[stage].options)


def _default(stage, variant, key):
    return STAGES[stage].variants[variant].option(key).default


def _reads_ratio(conventions):
    """Whether a ratio stands in the surrogate, or weighs the KL."""
    kl = conventions["kl"].options
    weighs = kl.get("weight") == "ratio" and kl.get("beta") and kl.get("place") == "objective"
    return bool(weighs) or conventions.variant("surrogate").reads_ratio


def _elsewhere(options):
    return options.get("place", "objective") != "objective"


# "stage.option" -> (options of the stage) -> whether nothing reads it.
_RULES = {
    "kl.weight": _elsewhere,
    "kl.gradient": _elsewhere,
    "rewards.batch_eps": lambda options: options["batch_scale"] == "none",
    "surrogate.truncate": lambda options: options["form"] == "ratio",
    "advantage.ddof": lambda options: options.get("divide") == "nothing",
    "advantage.eps": lambda options: options.get("divide") == "nothing",
    "aggregation.empty": lambda options: bool(options.get("completions")),
}


def _idle(stage, key, options):
    rule = _RULES.get(f"{stage}.{key}")
    return rule is not None and rule(options)
