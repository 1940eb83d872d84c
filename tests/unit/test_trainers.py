"""Conventions as a trainer's settings, and settings as conventions."""

import re

import numpy as np
import pytest

from grpo_core import STAGES, Conventions, Term, build_scenario, evaluate
from grpo_core.idle import without_idle
from grpo_core.presets import PRESETS, differences
from grpo_core.trainers import (
    DIALECTS,
    Entry,
    applied,
    from_openrlhf,
    from_trl,
    from_verl,
    keys_of,
    openrlhf_flags,
    recognised,
    to_openrlhf,
    to_trl,
    to_verl,
)
from grpo_core.trainers.alike import telling_differences
from grpo_core.trainers.openrlhf import OPENRLHF
from grpo_core.trainers.quiet import felt
from grpo_core.trainers.reading import read
from grpo_core.trainers.writing import write
from pages._ui.computed import held_within
from pages._ui.trainer_names import named
from pages._ui.trainer_text import read_settings

# Presets of a framework, its dialect, and what its own lines say otherwise.
OWN = {
    "trl-1.16": "trl",
    "trl-jul26": "trl",
    "trl-classic": "trl",
    "trl-rloo-1.16": "trl-rloo",
    "verl-0.9.1-grpo": "verl",
    "verl-script-grpo": "verl",
    "verl-drgrpo": "verl",
    "verl-dapo": "verl",
    "openrlhf-0.11-group_norm": "openrlhf",
    "openrlhf-dr_grpo": "openrlhf",
}
BY_KEY = {dialect.key: dialect for dialect in DIALECTS}
WRITERS = {"trl": to_trl, "verl": to_verl, "openrlhf": to_openrlhf}


def small(**arrays):
    given = {
        "rewards": [[1.0, 0.0, 0.0, 1.0]],
        "logp_new": np.full((1, 4, 3), -1.0),
        "logp_old": np.full((1, 4, 3), -1.1),
        "logp_ref": np.full((1, 4, 3), -1.2),
    }
    return build_scenario(**{**given, **arrays})


def shell(setting):
    """Lines of overrides or flags as a mapping of what they say, for short assertions."""
    return [line for line in setting.lines if "estimator" not in line]


def arguments(setting):
    return [line.strip().rstrip(",") for line in setting.lines if line.startswith("    ")]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.key)
def test_a_dialect_chooses_every_stage_exactly_once(dialect):
    assert sorted(dialect.stages()) == sorted(STAGES)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.key)
def test_rows_of_an_axis_choose_the_same_stages_by_keys_that_have_a_default(dialect):
    for axis in dialect.axes:
        assert len({tuple(row.choices) for row in axis}) == 1
        for row in axis:
            assert {*row.keys, *row.links, *row.when} <= set(dialect.defaults)
            for name in row.linked:
                stage, option = name.split(".")
                assert option in row.choices[stage].options


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.key)
def test_every_row_comes_back_from_its_own_lines(dialect):
    base = read(dialect, {}).conventions
    for axis in dialect.axes:
        for row in axis:
            if row.when:
                continue
            conventions = Conventions({**base.choices, **row.choices})
            setting = write(dialect, conventions)
            # DRO's beta has no default in verl; a link may have options that no key can hold.
            assert not [each for each in setting.cannot if not each.option], setting.cannot


@pytest.mark.parametrize("preset", OWN)
def test_a_preset_comes_back_from_the_lines_of_its_own_trainer(preset):
    conventions, dialect = PRESETS[preset].conventions, BY_KEY[OWN[preset]]
    setting = write(dialect, conventions)
    back = read(dialect, _given(dialect, conventions)).conventions
    told = {f"{each.stage}.{each.option}" for each in setting.cannot}
    found = {f"{each.stage}.{each.option}" for each in differences(conventions, back)}
    assert found == told
    # verl leaves completions without tokens out of every mean over completions.
    assert told <= ({"aggregation.empty"} if preset == "verl-drgrpo" else set())


