"""PRESETS: every promised setting is there, can be run, and differs in named options."""

from itertools import product

import pytest

from grpo_core import DEFAULT_CONVENTIONS, STAGES, build_scenario, evaluate
from grpo_core.presets import PRESETS, differences
from tests.reference.combinations import edge_scenario

PROMISED = {
    *("deepseekmath", "trl-1.16", "trl-classic", "verl-0.9.1-grpo", "verl-dapo", "verl-drgrpo"),
    *("openrlhf-0.11-group_norm", "openrlhf-dr_grpo", "slime-grpo", "nemo-rl-grpo"),
    *("prime-rl-grpo", "skyrl-grpo", "areal-default", "dapo", "dr-grpo", "gspo", "cispo", "sapo"),
    *("gmpo", "gdpo", "lite-ppo", "rloo", "reinforce++-baseline", "maxrl", "2-grpo"),
}
EACH = pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.key)


def test_every_promised_preset_is_there():
    assert set(PRESETS) >= PROMISED


@EACH
def test_each_says_what_it_is_and_where_its_defaults_come_from(preset):
    assert preset.kind in ("framework", "paper")
    assert preset.label.strip()
    assert len(preset.source) > 10
    assert preset.group_size is None or preset.group_size >= 1
    assert preset.beside == "" or preset.beside.endswith(".")


@EACH
def test_each_evaluates_an_irregular_batch(preset):
    evaluation = evaluate(edge_scenario(preset.conventions))
    # No group of the batch holds the four scores that pass@4 asks for.
    assert evaluation.gradient.any() == (preset.key != "pass@k")
    assert not evaluation.gradient[~evaluation.valid].any()


def test_labels_are_told_apart():
    labels = [preset.label for preset in PRESETS.values()]
    assert len(set(labels)) == len(labels)


@EACH
def test_nothing_differs_from_itself(preset):
    assert differences(preset.conventions, preset.conventions) == ()


def test_differences_are_the_same_from_both_sides():
    for left, right in product(PRESETS.values(), repeat=2):
        there = differences(left.conventions, right.conventions)
        back = differences(right.conventions, left.conventions)
        assert [(d.stage, d.option, d.right, d.left) for d in back] == [
            (d.stage, d.option, d.left, d.right) for d in there
        ]
        assert (there == ()) == (left.conventions == right.conventions)


def test_a_difference_names_the_stage_and_the_option():
    other = DEFAULT_CONVENTIONS.replace("advantage", ddof=1, eps=1e-4).replace("kl", "k1")
    found = differences(DEFAULT_CONVENTIONS, other)
    assert [(d.stage, d.option, d.left, d.right) for d in found] == [
        ("kl", "", "k3", "k1"),
        ("advantage", "ddof", 0, 1),
        ("advantage", "eps", 1e-8, 1e-4),
    ]


def test_differences_lead_from_one_setting_to_the_other():
    for left, right in product(list(PRESETS.values())[::3], list(PRESETS.values())[::4]):
        reached = left.conventions
        for found in differences(left.conventions, right.conventions):
            if found.option:
                reached = reached.replace(found.stage, **{found.option: found.right})
            else:
                choice = right.conventions[found.stage]
                reached = reached.replace(found.stage, choice.variant, **choice.options)
        assert reached == right.conventions


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("trl-1.16", "1.4997", "-0.4999"),
        ("verl-0.9.1-grpo", "1.5000", "-0.5000"),
        ("openrlhf-0.11-group_norm", "1.5000", "-0.5000"),
        ("slime-grpo", "1.5000", "-0.5000"),
        ("skyrl-grpo", "1.5000", "-0.5000"),
        ("deepseekmath", "1.7321", "-0.5774"),
        ("dr-grpo", "0.7500", "-0.2500"),
        ("verl-drgrpo", "0.7500", "-0.2500"),
        ("prime-rl-grpo", "0.7500", "-0.2500"),
        ("nemo-rl-grpo", "1.0000", "-0.5773"),
        ("rloo", "1.0000", "-0.3333"),
        ("trl-rloo-1.16", "1.0000", "-0.3333"),
        ("areal-default", "1.0000", "0.0000"),
        ("maxrl", "3.0000", "-1.0000"),
        ("lite-ppo", "1.4997", "-0.4999"),
    ],
)
def test_one_right_answer_of_four(key, right, wrong):
    evaluation = evaluate(
        build_scenario(rewards=[[1, 0, 0, 0]], conventions=PRESETS[key].conventions)
    )
    assert [f"{value:.4f}" for value in evaluation.advantages[0]] == [right, *[wrong] * 3]


def facts(key):
    chosen = PRESETS[key].conventions
    return {stage: (chosen[stage].variant, dict(chosen[stage].options)) for stage in STAGES}


def test_what_makes_frameworks_differ():
    trl, verl, nemo = (facts(key) for key in ("trl-1.16", "verl-0.9.1-grpo", "nemo-rl-grpo"))
    # token mean everywhere; the ratio is held and dual clip is on in verl only
    assert {each["aggregation"][0] for each in (trl, verl, nemo)} == {"token_mean"}
    assert verl["ratio"] == ("token", {"clamp": 20.0})
    assert trl["ratio"] == nemo["ratio"] == ("token", {"clamp": 0.0})
    assert verl["surrogate"][0] == "dual_clip"
    assert verl["surrogate"][1]["dual_clip"] == 3.0
    assert trl["surrogate"] == nemo["surrogate"]
    # KL: off in TRL and verl, .01 with both clamps in NeMo-RL
    assert (trl["kl"][1]["beta"], verl["kl"][1]["beta"], nemo["kl"][1]["beta"]) == (0, 0, 0.01)
    assert (nemo["kl"][1]["clamp_in"], nemo["kl"][1]["clamp_out"]) == (20, 10)
    # the classic default of TRL and the one of 1.16, which weights the KL by the ratio
    assert facts("trl-1.16")["kl"][1]["weight"] == "ratio"
    assert facts("trl-jul26")["kl"][1]["weight"] == "none"
    assert facts("trl-classic")["kl"][1]["beta"] == 0.04


def test_what_makes_papers_differ():
    assert facts("dapo")["surrogate"][1] == {"epsilon_low": 0.2, "epsilon_high": 0.28}
    assert facts("dapo")["tied"][0] == "drop"
    assert facts("gspo")["surrogate"][1] == {"epsilon_low": 3e-4, "epsilon_high": 4e-4}
    assert facts("gspo")["ratio"][0] == "sequence"
    assert facts("dr-grpo")["aggregation"] == (
        "constant",
        {"length": 3000, "empty": "count", "completions": 0.0},
    )
    assert facts("intellect-2")["surrogate"][1]["delta"] == 4.0
    assert facts("gmpo")["surrogate"][1]["log_high"] == 0.4
    assert facts("scalerl")["surrogate"][1]["bound"] == "absolute"
    assert facts("openrlhf-dr_grpo")["kl"] == (
        "k1",
        {
            "beta": 0.01,
            "place": "returns",
            "clamp_in": 0.0,
            "clamp_out": 10.0,
            "weight": "none",
            "gradient": "own",
        },
    )


def test_what_dapo_does_besides_is_named():
    # Section 3.4 of the paper: cut answers leave the loss; no batch here has to say which were cut.
    assert "overlong filtering" in PRESETS["dapo"].beside
    assert "penalty" in PRESETS["dapo"].beside
