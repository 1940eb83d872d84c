"""Length: weights of tokens, the corners of std and 1/length, and the pull on length."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import DEFAULT_CONVENTIONS, STAGES, Conventions, ScenarioError, evaluate
from grpo_core.length import length_weights, weight_curves
from grpo_core.length_batches import with_lengths
from grpo_core.recipes import RECIPES, batch_pull, under_recipes
from grpo_core.stop_worlds import hunch_world, length_world
from grpo_core.stopping import CLOSED_FORMS, expected_update, pull, slopes
from grpo_core.stopping_trials import expected_objective, sampled_pull
from grpo_core.trials import by_count, judge
from tests.length_batches import length_scenario

FOUR = length_scenario([[2, 4, 4, 10]], [[1, 0, 1, 0]], width=16)


def under(aggregation, ddof=1, **options):
    return Conventions.of(
        advantage=("mean_std", {"ddof": ddof, "eps": 0}), aggregation=(aggregation, options)
    )


# --- weights -----------------------------------------------------------------------------


def test_known_weights_of_a_token():
    # Mean per completion: 1/(4 L); over all tokens: 1/20; constant: 1/(4 x 16).
    found = length_weights(evaluate(FOUR))
    assert_array_equal(found.lengths, [[2, 4, 4, 10]])
    assert_array_equal(found.right, [[True, False, True, False]])
    assert_array_equal(found.wrong, [[False, True, False, True]])
    token = {row.choice.variant: row.token[0] for row in found.rows}
    assert_allclose(token["completion_mean"], [1 / 8, 1 / 16, 1 / 16, 1 / 40])
    assert_allclose(token["token_mean"], [1 / 20] * 4)
    assert_allclose(token["constant"], [1 / 64] * 4)
    whole = {row.choice.variant: row.completion[0] for row in found.rows}
    assert_allclose(whole["completion_mean"], [0.25] * 4)
    assert_allclose(whole["token_mean"], [0.1, 0.2, 0.2, 0.5])
    assert_allclose(found.rows[0].push, found.rows[0].token * found.advantages)


def test_every_aggregation_has_a_row_and_one_is_chosen():
    found = length_weights(evaluate(FOUR))
    assert {row.choice.variant for row in found.rows} == set(STAGES["aggregation"].variants)
    assert sum(row.chosen for row in found.rows) == 1


def test_curves_pass_through_the_batch_as_it_is():
    evaluation = evaluate(FOUR)
    lengths, curves = weight_curves(evaluation, (0, 3))
    assert lengths.tolist() == list(range(1, 17))
    for row in length_weights(evaluation).rows:
        assert curves[row.label][9] == pytest.approx(row.token[0, 3])
    over_all = next(c for label, c in curves.items() if "all tokens" in label)
    assert_allclose(over_all, 1 / (10 + lengths))


def test_curves_of_some_aggregations_hold_the_chosen_one_too():
    chosen = FOUR.choose("aggregation", "token_sum")
    _, curves = weight_curves(evaluate(chosen), (0, 3), among={"constant"})
    assert list(curves) == [STAGES["aggregation"].variants[k].label
                            for k in ("constant", "token_sum")]  # fmt: skip


def test_equal_lengths_make_all_aggregations_equal_up_to_one_factor():
    scenario = length_scenario([[5, 5], [5, 5]], [[1, 0], [0.5, 1]])
    for row in length_weights(evaluate(scenario)).rows:
        assert_allclose(row.token, np.full((2, 2), row.token[0, 0]))
    token = {row.choice.variant: row.token[0, 0] for row in length_weights(evaluate(scenario)).rows}
    for same in ("completion_mean", "token_mean", "constant", "prompt_mean"):
        assert token[same] == pytest.approx(1 / 20)


def test_lengths_edit_the_mask_and_leave_untouched_ones_alone():
    holes = FOUR.replace(mask=FOUR["mask"][..., ::-1])  # padded on the left
    edited = with_lengths(holes, [[2, np.nan, 20, 10]])
    assert edited.sizes["L"] == 20
    assert_array_equal(np.sum(edited["mask"], axis=2), [[2, 4, 20, 10]])
    assert_array_equal(edited["mask"][0, 0, :16], holes["mask"][0, 0])
    assert edited["mask"][0, 2].all()


def test_a_blank_length_is_a_completion_that_is_not_there():
    scenario = length_scenario([[3, None], [1, 2]], [[1, None], [0, 1]])
    assert_array_equal(scenario["present"], [[True, False], [True, True]])
    assert_array_equal(evaluate(scenario).lengths, [[3, 0], [1, 2]])


# --- recipes -----------------------------------------------------------------------------


def test_the_four_corners_by_hand():
    # r = 1, 0, 1, 0: mean 0.5, std 0.5, so A = +-1 with the std and +-0.5 without.
    found = under_recipes(FOUR)
    corners = {result.recipe.corner: key for key, result in found.items() if result.recipe.corner}
    assert corners == {
        (True, True): "grpo",
        (False, True): "no_std",
        (True, False): "no_length",
        (False, False): "dr_grpo",
    }
    signs = np.array([[1, -1, 1, -1]])
    per_length = np.array([[1 / 8, 1 / 16, 1 / 16, 1 / 40]])
    for key, push in {
        "grpo": signs * per_length,
        "no_std": signs * per_length / 2,
        "no_length": signs / 64,
        "dr_grpo": signs / 128,
        "dapo": signs / 20,
    }.items():
        assert_allclose(found[key].push, push, rtol=1e-7)
    assert_allclose(found["grpo"].share, [[0.25] * 4])
    assert_allclose(found["dr_grpo"].share, [[0.1, 0.2, 0.2, 0.5]])


def test_recipes_keep_the_options_of_a_row_that_stays():
    base = Conventions.of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}))
    assert RECIPES["dapo"].applied(base)["advantage"].options["ddof"] == 1
    assert RECIPES["dr_grpo"].applied(base)["advantage"].variant == "mean_only"


def test_with_equal_lengths_taking_out_the_length_changes_only_the_size():
    found = under_recipes(length_scenario([[3, 3, 3]], [[1, 0, 0]]))
    assert_allclose(found["grpo"].share, found["no_length"].share)
    assert_allclose(found["no_std"].share, found["dr_grpo"].share)


def test_one_long_wrong_completion_takes_over_without_the_length():
    found = under_recipes(length_scenario([[4, 4, 4, 400]], [[1, 1, 0, 0]]))
    assert found["grpo"].share[0, 3] == pytest.approx(0.25)
    assert found["dr_grpo"].share[0, 3] > 0.97


# --- the pull of one batch ---------------------------------------------------------------


def test_the_pull_of_a_batch_by_hand():
    # s = 4/20 = 0.2. Under GRPO a completion of length n pushes the stop logit by
    # A/4 (1 - s n)/n: +.25 (.6)/2 = .075, -.25 (.2)/4 = -.0125, +.0125, -.25 (-1)/10 = +.025.
    # d(1/s)/dlogit = -(1-s)/s = -4.
    found = batch_pull(evaluate(FOUR.with_conventions(under("completion_mean", ddof=0))))
    assert found.stop == pytest.approx(0.2)
    assert_allclose(found.logit, [[0.075, -0.0125, 0.0125, 0.025]])
    assert (found.right, found.wrong) == pytest.approx((-4 * 0.0875, -4 * 0.0125))
    assert found.whole == pytest.approx(-0.4)


def test_a_tied_batch_and_one_without_tokens_pull_nowhere():
    for scenario in (
        length_scenario([[2, 9]], [[1, 1]]),
        length_scenario([[0, 0]], [[1, 0]], width=3),
        length_scenario([[1, 1]], [[1, 0]]),  # stops at once: no decision is left
    ):
        found = batch_pull(evaluate(scenario))
        assert (found.right, found.wrong, found.whole) == (0, 0, 0)


def test_a_constant_divisor_pulls_least_where_right_and_wrong_are_equally_long():
    scenario = length_scenario([[3, 9, 3, 9]], [[1, 1, 0, 0]])
    for key, result in under_recipes(scenario).items():
        assert result.pull.whole == pytest.approx(0, abs=1e-12), key


# --- the pull of a policy ----------------------------------------------------------------


@pytest.mark.parametrize(("p", "change"), [(0.25, 0.2492), (0.5, 0), (0.75, -0.2492)])
def test_known_drift_of_a_policy_that_knows(p, change):
    world = hunch_world(p, 0.1, width=400)
    found = pull(world, expected_update(world, under("completion_mean"), G=8))
    assert found.change == pytest.approx(change, abs=5e-5)
    assert found.change_right < 0 < found.change_wrong
    constant = pull(world, expected_update(world, under("constant"), G=8))
    assert (constant.change, constant.change_right, constant.change_wrong) == (0, 0, 0)


def test_averaging_over_more_completions_leaves_less_of_the_pull():
    # update = pq c h with h = -s ln s/(1-s) - s = .1558 per completion, .01245 over 8 of them
    # and .00142 over 64.
    world = hunch_world(0.25, 0.1, width=400)
    right, wrong = by_count(8, under("completion_mean"))
    assert wrong[0] == right[8] == 0
    chances = [np.exp(np.sum(np.log(np.arange(k + 1, 9))) - np.sum(np.log(np.arange(1, 9 - k))))
               * 0.25**k * 0.75 ** (8 - k) for k in range(9)]  # fmt: skip
    pqc = np.sum(np.array(chances) * np.arange(9) / 8 * right)
    assert pqc / (0.25 * 0.75) == pytest.approx(1.8953, abs=5e-5)
    s = 0.1
    h = -s * np.log(s) / (1 - s) - s
    for convention, prompts, expected, rel in (
        (under("completion_mean"), 1, h, 1e-9),
        (under("token_mean"), 1, 0.01245, 5e-4),
        (under("token_mean"), 8, 0.00142, 5e-3),
    ):
        update = expected_update(world, convention, prompts=prompts, G=8)
        assert_allclose(update / pqc, [-expected, expected], rtol=rel)


@pytest.mark.parametrize("aggregation", CLOSED_FORMS)
def test_without_information_the_expected_drift_is_zero(aggregation):
    for world in (
        length_world(0.1, np.full(60, 0.3)),
        hunch_world(0.3, 0.1, accuracy=0.5, width=60),
    ):
        found = pull(world, expected_update(world, under(aggregation), prompts=2, G=4))
        assert not found.update.any()
        assert (found.change, found.change_right, found.change_wrong) == (0, 0, 0)


def test_where_only_middling_answers_fail_a_mean_per_completion_pulls_the_wrong_way():
    rho = np.where((np.arange(1, 111) >= 2) & (np.arange(1, 111) <= 5), 0.1, 0.9)
    world = length_world(0.3, rho)
    updates = {
        key: expected_update(world, under(key, ddof=0), G=2)[0] * (110 if key == "constant" else 1)
        for key in CLOSED_FORMS
    }
    assert updates["constant"] == pytest.approx(-0.0337, abs=5e-5)
    assert updates["completion_mean"] == pytest.approx(0.0643, abs=5e-5)
    assert updates["token_mean"] == pytest.approx(0.0172, abs=5e-5)
    # With s0 at G = 2 the constant divisor follows the true gradient of the success rate.
    assert updates["constant"] == pytest.approx(slopes(world).by_rate[0])
    for key, better in (("constant", True), ("completion_mean", False), ("token_mean", False)):
        found = pull(world, expected_update(world, under(key, ddof=0), G=2))
        assert (found.change_rate > 0) == better
        assert (found.change > 0) == better


@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize("aggregation", CLOSED_FORMS)
def test_a_policy_that_is_always_right_or_never_is_not_moved(rate, aggregation):
    world = hunch_world(rate, 0.2, width=10)
    found = pull(world, expected_update(world, under(aggregation), G=4))
    assert not found.update.any()
    now = slopes(world)
    assert (now.right_length is None, now.wrong_length is None) == (rate == 0, rate == 1)


def test_expected_length_and_its_slope_under_geometric_stopping():
    # E L = 1/s, d E L / d logit = -(1-s)/s.
    found = slopes(length_world(0.25, np.full(300, 0.5)))
    assert found.length == pytest.approx(4)
    assert found.by_length[0] == pytest.approx(-3)
    assert found.by_rate[0] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("accuracy", [0.5, 0.8, 1.0])
def test_simulation_agrees_within_its_own_error(recipe, accuracy):
    conventions = RECIPES[recipe].applied(DEFAULT_CONVENTIONS)
    world = hunch_world(0.3, [0.2, 0.3], accuracy=accuracy, width=24)
    exact = pull(world, expected_update(world, conventions, prompts=2, G=4))
    found = sampled_pull(world, conventions, prompts=2, G=4, batches=300, seed=5)
    for field in ("update", "change", "change_right", "change_wrong", "change_rate"):
        off = np.abs(getattr(found.mean, field) - getattr(exact, field))
        assert np.all(off <= 4.5 * getattr(found.error, field) + 1e-12), field


# --- a policy small enough to enumerate --------------------------------------------------

SMALL = {
    "hunch": hunch_world(0.4, [0.3, 0.6], accuracy=0.8, width=3),
    "knows": hunch_world(0.25, 0.3, width=3),
    "length": length_world([0.2, 0.5, 0.3, 0.4], [0.9, 0.1, 0.3, 0.8]),
}


def moved(world, at, step):
    """The world with one stop logit moved."""
    stops = world.stops.copy()
    stops[at] = 1 / (1 + (1 - stops[at]) / stops[at] * np.exp(-step))
    return replace(world, stops=stops)


@pytest.mark.parametrize("key", SMALL)
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_gradient_is_the_slope_of_the_exact_expected_objective(key, recipe):
    world, conventions = SMALL[key], RECIPES[recipe].applied(DEFAULT_CONVENTIONS)
    _, gradient = expected_objective(world, conventions, G=2)
    exact = expected_update(world, conventions, G=2, shared=False)
    assert_allclose(gradient, exact, atol=1e-14)
    for at in np.ndindex(world.stops.shape):
        if at[1] == world.stops.shape[1] - 1:
            assert gradient[at] == 0  # the last position stops whatever its logit
            continue
        ends = [
            expected_objective(world, conventions, G=2, new=moved(world, at, step))[0]
            for step in (1e-4, -1e-4)
        ]
        assert (ends[0] - ends[1]) / 2e-4 == pytest.approx(gradient[at], abs=1e-8)


@pytest.mark.parametrize("key", SMALL)
def test_slopes_are_those_of_the_expected_lengths(key):
    world = SMALL[key]
    found = slopes(world, shared=False)
    pairs = {
        "length": "by_length",
        "right_length": "by_right_length",
        "wrong_length": "by_wrong_length",
        "rate": "by_rate",
    }
    for at in np.ndindex(world.stops[:, :-1].shape):
        up, down = slopes(moved(world, at, 1e-5)), slopes(moved(world, at, -1e-5))
        for value, slope in pairs.items():
            difference = (getattr(up, value) - getattr(down, value)) / 2e-5
            assert difference == pytest.approx(getattr(found, slope)[at], abs=1e-8)
    shared = slopes(world).by_length
    assert_allclose(shared, np.sum(found.by_length, axis=1))


@pytest.mark.parametrize("aggregation", CLOSED_FORMS)
def test_larger_groups_and_one_logit_for_all_positions(aggregation):
    world = SMALL["length"]
    _, gradient = expected_objective(world, under(aggregation), G=3)
    exact = expected_update(world, under(aggregation), G=3)
    assert_allclose(np.sum(gradient, axis=1), exact, atol=1e-14)


def test_every_aggregation_has_a_closed_form_or_is_simulated_only():
    assert set(CLOSED_FORMS) <= set(STAGES["aggregation"].variants)
    world = SMALL["knows"]
    for key in STAGES["aggregation"].variants:
        update = expected_update(world, under(key), G=2)
        assert (update is None) == (key not in CLOSED_FORMS)


@pytest.mark.parametrize("aggregation", ["completion_mean", "token_mean", "constant"])
@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_where_all_are_right_or_wrong_only_scores_without_a_baseline_push(aggregation, rate):
    world = hunch_world(rate, [0.3, 0.6], accuracy=0.9, width=3)
    assert world.rate == rate
    assert not expected_update(world, under(aggregation), G=2, shared=False).any()
    bare = under(aggregation).replace("advantage", "uncompared")
    exact = expected_update(world, bare, G=2, shared=False)
    assert_allclose(exact, expected_objective(world, bare, G=2)[1], atol=1e-12)


def test_the_constant_length_of_the_convention_divides():
    world = SMALL["length"]
    one, two = (expected_update(world, under("constant", length=n), G=3) for n in (5, 10))
    assert_allclose(one, 2 * two)


def every_choice():
    """Each row of each stage as it comes, and with each of its options at another value."""
    for stage in STAGES.values():
        for key, row in stage.variants.items():
            yield stage.key, key, {}
            for option in row.options:
                others = getattr(option.domain, "words", None)
                near = (0.5, 2, 3) if others is None else others
                values = [v for v in near if v != option.default and v in option.domain]
                yield from ((stage.key, key, {option.key: value}) for value in values)


@pytest.mark.parametrize("choice", list(every_choice()), ids=str)
def test_whatever_is_chosen_the_closed_form_is_right_or_there_is_none(choice):
    stage, key, options = choice
    if stage == "kl" or (stage == "advantage" and STAGES[stage].variants[key].needs):
        return  # no KL is part of the pull; given advantages are refused, see below
    world = length_world([0.4, 0.6], [0.3, 0.8])
    chosen = under("completion_mean").replace(stage, key, **options)
    exact = expected_update(world, chosen, G=2, shared=False)
    if exact is not None:
        assert_allclose(exact, expected_objective(world, chosen, G=2)[1], atol=1e-12)


BATCH_WIDE = {
    "batch": Conventions.of(advantage="batch_std"),
    "nonzero": Conventions.of(advantage="nonzero_scaled"),
    "lengths": Conventions.of(advantage="length_weighted"),
    "whitened": Conventions.of(whitening="tokens"),
    "completions": Conventions.of(rewards=("normalize_then_sum", {"batch_scale": "completion"})),
    "tokens": Conventions.of(rewards=("normalize_then_sum", {"batch_scale": "token"})),
}


@pytest.mark.parametrize("key", BATCH_WIDE)
def test_what_looks_beyond_a_group_is_not_judged_by_a_group_alone(key):
    with pytest.raises(ScenarioError, match="wanted advantages that follow from the rewards"):
        judge(np.eye(2), BATCH_WIDE[key])
    assert expected_update(SMALL["length"], BATCH_WIDE[key]) is None
    assert np.all(
        np.isfinite(sampled_pull(SMALL["length"], BATCH_WIDE[key], batches=4).mean.update)
    )


def test_every_row_that_looks_beyond_a_group_is_known():
    # Two groups judged together as each by itself, also where the other one has longer answers.
    for key, row in STAGES["advantage"].variants.items():
        if row.needs:
            continue
        chosen = Conventions.of(advantage=key)
        pair = length_scenario([[1, 2, 4], [3, 3, 1]], [[1, 0, 0], [1, 1, 0]])
        together = evaluate(pair.with_conventions(chosen)).advantages
        try:
            apart = judge(pair["rewards"], chosen)
        except ScenarioError:
            continue
        assert_allclose(apart, together, err_msg=key)
        assert_allclose(judge(pair["rewards"][:1], chosen), together[:1], err_msg=key)


def test_made_up_batches_do_without_what_only_a_run_records():
    recorded = Conventions.of(truncated="drop", selection="entropy", correction="sampler")
    plain, other = (
        sampled_pull(SMALL["length"], chosen, batches=4).mean.update
        for chosen in (DEFAULT_CONVENTIONS, recorded)
    )
    assert_array_equal(plain, other)


def test_advantages_held_within_a_limit_are_judged_so():
    # 1, 0, 0, 0: mean 1/4, std sqrt(3)/4, so sqrt(3) and -1/sqrt(3); held within 1.
    held = Conventions.of(whitening=("none", {"limit": 1.0}))
    assert_allclose(judge(np.eye(4)[:1], held), [[1, *[-1 / np.sqrt(3)] * 3]], rtol=1e-7)


# --- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: with_lengths(FOUR, [[1, 2]]), "lengths has shape (1, 2); expected (1, 4)"),
        (lambda: weight_curves(evaluate(FOUR), (0, 4)), "there is no completion 4 of prompt 0"),
        (lambda: weight_curves(evaluate(FOUR), (0, 0), [17]), "lengths at entry 0 is 17.0"),
        (lambda: hunch_world(1.1, 0.1), "rate is 1.1; wanted a number"),
        (lambda: hunch_world(0.5, 0), "stop at entry 0 is 0.0; wanted a number above 0"),
        (lambda: hunch_world(0.5, 0.1, accuracy=0.4), "accuracy is 0.4; wanted a number"),
        (lambda: hunch_world(0.5, [0.1] * 3), "stop has 3 numbers; wanted one or two"),
        (lambda: length_world(0.1, [0.5, 2]), "right at position 1 is 2.0; wanted a number"),
        (lambda: length_world([0.1] * 3, [0.5] * 2), "stop has 3 positions; expected 2"),
        (lambda: length_world(0.1, [0.5]), "right has 1 lengths; wanted 2 to 512"),
        (
            lambda: expected_objective(SMALL["length"], under("constant"), G=9),
            "8 outcomes in groups of 9 make 11440 groups; wanted at most 5000",
        ),
        (
            lambda: expected_update(hunch_world(0.5, 0.1, width=512), under("token_mean"), G=256),
            "256 answers of up to 512 tokens are too many",
        ),
        (
            lambda: sampled_pull(hunch_world(0.5, 0.1), under("constant"), batches=100_000),
            "100000 batches of 4 x 8 x 64 tokens are too many; wanted at most",
        ),
        (
            lambda: judge(np.eye(2), Conventions.of(advantage="given")),
            "advantage set to 'given', which reads advantages",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_its_place(call, message):
    with pytest.raises(ScenarioError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_a_new_policy_of_another_shape_is_refused():
    with pytest.raises(ScenarioError, match="new has stops of shape"):
        expected_objective(SMALL["length"], under("constant"), new=SMALL["knows"])