def _given(dialect, conventions):
    """What the lines say, caught on its way into text."""
    caught = {}

    def lines(settings):
        caught.update(settings)
        return ()

    write(type(dialect)(**{**vars(dialect), "lines": lines}), conventions)
    return caught


def test_every_framework_preset_of_these_trainers_is_tried():
    known = {key for key, row in PRESETS.items() if row.kind == "framework"}
    assert {key for key in known if key.startswith(("trl", "verl", "openrlhf"))} == set(OWN)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("trainer", WRITERS)
def test_what_a_trainer_cannot_do_is_a_sentence_each(preset, trainer):
    setting = WRITERS[trainer](PRESETS[preset].conventions)
    for each in setting.cannot:
        assert each.stage in STAGES
        assert each.sentence.endswith(".")
        assert setting.name in each.sentence


def test_defaults_of_trl_need_no_line():
    assert arguments(to_trl(PRESETS["trl-1.16"].conventions)) == []
    assert to_trl(PRESETS["trl-1.16"].conventions).text.endswith("GRPOConfig()  # all defaults")


def test_classic_trl():
    setting = to_trl(PRESETS["trl-classic"].conventions)
    assert arguments(setting) == [
        'loss_type="grpo"', "use_bias_correction_kl=False", "beta=0.04",
    ]  # fmt: skip
    assert setting.cannot == ()


def test_dapo_in_verl():
    setting = to_verl(PRESETS["verl-dapo"].conventions)
    assert shell(setting) == [
        "actor_rollout_ref.actor.clip_ratio_high=0.28",
        "algorithm.filter_groups.enable=True",
    ]
    assert setting.lines[1] == "algorithm.adv_estimator=grpo"


def test_gspo_in_openrlhf():
    setting = to_openrlhf(PRESETS["gspo"].conventions)
    assert "--actor.policy_loss_type gspo" in setting.lines
    assert "--actor.eps_clip_low_high 0.0003 0.0004" in setting.lines


def test_gmpo_and_rloo_get_their_own_configuration():
    assert "GMPOConfig" in to_trl(PRESETS["gmpo"].conventions).text
    assert "RLOOConfig" in to_trl(PRESETS["rloo"].conventions).text
    assert "GRPOConfig" in to_trl(PRESETS["gspo"].conventions).text


def test_the_population_std_is_named_as_what_no_trainer_has():
    for write_setting in WRITERS.values():
        cannot = write_setting(PRESETS["deepseekmath"].conventions).cannot
        assert any("population" in each.sentence for each in cannot)


def test_a_bound_on_the_ratio_beyond_the_band_is_dual_clip_in_other_words():
    dual = Conventions.of(surrogate=("dual_clip", {"dual_clip": 3.0}))
    two = Conventions.of(surrogate=("two_sided", {"delta": 3.0}))
    assert telling_differences(dual, two) == ()
    assert "delta=3.0" in arguments(to_trl(dual))
    assert not [each for each in to_verl(two).cannot if each.stage == "surrogate"]
    # 1.1 is inside the band of 1.2, where the two part.
    inside = Conventions.of(surrogate=("two_sided", {"delta": 1.1}))
    assert [each for each in to_verl(inside).cannot if each.stage == "surrogate"]


def test_cispo_bounds_are_offsets_in_verl_and_absolute_in_trl():
    # epsilon_high 0.2 bounds the weight at 0.2 in TRL and at 1.2 in verl.
    trl = from_trl({"loss_type": "cispo"}).conventions["surrogate"].options
    assert (trl["bound"], trl["epsilon_high"]) == ("absolute", 0.2)
    given = {"actor_rollout_ref.actor.policy_loss.loss_mode": "cispo"}
    verl = from_verl(given).conventions["surrogate"].options
    assert (verl["bound"], verl["epsilon_low"], verl["epsilon_high"]) == ("offset", 0.2, 0.2)


