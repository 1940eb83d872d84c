"""What ought to be 0 is shown as 0, and nothing else is."""

import numpy as np
import pytest

from grpo_core import build_scenario, evaluate
from pages._ui.settled import loss_of, mean_kl_of, settled


@pytest.mark.parametrize(
    ("value", "magnitudes", "shown"),
    [
        (-5.551e-17, 1.0, 0.0),
        (-5.551e-17, 1e-15, -5.551e-17),  # a small loss of small parts is a loss
        (1e-9, 1.0, 1e-9),
        (0.0, 0.0, 0.0),
        (np.inf, np.inf, np.inf),
        (2.0, np.inf, 2.0),  # parts of infinite size say nothing on rounding
    ],
)
def test_a_sum_that_is_only_the_rounding_of_its_parts_is_0(value, magnitudes, shown):
    assert settled(value, magnitudes) == shown


def test_what_is_no_number_stays_none():
    assert np.isnan(settled(np.nan, 1.0))


def test_advantages_that_add_up_to_0_give_a_loss_of_0():
    for rewards in ([0.3, 0.1, 0.2], [1, 0, 0], [0.7, 0.1, 0.1, 0.3]):
        evaluation = evaluate(build_scenario(rewards=[rewards]))
        assert loss_of(evaluation) == 0
        assert mean_kl_of(evaluation) == 0


def test_other_losses_and_kls_are_shown_as_they_are():
    old = np.full((1, 2, 2), -1.0)
    evaluation = evaluate(
        build_scenario(rewards=[[1, 0]], logp_new=old + 0.1, logp_old=old, logp_ref=old - 0.2)
    )
    assert loss_of(evaluation) == evaluation.loss
    assert mean_kl_of(evaluation) == evaluation.mean_kl
