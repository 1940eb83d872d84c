"""Laws of shaped and process rewards, each with the ways of combining for which it holds."""

import dataclasses

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from grpo_core import STAGES, Choice, Conventions, Term, build_scenario, evaluate
from grpo_core.attribution import spread_shares
from tests.property.scenarios import scenarios, values_of

some = settings(max_examples=60)
COMBINING = tuple(key for key in STAGES["rewards"].variants if key != "outcome")
# Eighths of small whole numbers: their sums are exact, so that laws can be.
EIGHTHS = st.integers(-40, 40).map(lambda whole: whole / 8)
BLANK = EIGHTHS | st.just(np.nan)


def rewards_rows(*keys):
    """A row of the rewards stage that combines, with drawn options; the task weight in eighths."""

    @st.composite
    def drawn(draw):
        variant = STAGES["rewards"].variants[draw(st.sampled_from(keys))]
        options = {option.key: draw(values_of(option)) for option in variant.options}
        return Choice(variant.key, {**options, "task_weight": draw(EIGHTHS)})

    return drawn()


ADVANTAGES = st.just(Choice("mean_only")) | st.builds(
    lambda ddof, eps: Choice("mean_std", {"ddof": ddof, "eps": eps}),
    st.sampled_from([0, 1]),
    st.sampled_from([0.0, 1e-8, 0.1]),
)
NO_EPS = st.sampled_from([0, 1]).map(lambda ddof: Choice("mean_std", {"ddof": ddof, "eps": 0.0}))


@st.composite
def shaped(draw, rewards, advantage=ADVANTAGES, cells=BLANK, tokens=True):
    """A batch with 1 to 3 terms, given per completion and, if asked for, one per token."""
    P, G, L = draw(st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4)))
    given_terms = draw(st.integers(1, 3))
    terms = [Term(f"given {k}", draw(EIGHTHS)) for k in range(given_terms)]
    if tokens and draw(st.booleans()):
        terms.append(Term("tokens", draw(EIGHTHS), Choice("per_token")))
    shape = (P, G, len(terms))
    return build_scenario(
        rewards=draw(npst.arrays(float, (P, G), elements=cells)),
        term_values=draw(npst.arrays(float, shape, elements=cells)),
        token_rewards=draw(npst.arrays(float, (P, G, L), elements=EIGHTHS)),
        mask=draw(npst.arrays(bool, (P, G, L))),
        terms=terms,
        conventions=Conventions({"rewards": draw(rewards), "advantage": draw(advantage)}),
    )


def reweighted(scenario, factor):
    """All weights, that of the task too, times a factor."""
    weight = scenario.conventions["rewards"].options["task_weight"]
    terms = [Term(term.name, factor * term.weight, term.formula) for term in scenario.terms]
    changed = scenario.choose("rewards", task_weight=factor * weight)
    return dataclasses.replace(changed, terms=terms)


def assert_close(left, right, size=1.0):
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9 * max(1.0, float(size)))


NONE_MISSING = {"cells": EIGHTHS, "tokens": False}


@some
@given(
    shaped(rewards_rows("sum_then_normalize", "normalize_then_sum"), **NONE_MISSING),
    st.integers(-50, 50),
    st.data(),
)
def test_a_constant_added_to_a_term_changes_nothing_before_normalising(scenario, constant, data):
    """Holds where terms are normalised, summed or each, and no value is missing."""
    values = scenario["term_values"].copy()
    values[..., data.draw(st.integers(0, values.shape[-1] - 1))] += constant
    plain, moved = evaluate(scenario), evaluate(scenario.replace(term_values=values))
    assert_close(moved.advantages, plain.advantages)
    assert_close(moved.attribution.parts, plain.attribution.parts)


@some
@given(shaped(rewards_rows("add_after"), **NONE_MISSING), st.integers(-50, 50))
def test_a_constant_added_to_a_term_shifts_what_is_added_after(scenario, constant):
    values = scenario["term_values"].copy()
    values[..., 0] += constant
    plain, moved = evaluate(scenario), evaluate(scenario.replace(term_values=values))
    assert_close(moved.advantages, plain.advantages + scenario.terms[0].weight * constant)


@some
@given(
    shaped(rewards_rows("sum_then_normalize"), NO_EPS),
    st.integers(-20, 10),
    st.sampled_from([1, -1]),
)
def test_scaling_all_weights_changes_nothing_where_the_sum_is_normalised(scenario, power, sign):
    """Holds without eps, missing values or not; by a power of two to the last bit."""
    plain, scaled = evaluate(scenario), evaluate(reweighted(scenario, sign * 2.0**power))
    np.testing.assert_array_equal(scaled.advantages, sign * plain.advantages)
    np.testing.assert_array_equal(scaled.attribution.shares, plain.attribution.shares)