@pytest.mark.parametrize("high", [0.2, 0.28, 1.0, 4.0, 5.1])
def test_a_bound_of_cispo_is_an_offset_in_other_words(high):
    # Without a lower bound clip(rho, 1 - 1, 1 + high) is min(rho, 1 + high).
    offset = Conventions.of(surrogate=("cispo", {"epsilon_low": 1.0, "epsilon_high": high}))
    bound = {"epsilon_high": 1 + high, "bound": "absolute"}
    absolute = Conventions.of(surrogate=("cispo", {"epsilon_low": 1.0, **bound}))
    assert telling_differences(offset, absolute) == ()
    for conventions in (offset, absolute):
        for writer in (to_trl, to_verl):
            assert not of_stage(writer(conventions), "surrogate")


def of_stage(setting, stage):
    return [each.sentence for each in setting.cannot if each.stage == stage]


def test_cispo_presets_in_either_spelling():
    assert "epsilon_high=1.2" in arguments(to_trl(PRESETS["cispo"].conventions))
    lines = to_verl(PRESETS["scalerl"].conventions).lines
    assert "actor_rollout_ref.actor.clip_ratio_low=1.0" in lines
    assert "actor_rollout_ref.actor.clip_ratio_high=4.0" in lines


def test_of_two_bounds_of_cispo_trl_lacks_the_lower_one_only():
    both = Conventions.of(surrogate=("cispo", {"epsilon_low": 0.2, "epsilon_high": 0.2}))
    assert "epsilon_high=1.2" in arguments(to_trl(both))
    assert of_stage(to_trl(both), "surrogate") == [
        "Surrogate: epsilon low is 0.2 here, and 1 in TRL 1.16."
    ]


def test_a_bound_of_cispo_below_1_gets_the_nearest_offset():
    trl = from_trl({"loss_type": "cispo"}).conventions  # a bound of 0.2
    setting = to_verl(trl)
    assert "actor_rollout_ref.actor.clip_ratio_high=0.0" in setting.lines
    assert of_stage(setting, "surrogate") == [
        "Surrogate: epsilon high is 0.2 here, and 1 in verl 0.9.1."
    ]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.key)
def test_a_kl_keeps_its_weight_under_another_estimator(preset, dialect):
    conventions = PRESETS[preset].conventions
    back = read(dialect, _given(dialect, conventions)).conventions["kl"]
    assert back.options["beta"] == conventions["kl"].options["beta"]


def test_an_estimator_that_a_trainer_lacks_is_named_with_all_that_goes_with_it():
    setting = to_trl(PRESETS["openrlhf-0.11-group_norm"].conventions)
    assert arguments(setting) == ["use_bias_correction_kl=False", "beta=0.01"]
    assert of_stage(setting, "kl") == [
        "KL: TRL 1.16 has no “k1”; these lines give “k3”.",
        "KL: Where the KL enters is “in the returns, after the advantage” here, and “in the "
        "objective” in TRL 1.16.",
        "KL: Clamp of the KL (0: none) is 10 here, and 0 in TRL 1.16.",
    ]
    # |d| is never negative; of OpenRLHF's estimators neither are k2 and k3.
    absolute = Conventions.of(kl=("abs", {"beta": 0.05, "clamp_out": 10.0}))
    assert "--algo.kl.init_coef 0.05" in to_openrlhf(absolute).lines
    assert of_stage(to_openrlhf(absolute), "kl") == [
        "KL: OpenRLHF 0.11 has no “absolute”; these lines give “k3”."
    ]


@pytest.mark.parametrize(
    "choices",
    [
        {"kl": ("k1", {"place": "reward", "weight": "ratio", "gradient": "k2"})},
        {"kl": ("k1", {"place": "returns", "weight": "score", "gradient": "k2"})},
        {"surrogate": "reinforce", "ratio": ("token", {"clamp": 20.0})},
        {"surrogate": "reinforce", "ratio": "sequence_product"},
        {"rewards": ("normalize_then_sum", {"batch_scale": "none", "batch_eps": 0.3})},
        {"surrogate": ("dppo_tv", {"form": "ratio", "truncate": 7.0})},
        {"advantage": ("best_over_second", {"divide": "nothing", "ddof": 0, "eps": 0.5})},
        {"aggregation": ("completion_sum", {"completions": 8.0, "empty": "drop"})},
    ],
    ids=lambda choices: "-".join(choices),
)
def test_what_nothing_reads_is_no_difference(choices):
    conventions = Conventions.of(**choices)
    rest = without_idle(conventions)
    assert differences(conventions, rest)
    assert telling_differences(conventions, rest) == ()
    for writer in WRITERS.values():
        assert writer(conventions) == writer(rest)


