"""Every pair of choices of STAGES: against plain loops, and gradients by finite differences."""

from itertools import combinations as pairs_of
from itertools import groupby, product

import numpy as np
import pytest

from grpo_core import STAGES, Choice, Conventions, build_scenario, evaluate
from grpo_core.terms import TERMS, Term
from grpo_core.variants import OneOf, complete_choice
from tests.reference import plain_advantages, plain_loops
from tests.reference.combinations import (
    choices,
    combinations,
    edge_scenario,
    lone_scenario,
    pairwise,
    tied_scenario,
)

EVERY_OPTION = combinations(with_options=tuple(STAGES))


def test_every_row_has_its_plain_version():
    for key, stage in STAGES.items():
        assert set(plain_loops.TABLES[key]) == set(stage.variants), key
    assert set(plain_advantages.TERMS) == set(TERMS)


@pytest.mark.parametrize("sizes", [(), (3,), (2, 2), (3, 3, 3), (22, 5, 4, 2), (4, 4, 4, 4, 4, 4)])
def test_pairwise_picks_hold_every_pair(sizes):
    rows = pairwise(list(sizes))
    assert len(rows) >= 1
    for (a, most_a), (b, most_b) in pairs_of(enumerate(sizes), 2):
        assert {(row[a], row[b]) for row in rows} == {
            (i, j) for i in range(most_a) for j in range(most_b)
        }


@pytest.mark.parametrize("with_options", [(), ("kl",), tuple(STAGES)], ids=len)
def test_every_two_choices_of_two_stages_occur_together(with_options):
    found = combinations(with_options)
    for one, other in pairs_of(STAGES, 2):
        wanted = product(
            choices_of(one, one in with_options), choices_of(other, other in with_options)
        )
        assert set(wanted) <= {(c[one], c[other]) for c in found}, (one, other)


def choices_of(key, with_options):
    return [complete_choice(STAGES[key], choice) for choice in choices(STAGES[key], with_options)]


def rows_of(conventions):
    return conventions["rewards"].variant, conventions["advantage"].variant


GROUPS = {rows: list(found) for rows, found in groupby(sorted(EVERY_OPTION, key=rows_of), rows_of)}


def scenarios_of(rows):
    """Under each pair of options of two rows, and of any other stage with either of them."""
    for conventions in GROUPS[rows]:
        yield edge_scenario(conventions)
        if conventions["tied"].variant != "keep":
            yield tied_scenario(conventions)
        if "alone" in conventions["advantage"].options:
            yield lone_scenario(conventions)


def asks_rounding(scenario):
    """Whether tokens leave by the sign of an advantage that is 0 up to rounding only."""
    chosen = scenario.conventions
    by_steps = chosen["tied"].variant == "drop" and chosen["advantage"].variant == "process"
    by_policy = "threshold" in chosen["selection"].options
    others = chosen["tied"].variant == "zero" or by_policy
    if not (by_steps or others):
        return False
    plain = scenario.choose("whitening", "none").choose("kl", "k1", beta=0.0)
    sizes = [np.abs(evaluate(each).token_advantages) for each in (plain, scenario)]
    return any(np.any((size > 0) & (size < 1e-12)) for size in sizes)


@pytest.mark.parametrize("rows", GROUPS, ids="-".join)
def test_core_equals_plain_loops(rows):
    scenarios = list(scenarios_of(rows))
    clear = [scenario for scenario in scenarios if not asks_rounding(scenario)]
    assert len(clear) > 0.85 * len(scenarios)
    for scenario in clear:
        evaluation, conventions = evaluate(scenario), scenario.conventions
        expected, sums = plain_loops.evaluate(scenario)
        for key, cells in expected.items():
            assert_equals_cells(getattr(evaluation, key), cells, f"{key} {conventions.choices}")
        assert evaluation.objective == pytest.approx(sums["objective"], rel=1e-10, abs=1e-13)
        assert evaluation.mean_kl == pytest.approx(sums["mean_kl"], rel=1e-10, abs=1e-13)
        assert evaluation.loss == -evaluation.objective


def assert_equals_cells(array, cells, words):
    """Equal where a cell is given, 0 elsewhere."""
    dense = np.zeros(array.shape)
    for cell, number in cells.items():
        dense[cell] = number
    np.testing.assert_allclose(
        array.astype(float), dense, rtol=1e-10, atol=1e-12, strict=True, err_msg=words
    )


def random_batch(seed):
    """2 prompts x 3 completions x 6 tokens with masked ones between, blanks, and few token ids."""
    rng = np.random.default_rng(seed)
    shape = (2, 3, 6)
    return {
        "rewards": rng.choice([0.0, 0.5, 1.0, np.nan], shape[:2]),
        "mask": rng.random(shape) < rng.choice([0.2, 0.6, 1.0], (*shape[:2], 1)),
        "present": rng.random(shape[:2]) < 0.9,
        "advantages": np.zeros(shape[:2]),
        "token_advantages": np.zeros(shape),
        "token_ids": rng.integers(0, 2, shape).astype(float),
        "token_rewards": rng.normal(size=shape),
        "term_values": rng.choice([0.0, 1.0, -2.0, np.nan], (*shape[:2], 1)),
        "step_ends": np.full((*shape[:2], 1), np.nan),
        "step_rewards": np.full((*shape[:2], 1), np.nan),
    }


# Options whose default no completion of six tokens would notice.
SHORT = {"limit": 4.0, "buffer": 2.5, "per": 3.0, "free": 2, "n": 2, "bonus": 0.8}


