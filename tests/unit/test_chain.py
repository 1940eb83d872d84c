"""The written-out chain recombines by hand to its last digit, for every variant and example."""

import ast
import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core import STAGES, Conventions, ScenarioError, Texts, build_scenario, evaluate
from grpo_core.terms import TERMS, Term
from grpo_core.variants import Choice
from pages._ui.arithmetic import Number, Square
from pages._ui.chain import WRITERS, as_text, chain
from pages._ui.chain_surrogate import SURROGATE_WRITERS
from pages._ui.chain_terms import TERM_WRITERS
from pages._ui.examples import load_examples
from pages._ui.sheet import Slope, Writer
from tests import made_up

INFINITY = Decimal("inf")

# What a step says that shows the core's number where its formula leads elsewhere.
CORES_OWN = re.compile("this is the core's|As the core computed it")

# By name in the chain: where the core keeps the same number.
CORE = {
    "A": "token_advantages",
    "log_ratio": "log_ratio",
    "ratio": "ratio",
    "s": "surrogate",
    "KL": "kl",
    "j": "per_token",
    "w": "weight",
    "contribution": "contribution",
    "g_s": "policy_gradient",
    "g_KL": "kl_gradient",
    "g": "gradient",
}


# ---- recombining by hand: an evaluator of the shown text that knows nothing of the chain


def by_hand(text):
    """Value of a shown formula, in decimal arithmetic with what is printed and no more."""
    with localcontext() as context:
        context.prec = 60
        context.Emax, context.Emin = 10**15, -(10**15)
        context.clear_traps()
        return compute(ast.parse(text, mode="eval").body, text)


def compute(node, text):
    def of(child):
        return compute(child, text)

    if isinstance(node, ast.Constant):
        return Decimal(ast.get_source_segment(text, node))
    if isinstance(node, ast.Name):
        assert node.id == "inf"
        return INFINITY
    if isinstance(node, ast.UnaryOp):
        assert isinstance(node.op, ast.USub)
        return -of(node.operand)
    if isinstance(node, ast.Call):
        return FUNCTIONS[node.func.id](*map(of, node.args))
    assert isinstance(node, ast.BinOp)
    return OPERATORS[type(node.op)](of(node.left), of(node.right))


def added(left, right):
    result = left + right
    return -INFINITY if result.is_nan() else result  # inf - inf, as in the core


def multiplied(left, right):
    return Decimal(0) if 0 in (left, right) else left * right  # 0 * inf, as in the core


OPERATORS = {
    ast.Add: added,
    ast.Sub: lambda left, right: added(left, -right),
    ast.Mult: multiplied,
    ast.Div: lambda left, right: left / right,
    ast.Pow: lambda left, right: left * left if right == 2 else None,
}
FUNCTIONS = {
    "exp": lambda value: value.exp(),
    "sqrt": lambda value: value.sqrt(),
    "min": min,
    "max": max,
    "clip": lambda value, low, high: min(max(value, low), high),
}


def digits(text):
    return len(re.sub(r"e.*|[-.]", "", text).lstrip("0"))


def assert_recombines(step):
    """The formula of a step, computed from its text, rounds to the value shown."""
    name, formula, value = step.text.split(" = ")
    assert (name, value) == (step.name, step.value)
    found, shown = by_hand(formula), by_hand(value)
    assert not found.is_nan(), step.text
    if shown.is_infinite():
        limit = Decimal("3.4e38") if "single" in step.note else Decimal("1.79e308")
        assert abs(found) > limit, step.text
        assert (found > 0) == (shown > 0), step.text
    elif shown == 0:
        sizes = [abs(by_hand(text)) for text in step.operands]
        largest = max((size for size in sizes if size.is_finite()), default=Decimal(1))
        assert abs(found) <= max(largest, Decimal("1e-300")) * Decimal("1e-3"), step.text
    else:
        # A value shown in full may have few digits; it has to agree to four all the same.
        places = Decimal(shown.as_tuple().exponent)
        places = min(places, Decimal(shown.adjusted() - 3)) if digits(value) < 4 else places
        last = Decimal((0, (1,), int(places)))
        with localcontext() as context:
            context.prec = 400
            assert found.quantize(last) == shown.quantize(last), step.text


def assert_agrees_with_the_core(steps, evaluation, where, tolerance=1e-9):
    """What is shown is the core's number, as far as it is shown."""
    assert {step.name for step in steps if step.name} >= set(CORE) - {"g_KL"}
    for step in steps:
        if step.name not in CORE:
            continue
        array = getattr(evaluation, CORE[step.name])
        wanted, shown = float(array[where]), float(step.value)
        # A difference that cancels is exact only beside the numbers it comes from.
        finite = np.abs(array[np.isfinite(array)], dtype=np.float64)
        scale = max(abs(wanted), 1e-4, 1e-4 * np.max(finite, initial=0.0))
        if np.isinf(wanted):
            assert shown == wanted, step.text
            continue
        rounding = 0.51 * 10.0 ** Decimal(step.value).as_tuple().exponent if shown else 0
        assert abs(shown - wanted) <= rounding + tolerance * scale, step.text


def assert_holds(evaluation, where, tolerance=1e-9, replaced=()):
    """All laws at one token. Only the numbers ``replaced`` stand there without their formula."""
    steps = chain(evaluation, where)
    for step in steps:
        if step.written and step.text.count(" = ") == 2:
            assert_recombines(step)
        assert step.name in replaced or not CORES_OWN.search(step.note), step
    if evaluation.valid[where]:
        assert_agrees_with_the_core(steps, evaluation, where, tolerance)
    return steps