@pytest.mark.parametrize("estimator", ["group_norm", "reinforce_baseline", "reinforce"])
def test_openrlhf_holds_rewards_within_its_range_whatever_comes_after(estimator):
    given = {"algo.advantage.estimator": estimator, "reward.clip_range": [-5, 5]}
    reading = from_openrlhf(given)
    assert not reading.no_effect
    assert held_within(reading.conventions) == 5.0
    assert held_within(from_openrlhf({"algo.advantage.estimator": estimator}).conventions) == 10.0
    assert "--reward.clip_range -5.0 5.0" in to_openrlhf(reading.conventions).lines


def test_epsilon_high_follows_epsilon_where_it_is_not_given():
    for given in ({"epsilon": 0.1}, {"epsilon": 0.1, "epsilon_high": None}):
        options = from_trl(given).conventions["surrogate"].options
        assert (options["epsilon_low"], options["epsilon_high"]) == (0.1, 0.1)


def test_what_a_row_says_on_the_way_out_is_said_on_the_way_in():
    # Two completions of 1 and 4 tokens, entropies 4 and 1: TRL's mean over tokens is 8 / 5 = 1.6,
    # averaged as loss_type grpo does it is (4 + 1) / 2 = 2.5.
    given = {"loss_type": "grpo", "entropy_coef": 1.0}
    (note,) = from_trl(given).notes
    assert "averages the entropy over tokens" in note
    assert note in to_trl(from_trl(given).conventions).notes
    assert "bound of the weight" in from_trl({"loss_type": "cispo"}).notes[0]
    assert from_trl({"loss_type": "grpo"}).notes == ()


def test_clip_ratio_alone_says_nothing_in_verl():
    # actor.yaml sets clip_ratio_low and clip_ratio_high, which go first.
    reading = from_verl({"actor_rollout_ref.actor.clip_ratio": 0.4})
    assert reading.conventions["surrogate"].options["epsilon_high"] == 0.2
    assert len(reading.no_effect) == 1


def test_verl_and_openrlhf_say_that_their_default_needs_a_value_network():
    assert "gae" in from_verl({}).notes[0]
    assert "gae" in from_openrlhf({}).notes[0]
    gae = from_verl({"algorithm.adv_estimator": "gae"})
    assert "grpo is taken" in gae.not_understood[0]
    assert gae.notes == ()


def test_the_kl_of_verl_has_its_three_places():
    actor = "actor_rollout_ref.actor."
    off = from_verl({}).conventions["kl"]
    assert (off.variant, off.options["beta"]) == ("k3", 0.0)
    loss = from_verl({f"{actor}use_kl_loss": True, f"{actor}kl_loss_type": "mse+"})
    assert (loss.conventions["kl"].variant, loss.conventions["kl"].options["beta"]) == ("k2", 0.001)
    assert loss.conventions["kl"].options["gradient"] == "k2"
    reward = {"algorithm.use_kl_in_reward": True, "algorithm.kl_penalty": "kl"}
    assert from_verl(reward).conventions["kl"].options["place"] == "reward"
    tokens = {**reward, "algorithm.adv_estimator": "reinforce_plus_plus"}
    assert from_verl(tokens).conventions["kl"].options["place"] == "returns"


