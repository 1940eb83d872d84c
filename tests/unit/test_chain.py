"""The written-out chain recombines by hand to its last digit, for every variant and example."""

import ast
import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core import STAGES, Conventions, ScenarioError, Texts, build_scenario, evaluate
from pages._ui.chain import WRITERS, as_text, chain
from pages._ui.chain_policy import POLICY_WRITERS
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
    assert_holds(evaluation, where, tolerance=1e-6, replaced=replaced)


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
        assert by_name["A"].value in by_name["s_free"].operands


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
    clip = POLICY_WRITERS["surrogate", "clip"]
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


@given(scenarios(), st.integers(0, 10**6))
def test_latex_is_balanced_and_narrow(scenario, pick):
    evaluation = evaluate(scenario)
    every = list(np.ndindex(evaluation.valid.shape))
    steps = chain(evaluation, every[pick % len(every)])
    for latex in (step.latex for step in steps):
        assert latex.count("{") == latex.count("}")
        assert latex.count("(") == latex.count(")")
        assert latex.count(r"\begin{aligned}") == latex.count(r"\end{aligned}") <= 1
        assert "nan" not in latex.lower()
        assert max(map(rough_width, latex.split(r"\\")), default=0) < 31
        first = latex.split(r"\\")[0]
        if any(tall in first for tall in (r"\frac", r"\sqrt", r"\sum")):
            assert r"\rule{0pt}{2.2em}" in first


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