def positions(evaluation, most=12):
    """Some positions of a batch, valid and not, spread evenly."""
    every = list(np.ndindex(evaluation.valid.shape))
    return every[:: max(len(every) // most, 1)]


# ---- laws


def test_every_variant_has_its_writer():
    assert set(WRITERS) == {(s, v) for s, stage in STAGES.items() for v in stage.variants}


@pytest.mark.parametrize("key", load_examples())
def test_every_example_recombines(key):
    evaluation = evaluate(load_examples()[key].scenario)
    for where in positions(evaluation, most=40):
        assert_holds(evaluation, where)


CHOICES = [
    st.sampled_from(["k1", "k2", "k3"]),
    st.sampled_from(["objective", "reward"]),
    st.floats(0, 2).map(lambda x: round(x, 3)),
    st.sampled_from(["mean_std", "mean_only", "given"]),
    st.sampled_from([0, 1]),
    st.sampled_from([0.0, 1e-8, 1e-4, 1.0]),
    st.sampled_from(["leave_out", "as_zero"]),
    st.sampled_from(["token", "sequence"]),
    st.sampled_from(["clip", "dual_clip"]),
    st.sampled_from(["completion_mean", "token_mean", "constant"]),
]


@st.composite
def conventions(draw):
    kl, place, beta, advantage, ddof, eps, missing, ratio, surrogate, aggregation = (
        draw(choice) for choice in CHOICES
    )
    options = {"ddof": ddof, "eps": eps} if advantage == "mean_std" else {}
    return Conventions.of(
        kl=(kl, {"beta": beta, "place": place}),
        advantage=(advantage, options),
        rewards=("outcome", {"missing": missing}),
        ratio=ratio,
        surrogate=surrogate,
        aggregation=aggregation,
    )


def logps(seed, shape):
    rng = np.random.default_rng(seed)
    values = -rng.exponential(1.0, shape)
    return np.where(rng.random(shape) < 0.5, np.round(values, 2), values)


@st.composite
def scenarios(draw):
    """Small batches: neat and long numbers, ties, missing rewards, holes, absent completions."""
    shape = draw(st.tuples(st.integers(1, 2), st.integers(1, 10), st.integers(1, 10)))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    pool = draw(
        st.sampled_from(
            [
                [0.0, 1.0],
                [0.1, 0.7, np.nan],
                [0.3],
                [0.1 + 0.2, 0.3],
                [1e8, 1e8 + 0.1],
                [-2.5, 1 / 3],
            ]
        )
    )
    rewards = rng.choice(pool, shape[:2])
    if draw(st.booleans()):
        rewards = rewards + rng.normal(size=shape[:2])
    return build_scenario(
        rewards=rewards,
        logp_new=logps(seed + 1, shape),
        logp_old=logps(seed + draw(st.sampled_from([1, 2])), shape),
        logp_ref=logps(seed + draw(st.sampled_from([1, 3])), shape),
        mask=rng.random(shape) < draw(st.sampled_from([0.6, 1.0])),
        present=rng.random(shape[:2]) < draw(st.sampled_from([0.8, 1.0])),
        advantages=rng.normal(size=shape[:2]),
        conventions=draw(conventions()),
        drift=draw(st.sampled_from([1.0, 0.5, 2.0])),
    )


@given(scenarios(), st.integers(0, 10**6))
def test_random_scenarios_recombine(scenario, pick):
    evaluation = evaluate(scenario)
    every = list(np.ndindex(evaluation.valid.shape))
    where = every[pick % len(every)]
    replaced = {"A"} if nearly_tied(evaluation, where[0]) else ()
    replaced = CORE if coarse(evaluation, where) else replaced
    assert_holds(evaluation, where, tolerance=1e-6, replaced=replaced)


def coarse(evaluation, where):
    """A deviation so small beside the scores that their rounding shows in its sixth digit."""
    p, g, _ = where
    largest = np.max(np.abs(evaluation.scores[p]))
    return 0 < abs(evaluation.scores[p, g] - evaluation.mean[p]) < 1e-9 * largest < np.inf


def nearly_tied(evaluation, p):
    """Scores that differ in their last bits only, which differ more in binary than as written."""
    scores = evaluation.scores[p][evaluation.scored[p]]
    return len(scores) > 0 and np.ptp(scores) < 1e-12 * np.max(np.abs(scores))


@given(scenarios(), st.integers(0, 10**6))
def test_a_number_reads_the_same_wherever_it_is_shown(scenario, pick):
    evaluation = evaluate(scenario)
    valid = np.argwhere(evaluation.valid).tolist()
    if not valid:
        return
    steps = chain(evaluation, tuple(valid[pick % len(valid)]))
    shown = {step.name: step.value for step in steps if step.name}
    used = {"s_free": ["A", "ratio"], "contribution": ["w", "j"]}
    if scenario.conventions["kl"].options["place"] == "objective":
        used |= {"j": ["s", "KL"], "g": ["g_s", "g_KL"]}
    for step in steps:
        for name in used.get(step.name, ()):
            assert shown[name] in step.operands, step.text


def short(scenario, where=(0, 0, 0)):
    return {step.name: step for step in chain(evaluate(scenario), where)}


def test_chain_worked_by_hand():
    # r = [1, 0, 0, 1]: mean 0.5, squares 4 x 0.25 = 1, std sqrt(1/4) = 0.5, A = 0.5 / 0.5 = 1
    # ratio e^0.1 = 1.105; KL 0, since new = ref; weight 1 / (4 x 1); eps 0 for round numbers.
    # The ratio needs a fifth digit: 0.25 x 1.105 would round to 0.2762, not to 0.2763.
    scenario = build_scenario(
        rewards=[[1, 0, 0, 1]],
        logp_new=[[[-0.9]] * 4],
        logp_old=[[[-1.0]] * 4],
        logp_ref=[[[-0.9]] * 4],
        conventions=Conventions.of(advantage=("mean_std", {"eps": 0.0})),
    )
    assert [step.text for step in chain(evaluate(scenario), (0, 0, 0))] == [
        "R = 1",
        "mean = (1 + 0 + 0 + 1) / 4 = 0.5",
        "Q = (1 - 0.5)**2 + (0 - 0.5)**2 + (0 - 0.5)**2 + (1 - 0.5)**2 = 1",
        "std = sqrt(1 / 4) = 0.5",
        "A = (1 - 0.5) / (0.5 + 0) = 1",
        "log_ratio = -0.9 - (-1) = 0.1",
        "ratio = exp(0.1) = 1.1052",
        "s_free = 1.1052 * 1 = 1.1052",
        "s_clip = clip(1.1052, 0.8, 1.2) * 1 = 1.1052",
        "s = min(1.1052, 1.1052) = 1.1052",
        "d = -0.9 - (-0.9) = 0",
        "KL = exp(0) - 0 - 1 = 0",
        "j = 1.1052 - 0.04 * 0 = 1.1052",
        "w = 1 / (4 * 1) = 0.25",
        "contribution = 0.25 * 1.1052 = 0.2763",
        "g_s = 0.25 * 1 * 1.1052 = 0.2763",
        "g_KL = -0.25 * 0.04 * (1 - exp(0)) = 0",
        "g = 0.2763 + 0 = 0.2763",
    ]


def test_sample_formula_shows_the_divisor_n_minus_1():
    steps = short(build_scenario(rewards=[[1, 0, 0, 1]]).choose("advantage", ddof=1))
    assert steps["std"].text.startswith("std = sqrt(1 / (4 - 1)) = ")
    assert "sample" in steps["std"].label


def test_equal_rewards_give_a_plain_zero_and_the_reason():
    steps = short(build_scenario(rewards=[[0.1, 0.1, 0.1]]))
    assert steps["mean"].text == "mean = (0.1 + 0.1 + 0.1) / 3 = 0.1"
    assert steps["A"].text == "A = 0"
    assert "equal" in steps["A"].note


@pytest.mark.parametrize("ddof", [0, 1])
def test_group_of_one_gives_zero_and_the_reason(ddof):
    steps = short(build_scenario(rewards=[[3.0]]).choose("advantage", ddof=ddof))
    assert steps["A"].text == "A = 0"
    assert "one score" in steps["A"].note


def test_nearly_tied_group_keeps_the_digits_it_needs():
    # 0.30000000000000004 against 0.3: only the last bit differs, and eps 0 blows it up to 1.
    scenario = build_scenario(rewards=[[0.1 + 0.2, 0.3]]).choose("advantage", eps=0.0)
    assert short(scenario)["A"].text == (
        "A = (0.30000000000000004 - 0.30000000000000002) / (2e-17 + 0) = 1"
    )


def test_nearly_tied_group_shows_what_the_core_makes_of_its_last_bit():
    # As written the scores differ by 4e-17, in binary by 5.55e-17: half of that over eps 1e-8.
    step = short(build_scenario(rewards=[[0.1 + 0.2, 0.3]]))["A"]
    assert step.text == "A = 2.776e-9"
    assert step.note == "Written out, the formula gives 2e−9; this is the core's number."


def test_rounding_noise_is_written_as_zero():
    scenario = build_scenario(rewards=[[1 / 3, 0.0, 2 / 3, 1 / 3 + 1e-16]])
    assert short(scenario)["A"].value == "0"


def test_missing_reward_gives_zero_and_the_reason():
    scenario = build_scenario(rewards=[[np.nan, 0, 1]], logp_new=[[[-1.0]] * 3])
    steps = chain(evaluate(scenario), (0, 0, 0))
    assert "no reward" in steps[0].note
    assert [step.text for step in steps if step.name == "A"] == ["A = 0"]
    assert {step.name for step in steps} >= {"ratio", "KL", "g"}
    assert "(0 + 1) / 2" in short(scenario, (0, 1, 0))["mean"].text
    counted = short(scenario.choose("rewards", missing="as_zero"))
    assert "(0 + 0 + 1) / 3" in counted["mean"].text
    assert "counts as 0" in counted["R"].note


def test_padding_ends_with_the_reason():
    mask = [[[1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 1]]]
    evaluation = evaluate(build_scenario(rewards=[[1, 0, 1, 0]], mask=mask))
    endings = {
        (0, 0, 2): "positions 0 to 1.",
        (0, 1, 0): "no token of this completion does.",
        (0, 2, 0): "position 1.",
        (0, 3, 1): "positions 0, 2.",
    }
    for where, ending in endings.items():
        last = chain(evaluation, where)[-1]
        assert last.note.endswith(ending)
        assert (last.text, last.latex, last.value) == ("", "", "")


def test_absent_completion_is_one_sentence():
    scenario = build_scenario(rewards=[[1.0, 0.0]], present=[[True, False]])
    (step,) = chain(evaluate(scenario), (0, 1, 0))
    assert step.note == "Prompt 0 has no completion 1."


@pytest.mark.parametrize("where", [(1, 0, 0), (0, 2, 0), (0, 0, 1), (-1, 0, 0)])
def test_a_place_that_is_not_there_is_refused(where):
    with pytest.raises(ScenarioError, match="there is no prompt"):
        chain(evaluate(build_scenario(rewards=[[1.0, 0.0]])), where)


def moved(ratio, rewards, **choice):
    """Two completions of one token whose first has the given ratio."""
    new = [[[-1.0 + np.log(ratio)], [-1.0]]]
    return build_scenario(
        rewards=[rewards],
        logp_new=new,
        logp_old=[[[-1.0], [-1.0]]],
        conventions=Conventions.of(**choice),
    )


def test_clipping_is_named_with_its_side_and_stops_the_gradient():
    cases = [
        (moved(1.5, [1, 0]), "Clipped: the ratio is above the band and A is positive."),
        (moved(0.5, [0, 1]), "Clipped: the ratio is below the band and A is negative."),
    ]
    for scenario, note in cases:
        steps = short(scenario)
        assert steps["s"].note == note
        assert steps["g_s"].text == "g_s = 0"
        assert "Clipped" in steps["g_s"].note


def test_ratio_outside_the_band_on_the_other_side_is_not_clipped():
    cases = [
        (moved(1.5, [0, 1]), "Not clipped: the ratio is above the band, but A is negative."),
        (moved(0.5, [1, 0]), "Not clipped: the ratio is below the band, but A is positive."),
        (moved(1.1, [1, 0]), ""),
    ]
    for scenario, note in cases:
        steps = short(scenario)
        assert steps["s"].note == note
        assert steps["g_s"].written


def test_dual_clip_shows_its_bound_where_it_can_hold():
    steps = short(moved(2.7, [0, 1], surrogate=("dual_clip", {"dual_clip": 2.0})))
    assert steps["s_dual"].text.startswith("s_dual = 2 * (-1")
    assert steps["s"].note.startswith("Dual clip")
    assert steps["g_s"].value == "0"
    assert "s_dual" not in short(moved(2.7, [1, 0], surrogate="dual_clip"))


def test_sequence_ratio_shows_sum_and_length_and_couples_the_gradient():
    # log-ratios 0.1, -0.2, 0.4: sum 0.3 over 3 tokens
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-0.9, -1.2, -0.6], [-1.0, -1.0, -1.0]]],
        logp_old=[[[-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]],
        conventions=Conventions.of(ratio="sequence", advantage="mean_only"),
    )
    steps = short(scenario, (0, 0, 1))
    assert steps["l_1"].text == "l_1 = -1.2 - (-1) = -0.2"
    assert steps["S"].text == "S = 0.1 + (-0.2) + 0.4 = 0.3"
    assert steps["log_ratio"].text == "log_ratio = 0.3 / 3 = 0.1"
    assert steps["G"].text.count("* 0.5") == 3
    assert " / 3 * " in steps["g_s"].text