@pytest.mark.parametrize(
    ("share", "threshold", "row"),
    [
        (1.0, None, "all"),
        (1.0, 0.25, "on_policy"),
        (0.2, None, "entropy"),
        (0.2, 0.25, "entropy_on_policy"),
    ],
)
def test_the_two_filters_of_trl_go_alone_and_together(share, threshold, row):
    settings = {"top_entropy_quantile": share, "off_policy_mask_threshold": threshold}
    reading = from_trl(settings)
    chosen = reading.conventions["selection"]
    assert chosen.variant == row
    assert chosen.options.get("share", 1.0) == share
    assert chosen.options.get("threshold") == threshold
    assert not reading.not_understood + reading.no_effect
    written = to_trl(reading.conventions)
    assert not written.cannot
    given = {key: value for key, value in settings.items() if value not in (1.0, None)}
    assert arguments(written) == [f"{key}={value}" for key, value in given.items()]


def test_both_filters_are_one_where_all_tokens_are_of_high_entropy():
    both = Conventions.of(selection=("entropy_on_policy", {"share": 1.0, "threshold": 0.25}))
    one = Conventions.of(selection=("on_policy", {"threshold": 0.25}))
    assert telling_differences(both, one) == ()
    assert to_trl(both).lines == to_trl(one).lines
    assert any("Selected tokens" in each.sentence for each in to_verl(both).cannot)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delta": -1.0}, "delta = -1.0: wanted a number above 0"),
        ({"loss_type": "ppo"}, "loss_type = ppo: known here are dapo, grpo"),
        ({"epsilon": "much"}, "epsilon = much: wanted a number"),
        ({"epsilon": True}, "epsilon = True: wanted a number"),
        ({"reward_weights": 3.0}, "reward_weights = 3.0: wanted a list"),
        ({"beta": float("nan")}, "beta = nan: wanted a number"),
        ({"epsilon_high": [1]}, "epsilon_high = [1]: wanted a number"),
        ({"epsilon_hihg": 0.3}, "epsilon_hihg = 0.3: no setting of TRL 1.16; did you mean"),
    ],
)
def test_a_value_that_cannot_be_is_named_and_the_default_taken(given, said):
    reading = from_trl(given)
    assert reading.not_understood[0].startswith(said)
    assert reading.conventions == from_trl({}).conventions


def test_a_bad_epsilon_behind_an_empty_epsilon_high_is_named_once():
    reading = from_trl({"epsilon": -1.0, "epsilon_high": None})
    assert [line.split(" =")[0] for line in reading.not_understood] == ["epsilon"]


def test_settings_of_the_training_loop_have_no_counterpart():
    reading = from_trl([Entry(key="learning_rate", value=1e-6, line=4)])
    assert reading.no_counterpart == ("line 4: learning_rate = 1e-06: has no counterpart here",)


def test_steps_of_accumulation_are_sent_to_the_stage_that_names_them():
    (line,) = from_trl({"gradient_accumulation_steps": 4}).no_counterpart
    assert "under Accumulation" in line
    assert "gradient_accumulation_steps" in STAGES["accumulation"].variants["factor"].trl


def test_a_filter_by_token_is_nearest_to_one_by_group():
    conventions = PRESETS["prime-rl-grpo"].conventions
    assert "algorithm.filter_groups.enable=True" in to_verl(conventions).lines
    assert "--algo.dynamic_filtering_enable" in to_openrlhf(conventions).lines
    (said,) = of_stage(to_verl(conventions), "tied")
    assert "these lines give “leave the loss”" in said


def test_thresholds_of_verl_with_two_bounds_mask():
    key = "algorithm.rollout_correction.rollout_is"
    masked = from_verl({key: "token", f"{key}_threshold": "0.5_2.0"}).conventions["correction"]
    options = masked.options
    assert (options["mode"], options["low"], options["high"]) == ("mask", 0.5, 2.0)
    held = from_verl({key: "sequence"}).conventions["correction"].options
    assert (held["mode"], held["low"], held["high"]) == ("truncate", 0.0, 2.0)
    assert from_verl({key: "token", f"{key}_threshold": "a_b"}).not_understood


