"""The arrays as the stages see them: 0 wherever nothing counts, of one number type."""

import dataclasses

import numpy as np
import pytest

from grpo_core import ARRAYS
from grpo_core.batch import Batch, prepare
from tests.needed import MAKERS
from tests.reference.combinations import edge_scenario

OPTIONAL = [key for key, spec in ARRAYS.items() if not spec.required and spec.axes.startswith("PG")]


def prepared(dtype=np.float64, **more):
    scenario = edge_scenario(dtype=dtype)
    arrays = {key: array for key, array in scenario.arrays.items() if ARRAYS[key].axes[:2] == "PG"}
    return scenario, prepare(**{**arrays, **more})


def test_every_optional_array_of_a_batch_is_a_field_and_can_be_made_up():
    fields = {field.name for field in dataclasses.fields(Batch)}
    assert set(OPTIONAL) <= fields
    assert set(OPTIONAL) - {"term_values"} <= set(MAKERS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_garbage_where_nothing_counts_is_gone(dtype):
    scenario, batch = prepared(dtype)
    for key in (*OPTIONAL, "logp_new", "logp_old", "logp_ref"):
        array, spec = getattr(batch, key), ARRAYS[key]
        assert array.dtype == dtype, key
        counts = scenario.valid if spec.axes == "PGL" else scenario["present"]
        counts = counts.reshape(counts.shape + (1,) * (array.ndim - counts.ndim))
        rest = array[np.broadcast_to(~counts, array.shape)]
        filler = 0.0 if spec.required else spec.default
        np.testing.assert_array_equal(rest, np.full(rest.shape, filler, dtype), err_msg=key)
    assert np.isnan(batch.rewards[~scenario["present"]]).all()


def test_what_counts_is_taken_over_as_it_is():
    scenario, batch = prepared()
    for key in ("logp_sampler", "sampler_weights", "entropy", "token_advantages"):
        np.testing.assert_array_equal(
            getattr(batch, key)[scenario.valid], scenario[key][scenario.valid], err_msg=key
        )
    there = scenario["present"]
    np.testing.assert_array_equal(batch.truncated[there], scenario["truncated"][there])


def test_absent_arrays_stay_absent():
    _, batch = prepared(**dict.fromkeys(OPTIONAL))
    assert all(getattr(batch, key) is None for key in OPTIONAL)


def test_lengths_count_valid_tokens():
    scenario, batch = prepared()
    assert batch.lengths.tolist() == scenario.valid.sum(axis=-1).tolist()
