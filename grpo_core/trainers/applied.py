"""Read settings put into an example, as far as it has the arrays for them."""

from dataclasses import replace

from ..stages import STAGES, Conventions


def applied(scenario, reading):
    """The scenario under the conventions that were read.

    A stage whose variant needs an array that the scenario does not have stays as it is.

    Returns
    -------
    scenario : Scenario
    notes : tuple of str
        What stayed, and why.
    """
    choices, notes = {}, []
    for stage, choice in reading.conventions.choices.items():
        variant = reading.conventions.variant(stage)
        missing = [need for need in variant.needs if need not in scenario]
        choices[stage] = scenario.conventions[stage] if missing else choice
        if missing:
            notes.append(
                f"{STAGES[stage].label}: “{variant.label}” needs the array {missing[0]}, which "
                "this example does not have; it stays as it was."
            )
    combined = scenario.conventions["rewards"]
    if scenario.terms and choices["rewards"].variant == "outcome":
        choices["rewards"] = combined
        notes.append("Rewards: this example has terms, and combines them as before.")
    terms, more = _weighted(scenario.terms, reading.weights)
    conventions = Conventions(choices)
    changed = replace(scenario, conventions=conventions, terms=terms)
    return changed, (*notes, *more, *_sizes(scenario, reading))


def _weighted(terms, weights):
    """Terms with the weights that were read, where there is one for each."""
    if len(weights) < 2:
        return terms, ()
    if len(weights) != len(terms) + 1:
        return terms, (
            f"Reward weights: {len(weights)} were given, for a task and {len(terms)} terms here; "
            "only the first is taken.",
        )
    pairs = zip(terms, weights[1:], strict=True)
    return tuple(replace(term, weight=weight) for term, weight in pairs), ()


def _sizes(scenario, reading):
    if reading.group_size in (None, scenario.sizes["G"]):
        return ()
    return (
        f"Group size: {reading.group_size:,} completions per prompt were given, and this example "
        f"has {scenario.sizes['G']:,}; it stays as it is.",
    )