def test_old_and_short_names_are_known():
    reading = from_openrlhf({"init_kl_coef": 0.5, "eps_clip_low_high": [0.1, 0.3]})
    assert reading.conventions["kl"].options["beta"] == 0.5
    assert reading.conventions["surrogate"].options["epsilon_high"] == 0.3
    assert from_verl({"clip_ratio_high": 0.28}).no_counterpart == ()


def test_a_trainer_is_recognised_by_its_keys():
    assert recognised([Entry(key="epsilon", value=0.2)]).key == "trl"
    assert recognised([Entry(key="actor_rollout_ref.rollout.n", value=5)]).key == "verl"
    assert recognised([Entry(key="algo.kl.init_coef", value=0.1)]).key == "openrlhf"
    assert recognised([Entry(key="lr", value=0.1)]) is None


def test_an_example_gives_group_size_width_and_weights():
    scenario = small().choose("aggregation", "constant").choose("rewards", "sum_then_normalize")
    scenario = scenario.with_terms((Term("format", 0.2),), np.zeros((1, 4, 1)))
    setting = to_trl(scenario.conventions, scenario)
    assert "num_generations=4" in arguments(setting)
    assert "max_completion_length=3" in arguments(setting)
    assert "reward_weights=[1.0, 0.2]" in arguments(setting)
    assert "format" not in setting.text  # a name from a link has no place in a command
    verl = to_verl(scenario.conventions, scenario)
    assert "actor_rollout_ref.rollout.n=4" in verl.lines
    assert any("weighted sum" in note for note in verl.notes)


def test_what_makes_no_difference_in_a_batch_is_marked():
    scenario = small()
    verl = {each.option: each.here for each in to_verl(scenario.conventions, scenario).cannot}
    # Log-ratios of 0.1 meet no clamp of 20; no group of one, no completion without tokens.
    assert not any(verl[key] for key in ("clamp", "clamp_in", "clamp_out", "alone", "empty"))
    assert verl["ddof"]
    far = small(logp_old=np.full((1, 4, 3), -40.0))
    far = {each.option: each.here for each in to_verl(far.conventions, far).cannot}
    assert far["clamp"]


def test_what_no_number_of_the_batch_feels_is_marked_by_trying_it_out():
    # Advantages of at most 2 are held within nothing by 10; ddof and eps do nothing in a tie.
    held = PRESETS["openrlhf-dr_grpo"].conventions.replace("kl", beta=0.0)
    limit = {each.option: each.here for each in to_trl(held, small(conventions=held)).cannot}
    assert not any(limit.values())
    tied = small(rewards=[[1.0] * 4])
    assert not any(each.here for each in to_trl(tied.conventions, tied).cannot)
    assert any(each.here for each in to_trl(small().conventions, small()).cannot)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("trainer", WRITERS)
def test_lines_of_which_no_difference_is_felt_train_the_same(trainer, preset):
    scenario = small(conventions=PRESETS[preset].conventions)
    found = WRITERS[trainer](scenario.conventions, scenario)
    changed = scenario.with_conventions(read_settings(found.text).reading.conventions)
    gradients = [evaluate(each).gradient for each in (scenario, changed)]
    if not any(each.here for each in found.cannot):
        np.testing.assert_allclose(*gradients, rtol=1e-12, atol=1e-15)


def test_a_difference_of_which_each_half_is_nothing_alone_counts():
    # The KL weighs nothing while beta is 0; its weight by the ratio needs both.
    left = Conventions.of(kl=("k3", {"beta": 0.0, "weight": "none"}))
    right = left.replace("kl", beta=0.1, weight="ratio")
    same = small(logp_ref=np.full((1, 4, 3), -1.0))
    parts = telling_differences(left, right)
    assert felt(small(), left, right, parts) == [True, False]
    assert felt(same, left, right, parts) == [False, False]
    assert felt(None, left, right, parts) == [True, True]


def test_the_size_of_a_group_is_a_whole_number_of_at_least_1():
    for given in (0, -4, 2.5, "many", True):
        reading = from_trl({"num_generations": given, "beta": 0.1})
        assert [entry.key for entry in reading.taken] == ["beta"]
        (said,) = reading.not_understood
        assert "wanted a whole number of at least 1; 8 is taken" in said
        assert reading.group_size is None
    assert from_trl({"num_generations": 4}).group_size == 4


