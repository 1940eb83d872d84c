"""Shaping terms: each formula by hand, at its corners, and what a term has to be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from grpo_core import TERMS, Choice, Conventions, ScenarioError, Term, build_scenario, evaluate
from grpo_core.terms import FORMULAS, NAME_LIMIT

NAN = np.nan
OPTIONS = [
    pytest.param(variant, option, id=f"{variant.key}.{option.key}")
    for variant in TERMS.values()
    for option in variant.options
]


def values(key, *, mask=None, lengths=None, columns=None, dtype=np.float64, arrays=None, **options):
    """Values of one term for the completions of one prompt, as attributed."""
    if lengths is not None:
        mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    given = dict(arrays or {})
    if columns is not None:
        given["term_values"] = np.array(columns, dtype)[:, None]
    if mask is not None:
        given["mask"] = np.array(mask)
    size = len(next(iter(given.values())))
    given.setdefault("rewards", np.zeros(size, dtype))
    scenario = build_scenario(
        terms=[Term("it", 1.0, Choice(key, options))],
        conventions=Conventions.of(rewards="sum_then_normalize"),
        **{name: np.array(array)[None] for name, array in given.items()},
    )
    return evaluate(scenario).attribution.values[1, 0]


@pytest.mark.parametrize("variant", TERMS.values(), ids=lambda variant: variant.key)
def test_each_formula_says_all_that_a_reader_needs(variant):
    for key in ("label", "formula", "source", "trl", "verl", "choose_when"):
        assert getattr(variant, key).strip(), key
    assert variant.choose_when.endswith(".")
    assert variant.formula.count("{") == variant.formula.count("}")
    assert TERMS[variant.key] is variant
    assert FORMULAS.variants is TERMS


@pytest.mark.parametrize(("variant", "option"), OPTIONS)
def test_each_option_of_a_formula_is_complete_and_its_default_allowed(variant, option):
    assert option.label.strip()
    assert option.help.endswith(".")
    assert option.default in option.domain
    assert variant.option(option.key) is option


@pytest.mark.parametrize(("variant", "option"), OPTIONS)
@pytest.mark.parametrize("bad", [None, True, "nonsense", float("nan"), -1e7, 10**400], ids=repr)
def test_a_value_outside_an_options_domain_is_refused_in_words(variant, option, bad):
    with pytest.raises(ScenarioError) as caught:
        Term("it", 1.0, Choice(variant.key, {option.key: bad}))
    assert str(caught.value).startswith(f"formula.{option.key} is ")
    assert f"wanted {option.domain}" in str(caught.value)


def test_given_values_pass_through_and_blank_stays_blank():
    assert_allclose(values("given", columns=[0.1, -3, NAN, 0]), [0.1, -3, NAN, 0], rtol=0)


def test_format_bonus_pays_for_every_flag_but_0_and_blank_stays_blank():
    computed = values("format_bonus", columns=[1, 0, NAN, -2], bonus=0.3, otherwise=-0.1)
    assert_allclose(computed, [0.3, -0.1, NAN, 0.3])


def test_linear_length_penalty_starts_beyond_the_free_tokens():
    # Free 2, 1 for every 4 more: 0 tokens and 2 cost nothing, 3 cost 1/4, 6 cost 1, 10 cost 2.
    computed = values("length_linear", lengths=[0, 2, 3, 6, 10], free=2, per=4)
    assert_allclose(computed, [0, 0, -0.25, -1, -2])


LIMITS = [0, 15, 16, 17, 18, 20, 21, 22]  # L = 20, c = 4: L - c = 16


def test_soft_overlong_penalty_is_held_at_the_limit():
    computed = values("overlong", lengths=LIMITS, limit=20, buffer=4)
    assert_allclose(computed, [0, 0, 0, -0.25, -0.5, -1, -1, -1])


def test_soft_overlong_penalty_may_go_on_beyond_the_limit():
    # (16 - 21) / 4 = -1.25 and (16 - 22) / 4 = -1.5
    computed = values("overlong", lengths=LIMITS, limit=20, buffer=4, beyond="continued")
    assert_allclose(computed, [0, 0, 0, -0.25, -0.5, -1, -1.25, -1.5])


@pytest.mark.parametrize(("beyond", "last"), [("held", -1), ("continued", -1.5)])
def test_soft_overlong_penalty_as_trl_and_verl_compute_it(beyond, last):
    # L 100, c 20: TRL's get_soft_overlong_punishment, and verl's DAPO reward manager (factor 1).
    computed = values("overlong", lengths=[80, 90, 100, 110], limit=100, buffer=20, beyond=beyond)
    assert_allclose(computed, [0, -0.5, -1, last])


COSINE_LENGTHS = [0, 4, 8, 12, 16]  # limit 8: cosine 1, 0, -1, 0, 1


@pytest.mark.parametrize(
    ("reward", "beyond", "expected"),
    [
        # Middle 0.75, half the way 0.25: 0.75 + 0.25 cos(pi n / 8).
        (1, "continued", [1, 0.75, 0.5, 0.75, 1]),
        (1, "held", [1, 0.75, 0.5, 0.5, 0.5]),
        (0, "continued", [-1, -0.75, -0.5, -0.75, -1]),
        (0, "held", [-1, -0.75, -0.5, -0.5, -0.5]),
    ],
)
def test_cosine_of_the_length_runs_between_its_corners(reward, beyond, expected):
    arrays = {"rewards": [float(reward)] * 5}
    computed = values(
        "cosine_length", lengths=COSINE_LENGTHS, arrays=arrays, limit=8, beyond=beyond
    )
    assert_allclose(computed, expected, atol=1e-15)


def test_cosine_takes_its_corners_from_its_options():
    corners = {"right_short": 3, "right_long": -1, "wrong_short": 0, "wrong_long": 7}
    arrays = {"rewards": [1.0, 1.0, 0.0, 0.0]}
    computed = values("cosine_length", lengths=[0, 8, 0, 8], arrays=arrays, limit=8, **corners)
    assert_allclose(computed, [3, -1, 0, 7], atol=1e-15)


def test_an_answer_is_right_above_the_threshold_and_wrong_without_a_reward():
    arrays = {"rewards": [0.5, 0.51, NAN, 0.0]}
    computed = values("cosine_length", lengths=[0, 0, 0, 1], arrays=arrays, limit=8)
    assert_allclose(computed[:3], [-1, 1, -1])


REPEATING = [[1, 2, 1, 2, 1]]


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, 2 / 5 - 1),  # 1 and 2, of five
        (2, 2 / 4 - 1),  # 12 and 21, of 12 21 12 21
        (3, 2 / 3 - 1),  # 121 and 212, of 121 212 121
        (4, 0),  # 1212 and 2121
        (5, 0),  # one n-gram is no repetition
        (6, 0),  # none at all
        (20, 0),
    ],
)
def test_repetition_is_the_share_of_n_grams_that_were_there_before(n, expected):
    computed = values("repetition", arrays={"token_ids": np.array(REPEATING)}, n=n)
    assert_allclose(computed, [expected], atol=1e-15)


def test_n_grams_span_masked_tokens_and_never_read_them():
    # 1 . 2 1 . 2 without the masked ones is 1 2 1 2: 12 21 12, two of three.
    ids = np.array([[1.0, NAN, 2, 1, np.inf, 2]])
    mask = np.array([[1, 0, 1, 1, 0, 1]])
    computed = values("repetition", mask=mask, arrays={"token_ids": ids}, n=2)
    assert_allclose(computed, [2 / 3 - 1])


def test_padding_and_other_completions_repeat_nothing():
    # Completion 0 is 0 0 0 and then padding of zeros: one of three. Completion 1 shares its ids
    # with 2 but repeats none of its own. Completion 3 is empty, completion 4 shorter than n.
    ids = np.array([[0, 0, 0, 0, 0], [1, 2, 3, 0, 0], [1, 2, 3, 4, 5], [7] * 5, [7] * 5])
    lengths = [3, 3, 5, 0, 1]
    one = values("repetition", lengths=lengths, arrays={"token_ids": ids}, n=1)
    assert_allclose(one, [1 / 3 - 1, 0, 0, 0, 0])
    two = values("repetition", lengths=lengths, arrays={"token_ids": ids}, n=2)
    assert_allclose(two, [1 / 2 - 1, 0, 0, 0, 0])


def test_n_grams_are_compared_whole():
    # 1 23, 12 3: no two bigrams are alike although their digits are.
    computed = values("repetition", arrays={"token_ids": np.array([[1, 23, 12, 3]])}, n=2)
    assert_allclose(computed, [0])


def test_rewards_per_token_are_summed_over_the_tokens_that_count():
    rewards = np.array([[1.0, 0.5, NAN], [np.inf, -1.0, 2.0]])
    mask = np.array([[1, 1, 0], [0, 1, 1]])
    computed = values("per_token", mask=mask, arrays={"token_rewards": rewards})
    assert_allclose(computed, [1.5, 1.0])


@pytest.mark.parametrize("key", ["length_linear", "overlong", "repetition"])
def test_no_penalty_is_no_negative_zero(key):
    arrays = {"token_ids": np.array([[1.0, 2.0], [1.0, 2.0]])}
    computed = values(key, lengths=[2, 1], arrays=arrays, **{"free": 5} if "linear" in key else {})
    assert computed.tolist() == [0, 0]
    assert not np.signbit(computed).any()


def test_an_absent_completion_has_no_value():
    arrays = {"present": np.array([1, 0])}
    computed = values("length_linear", lengths=[3, 3], arrays=arrays, free=0, per=1)
    assert_allclose(computed, [-3, NAN])


def test_values_come_in_the_batchs_number_type():
    third = values("given", columns=[1 / 3, 0], dtype=np.float32)[0]
    assert float(third) == float(np.float32(1 / 3)) != 1 / 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("",), "a term has no name; give it one"),
        (("  ",), "a term has no name"),
        ((None,), "a term has no name"),
        (("x" * (NAME_LIMIT + 1),), "has 41 characters; at most 40"),
        (("a", NAN), "the weight of term 'a' is nan; wanted a number of at least -1,000,000"),
        (("a", np.inf), "weight of term 'a' is inf"),
        (("a", 2e6), "and at most 1,000,000"),
        (("a", "1"), "weight of term 'a' is '1'"),
        (("a", None), "weight of term 'a' is None"),
        (("a", 1.0, Choice("length")), "formula: unknown variant 'length'; choose one of given"),
        (("a", 1.0, Choice("given", {"n": 2})), "formula.given has no option 'n'"),
    ],
)
def test_what_is_no_term_is_refused_in_words(arguments, words):
    with pytest.raises(ScenarioError) as caught:
        Term(*arguments)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_term_is_complete_and_equal_to_its_like():
    term = Term("a", np.float32(0.5), Choice("repetition"))
    assert type(term.weight) is float
    assert dict(term.formula.options) == {"n": 3}
    assert term == Term("a", 0.5, Choice("repetition", {"n": 3.0}))
    assert hash(term) == hash(Term("a", 0.5, Choice("repetition", {"n": 3})))
    assert term.variant is TERMS["repetition"]
    assert Term("a").formula == Term("a", 1.0, Choice("given")).formula
