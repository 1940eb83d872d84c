"""Options, variants and choices: each row complete, each wrong choice refused in words."""

import numpy as np
import pytest

from grpo_core import DEFAULT_CONVENTIONS, STAGES, Choice, Conventions, ScenarioError
from grpo_core.variants import Number, OneOf

ROWS = [
    pytest.param(stage, variant, id=f"{stage.key}.{variant.key}")
    for stage in STAGES.values()
    for variant in stage.variants.values()
]
OPTIONS = [
    pytest.param(stage, variant, option, id=f"{stage.key}.{variant.key}.{option.key}")
    for stage in STAGES.values()
    for variant in stage.variants.values()
    for option in variant.options
]


@pytest.mark.parametrize("stage", STAGES.values(), ids=lambda stage: stage.key)
def test_each_stage_is_complete_and_read_only(stage):
    assert stage.label
    assert stage.contract.startswith("(batch")
    assert stage.default in stage.variants
    with pytest.raises(TypeError):
        stage.variants["new"] = None


@pytest.mark.parametrize(("stage", "variant"), ROWS)
def test_each_variant_says_all_that_a_reader_needs(stage, variant):
    for key in ("label", "formula", "source", "trl", "verl", "choose_when"):
        assert getattr(variant, key).strip(), key
    assert variant.choose_when.endswith(".")
    assert variant.formula.count("{") == variant.formula.count("}")
    assert callable(variant.function)
    assert stage.variants[variant.key] is variant


@pytest.mark.parametrize(("stage", "variant", "option"), OPTIONS)
def test_each_option_is_complete_and_its_default_allowed(stage, variant, option):
    for key in ("label", "help", "trl", "verl"):
        assert getattr(option, key).strip(), key
    assert option.default in option.domain
    assert str(option.domain)
    assert variant.option(option.key) is option
    if isinstance(option.domain, OneOf):
        assert all(word.strip() for word in option.domain.words.values())


@pytest.mark.parametrize(("stage", "variant", "option"), OPTIONS)
@pytest.mark.parametrize(
    "bad",
    [None, True, "", "nonsense", [], {}, float("nan"), float("inf"), -1e7, 10**400, np.ones(2)],
    ids=repr,
)
def test_a_value_outside_an_options_domain_is_refused_in_words(stage, variant, option, bad):
    with pytest.raises(ScenarioError) as caught:
        Conventions.of(**{stage.key: (variant.key, {option.key: bad})})
    message = str(caught.value)
    assert message.startswith(f"{stage.key}.{option.key} is ")
    assert f"wanted {option.domain}" in message
    assert caught.value.field == f"{stage.key}.{option.key}"
    assert len(message) < 300


@pytest.mark.parametrize(("stage", "variant", "option"), OPTIONS)
def test_numpy_scalars_become_plain_values(stage, variant, option):
    for scalar in (np.array(option.default)[()], np.array(option.default)):
        options = Conventions.of(**{stage.key: (variant.key, {option.key: scalar})})[
            stage.key
        ].options
        assert options[option.key] == option.default
        assert type(options[option.key]) in (int, float, str)


def test_number_domain_at_its_ends():
    closed, half_open = Number(low=0, high=1), Number(low=1, high=2, exclusive=True)
    assert [value in closed for value in (-1e-9, 0, 1, 1 + 1e-9)] == [False, True, True, False]
    assert [value in half_open for value in (1, 1.0001, 2)] == [False, True, True]
    assert [value in Number(low=-1) for value in (-1.5, -1, 0)] == [False, True, True]
    assert 3.0 in Number(integer=True)
    assert 3.5 not in Number(integer=True)
    assert type(Number(integer=True).coerce(3.0)) is int
    assert type(Number().coerce(3)) is float
    assert str(closed) == "a number of at least 0 and at most 1"
    assert str(Number(high=1e7)) == "a number of at least 0 and at most 10,000,000"
    assert str(half_open) == "a number above 1 and at most 2"