MISSING = [[1.0, np.nan, 0.0, 0.0]]


@pytest.mark.parametrize("missing", ["leave_out", "as_zero"])
@pytest.mark.parametrize("trainer", ["verl", "openrlhf"])
def test_a_missing_reward_is_named_where_a_trainer_has_no_answer_to_it(trainer, missing):
    conventions = Conventions.of(rewards=("outcome", {"missing": missing}))
    writer = WRITERS[trainer]
    without = of_stage(writer(conventions, small()), "rewards")
    found = writer(conventions, small(rewards=MISSING))
    (said,) = of_stage(found, "rewards")
    assert "whole group NaN" in said
    assert all(each.here for each in found.cannot if each.stage == "rewards")
    assert not [line for line in without if missing == "leave_out"]
    for setting in (writer(conventions), found):
        assert not [
            line for line in of_stage(setting, "rewards") if "left out of the group” in" in line
        ]


def test_trl_leaves_a_missing_reward_out_or_cannot_count_it_as_0():
    left_out = Conventions.of(rewards=("outcome", {"missing": "leave_out"}))
    assert not of_stage(to_trl(left_out, small(rewards=MISSING)), "rewards")
    assert of_stage(to_trl(PRESETS["swift-grpo"].conventions), "rewards") == [
        "Rewards: Missing reward is “counted as reward 0” here, and “left out of the group” in "
        "TRL 1.16."
    ]


def test_a_quiet_difference_changes_no_loss():
    scenario = small()
    for each in to_verl(scenario.conventions, scenario).cannot:
        if not each.here:
            other = {"alone": "reward", "empty": "drop"}.get(each.option, 20.0)
            changed = scenario.choose(each.stage, **{each.option: other})
            assert evaluate(changed).loss == evaluate(scenario).loss


def test_read_conventions_are_put_into_an_example():
    scenario, notes = applied(small(), from_trl({"beta": 0.1, "num_generations": 4}))
    assert scenario.conventions["kl"].options["beta"] == 0.1
    assert notes == ()


def test_a_stage_without_its_array_stays_and_is_named():
    scenario, notes = applied(small(), from_trl({"use_vllm": True, "num_generations": 16}))
    assert scenario.conventions["correction"].variant == "none"
    assert "logp_sampler" in notes[0]
    assert "16 completions" in notes[1]


def test_weights_go_to_the_terms_they_are_meant_for():
    terms = (Term("format", 0.2), Term("length", 1.0))
    scenario = small().choose("rewards", "sum_then_normalize")
    scenario = scenario.with_terms(terms, np.zeros((1, 4, 2)))
    changed, notes = applied(scenario, from_trl({"reward_weights": [2.0, 0.5, 0.1]}))
    assert changed.conventions["rewards"].options["task_weight"] == 2.0
    assert [term.weight for term in changed.terms] == [0.5, 0.1]
    assert notes == ()
    unlike, notes = applied(scenario, from_trl({"reward_weights": [2.0, 0.5]}))
    assert [term.weight for term in unlike.terms] == [0.2, 1.0]
    assert "2 were given" in notes[0]


def test_terms_stay_in_an_example_under_a_trainer_with_one_reward():
    scenario = small().choose("rewards", "sum_then_normalize", task_weight=2.0)
    scenario = scenario.with_terms((Term("format", 0.2),), np.zeros((1, 4, 1)))
    changed, notes = applied(scenario, from_verl({"algorithm.adv_estimator": "grpo"}))
    assert changed.conventions["rewards"] == scenario.conventions["rewards"]
    assert "terms" in notes[0]


# ---- names of OpenRLHF


def rows_and_options():
    """(stage, variant, option) of all rows and options, '' for the row itself."""
    for stage in STAGES.values():
        for variant in stage.variants.values():
            for option in ("", *(option.key for option in variant.options)):
                yield stage.key, variant.key, option