@some
@given(shaped(rewards_rows("sum_then_normalize"), NO_EPS), st.floats(0.01, 100))
def test_scaling_all_weights_by_any_factor_changes_nothing_where_the_sum_is_normalised(
    scenario, factor
):
    plain, scaled = evaluate(scenario), evaluate(reweighted(scenario, factor))
    assume((plain.std > 0).all())  # a tie of sums may be lost in their rounding
    assert_close(scaled.advantages, plain.advantages)


@some
@given(shaped(st.just(Choice("normalize_then_sum", {"batch_scale": "none"}))), st.floats(0.01, 100))
def test_scaling_all_weights_scales_the_sum_of_normalised_terms(scenario, factor):
    """Holds with any eps, which belongs to each term by itself."""
    plain, scaled = evaluate(scenario), evaluate(reweighted(scenario, factor))
    assert_close(scaled.advantages, factor * plain.advantages, factor)


@st.composite
def attributed(draw):
    """Any batch whose advantages come from components: every formula, KL in the reward too."""
    rewards = draw(rewards_rows(*COMBINING))
    return draw(scenarios(rewards=rewards, advantage=draw(ADVANTAGES)))


@settings(max_examples=150)
@given(attributed())
def test_parts_add_up_to_the_advantages(scenario):
    """Holds for every way of combining."""
    found = evaluate(scenario)
    parts, single = found.attribution.parts, scenario["rewards"].dtype == np.float32
    size = max(1.0, float(np.abs(parts).max(initial=0)))
    tolerance = (1e-6 if single else 1e-12) * size
    np.testing.assert_allclose(parts.sum(axis=0), found.advantages, rtol=1e-6, atol=tolerance)
    assert not parts[:, ~scenario["present"]].any()


@settings(max_examples=150)
@given(attributed())
def test_shares_sum_to_1_or_are_all_0(scenario):
    """Holds for every way of combining."""
    found = evaluate(scenario)
    shares = found.attribution.shares
    for p in range(len(found.advantages)):
        if not shares[:, p].any():
            continue
        # Large shares of both signs come from terms that nearly cancel.
        assert abs(shares[:, p].sum() - 1) <= 1e-9 * max(1.0, np.abs(shares[:, p]).max())
    flat = np.ptp(np.where(found.scored, found.attribution.parts.sum(axis=0), 0), axis=1) == 0
    assert not shares[:, flat & found.scored.all(axis=1)].any()


@given(npst.arrays(float, (3, 2, 4), elements=EIGHTHS), npst.arrays(bool, (2, 4)), st.data())
def test_centring_and_scaling_a_group_change_no_share(parts, scored, data):
    shift = data.draw(npst.arrays(float, (3, 2, 1), elements=EIGHTHS))
    scale = 2.0 ** data.draw(st.integers(-30, 30))
    np.testing.assert_allclose(
        spread_shares(scale * (parts + shift), scored), spread_shares(parts, scored), atol=1e-9
    )


@some
@given(shaped(rewards_rows(*COMBINING)), st.data())
def test_the_order_of_the_terms_does_not_matter(scenario, data):
    """Holds for every way of combining."""
    order = np.array(data.draw(st.permutations(range(len(scenario.terms)))))
    terms = [scenario.terms[k] for k in order]
    moved = evaluate(scenario.with_terms(terms, scenario["term_values"][..., order]))
    plain = evaluate(scenario)
    size = np.abs(plain.advantages).max()
    assert_close(moved.advantages, plain.advantages, size)
    assert_close(moved.token_advantages, plain.token_advantages, size)
    rows = [0, *(1 + order)]
    assert_close(moved.attribution.parts, plain.attribution.parts[rows], size)
    assert [moved.attribution.names[k] for k in (0, 1)] == ["task", terms[0].name]


@some
@given(shaped(rewards_rows(*COMBINING)), st.data())
def test_permuting_completions_permutes_advantages_and_parts(scenario, data):
    """Holds for every way of combining; shares are of the group and stay."""
    order = np.array(data.draw(st.permutations(range(scenario.sizes["G"]))))
    arrays = {key: array[:, order] for key, array in scenario.arrays.items()}
    plain, moved = evaluate(scenario), evaluate(scenario.replace(**arrays))
    size = np.abs(plain.attribution.parts).max()
    assert_close(moved.advantages, plain.advantages[:, order], size)
    assert_close(moved.token_advantages, plain.token_advantages[:, order], size)
    assert_close(moved.attribution.parts, plain.attribution.parts[..., order], size)