def test_kl_in_the_reward_comes_first_and_has_no_gradient():
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-1.0, -1.0], [-1.0, -1.0]]],
        logp_ref=[[[-1.5, -0.5], [-1.0, -1.0]]],
        conventions=Conventions.of(kl=("k1", {"place": "reward", "beta": 0.5})),
    )
    steps = chain(evaluate(scenario), (0, 0, 0))
    # d = -1.5 + 1 = -0.5; k1 = 0.5; p = 0.25; the other token's p is -0.25
    assert [step.text for step in steps[:6]] == [
        "d = -1.5 - (-1) = -0.5",
        "KL = -(-0.5) = 0.5",
        "p = 0.5 * 0.5 = 0.25",
        "r = 1",
        "P = 0.25 + (-0.25) = 0",
        "R = 1 - 0 = 1",
    ]
    by_name = {step.name: step for step in steps}
    assert "g_KL" not in by_name
    assert by_name["g"].value == by_name["g_s"].value


def test_large_groups_and_long_completions_are_not_written_out():
    rng = np.random.default_rng(0)
    scenario = build_scenario(
        rewards=rng.normal(size=(1, 64)),
        logp_new=-rng.exponential(size=(1, 64, 20)),
        logp_old=-rng.exponential(size=(1, 64, 20)),
        conventions=Conventions.of(ratio="sequence", kl=("k1", {"place": "reward"})),
    )
    evaluation = evaluate(scenario)
    steps = {step.name: step for step in assert_holds(evaluation, (0, 5, 5))}
    for name, words in {"mean": "64 scores", "S": "20 tokens", "P": "20 tokens"}.items():
        assert not steps[name].written
        assert words in steps[name].note
    assert steps["A"].written


def test_overflow_is_infinite_and_says_so():
    inf = short(moved(1.0, [0, 1]).replace(logp_old=[[[-1000.0], [-1.0]]]))
    assert inf["ratio"].text == "ratio = exp(999) = inf"
    assert "double precision" in inf["ratio"].note
    assert inf["s"].value == "-inf"
    single = {
        key: np.array(array, np.float32)
        for key, array in moved(1.0, [0, 1]).arrays.items()
        if array.dtype == float
    }
    single["logp_old"] = np.array([[[-100.0], [-1.0]]], np.float32)
    assert "single precision" in short(build_scenario(**single))["ratio"].note


@pytest.mark.parametrize("kl", STAGES["kl"].variants)
@pytest.mark.parametrize("place", ["objective", "reward"])
@pytest.mark.parametrize("ratio", STAGES["ratio"].variants)
def test_infinite_log_probabilities_recombine(kl, place, ratio):
    inf = np.inf
    scenario = build_scenario(
        rewards=[[1, 0, 0.5]],
        logp_new=[[[-1, -inf, -inf], [-1, -1, -2], [-2, -1, -800]]],
        logp_old=[[[-1, -2, -inf], [-1, -inf, -2], [-2, -1, -1]]],
        logp_ref=[[[-inf, -2, -inf], [-1, -1, -inf], [-2, -1, -1]]],
        conventions=Conventions.of(kl=(kl, {"place": place}), ratio=ratio),
    )
    evaluation = evaluate(scenario)
    for where in np.ndindex(evaluation.valid.shape):
        assert_holds(evaluation, where)