SHOWN = [(*place, openrlhf_flags(*place)) for place in rows_and_options()]
OFFERED = [row for row in SHOWN if row[-1] not in (None, "the default")]
VALUES = {
    "actor.eps_clip": [0.3, 0.4],
    "actor.eps_clip_low_high": [[0.1, 0.3], [0.3, 0.4]],
    "actor.dual_clip": [5.0, 6.0],
    "actor.entropy_coef": [0.01, 0.02],
    "algo.kl.init_coef": [0.2, 0.3],
    "algo.advantage.gamma": [0.9, 0.8],
    "algo.advantage.is_correction_threshold": [[0.25, 4.0], [0.2, 3.0]],
    "reward.clip_range": [[-3, 3], [-4, 4]],
}
FLAG = re.compile(r"(without )?--([\w.]+) ?(.*)")


def settings_of(flags):
    """Settings that shown flags stand for, one mapping for each value that they name."""
    found = [{}]
    for part in flags.split(", "):
        said = [FLAG.fullmatch(each).groups() for each in re.split(" or (?=--)", part)]
        each = [
            {} if absent else {key: value}
            for absent, key, values in said
            for value in (values.split(" or ") if values else VALUES.get(key, [True]))
        ]
        found = [{**one, **more} for one in found for more in each]
    return found


def test_every_flag_of_openrlhf_is_shown_by_some_row_or_option():
    shown = {key for *_, flags in OFFERED for key in re.findall(r"--([\w.]+)", flags)}
    assert shown == set(OPENRLHF.defaults) - {OPENRLHF.group_key}


@pytest.mark.parametrize(
    ("stage", "variant", "option", "flags"), OFFERED, ids=lambda each: str(each)[:30]
)
def test_a_shown_flag_is_read_back_as_what_it_is_shown_for(stage, variant, option, flags):
    base = {} if not option else settings_of(openrlhf_flags(stage, variant))[-1]
    needed = {"algo.advantage.estimator": "group_norm"} if base == {} else {}
    read_back = set()
    for settings in settings_of(flags):
        reading = from_openrlhf({**needed, **base, **settings})
        assert not reading.not_understood + reading.no_counterpart + reading.no_effect
        choice = reading.conventions[stage]
        assert choice.variant == variant
        read_back.add(choice.options.get(option))
    default = from_openrlhf({**needed, **base}).conventions[stage].options.get(option)
    assert not option or len({default, *read_back}) > 1


@pytest.mark.parametrize(("stage", "variant", "option", "flags"), SHOWN)
def test_what_openrlhf_does_not_offer_is_in_no_row_of_it(stage, variant, option, flags):
    choices = [row.choices[stage] for axis in OPENRLHF.axes for row in axis if stage in row.choices]
    options = [choice.options for choice in choices if choice.variant == variant]
    if flags is None:
        assert not options or (option and len({each[option] for each in options}) == 1)
    if flags == "the default":
        assert not option
        assert {each.variant for each in choices} <= {variant, "outcome"}


def test_names_of_openrlhf_by_hand():
    assert openrlhf_flags("surrogate", "dual_clip") == "--actor.dual_clip"
    assert openrlhf_flags("surrogate", "clip") == "without --actor.dual_clip"
    assert openrlhf_flags("surrogate", "clip", "epsilon_low") == (
        "--actor.eps_clip or --actor.eps_clip_low_high"
    )
    assert openrlhf_flags("advantage", "mean_std", "ddof") is None
    assert openrlhf_flags("rewards", "sum_then_normalize") == "the default"
    assert openrlhf_flags("kl", "abs") is None
    option = STAGES["kl"].variants["k3"].option("beta")
    assert named(option, "kl", "k3", "beta").endswith(". OpenRLHF: `--algo.kl.init_coef`.")
    row = STAGES["kl"].variants["abs"]
    assert named(row, "kl", "abs").endswith(". OpenRLHF: not offered.")
    assert keys_of(BY_KEY["trl"], "kl", "k3", "beta") == {"beta": ()}