def term_choices(variant):
    """Every value of the options with names, with small numbers for the others."""
    named = [o for o in variant.options if isinstance(o.domain, OneOf)]
    for values in product(*(o.domain.words for o in named)):
        picked = {o.key: SHORT[o.key] for o in variant.options if o.key in SHORT}
        picked |= {o.key: value for o, value in zip(named, values, strict=True)}
        yield Choice(variant.key, picked)


@pytest.mark.parametrize("variant", TERMS.values(), ids=lambda variant: variant.key)
def test_terms_equal_plain_loops(variant):
    for seed, formula in product(range(25), term_choices(variant)):
        term = Term("only", 1.0, formula)
        arrays = random_batch(seed)
        scenario = build_scenario(
            terms=[term], conventions=Conventions.of(rewards="add_after"), **arrays
        )
        computed = evaluate(scenario).attribution.values[1]
        lists = {key: array.tolist() for key, array in scenario.arrays.items()}
        batch = plain_advantages.case(lists, (2, 3, 6), [term], lambda *_: 0.0)
        expected = np.full((2, 3), np.nan)
        for cell in batch["cells"]:
            value = batch["parts"][1][1](cell, None)
            expected[cell] = np.nan if value is None else value
        np.testing.assert_allclose(computed, expected, atol=1e-14, err_msg=str(formula))


def slope_along(direction, scenario, step=1e-5):
    """Difference of the plain objective where logp_new moves, and what carries no gradient not."""
    ends = []
    for sign in (1, -1):
        moved = np.where(scenario.valid, scenario["logp_new"] + sign * step * direction, 0.0)
        ends.append(plain_loops.evaluate(scenario, moved.tolist())[1]["objective"])
    return (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize("rows", GROUPS, ids="-".join)
def test_gradient_equals_finite_differences(rows):
    # Along a direction in which every token moves otherwise: an error in any token shows.
    rng = np.random.default_rng(22)
    for scenario in map(edge_scenario, GROUPS[rows]):
        if asks_rounding(scenario):
            continue
        gradient = evaluate(scenario).gradient
        direction = rng.choice([-1, 1], gradient.shape) * rng.uniform(0.5, 1.5, gradient.shape)
        assert np.sum(gradient * direction) == pytest.approx(
            slope_along(direction, scenario), rel=1e-7, abs=1e-8
        ), scenario.conventions.choices


# What a row holds constant in its gradient; of all others the objective itself can be differenced.
HOLDS_SOMETHING = {
    ("ratio", "sequence_token"),
    *(("surrogate", key) for key in ("cispo", "vespo", "dppo_tv", "dppo_kl")),
}
MOVING = [
    conventions
    for conventions in combinations(with_options=("ratio", "surrogate"))
    if not any((stage, conventions[stage].variant) in HOLDS_SOMETHING for stage in STAGES)
]


@pytest.mark.parametrize("key", sorted({c["surrogate"].variant for c in MOVING}))
def test_gradient_of_each_token_equals_differences_of_the_objective(key):
    # Advantages are constants of the update. They do not move here by themselves: a KL in the
    # reward is taken at logp_old.
    step = 1e-5
    for conventions in [c for c in MOVING if c["surrogate"].variant == key][::4]:
        scenario = edge_scenario(conventions)
        gradient = evaluate(scenario).gradient
        measured = np.zeros_like(gradient)
        for cell in zip(*np.nonzero(scenario.valid), strict=True):
            sides = []
            for sign in (1, -1):
                moved = scenario["logp_new"].copy()
                moved[cell] += sign * step
                sides.append(evaluate(scenario.replace(logp_new=moved)).objective)
            measured[cell] = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(
            gradient, measured, rtol=1e-7, atol=1e-8, err_msg=str(conventions.choices)
        )


def edge_under(**chosen):
    return evaluate(edge_scenario(Conventions.of(**chosen)))


def test_the_batch_meets_what_it_is_meant_to_meet():
    # Otherwise the tests above would pass without having tested clipping or padding.
    evaluation = edge_under(surrogate="dual_clip")
    scenario = evaluation.scenario
    for key in ("clipped_low", "clipped_high", "dual_clipped"):
        assert getattr(evaluation, key).any(), key
    band = (evaluation.ratio > 0.8) & (evaluation.ratio < 1.2)
    assert (band & scenario.valid).any()
    assert np.isnan(scenario["logp_new"][~scenario.valid]).any()
    assert np.isnan(scenario["rewards"][scenario["present"]]).any()
    assert (evaluation.lengths[scenario["present"]] == 0).any()
    assert not scenario["present"].all()


def test_the_terms_and_steps_meet_what_they_are_meant_to_meet():
    evaluation = edge_under(rewards="sum_then_normalize")
    scenario, present = evaluation.scenario, evaluation.scenario["present"]
    task, given, overlong, _ = evaluation.attribution.values
    assert (np.isnan(task) & np.isnan(given))[present].any()
    assert (np.isnan(task) != np.isnan(given))[present].any()
    assert {0.0, -1.0} < set(overlong[present].tolist())  # below, in and beyond the buffer
    assert not np.isfinite(scenario["token_rewards"][~scenario.valid]).all()
    ends = scenario["step_ends"][present]
    assert {0, 1, 3} <= set(np.sum(~np.isnan(ends), axis=-1).tolist())
    assert (np.diff(ends, axis=-1) == 0).any()
    assert np.isinf(scenario["step_ends"][~present]).any()
