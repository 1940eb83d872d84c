"""Every combination of rows of STAGES: against plain loops, and gradients by finite differences."""

import numpy as np
import pytest

from grpo_core import STAGES, evaluate
from tests.reference import plain_loops
from tests.reference.combinations import combinations, edge_scenario, name

ROWS = combinations()
WITH_PLACES = combinations(with_options=("kl",))


def test_every_row_has_its_plain_version():
    for key, stage in STAGES.items():
        assert set(plain_loops.TABLES[key]) == set(stage.variants), key


@pytest.mark.parametrize("rows", ROWS, ids=name)
def test_core_equals_plain_loops(rows):
    # The rows of one id, under every combination of their options.
    for conventions in combinations_of_options(rows):
        evaluation = evaluate(edge_scenario(conventions))
        expected, sums = plain_loops.evaluate(evaluation.scenario)
        for key, cells in expected.items():
            dense = np.zeros(getattr(evaluation, key).shape)
            for cell, number in cells.items():
                dense[cell] = number
            np.testing.assert_allclose(
                getattr(evaluation, key), dense, rtol=1e-10, atol=1e-13, strict=True, err_msg=key
            )
        assert evaluation.objective == pytest.approx(sums["objective"], rel=1e-10, abs=1e-13)
        assert evaluation.mean_kl == pytest.approx(sums["mean_kl"], rel=1e-10, abs=1e-13)
        assert evaluation.loss == -evaluation.objective


def combinations_of_options(rows):
    every = combinations(with_options=tuple(STAGES))
    return [c for c in every if all(c[key].variant == rows[key].variant for key in STAGES)]


@pytest.mark.parametrize("conventions", WITH_PLACES, ids=name)
def test_gradient_equals_finite_differences(conventions):
    # Advantages are constants of the update. They do not move here by themselves: a KL in the
    # reward is taken at logp_old.
    scenario = edge_scenario(conventions)
    gradient = evaluate(scenario).gradient
    step = 1e-5
    measured = np.zeros_like(gradient)
    for cell in zip(*np.nonzero(scenario.valid), strict=True):
        sides = []
        for sign in (1, -1):
            moved = scenario["logp_new"].copy()
            moved[cell] += sign * step
            sides.append(evaluate(scenario.replace(logp_new=moved)).objective)
        measured[cell] = (sides[0] - sides[1]) / (2 * step)
    np.testing.assert_allclose(gradient, measured, rtol=1e-7, atol=1e-9)


def test_the_batch_meets_what_it_is_meant_to_meet():
    # Otherwise the two tests above would pass without having tested clipping or padding.
    conventions = next(c for c in ROWS if c["surrogate"].variant == "dual_clip")
    scenario = edge_scenario(conventions)
    evaluation = evaluate(scenario)
    for key in ("clipped_low", "clipped_high", "dual_clipped"):
        assert getattr(evaluation, key).any(), key
    band = (evaluation.ratio > 0.8) & (evaluation.ratio < 1.2)
    assert (band & scenario.valid).any()
    assert np.isnan(scenario["logp_new"][~scenario.valid]).any()
    assert np.isnan(scenario["rewards"][scenario["present"]]).any()
    assert (evaluation.lengths[scenario["present"]] == 0).any()
    assert not scenario["present"].all()
