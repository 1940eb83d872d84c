"""Every figure function on every awkward batch: none raises, and every number can be drawn."""

import json
from itertools import product

import numpy as np
import pytest

from grpo_core import STAGES, build_scenario, estimators, evaluate
from grpo_core.breakdown import aggregations, contributions, gradient_split
from grpo_core.findings import find
from grpo_core.kl_curves import in_each_place
from grpo_core.presets import ADVANTAGE_FORMULAS
from pages._ui import (
    aggregation_views,
    charts,
    estimator_charts,
    group_tables,
    kl_charts,
    kl_tables,
    ledger,
    objective_charts,
    tables,
)
from pages._ui.palette import PALETTES
from pages._ui.quantities import QUANTITIES, advantage_title
from tests.needed import with_needed

LOOKS = {"palette": PALETTES["light"]}
TINY = 5e-324
F32 = np.finfo(np.float32)


def random_batch(P=2, G=3, L=4):
    rng = np.random.default_rng(5)
    old = -rng.exponential(size=(P, G, L))
    moved = [np.minimum(old + rng.normal(0, 0.5, old.shape), 0) for _ in range(2)]
    return {
        "rewards": rng.integers(0, 3, (P, G)).astype(float),
        "logp_old": old, "logp_new": moved[0], "logp_ref": moved[1],
    }  # fmt: skip


def batch(**changes):
    return {**random_batch(), **changes}


def float32(arrays):
    return {key: np.asarray(value, dtype=np.float32) for key, value in arrays.items()}


def logps(*rows):
    """Per-token arrays for one prompt, a row a completion."""
    values = np.array([rows])
    zero = np.zeros_like(values)
    return {"logp_new": values, "logp_old": values[:, ::-1], "logp_ref": zero}


AWKWARD = {
    "plain": batch(),
    "all absent": batch(present=np.zeros((2, 3))),
    "first prompt absent": batch(present=[[0, 0, 0], [1, 1, 1]]),
    "last prompt absent": batch(present=[[1, 1, 1], [0, 0, 0]]),
    "all masked": batch(mask=np.zeros((2, 3, 4))),
    "one completion masked": batch(mask=np.arange(3)[None, :, None] > np.zeros((2, 3, 4))),
    "all rewards missing": batch(rewards=np.full((2, 3), np.nan)),
    "one prompt not scored": batch(rewards=[[np.nan] * 3, [0, 1, 2]]),
    "one score": batch(rewards=[[np.nan, np.nan, 1], [0, 1, 2]]),
    "P=1": random_batch(P=1),
    "G=1": random_batch(G=1),
    "L=1": random_batch(L=1),
    "P=G=L=1": random_batch(1, 1, 1),
    "all tied": batch(rewards=np.ones((2, 3))),
    "huge": {"rewards": [[1e308, -1e308, 1e308]]},
    "largest": {"rewards": [[np.finfo(float).max, -np.finfo(float).max]]},
    "huge beside small": {"rewards": [[1e308, 0.0, 1.0], [1.0, TINY, -1e308]]},
    "huge and one-sided": {"rewards": [[1e308, 1.7e308, 1e308]]},
    "tiny": {"rewards": [[TINY, -TINY, 0.0]]},
    "tiny steps": {"rewards": [[1.0, 1.0 + 2**-52, 1.0]]},
    "float32 extremes": float32({"rewards": [[F32.max, -F32.max], [F32.tiny, 1e-45]]}),
    "float32 near its end": float32({"rewards": [[3e38, -3e38]]}),
    "float32": float32(random_batch()),
    "minus infinity": {"rewards": [[0, 1.0]], **logps([-np.inf, -1.0], [-2.0, -np.inf])},
    "far logps": {"rewards": [[1.0, 0]], **logps([-1e308, -TINY, -800.0], [0.0, -1e308, -1e-300])},
    "float32 far logps": float32(
        {"rewards": [[1.0, 0]], **logps([-3e38, -1e-45, -90.0], [0.0, -3e38, -1e-30])}
    ),
    "huge everywhere": {
        "rewards": [[1e308, -1e308]], **logps([-1e308, -TINY, -709.0], [0.0, -1e308, -1e-300])
    },
}  # fmt: skip


GROUPED = ("mean_std", "mean_only")
WORST = ("all absent", "all rewards missing", "one score", "huge", "tiny", "float32 extremes")


def scenarios():
    """Every awkward batch under GRPO's advantages; the worst of them under every other row."""
    for name, arrays in AWKWARD.items():
        for variant, row in STAGES["advantage"].variants.items():
            if variant not in GROUPED and name not in WORST:
                continue
            scenario = with_needed(build_scenario(**arrays), *row.needs)
            yield pytest.param(scenario.choose("advantage", variant), id=f"{name}-{variant}")


every_scenario = pytest.mark.parametrize("scenario", list(scenarios()))


def _with_former(draw):
    """Draw a state alone, and with another one as the ghost and as A."""

    def drawn(state, other, p, selected):
        yield draw(state, p, **LOOKS)
        yield draw(state, p, former=other, pinned=other, selected=selected, **LOOKS)
        yield draw(other, p, former=state, pinned=state, selected=selected, **LOOKS)

    return drawn


def _heatmaps(state, p, **looks):
    """The whole batch from the side of prompt 0, small pictures of one prompt from the others."""
    prompts = p or None
    for quantity in QUANTITIES:
        yield charts.token_heatmap(
            state, quantity, prompts=prompts, compact=prompts is not None, written=True, **looks
        )