@settings(max_examples=100)
@given(shaped(rewards_rows(*COMBINING)))
def test_returns_to_go_are_the_sum_at_a_completions_first_token(scenario):
    """Holds for every way of combining, and the last token answers for its own reward alone."""
    to_go = evaluate(scenario.choose("rewards", tokens="to_go"))
    summed = evaluate(scenario.choose("rewards", tokens="sum"))
    first = np.argmax(scenario.valid, axis=-1)[..., None]
    for key in ("advantages", "scores"):
        np.testing.assert_array_equal(getattr(to_go, key), getattr(summed, key))
    ahead = np.take_along_axis(to_go.token_advantages, first, axis=-1)
    np.testing.assert_array_equal(
        ahead, np.take_along_axis(summed.token_advantages, first, axis=-1)
    )
    if not any(term.formula.variant == "per_token" for term in scenario.terms):
        np.testing.assert_array_equal(to_go.token_advantages, summed.token_advantages)


@some
@given(shaped(rewards_rows("sum_then_normalize", "normalize_then_sum"), **NONE_MISSING))
def test_advantages_of_a_group_sum_to_zero_where_terms_are_normalised(scenario):
    """Holds before and each; a second scale over the batch need not keep a group's mean at 0."""
    options = scenario.conventions["rewards"].options
    assume(options.get("batch_scale", "none") == "none")
    found = evaluate(scenario)
    assert np.abs(found.advantages.sum(axis=1)).max() <= 1e-9 * max(1, np.abs(found.scores).max())


PROCESS = st.builds(
    lambda over, ddof, eps, weight: Choice(
        "process", {"over": over, "ddof": ddof, "eps": eps, "outcome_weight": weight}
    ),
    st.sampled_from(["group", "completion"]),
    st.sampled_from([0, 1]),
    st.sampled_from([0.0, 1e-8, 0.1]),
    st.sampled_from([0.0, 0.5, -2.0]),
)


@st.composite
def stepped(draw, weight=None):
    """Any batch under process supervision."""
    advantage = draw(PROCESS)
    if weight is not None:
        advantage = Choice("process", {**advantage.options, "outcome_weight": weight})
    return draw(scenarios(advantage=advantage, rewards=Choice("outcome")))


@settings(max_examples=100)
@given(stepped())
def test_step_advantages_of_a_group_sum_to_zero_at_the_first_token(scenario):
    """What the first tokens carry is the sum over all steps of the group, and the outcome's."""
    found = evaluate(scenario)
    assert np.abs(found.advantages.sum(axis=1, dtype=float)).max() <= 2e-5


@some
@given(stepped(weight=0.0))
def test_the_advantage_of_a_completion_is_that_of_its_first_token(scenario):
    """Where no later stage, and no KL in the returns, changes tokens alone."""
    given = scenario.choose("whitening", "none", limit=0.0).choose("kl", place="objective")
    found = evaluate(given.choose("tied", "keep").choose("truncated", "keep"))
    first = np.argmax(scenario.valid, axis=-1)[..., None]
    ahead = np.take_along_axis(found.token_advantages, first, axis=-1)[..., 0]
    np.testing.assert_allclose(ahead, found.advantages, rtol=1e-5, atol=1e-5)


@some
@given(stepped(weight=0.0), st.integers(-16, 16))
def test_a_constant_added_to_all_step_rewards_changes_nothing(scenario, constant):
    assume(scenario["rewards"].dtype == np.float64)
    eighths = np.round(8 * scenario["step_rewards"]) / 8
    plain = evaluate(scenario.replace(step_rewards=eighths))
    moved = evaluate(scenario.replace(step_rewards=eighths + constant))
    assert_close(moved.token_advantages, plain.token_advantages)


@some
@given(stepped(weight=0.0))
def test_the_sum_of_step_rewards_does_not_depend_on_what_else_is_scored(scenario):
    """Without a weight of the outcome, task rewards and terms do not enter."""
    other = scenario.replace(rewards=np.zeros_like(scenario["rewards"]))
    combined = evaluate(other.choose("rewards", "add_after"))
    plain = evaluate(scenario)
    np.testing.assert_array_equal(combined.token_advantages, plain.token_advantages)
    np.testing.assert_array_equal(combined.step_advantages, plain.step_advantages)


@some
@given(scenarios(rewards=Choice("sum_then_normalize")))
def test_penalties_are_never_positive_and_a_format_bonus_has_two_values(scenario):
    conventions = scenario.conventions.replace("advantage", "mean_only")
    found = evaluate(scenario.with_conventions(conventions)).attribution
    for term, values in zip(scenario.terms, found.values[1:], strict=True):
        known = values[~np.isnan(values)]
        if term.formula.variant in ("length_linear", "overlong", "repetition"):
            assert (known <= 0).all()
        if term.formula.variant == "repetition":
            assert (known > -1).all()
        if term.formula.variant == "format_bonus":
            assert len(set(known.tolist())) <= 2