def test_infinite_penalties_of_both_signs_make_the_score_minus_infinity():
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_old=[[[-1, -np.inf], [-1, -1]]],
        logp_ref=[[[-np.inf, -1], [-1, -1]]],
        conventions=Conventions.of(kl=("k1", {"place": "reward"})),
    )
    evaluation = evaluate(scenario)
    steps = {step.name: step for step in assert_holds(evaluation, (0, 0, 0))}
    assert evaluation.scores[0, 0] == -np.inf
    assert steps["P"].text == "P = inf"
    assert steps["R"].text == "R = 1 - inf = -inf"


@pytest.mark.parametrize(
    "rewards", [[1e200, -1e200, 3e200], [1.7e308, -1.7e308, 0], [1e-200, 2e-200, 0]]
)
@pytest.mark.parametrize("advantage", ["mean_std", "mean_only"])
def test_huge_and_tiny_rewards_recombine(rewards, advantage):
    scenario = build_scenario(rewards=[rewards]).choose("advantage", advantage)
    evaluation = evaluate(scenario)
    for g in range(3):
        assert_holds(evaluation, (0, g, 0))


@pytest.mark.parametrize("rewards", [[0.1] * 3, [1e200, -1e200, 0], [1e-200, 2e-200, 0]])
@pytest.mark.parametrize("eps", [0.0, 1e-8])
@pytest.mark.parametrize("tokens", [1, 30])
def test_whitening_recombines_at_the_edges(rewards, eps, tokens):
    whitened = Conventions.of(advantage="uncompared", whitening=("tokens", {"eps": eps}))
    policy = np.full((1, 3, tokens), -1.0)
    evaluation = evaluate(build_scenario(rewards=[rewards], logp_new=policy, conventions=whitened))
    for g in range(3):
        assert_holds(evaluation, (0, g, 0))


def test_drift_is_shown_as_a_step_of_its_own():
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-0.5], [-1.0]]],
        logp_old=[[[-1.0], [-1.0]]],
        drift=1.5,
    )
    # -1 + 1.5 x 0.5 = -0.25
    assert short(scenario)["new"].text == "new = -1 + 1.5 * (-0.5 - (-1)) = -0.25"
    held = build_scenario(
        rewards=[[1, 0]], logp_new=[[[-0.5], [-1.0]]], logp_old=[[[-1.0], [-1.0]]], drift=9.0
    )
    assert short(held)["new"].text == "new = 0"
    assert "held" in short(held)["new"].note


# ---- shaping terms and steps

SMALL = {
    "length_linear": {"free": 2, "per": 7.0},
    "overlong": {"limit": 6, "buffer": 4},
    "cosine_length": {"limit": 6.0},
    "repetition": {"n": 2},
}
SHAPED = [key for key in STAGES["rewards"].variants if key != "outcome"]

# Names of what is judged: nearly tied values differ more in binary than as they are written.
JUDGED = {"A", "A_i", "A_out", "A_out_i", "Z", *(f"A_{k}" for k in range(9))}


@st.composite
def shaped_conventions(draw):
    """Without eps 0: there a result may equal its own operand, which no last digit satisfies."""
    of = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    row = of(*SHAPED, "outcome")
    rewards = {"missing": of("leave_out", "as_zero")}
    if row != "outcome":
        rewards |= {"task_weight": of(1.0, 0.25, 0.0, -1.0), "tokens": of("to_go", "sum")}
    if row == "normalize_then_sum":
        rewards |= {"batch_scale": of("none", "completion", "token"), "batch_eps": of(1e-6, 1e-4)}
    judge = of("mean_std", "mean_only", "process", "given")
    options = {}
    if judge in ("mean_std", "process"):
        options = {"ddof": of(0, 1), "eps": of(1e-8, 1e-4, 1.0)}
    if judge == "process":
        options |= {"over": of("group", "completion"), "outcome_weight": of(0.0, 0.5, -2.0)}
    return Conventions.of(
        rewards=(row, rewards),
        advantage=(judge, options),
        kl=("k1", {"place": of("objective", "objective", "reward"), "beta": 0.5}),
        ratio=of("token", "sequence"),
    )


@st.composite
def shaped_scenarios(draw):
    """Batches with terms of all formulas, blanks, and steps: none, many, several at a token."""
    shape = draw(st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 10)))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    pool = draw(st.sampled_from([[0.0, 1.0], [0.1, 0.7, -1 / 3], [0.3], [1e8, 1e8 + 0.1]]))
    mask = rng.random(shape) < draw(st.sampled_from([0.6, 1.0]))
    present = rng.random(shape[:2]) < draw(st.sampled_from([0.8, 1.0]))
    keys = draw(st.lists(st.sampled_from(list(TERMS)), max_size=8))
    terms = tuple(
        Term(f"t{k}", float(rng.choice([1.0, 0.5, -0.25, 0.0])), Choice(key, SMALL.get(key, {})))
        for k, key in enumerate(keys)
    )
    blank = draw(st.sampled_from([0.0, 0.25]))
    some = lambda of, size: np.where(rng.random(size) < blank, np.nan, rng.choice(of, size))  # noqa: E731
    ends, rewards = ragged_steps(rng, mask & present[..., None], pool)
    return build_scenario(
        rewards=some(pool, shape[:2]),
        logp_new=logps(seed + 1, shape),
        logp_old=logps(seed + 2, shape),
        logp_ref=logps(seed + draw(st.sampled_from([1, 3])), shape),
        mask=mask,
        present=present,
        advantages=rng.normal(size=shape[:2]),
        terms=terms,
        term_values=some([0.0, 1.0, 0.5], (*shape[:2], len(terms))) if terms else None,
        token_rewards=rng.choice([0.0, 0.5, -0.25], shape),
        token_ids=rng.integers(0, 3, shape),
        step_ends=ends,
        step_rewards=rewards,
        conventions=draw(shaped_conventions()),
    )


def ragged_steps(rng, valid, pool):
    size = int(rng.choice([1, 3, 12]))
    ends = np.full((*valid.shape[:2], size), np.nan)
    for place in zip(*np.nonzero(valid.any(axis=-1)), strict=True):
        cells = np.sort(rng.choice(size, rng.integers(0, size + 1), replace=False))
        ends[(*place, cells)] = np.sort(rng.choice(np.flatnonzero(valid[place]), len(cells)))
    return ends, np.where(np.isnan(ends), np.nan, rng.choice(pool, ends.shape))


def excused(evaluation, where):
    """Names that may stand without their formula: where only rounding tells values apart."""
    noise = 1e-12 * max(1.0, np.nanmax(np.abs(evaluation.scenario["rewards"]), initial=0.0))
    if 0 < abs(evaluation.token_advantages[where]) < noise or coarse(evaluation, where):
        return {*CORE, *JUDGED}
    p = where[0]
    values = [evaluation.scores[p][evaluation.scored[p]]]
    if evaluation.attribution is not None:
        values += [each[p][~np.isnan(each[p])] for each in evaluation.attribution.weighted]
        values += [each[np.isfinite(each)] for each in (np.sum(evaluation.attribution.parts, 0),)]
    close = any(0 < np.ptp(v) < 1e-9 * np.max(np.abs(v)) for v in values if len(v))
    return JUDGED if close else ()