FIGURES = {
    "advantage_bars": lambda state, p, **looks: [charts.advantage_bars(state, p, **looks)],
    "token_heatmap": _heatmaps,
    "surrogate_chart": lambda state, p, **looks: [
        charts.surrogate_chart(state, sign, prompts=prompts, **looks)
        for sign in (1, -1) for prompts in (None, p)
    ],
    "case_bars": lambda state, p, **looks: [
        charts.case_bars(state, prompts=prompts, **looks) for prompts in (None, p)
    ],
    "waterfall": lambda state, p, **looks: [objective_charts.waterfall(state, p, **looks)],
    "kl_curves": lambda state, p, **looks: [
        kl_charts.kl_curves(state, tail=tail, **looks) for tail in (False, True)
    ],
}  # fmt: skip


def strip(state, p, selected):
    yield charts.group_strip(state, p, selected=selected, **LOOKS)
    yield charts.group_strip(state, p, **LOOKS)


def formulas(state, p, selected):
    rewards = tables.array_to_frame(state.scenario, "rewards", p)["rewards"].tolist()
    compared = tables.compare_formulas(rewards, ADVANTAGE_FORMULAS)
    tables.comparison_frame(rewards, compared)
    yield charts.formula_bars(compared, **LOOKS)


def places(state, p, selected):
    both = in_each_place(state)
    kl_tables.place_line(both)
    kl_tables.place_frame(both, {key: key for key in both})
    kl_tables.penalty_frame(both, p)
    yield charts.formula_bars(
        {place: row.advantages[p] for place, row in both.items()},
        title=advantage_title(state), **LOOKS,
    )  # fmt: skip
    yield charts.token_heatmap(
        both["objective"], "gradient", prompts=p, pinned=both["reward"], selected=selected, **LOOKS
    )


def weights(state, p, selected):
    compared = aggregations(state)
    aggregation_views.aggregation_frame(compared)
    yield aggregation_views.first_weight_bars(compared, p, selected=selected, **LOOKS)


def words(state, p, selected):
    """Tables and sentences that the pages build beside their figures."""
    find(state)
    kl_tables.mean_line(state)
    ledger.objective_line(contributions(state), state)
    ledger.gradient_line(gradient_split(state))
    group_tables.group_table(state)
    group_tables.advantages_beside(state, p)
    return []


OTHERS = {
    "group_strip": strip, "formula_bars": formulas, "places": places, "weights": weights,
    "words": words,
}  # fmt: skip


def _numbers(value, path=()):
    """Every number and gap of a figure's JSON with where it stands."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, (*path, key))
    elif isinstance(value, list):
        for part in value:
            yield from _numbers(part, path)
    else:
        yield path, value


def check(chart):
    """The figure as sent: strict JSON, ranges of two finite ends, gaps only where lines break."""
    sent = json.loads(chart.to_json(), parse_constant=pytest.fail)
    for path, value in _numbers(sent["layout"]):
        where = ".".join(map(str, path))
        assert value is not None, where
        assert "nan" not in str(value).lower().split(), where
    colors = sent["layout"].get("coloraxis", {"cmin": 0, "cmax": 1})
    assert 0 < colors["cmax"] - colors["cmin"] < np.inf
    for axis in (name for name in sent["layout"] if name.startswith(("xaxis", "yaxis"))):
        low, high = sent["layout"][axis]["range"]
        assert np.isfinite([low, high, high - low]).all()
        assert low != high
    for trace, drawn in zip(sent["data"], chart.data, strict=True):
        key = drawn.name in (None, "") or len(np.ravel(drawn.x)) == 1  # only for the legend
        line = trace.get("mode") == "lines"
        for coordinate in ("x", "y", "base", "width"):
            values = np.asarray(getattr(drawn, coordinate, None), dtype=float).ravel()
            if getattr(drawn, coordinate, None) is None or line or key:
                continue
            assert np.isfinite(values).all(), (drawn.name, coordinate, values)
        for text in np.ravel(trace.get("text") or []).tolist():
            assert "nan" not in str(text).lower(), drawn.name


PROBABILITIES = (0.0, TINY, 1e-300, 0.5, 1.0, 1e308)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("new", list(product(PROBABILITIES, repeat=2)), ids=str)
def test_no_figure_of_two_distributions_raises(new, dtype):
    for ref in product(PROBABILITIES, repeat=2):
        with np.errstate(over="ignore", under="ignore"):
            given = np.array([new, ref]).astype(dtype)
        if not (np.isfinite(given).all() and given.any(axis=1).all()):
            continue
        scenario = build_scenario(rewards=[[1, 0]], dist_new=given[0], dist_ref=given[1])
        comparison = estimators.compare(scenario)
        samples = estimators.sample(comparison, 1)
        check(estimator_charts.sample_means(comparison, samples, **LOOKS))
        check(estimator_charts.expected_gradients(comparison, **LOOKS))
        kl_tables.exact_lines(comparison)
        kl_tables.estimator_frame(comparison, samples)
        kl_tables.gradient_line(comparison)


@every_scenario
def test_no_figure_raises_and_every_number_can_be_drawn(scenario):
    state = evaluate(scenario)
    moved = scenario.replace(logp_new=np.minimum(scenario["logp_new"] - 0.5, 0))
    other = evaluate(moved)
    P, G, L = scenario.sizes.values()
    for p in range(P):
        selected = (p, G - 1, L - 1)
        for draw in FIGURES.values():
            for figures in _with_former(draw)(state, other, p, selected):
                for chart in figures:
                    check(chart)
        for draw in OTHERS.values():
            for chart in draw(state, p, selected):
                check(chart)