def test_one_name_for_one_choice_whatever_its_number_type():
    whole = Conventions.of(advantage=("mean_std", {"ddof": 1}))
    spelled = Conventions.of(advantage=("mean_std", {"ddof": 1.0}))
    assert type(spelled["advantage"].options["ddof"]) is int
    assert whole == spelled
    assert hash(whole) == hash(spelled)


def test_open_choices_take_their_defaults():
    conventions = Conventions.of(kl=("k1", {"beta": 0.5}))
    assert dict(conventions["kl"].options) == {
        "beta": 0.5,
        "place": "objective",
        "clamp_in": 0.0,
        "clamp_out": 0.0,
        "weight": "none",
        "gradient": "own",
    }
    assert Conventions({}) == DEFAULT_CONVENTIONS
    for key, stage in STAGES.items():
        assert DEFAULT_CONVENTIONS[key].variant == stage.default


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"loss": "clip"}, "unknown stage 'loss'; the stages are ratio, kl, rewards, advantage"),
        ({"kl": "k4"}, "kl: unknown variant 'k4'; choose one of k3, k2, k1"),
        ({"kl": ([],)}, r"kl: unknown variant \[\]; choose one of"),
        ({"ratio": ("token", {"beta": 1})}, "ratio.token has no option 'beta'; it has clamp"),
        ({"tied": ("zero", {"eps": 1})}, "tied.zero has no option 'eps'; it has no options"),
        ({"kl": ("k1", {"eps": 1})}, "kl.k1 has no option 'eps'; it has beta, place"),
        ({"kl": ("k1", {"beta": -1})}, "kl.beta is -1; wanted a number of at least 0"),
        (
            {"rewards": ("add_after", {"batch_scale": "none"})},
            "rewards.add_after has no option 'batch_scale'; it has task_weight, missing, tokens",
        ),
    ],
)
def test_what_is_unknown_is_named_with_what_is_known(choices, words):
    with pytest.raises(ScenarioError, match=words):
        Conventions.of(**choices)


def test_replace_keeps_options_only_within_a_variant():
    sample = Conventions.of(advantage=("mean_std", {"ddof": 1}))
    kept = sample.replace("advantage", eps=1e-4)["advantage"].options
    assert kept == {"ddof": 1, "eps": 1e-4, "floor": 0.0, "alone": "zero"}
    back = sample.replace("advantage", "mean_only").replace("advantage", "mean_std")
    assert back == DEFAULT_CONVENTIONS
    assert sample["advantage"].options["ddof"] == 1


def test_conventions_cannot_be_changed_in_place():
    with pytest.raises(TypeError):
        DEFAULT_CONVENTIONS.choices["kl"] = Choice("k1")
    with pytest.raises(TypeError):
        DEFAULT_CONVENTIONS["kl"].options["beta"] = 1.0


@pytest.mark.parametrize(
    ("stage", "row", "parts"),
    [
        ("advantage", "nonzero_scaled", (r"f_{\mathrm{norm}}", r"\alpha")),
        # The default is verl's truncated ratio as a weight; which bound holds hangs on the sign.
        ("surrogate", "dppo_tv", (r"\min(\rho, c)", r"\rho A", "A>0", "A<0")),
        ("surrogate", "dppo_kl", (r"\min(\rho, c)", r"\rho A", "A>0", "A<0", "low", "high")),
        ("aggregation", "prompt_mean", (r"\sum_{i\in p} T_i", r"\frac1{G_p}")),
    ],
)
def test_a_formula_names_what_its_options_change(stage, row, parts):
    formula = STAGES[stage].variants[row].formula
    assert all(part in formula for part in parts)


@pytest.mark.parametrize(("stage", "variant"), ROWS)
def test_when_to_choose_a_row_is_a_sentence_of_its_own(stage, variant):
    assert len(variant.choose_when.split()) >= 5
    others = [row.choose_when for row in stage.variants.values() if row is not variant]
    assert variant.choose_when not in others
