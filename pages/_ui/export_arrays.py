"""The arrays of a scenario as NumPy code."""

import textwrap

import numpy as np

from grpo_core import ARRAYS, STAGES
from grpo_core.arrays import own_sizes
from grpo_core.scenario import as_batch


def array_lines(scenario):
    """Code that rebuilds what a script needs of a scenario's arrays, bit for bit.

    Parameters
    ----------
    scenario : Scenario

    Returns
    -------
    list of str
        Lines that define the arrays by their keys, in the type in which the batch is computed,
        ``valid``, and the log-probabilities as used: 0 where nothing counts, drift applied.
        Shaping terms are named in comments.
    """
    valid, present = scenario.valid, scenario["present"]
    alone = present[..., None]
    keys, dtype = _written(scenario), as_batch(scenario)[0].dtype
    own = own_sizes({key: scenario[key] for key in keys})
    sizes = ", ".join(f"{axis} = {size}" for axis, size in {**scenario.sizes, **own}.items())
    written = {}
    lines = [f"# {sizes}", *_term_lines(scenario.terms), "nan, inf = np.nan, np.inf"]
    for key in keys:
        spec = ARRAYS[key]
        counts = {"PG": present, "PGL": valid, "PGS": alone, "PGK": alone}.get(spec.axes, True)
        filler = np.nan if key == "rewards" else 0 if spec.required else spec.default
        array = scenario[key] if spec.kind == "bool" else np.where(counts, scenario[key], filler)
        if spec.kind == "float":
            array = array.astype(dtype if spec.axes else scenario[key].dtype)
        same = next((k for k, other in written.items() if _same(other, array)), None)
        lines += [f"{key} = {same}"] if same else assignment(key, array)
        written[key] = array
    lines += [
        "",
        "# Select what counts before any arithmetic: padding may hold anything.",
        "valid = mask & present[..., None]  # (P, G, L)",
        *(f"{key} = np.where(valid, {key}, 0.0)" for key in ("logp_new", "logp_old", "logp_ref")),
    ]
    return lines + _drift_lines(scenario)


# What rows read where a scenario has it, and can do without.
_READ_IF_THERE = {
    ("advantage", "returns"): ("token_rewards",),
    ("surrogate", "vespo"): ("sampler_weights",),
}


def _written(scenario):
    """Arrays that a script needs: the required ones, and what conventions and terms read."""
    chosen = [scenario.conventions.variant(stage) for stage in STAGES]
    chosen += [term.variant for term in scenario.terms]
    needed = {"logged_loss"}.union(*(variant.needs for variant in chosen))
    for stage, choice in scenario.conventions.choices.items():
        needed.update(_READ_IF_THERE.get((stage, choice.variant), ()))
    return [
        key for key, spec in ARRAYS.items() if spec.required or (key in needed and key in scenario)
    ]


def _term_lines(terms):
    """Each term as a comment. `repr` keeps a name on its line, whatever it holds."""
    lines = []
    for k, term in enumerate(terms):
        options = "".join(f", {key} = {value!r}" for key, value in term.formula.options.items())
        said = f"term {k}: {term.name!r}, weight {term.weight!r}, {term.variant.label}{options}"
        lines += textwrap.wrap(said, 96, initial_indent="# ", subsequent_indent="#     ")
    return lines


def _same(left, right):
    alike = left.dtype == right.dtype and left.shape == right.shape and left.ndim == 3
    return alike and left.tobytes() == right.tobytes()


def assignment(key, array):
    """Lines of ``key = np.array(...)``, every number with the digits that give it back exactly.

    The lines read ``nan`` and ``inf`` as NumPy's.
    """
    if array.ndim == 0:
        return [f"{key} = {array.item()!r}"]
    if array.dtype == bool and array.all():
        return [f"{key} = np.ones({array.shape}, dtype=bool)"]
    kind = {"float64": "", "float32": ", dtype=np.float32", "bool": ", dtype=bool"}
    dtype = kind.get(array.dtype.name, f", dtype=np.{array.dtype.name}")
    return [f"{key} = np.array([", *_rows(array), f"]{dtype})"]


def _rows(array, indent=4):
    """The rows of an array as lines of nested lists, without the outermost brackets."""
    space = " " * indent
    if array.ndim > 2:
        groups = []
        for group in array:
            first, *rest = _rows(group, indent + 1)
            groups += [f"{space}[{first.lstrip()}", *rest]
            groups[-1] = groups[-1].removesuffix(",") + "],"
        return groups
    numbers = array.astype(int) if array.dtype == bool else array
    if array.ndim == 1:
        rows = [", ".join(str(number) for number in numbers)]
    else:
        rows = ("[" + ", ".join(str(number) for number in row) + "]," for row in numbers)
    wrapped = (
        textwrap.wrap(row, 96, initial_indent=space, subsequent_indent=space + " ") for row in rows
    )
    return [line for row in wrapped for line in row]


def _drift_lines(scenario):
    if scenario.drift == 1:
        return []
    infinite = any(np.any(np.isinf(scenario[k][scenario.valid])) for k in ("logp_new", "logp_old"))
    nearer = "logp_new" if scenario.drift > 0.5 else "logp_old"
    step = "np.where(logp_new == logp_old, 0.0, logp_new - logp_old)"
    drifted = "logp_old + drift * step"
    return [
        "",
        "# The new policy, moved along the line from the old one; held at 0 = log(1).",
        f"drift = {scenario.drift!r}",
        f"step = {step if infinite else 'logp_new - logp_old'}",
        f"drifted = {drifted}",
        *([f"drifted = np.where(np.isinf(step), {nearer}, drifted)"] if infinite else []),
        "held = valid & (drifted > 0) & (drifted > np.maximum(logp_new, logp_old))",
        "logp_new = np.where(held, 0.0, drifted)",
    ]