@given(shaped_scenarios(), st.integers(0, 10**6))
def test_random_terms_and_steps_recombine(scenario, pick):
    evaluation = evaluate(scenario)
    every = list(np.ndindex(evaluation.valid.shape))
    where = every[pick % len(every)]
    assert_holds(evaluation, where, tolerance=1e-6, replaced=excused(evaluation, where))


@given(shaped_scenarios(), st.integers(0, 10**6))
def test_a_components_number_reads_the_same_wherever_it_is_shown(scenario, pick):
    evaluation = evaluate(scenario)
    valid = np.argwhere(evaluation.valid).tolist()
    if not valid:
        return
    steps = {step.name: step for step in chain(evaluation, tuple(valid[pick % len(valid)]))}
    for name in ("R", "A", "Z"):
        for operand in steps[name].operands if name in steps else ():
            assert operand == "inf" or Decimal(operand).is_finite()
    judged = [name for name in steps if re.fullmatch(r"A_\d", name)]
    if "Z" in steps and steps["Z"].written:
        assert {steps[name].value for name in judged} <= set(steps["Z"].operands)
    if "R" in steps and steps["R"].written and "mean" in steps and steps["mean"].written:
        assert steps["R"].value in steps["mean"].operands


@pytest.mark.parametrize("row", SHAPED)
@pytest.mark.parametrize("judge", ["mean_std", "mean_only"])
def test_infinite_penalties_recombine_with_terms(row, judge):
    inf = np.inf
    scenario = build_scenario(
        rewards=[[1, 0, 0.5]],
        logp_new=[[[-1, -1], [-1, -1], [-2, -1]]],
        logp_ref=[[[-inf, -2], [-1, -1], [-2, -1]]],
        token_rewards=[[[0.5, 0], [0, 1], [0, 0]]],
        terms=(Term("a", 0.5, Choice("per_token")), Term("b", 0.25, Choice("length_linear"))),
        conventions=Conventions.of(rewards=row, advantage=judge, kl=("k3", {"place": "reward"})),
    )
    evaluation = evaluate(scenario)
    for where in np.ndindex(evaluation.valid.shape):
        assert_holds(evaluation, where)


@pytest.mark.parametrize("row", SHAPED)
def test_terms_in_single_precision_recombine(row):
    scenario = build_scenario(
        rewards=np.array([[0.1, 0.7, 0.3]], np.float32),
        logp_new=np.full((1, 3, 2), -1.0, np.float32),
        token_rewards=[[[0.1, 0.2], [0.3, 0], [0, -0.1]]],
        terms=(Term("a", 0.3, Choice("per_token")), Term("b", 0.1)),
        term_values=[[[0, 0.1], [0, 0.2], [0, 0.7]]],
        conventions=Conventions.of(rewards=row),
    )
    evaluation = evaluate(scenario)
    assert evaluation.ratio.dtype == np.float32
    for where in np.ndindex(evaluation.valid.shape):
        assert_holds(evaluation, where, tolerance=1e-5)


# GDPO's example: two groups of two, task and one term, lengths 1, 3, 2, 2.
TWO_GROUPS = {
    "rewards": [[0, 1], [0, 1]],
    "terms": (Term("second", 1.0),),
    "term_values": [[[0], [0]], [[0], [1]]],
    "mask": [[[1, 0, 0], [1, 1, 1]], [[1, 1, 0], [1, 1, 0]]],
}
SAMPLE = ("mean_std", {"ddof": 1, "eps": 1e-4})


def test_a_weighted_sum_worked_by_hand():
    # r = 1, f = 0.5, weights 2 and 0.4: R = 2 + 0.2 = 2.2; the others have 0.4 and 0
    scenario = build_scenario(
        rewards=[[1, 0, 0]],
        terms=(Term("format", 0.4),),
        term_values=[[[0.5], [1], [0]]],
        conventions=Conventions.of(
            rewards=("sum_then_normalize", {"task_weight": 2.0}), advantage="mean_only"
        ),
    )
    assert [step.text for step in chain(evaluate(scenario), (0, 0, 0))][:5] == [
        "r = 1",
        "f_1 = 0.5",
        "R = 2 * 1 + 0.4 * 0.5 = 2.2",
        "mean = (2.2 + 0.4 + 0) / 3 = 0.8667",
        "A = 2.2 - 0.8667 = 1.3333",
    ]


def test_components_judged_alone_worked_by_hand():
    # task: mean 0.5, squares 0.5, std sqrt(0.5 / 1) = 0.7071; A_0 = 0.5 / 0.7072 = 0.7070
    scenario = build_scenario(
        **TWO_GROUPS,
        conventions=Conventions.of(rewards="normalize_then_sum", advantage=SAMPLE),
    )
    steps = short(scenario, (0, 1, 0))
    assert steps["A_0"].text == "A_0 = (1 - 0.5) / (0.7071 + 0.0001) = 0.7070"
    assert steps["A_1"].text == "A_1 = 0"
    assert steps["A_1"].note.startswith("All values of the group are equal")
    assert steps["A"].text == "A = 1 * 0.7070 + 1 * 0 = 0.7070"
    assert "R" not in steps


@pytest.mark.parametrize(
    ("scale", "wanted"),
    [
        ("completion", [-0.5477, 0.5477, -1.0954, 1.0954]),
        ("token", [-0.7489, 0.4494, -1.3481, 1.0485]),
    ],
)
def test_scales_of_the_batch_give_gdpos_numbers(scale, wanted):
    rewards = ("normalize_then_sum", {"batch_scale": scale})
    scenario = build_scenario(
        **TWO_GROUPS, conventions=Conventions.of(rewards=rewards, advantage=SAMPLE)
    )
    evaluation = evaluate(scenario)
    found = []
    for p, g in np.ndindex(2, 2):
        steps = {step.name: step for step in assert_holds(evaluation, (p, g, 0))}
        assert steps["mean_Z"].written
        found.append(float(steps["A"].value))
    np.testing.assert_allclose(found, wanted, atol=6e-4)  # shown with four digits
    np.testing.assert_allclose(evaluation.advantages.ravel(), wanted, atol=6e-5)


def test_terms_added_after_normalising_worked_by_hand():
    # the task: 1 against 0: A_0 = 0.5 under 'minus mean'; then 0.4 x 0.5 = 0.2 on top
    scenario = build_scenario(
        rewards=[[1, 0]],
        terms=(Term("format", 0.4), Term("blank", 3.0)),
        term_values=[[[0.5, np.nan], [0, 1]]],
        conventions=Conventions.of(rewards="add_after", advantage="mean_only"),
    )
    steps = short(scenario)
    assert steps["A_0"].text == "A_0 = 1 - 0.5 = 0.5"
    assert steps["A"].text == "A = 0.5 + 0.4 * 0.5 = 0.7"
    missing = [step.note for step in chain(evaluate(scenario), (0, 0, 0)) if "blank" in step.label]
    assert missing == ["It is missing here, and adds nothing."]
    counted = short(scenario.choose("rewards", missing="as_zero"))
    assert counted["f_2"].note == "It is missing here, and counts as 0."
    assert counted["A"].text == "A = 0.5 + 0.4 * 0.5 + 3 * 0 = 0.7"


