"""Arrays as code: what conventions and terms read is written, and gives back the same bits."""

import numpy as np
import pytest

from grpo_core import Choice, Conventions, build_scenario, evaluate
from grpo_core.terms import Term
from pages._ui.export import script
from pages._ui.export_arrays import array_lines

NAN = np.nan


def scenario(**changes):
    """Two completions and an absent one, with steps and every array that a term may read."""
    arrays = {
        "rewards": [[1.0, NAN, 3.0]],
        "present": [[1, 1, 0]],
        "logp_new": np.full((1, 3, 4), -0.5),
        "logp_old": np.full((1, 3, 4), -0.75),
        "mask": [[[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]],
        "step_ends": [[[1, 3], [2, NAN], [9, 9]]],
        "step_rewards": np.float32([[[0.1, 0], [1, NAN], [9, 9]]]),
        "term_values": [[[1.0, NAN, 2.0], [0.1 + 0.2, NAN, 1.0], [9, 9, 9]]],
        "token_rewards": np.arange(12.0).reshape(1, 3, 4) / 8,
        "token_ids": [[[1, 2, 1, 2], [3, 3, 3, 0], [0, 0, 0, 0]]],
    }
    terms = (
        Term("format", 0.1),
        Term("tokens", -0.5, Choice("per_token")),
        Term("loops", 2.0, Choice("repetition", {"n": 2})),
    )
    return build_scenario(**{**arrays, "terms": terms, **changes})


def built(lines):
    scope = {"np": np}
    exec("\n".join(lines), scope)
    return scope


def test_what_conventions_and_terms_read_is_written_with_blanks_where_nothing_counts():
    found = built(array_lines(scenario(conventions=Conventions.of(advantage="process"))))
    expected = {
        "step_ends": [[[1, 3], [2, NAN], [NAN, NAN]]],
        "step_rewards": [[[np.float32(0.1), 0], [1, NAN], [NAN, NAN]]],
        "term_values": [[[1, NAN, 2], [0.1 + 0.2, NAN, 1], [NAN] * 3]],
        "token_rewards": [[[0, 0.125, 0.25, 0.375], [0.5, 0.625, 0.75, 0], [0] * 4]],
        "token_ids": [[[1, 2, 1, 2], [3, 3, 3, 0], [0] * 4]],
    }
    for key, array in expected.items():
        np.testing.assert_array_equal(found[key], array)


def test_arrays_are_written_in_the_type_in_which_the_batch_is_computed():
    mixed = scenario(conventions=Conventions.of(advantage="process"))
    single = mixed.replace(
        **{key: np.float32(mixed[key]) for key in ("rewards", "logp_new", "logp_old", "logp_ref")}
    )
    for given in (mixed, single):
        found = built(array_lines(given))
        dtype = evaluate(given).ratio.dtype
        for key in ("logp_new", "step_ends", "step_rewards", "term_values", "token_rewards"):
            assert found[key].dtype == dtype


def test_what_nothing_reads_is_not_written():
    lines = array_lines(scenario(terms=(), term_values=None))
    assert lines[0] == "# P = 1, G = 3, L = 4"
    assert not built(lines).keys() & {"step_ends", "step_rewards", "token_rewards", "token_ids"}


def test_terms_are_named_beside_the_sizes():
    lines = array_lines(scenario())
    assert lines[:4] == [
        "# P = 1, G = 3, L = 4, K = 3",
        "# term 0: 'format', weight 0.1, given values",
        "# term 1: 'tokens', weight -0.5, given per token",
        "# term 2: 'loops', weight 2.0, repetition of n-grams, n = 2",
    ]


@pytest.mark.parametrize("name", ["a\nraise SystemExit", 'x"""\u2028y', "\ud800", "\r#", "\\"])
def test_no_name_of_a_term_gets_out_of_its_comment(name):
    lines = array_lines(scenario(terms=[Term(name)], term_values=np.ones((1, 3, 1))))
    comments = [line for line in lines if line.startswith("# term")]
    assert len("\n".join(comments).splitlines()) == 1
    assert built(lines)["term_values"].shape == (1, 3, 1)
    "\n".join(lines).encode()


@pytest.mark.parametrize(
    "chosen",
    [
        {"advantage": "process"},
        {"rewards": "sum_then_normalize"},
        {"rewards": "normalize_then_sum"},
        {"rewards": "add_after", "advantage": "mean_only"},
    ],
    ids=str,
)
def test_a_script_gives_the_advantages_of_the_page(chosen, capsys):
    shaped = scenario(conventions=Conventions.of(**chosen))
    scope = {}
    exec(script(shaped), scope)
    result = evaluate(shaped)
    np.testing.assert_allclose(
        scope["results"]["token_advantages"], result.token_advantages, rtol=1e-12, atol=1e-12
    )
    assert "loss" in capsys.readouterr().out