def test_returns_to_go_take_off_what_was_earned_before_the_token():
    # rewards 0.5, 0, 0.25 of its tokens; R = 1 + 0.75, the other's is 0: A_i = 0.875
    base = {
        "rewards": [[1, 0]],
        "token_rewards": [[[0.5, 0, 0.25], [0, 0, 0]]],
        "terms": (Term("dense", 1.0, Choice("per_token")),),
    }
    chosen = Conventions.of(rewards="sum_then_normalize", advantage="mean_only")
    scenario = build_scenario(**base, conventions=chosen)
    steps = short(scenario, (0, 0, 2))
    assert steps["f_1"].text == "f_1 = 0.5 + 0 + 0.25 = 0.75"
    assert steps["A_i"].text == "A_i = 1.75 - 0.875 = 0.875"
    assert steps["b_1"].text == "b_1 = 0.5 + 0 = 0.5"
    assert steps["A"].text == "A = 0.875 - 1 * 0.5 = 0.375"
    assert short(scenario)["b_1"].text == "b_1 = 0"
    summed = short(scenario.choose("rewards", tokens="sum"), (0, 0, 2))
    assert summed["A"].value == "0.875"
    assert "A_i" not in summed


@pytest.mark.parametrize("row", SHAPED)
def test_a_completion_of_which_nothing_is_known_is_left_out(row):
    scenario = build_scenario(
        rewards=[[np.nan, 1, 0]],
        terms=(Term("a", 0.5),),
        term_values=[[[np.nan], [1], [0]]],
        conventions=Conventions.of(rewards=row),
    )
    steps = assert_holds(evaluate(scenario), (0, 0, 0))
    assert any("no reward and no term" in step.note for step in steps)
    (advantage,) = [step for step in steps if step.name == "A"]
    assert advantage.text == "A = 0"
    assert "nothing to compare" in advantage.note


def test_every_formula_of_a_term_has_its_writer():
    assert set(TERM_WRITERS) == set(TERMS)


# One completion of 5 tokens, the reward 1, column 1, token ids 0 1 0 1 2, token rewards 0.5 each.
WRITTEN = {
    "given": ({}, "f_1 = 1"),
    "format_bonus": ({"bonus": 0.3}, "f_1 = 0.3"),
    "length_linear": ({"free": 2, "per": 6.0}, "f_1 = -max(5 - 2, 0) / 6 = -0.5"),
    "overlong": (
        {"limit": 6, "buffer": 4},
        "f_1 = -min(max((5 - (6 - 4)) / 4, 0), 1) = -0.75",
    ),
    # a half cosine at its middle: 2.5 of 5 tokens would be half; 5 of 10 is half
    "cosine_length": ({"limit": 10.0}, "f_1 = 0.5 + (1 - 0.5) * 0.5 = 0.75"),
    # n-grams 01 10 01 12: three distinct of four
    "repetition": ({"n": 2}, "f_1 = -(1 - 3 / 4) = -0.25"),
    "per_token": ({}, "f_1 = 0.5 + 0.5 + 0.5 + 0.5 + 0.5 = 2.5"),
}


@pytest.mark.parametrize("key", TERMS)
def test_every_formula_is_written_with_its_numbers(key):
    options, wanted = WRITTEN[key]
    scenario = build_scenario(
        rewards=[[1, 0]],
        terms=(Term("a", 1.0, Choice(key, options)),),
        term_values=[[[1], [0]]],
        token_ids=[[[0, 1, 0, 1, 2]] * 2],
        token_rewards=[[[0.5] * 5] * 2],
        conventions=Conventions.of(rewards="sum_then_normalize"),
    )
    step = short(scenario)["f_1"]
    assert step.text == wanted
    assert TERMS[key].label in step.label


def test_an_overlong_penalty_that_goes_on_is_written_without_its_floor():
    options = {"limit": 3, "buffer": 2, "beyond": "continued"}
    scenario = build_scenario(
        rewards=[[1, 0]],
        mask=[[[1] * 5] * 2],
        terms=(Term("a", 1.0, Choice("overlong", options)),),
        conventions=Conventions.of(rewards="sum_then_normalize"),
    )
    assert short(scenario)["f_1"].text == "f_1 = -max((5 - (3 - 2)) / 2, 0) = -2"


def test_a_formula_without_a_writer_shows_its_value(monkeypatch):
    monkeypatch.delitem(TERM_WRITERS, "length_linear")
    scenario = build_scenario(
        rewards=[[1, 0]],
        terms=(Term("a", 1.0, Choice("length_linear", {"per": 4.0})),),
        conventions=Conventions.of(rewards="sum_then_normalize"),
    )
    step = short(scenario)["f_1"]
    assert (step.text, step.written) == ("f_1 = -0.25", False)


def test_many_components_are_summed_and_not_written_out():
    scenario = build_scenario(
        rewards=[[1, 0]],
        terms=tuple(Term(f"t{k}", 0.5) for k in range(12)),
        term_values=np.arange(24).reshape(1, 2, 12) / 10,
        conventions=Conventions.of(rewards="sum_then_normalize"),
    )
    steps = {step.name: step for step in assert_holds(evaluate(scenario), (0, 0, 0))}
    assert not steps["R"].written
    assert steps["R"].note == "R is the score: the weighted sum."


NAMES = [
    "a|b",
    "$x$",
    "**b**",
    "<b>",
    "a\nb",
    ":red[x]",
    "[l](http://x.org)",
    "\\",
    "`c`",
    "x\u202ey",
    "www.x.org",
    "a@b.org",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", SHAPED)
def test_names_of_terms_are_shown_and_never_obeyed(name, row):
    scenario = build_scenario(
        rewards=[[1, 0]],
        token_rewards=[[[0.5, 0], [0, 0]]],
        terms=(Term(name, 1.0, Choice("per_token")),),
        conventions=Conventions.of(rewards=row),
    )
    steps = chain(evaluate(scenario), (0, 0, 1))
    for step in steps:
        bare = re.sub(r"\\\\|\\[!-/:-@\[-`{-~]", "", step.label + step.note)
        assert not set("|$*<>`[]_\n\u202e\\") & set(bare), step.label
        assert not re.search("://|www\\\\?[.]|@\\w", step.label + step.note)  # would be links
        assert name not in step.latex + step.text or len(name) == 1
    plain = {"a\nb": "a↵b", "x\u202ey": "x\\u202ey"}.get(name, name)
    assert f"“{plain}”" in as_text(steps)


def steps_scenario(rewards, ends, L=3, outcome=None, **options):
    """One prompt's steps, nested lists per completion."""
    size = max(1, *map(len, ends))
    padded = [[[*row, *[np.nan] * (size - len(row))] for row in rows] for rows in (rewards, ends)]
    return build_scenario(
        rewards=[outcome or [0] * len(ends)],
        mask=np.ones((1, len(ends), L)),
        step_rewards=[padded[0]],
        step_ends=[padded[1]],
        conventions=Conventions.of(advantage=("process", {"eps": 0.0, **options})),
    )


def test_process_advantage_worked_by_hand():
    # pool 1, 0, 1, 0, 0: mean 0.4, squares 2 x 0.36 + 3 x 0.16 = 1.2, std sqrt(0.24) = 0.4899;
    # z = 0.6 / 0.4899 = 1.2247 and -0.4 / 0.4899 = -0.8165. Token 1: steps 1 and 2.
    scenario = steps_scenario([[1, 0, 1], [0, 0]], [[0, 1, 2], [0, 2]])
    steps = short(scenario, (0, 0, 1))
    assert steps["mean_step"].text == "mean_step = (1 + 0 + 1 + 0 + 0) / 5 = 0.4"
    assert steps["std_step"].text == "std_step = sqrt(1.2 / 5) = 0.4898979"
    assert steps["z_1"].text == "z_1 = (0 - 0.4) / (0.4898979 + 0) = -0.816497"
    assert steps["z_2"].text == "z_2 = (1 - 0.4) / (0.4898979 + 0) = 1.224745"
    assert steps["A"].text == "A = -0.816497 + 1.224745 = 0.40825"
    assert "z_0" not in steps
    assert steps["z_2"].label == "step 2, which ends at token 2"
    assert "its weight is 0" in steps["A"].note


def test_process_advantage_with_the_outcome_and_within_a_completion():
    scenario = steps_scenario(
        [[1, 0], [0]], [[0, 2], [1]], outcome=[1, 0], over="completion", outcome_weight=0.5
    )
    steps = short(scenario, (0, 0, 0))
    assert steps["mean_step"].label == "mean of the completion's 2 step rewards"
    assert steps["A_out"].text == "A_out = (1 - 0.5) / (0.5 + 0) = 1"
    assert steps["A"].text == "A = 1 + (-1) + 0.5 * 1 = 0.5"
    other = short(scenario, (0, 1, 0))
    assert other["A"].text == "A = 0.5 * (-1) = -0.5"
    assert other["A"].note == "One step reward has nothing to compare it with, and counts 0."


def test_tokens_and_completions_without_steps_say_so():
    scenario = steps_scenario([[1, 0], []], [[0, 1], []])
    after, none = short(scenario, (0, 0, 2))["A"], short(scenario, (0, 1, 0))["A"]
    assert (after.text, none.text) == ("A = 0", "A = 0")
    assert after.note.startswith("No step ends at or after this token.")
    assert none.note.startswith("The completion has no step.")


def test_equal_step_rewards_give_a_plain_zero_and_the_reason():
    step = short(steps_scenario([[0.1, 0.1], [0.1]], [[0, 1], [0]]))["A"]
    assert step.text == "A = 0"
    assert step.note.startswith("All step rewards of the group are equal")


def test_many_steps_are_not_written_out():
    rewards = [[float(j % 3) for j in range(12)], [1.0]]
    scenario = steps_scenario(rewards, [list(range(12)), [0]], L=12)
    steps = {step.name: step for step in assert_holds(evaluate(scenario), (0, 0, 1))}
    assert not steps["A"].written
    assert "summed over 11 steps" in steps["A"].label
    assert "z_1" not in steps
    few = {step.name: step for step in assert_holds(evaluate(scenario), (0, 0, 8))}
    assert few["A"].written
    assert {"z_8", "z_9", "z_10", "z_11"} <= set(few)


def test_the_outcome_of_a_process_may_be_combined_from_terms():
    scenario = steps_scenario([[1], [0]], [[0], [1]], outcome=[1, 0], outcome_weight=1.0).replace(
        token_rewards=np.array([[[0.5, 0, 0], [0, 0, 0]]])
    )
    scenario = scenario.with_terms((Term("dense", 1.0, Choice("per_token")),))
    for row in SHAPED:
        evaluation = evaluate(scenario.choose("rewards", row))
        steps = {step.name: step for step in assert_holds(evaluation, (0, 0, 1))}
        assert steps["A_out_i"].written
        assert steps["A_out"].label == "advantage by the outcome, at this token"


# ---- rows that nothing but the table knows, and formulas that go astray


def with_row(monkeypatch, stage, row, **more):
    """A rough batch under a made-up row: padding, a missing reward, ratios all over the band."""
    made_up.add(monkeypatch, stage, row)
    rng = np.random.default_rng(1)
    old, moved = -rng.exponential(1.0, (2, 4, 5)) - 0.5, rng.normal(0, 0.4, (2, 4, 5))
    return build_scenario(
        rewards=[[1, 0, np.nan, 0.25], [0.5, -1, 0.5, 2]],
        logp_old=old,
        logp_new=np.minimum(old + moved, 0),
        logp_ref=np.minimum(old - moved / 2, 0),
        mask=np.arange(5) < rng.integers(2, 6, (2, 4, 1)),
        conventions=Conventions.of(**{stage: row.key}, **more),
    )


@pytest.mark.parametrize(("stage", "row"), made_up.ROWS, ids=made_up.NAMES)
@pytest.mark.parametrize("ratio", STAGES["ratio"].variants)
def test_a_row_without_a_writer_shows_its_formula_and_the_cores_numbers(
    monkeypatch, stage, row, ratio
):
    more = {} if stage == "ratio" else {"ratio": ratio}
    evaluation = evaluate(with_row(monkeypatch, stage, row, **more))
    for where in np.ndindex(evaluation.valid.shape):
        steps = assert_holds(evaluation, where)
        named = [step for step in steps if row.label in step.note]
        if not evaluation.valid[where] and stage not in ("rewards", "advantage"):
            assert not named
            continue
        (formula,) = named
        assert not formula.written
        assert "|" not in formula.latex
        assert formula.latex.replace(r"\vert ", "|").endswith(row.formula)
        own = steps[steps.index(formula) + 1]
        assert not own.written


def test_a_kl_row_may_have_other_options_than_ours(monkeypatch):
    rows = {row.key: row for _, row in made_up.ROWS}
    loss = {
        s.name: s for s in chain(evaluate(with_row(monkeypatch, "kl", rows["quartic"])), (0, 0, 0))
    }
    assert loss["j"].operands == (loss["s"].value, loss["p"].value)
    reward = chain(evaluate(with_row(monkeypatch, "kl", rows["in_reward"])), (0, 0, 0))
    names = [step.name for step in reward]
    assert names.index("p") < names.index("R") < names.index("s")
    assert "g_KL" not in names


@pytest.mark.parametrize("surrogate", STAGES["surrogate"].variants)
@pytest.mark.parametrize("ratio", STAGES["ratio"].variants)
def test_an_advantage_may_change_along_the_completion(monkeypatch, surrogate, ratio):
    row = next(row for stage, row in made_up.ROWS if stage == "advantage")
    scenario = with_row(monkeypatch, "advantage", row, surrogate=surrogate, ratio=ratio)
    evaluation = evaluate(scenario)
    # (t - 1) (R + 0.25): -1.25, 0 and 1.25 at the first three tokens
    steps = [{s.name: s for s in assert_holds(evaluation, (0, 0, t))} for t in range(3)]
    assert evaluation.valid[0, 0, :3].all()
    assert [float(by_name["A"].value) for by_name in steps] == [-1.25, 0, 1.25]
    assert [by_name["A_i"].value for by_name in steps[:2]] == ["1.25"] * 2
    assert "A_i" not in steps[2]  # there the token's advantage is the completion's
    for by_name in steps:
        worked = [step for step in by_name.values() if step.stage == "surrogate" and step.written]
        reads = any(by_name["A"].value in step.operands for step in worked)
        assert reads or "Dropped" in by_name["s"].note


def test_a_clipped_token_still_moves_the_shared_ratio_of_the_others(monkeypatch):
    # One completion, ratio e^0.5 = 1.65 at all tokens; A = -1.25, 0, 1.25: the last is clipped.
    row = next(row for stage, row in made_up.ROWS if stage == "advantage")
    made_up.add(monkeypatch, "advantage", row)
    scenario = build_scenario(
        rewards=[[1.0]],
        logp_new=[[[-1.0] * 3]],
        logp_old=[[[-1.5] * 3]],
        conventions=Conventions.of(advantage=row.key, ratio="sequence"),
    )
    evaluation = evaluate(scenario)
    steps = {step.name: step for step in assert_holds(evaluation, (0, 0, 2))}
    assert "Clipped" in steps["G"].note
    assert float(steps["G"].value) == pytest.approx(-1.25 / 3, abs=1e-4)
    assert steps["g_s"].written


def wrong(write):
    """A writer of the surrogate that takes its derivative for twice the advantage."""
    return Writer(write, lambda sheet: Slope(sheet.given("slope", 2 * sheet["A"].value, "s'")))


def test_a_formula_that_does_not_give_the_cores_number_is_not_shown(monkeypatch):
    clip = SURROGATE_WRITERS["surrogate", "clip"]
    monkeypatch.setitem(WRITERS, ("surrogate", "clip"), wrong(clip.write))
    evaluation = evaluate(moved(1.1, [1, 0]))
    steps = {s.name: s for s in assert_holds(evaluation, (0, 0, 0), replaced={"g_s"})}
    # weight 1/2, A = 1, ratio 1.1: 0.55, and 1.1 with the wrong derivative
    assert steps["g_s"].note == "Written out, the formula gives 1.1; this is the core's number."
    assert not steps["g_s"].written
    assert steps["g_s"].value == "0.5500"
    assert steps["g"].operands[0] == "0.5500"


@pytest.mark.parametrize("name", sorted(CORE))
def test_every_number_that_the_core_keeps_is_held_against_it(monkeypatch, name):
    """With the core's array changed behind the chain's back, the chain shows the change."""
    evaluation = evaluate(moved(1.1, [1, 0]))
    array = getattr(evaluation, CORE[name]).copy()
    array[0, 0, 0] += 0.125
    object.__setattr__(evaluation, CORE[name], array)
    steps = {step.name: step for step in chain(evaluation, (0, 0, 0))}
    assert CORES_OWN.search(steps[name].note)
    assert float(steps[name].value) == pytest.approx(array[0, 0, 0], abs=1e-3)


# ---- what is shown


def test_rounded_numbers_keep_their_zeros_and_whole_ones_do_not():
    steps = short(build_scenario(rewards=[[1, 0, 0, 1]]))
    assert steps["mean"].value == "0.5"
    assert steps["A"].value == "1.000"  # 0.99999998, because of eps


def rough_width(line):
    """Width in em of a line of LaTeX, from its letters: an estimate apart from the page's own."""
    line = re.sub(r"\\frac\{(.*?)\}\{(.*?)\}", lambda m: max(m[1], m[2], key=len), line)
    line = re.sub(r"\\rule\{.*?\}\{.*?\}|\\(begin|end)\{aligned\}|\[.*?em\]", "", line)
    line = re.sub(r"\\(mathrm|operatorname|textstyle)|\\[, ]|&|[{}_^]", "", line)
    line = re.sub(r"\\quad", "xx", line)
    line = re.sub(r"\\[a-zA-Z]+", "x", line)
    return 0.5 * len(line.replace(" ", "")) + 0.4 * line.count("=")


# Two indices or two exponents in a row: KaTeX refuses them.
DOUBLE = re.compile(r"_(\w|\{([^{}]|\{[^{}]*\})*\})_|\^(\w|\{[^{}]*\})\^|'\^")


@given(st.one_of(scenarios(), shaped_scenarios()), st.integers(0, 10**6))
def test_latex_is_balanced_and_narrow(scenario, pick):
    evaluation = evaluate(scenario)
    every = list(np.ndindex(evaluation.valid.shape))
    steps = chain(evaluation, every[pick % len(every)])
    for latex in (step.latex for step in steps):
        assert latex.count("{") == latex.count("}")
        assert latex.count("(") == latex.count(")")
        assert latex.count(r"\begin{aligned}") == latex.count(r"\end{aligned}") <= 1
        assert "nan" not in latex.lower()
        assert not DOUBLE.search(latex), latex
        assert max(map(rough_width, latex.split(r"\\")), default=0) < 31
        first = latex.split(r"\\")[0]
        if any(tall in first for tall in (r"\frac", r"\sqrt", r"\sum")):
            assert r"\rule{0pt}{2.2em}" in first


def widest(steps):
    return max(rough_width(line) for step in steps for line in step.latex.split(r"\\"))


@pytest.mark.parametrize("scale", ["completion", "token"])
def test_what_is_divided_twice_has_a_line_of_its_own(scale):
    # two dense terms, each over its own spread and then over that of the batch
    rng = np.random.default_rng(4)
    scenario = build_scenario(
        rewards=rng.normal(size=(1, 4)),
        token_rewards=rng.choice([0.0, 0.5, -0.25], (1, 4, 5)),
        terms=(Term("a", -0.25, Choice("per_token")), Term("b", 0.5, Choice("per_token"))),
        conventions=Conventions.of(rewards=("normalize_then_sum", {"batch_scale": scale})),
    )
    steps = assert_holds(evaluate(scenario), (0, 1, 3))
    shown = {step.name: step for step in steps}
    assert {shown["v_1"].value, shown["v_2"].value} <= set(shown["A"].operands)
    assert not any(re.search(r"\\frac\{[^}]*\\frac", step.latex) for step in steps)
    assert widest(steps) < 31


def test_a_square_of_long_numbers_is_broken_where_it_is_too_wide():
    rewards = 1e8 + np.array([[0.4347704790596192, -0.9776594508688805]]) / 3
    step = short(build_scenario(rewards=rewards))["Q"]
    assert max(map(len, step.operands)) > 12
    assert widest([step]) < 31
    below = Number("123456789.123456789123456789")
    below.places = None
    assert [piece.breaks for piece in Square(below - below).latex()].count(True) == 1
    assert not any(piece.breaks for piece in Square(Number(2) - Number(1)).latex())


def test_long_formulas_are_broken_into_lines():
    rng = np.random.default_rng(1)
    scenario = build_scenario(rewards=rng.normal(size=(1, 8)))
    steps = {step.name: step for step in chain(evaluate(scenario), (0, 0, 0))}
    assert steps["mean"].latex.count(r"\\") >= 1
    assert steps["Q"].latex.count(r"\\") >= 3
    assert steps["A"].latex.count(r"\\") == 0


def test_formulas_keep_within_a_narrower_width():
    scenario = build_scenario(rewards=np.random.default_rng(1).normal(size=(1, 8)))
    for step in chain(evaluate(scenario), (0, 0, 0), width=340):
        assert max(map(rough_width, step.latex.split(r"\\"))) < 340 / 19.3


def test_text_to_copy_has_a_line_for_each_step():
    evaluation = evaluate(build_scenario(rewards=[[1, 0]], mask=[[[1, 0], [1, 1]]]))
    for where in [(0, 0, 0), (0, 0, 1)]:
        steps = chain(evaluation, where)
        assert len(as_text(steps).splitlines()) == len(steps)
    assert as_text(chain(evaluation, (0, 0, 0))).startswith("R = 1  # reward of the completion\n")


def test_no_text_of_the_example_is_shown():
    texts = Texts(("$PROMPT$",), ((("$TOKEN$",), ("$OTHER$",)),))
    scenario = build_scenario(rewards=[[1, 0]], texts=texts)
    steps = chain(evaluate(scenario), (0, 0, 0))
    assert not re.search("PROMPT|TOKEN|OTHER", repr(steps))
