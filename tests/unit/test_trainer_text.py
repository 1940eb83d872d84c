"""Pasted settings: what is read, what is named as not read, and that nothing is run."""

import pytest

from grpo_core import ScenarioError
from grpo_core.presets import PRESETS
from grpo_core.trainers import to_openrlhf, to_trl, to_verl
from pages._ui.scalars import scalar
from pages._ui.trainer_shell import read_shell
from pages._ui.trainer_text import MAX_CHARACTERS, MAX_ENTRIES, read_settings
from pages._ui.trainer_words import cannot_lines, reading_line, reading_lines, verdict_line
from pages._ui.trainer_yaml import read_yaml

CALL = """
from trl import GRPOConfig

training_args = GRPOConfig(
    output_dir="run (1)",  # a bracket in a string, and ) here
    epsilon=0.1,
    epsilon_high=0.28,
    beta=-0.0,
    loss_type='dr_grpo',
    scale_rewards=False,
    reward_weights=[1.0, 0.5],
    learning_rate=args.lr,
    max_completion_length=2 * 512,
)
trainer = GRPOTrainer(args=training_args)
"""
SCRIPT = """
set -x
high=0.28  # as in DAPO
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    actor_rollout_ref.actor.clip_ratio_high=${high} \\
    actor_rollout_ref.actor.kl_loss_coef=$coefficient \\
    "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean" \\
    +actor_rollout_ref.actor.use_kl_loss=True $@
"""
NESTED = """
# a run
actor_rollout_ref:
  actor:
    clip_ratio_high: 0.28   # DAPO
    policy_loss:
      loss_mode: "gspo"
  rollout:
    n: 8
algorithm:
  adv_estimator: grpo
"""
FLAGS = """deepspeed train.py \\
   --algo.advantage.estimator group_norm \\
   --actor.eps_clip_low_high 0.2 0.27 --algo.kl.use_loss --algo.kl.estimator=k3 \\
   --reward.clip_range -5 5
"""


def options(pasted, stage):
    choice = pasted.reading.conventions[stage]
    return choice.variant, choice.options


def test_a_call_is_read_with_comments_and_trailing_commas():
    pasted = read_settings(CALL)
    assert pasted.reading.name == "TRL 1.16"
    surrogate = options(pasted, "surrogate")
    assert surrogate == ("clip", {"epsilon_low": 0.1, "epsilon_high": 0.28})
    assert options(pasted, "aggregation")[0] == "constant"
    assert options(pasted, "advantage")[0] == "mean_only"
    assert pasted.reading.weights == (1.0, 0.5)


def test_what_is_no_literal_is_named_with_its_line_and_not_run():
    assert read_settings(CALL).unread == (
        "line 12: learning_rate is a name; write it as a value",
        "line 13: max_completion_length is computed; write it as a value",
    )
    spoilt = "GRPOConfig(beta=__import__('os').abort(), epsilon=0.3)"
    pasted = read_settings(spoilt)
    assert pasted.unread == ("line 1: beta is a call; write it as a value",)
    assert options(pasted, "surrogate")[1]["epsilon_low"] == 0.3


def test_a_script_with_its_own_variables():
    pasted = read_settings(SCRIPT)
    assert pasted.reading.name == "verl 0.9.1"
    assert options(pasted, "surrogate")[1]["epsilon_high"] == 0.28
    assert options(pasted, "aggregation")[0] == "completion_mean"
    assert options(pasted, "kl")[1]["beta"] == 0.001
    assert pasted.unread == (
        "line 7: actor_rollout_ref.actor.kl_loss_coef is $coefficient, which the text does not set",
    )


def test_nested_yaml():
    pasted = read_settings(NESTED)
    assert pasted.reading.name == "verl 0.9.1"
    assert options(pasted, "ratio")[0] == "sequence_token"
    assert options(pasted, "surrogate")[1]["epsilon_high"] == 0.28
    assert pasted.reading.group_size == 8


def test_flat_yaml_of_trl_and_of_a_section():
    text = "beta: 1e-3\nscale_rewards: batch\nreward_weights:\n- 1.0\n- 0.2\n"
    for pasted in (
        read_settings(text),
        read_settings("trl:\n  " + text.replace("\n", "\n  ").rstrip()),
    ):
        assert options(pasted, "kl")[1]["beta"] == 0.001
        assert options(pasted, "advantage")[0] == "batch_std"
        assert pasted.reading.weights == (1.0, 0.2)


def test_flags():
    pasted = read_settings(FLAGS)
    assert pasted.reading.name == "OpenRLHF 0.11"
    assert options(pasted, "surrogate")[1] == {"epsilon_low": 0.2, "epsilon_high": 0.27}
    assert options(pasted, "kl")[1]["place"] == "objective"
    assert options(pasted, "whitening")[1]["limit"] == 5.0
    assert pasted.unread == ()


def test_keyword_lines_without_a_call():
    pasted = read_settings("epsilon=0.1,\nbeta=0.04,")
    assert options(pasted, "surrogate")[1]["epsilon_low"] == 0.1
    assert options(pasted, "kl")[1]["beta"] == 0.04


@pytest.mark.parametrize("write", [to_trl, to_verl, to_openrlhf])
@pytest.mark.parametrize("preset", PRESETS)
def test_exported_lines_are_read_without_a_remark(write, preset):
    pasted = read_settings(write(PRESETS[preset].conventions).text)
    reading = pasted.reading
    assert (pasted.unread, reading.not_understood, reading.no_effect) == ((), (), ())
    assert reading.no_counterpart == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing was pasted"),
        ("   \n", "nothing was pasted"),
        ("x" * (MAX_CHARACTERS + 1), "at most 60,000 are read"),
        ("a=1\n" * (MAX_ENTRIES + 1), "at most 1,500 are read"),
        ("\nGRPOConfig(beta=0.1", "line 2: the call is not closed, a ')' is missing"),
        ("x\nGRPOConfig(\n  beta=0.1\n  epsilon=3)", "line 3: this is not valid Python"),
        ("GRPOConfig(" + "(" * 300 + ")" * 300 + ")", "line 1: this is not valid Python"),
        ("GRPOConfig(a=" + "-" * 50_000 + "1)", "line 1"),
        ("hello there", "holds no settings (line 1: “hello there” is no key with a value)"),
        ("lr: 0.1\nseed: 3", "no setting among 2 is one that TRL, verl or OpenRLHF has"),
        ("--lr 'a", "holds no settings (line 1: a quote is not closed)"),
    ],
    ids=range(11),
)
def test_a_text_that_cannot_be_read_is_refused_in_a_sentence(text, said):
    with pytest.raises(ScenarioError) as refused:
        read_settings(text)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_refusal_of_a_call_names_the_line_of_the_whole_text():
    pasted = read_settings(
        "\n\nGRPOConfig(\n  'out',\n  **more,\n  beta=0.1,\n)\nGRPOConfig(beta=1)"
    )
    assert pasted.unread == (
        "line 4: arguments without a name are not read",
        "line 5: what stands behind ** is not read",
        "line 8: a second call, GRPOConfig, is not read",
    )


def test_a_setting_that_is_given_twice_holds_the_last_time():
    pasted = read_settings("GRPOConfig(\n  beta=0.1,\n  beta=0.2)")
    assert options(pasted, "kl")[1]["beta"] == 0.2
    assert pasted.reading.no_effect == ("line 2: beta = 0.1: is given again further down",)


def test_yaml_beyond_the_reader_is_named_and_the_rest_read():
    text = "a: |\n  several\n  lines\nb: {c: 1}\nd:\n\te: 1\nf: &x 3\n"
    text += "g:\n  - h: 1\n    i: 2\nj: 5\nk: {}"
    entries, unread = read_yaml(text)
    assert [(entry.key, entry.value, entry.line) for entry in entries] == [("j", 5, 11)]
    assert [line for line, _ in unread] == [1, 4, 6, 7, 9]


def test_yaml_keeps_signs_in_quotes():
    entries, unread = read_yaml("a: 'b # c'\n\"d\": [1, 2.5, null]  # rest\ne: f#g")
    assert [(entry.key, entry.value) for entry in entries] == [
        ("a", "b # c"), ("d", [1, 2.5, None]), ("e", "f#g"),
    ]  # fmt: skip
    assert unread == []


def test_words_between_settings_are_named_and_the_command_is_not():
    entries, unread = read_shell("python -m train a.b=1 oops c.d=2 && \\\n  --x 3")
    assert [(entry.key, entry.value) for entry in entries] == [("a.b", 1), ("c.d", 2), ("x", 3)]
    assert (1, "“oops” is no setting") in unread


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001), ("-5", -5), (".5", 0.5), ("TRUE", True), ("false", False),
        ("null", None), ("Null", None), ("~", None), ("", None), ("None", "None"),
        ("none", "none"), ("'1'", "1"), ("[a, 1]", ["a", 1]), ("[]", []),
        ("0.5_2.0", "0.5_2.0"), ("token-mean", "token-mean"), ("9" * 41, "9" * 41),
    ],
)  # fmt: skip
def test_scalars(text, value):
    read = scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_the_reader_is_told_how_much_was_read():
    pasted = read_settings(CALL)
    assert reading_line(pasted) == (
        "Read as a GRPOConfig call of TRL 1.16: 6 settings read, 2 not understood, "
        "1 without a counterpart here, 2 lines beside the call not read."
    )
    assert [title for title, _ in reading_lines(pasted)] == [
        "Not understood", "Beside the call, not read", "Read", "Without a counterpart here",
    ]  # fmt: skip


def test_what_stands_beside_a_call_is_listed():
    assert read_settings(CALL).beside == (
        "line 2: “from trl import GRPOConfig”",
        "line 15: “trainer = GRPOTrainer(args=training_args)”",
    )
    alone = "# a comment\n\nargs: GRPOConfig = trl.GRPOConfig(\n  beta=0.1,\n))  # end\n"
    assert read_settings(alone).beside == ()
    mixed = "beta: 0.5\nepsilon=0.3; GRPOConfig(beta=0.1) epsilon_high=0.28\n--beta 3"
    assert read_settings(mixed).beside == (
        "line 1: “beta: 0.5”",
        "line 2: “epsilon=0.3;”",
        "line 2: “epsilon_high=0.28”",
        "line 3: “--beta 3”",
    )
    assert read_settings("beta: 0.5\n").beside == ()


def test_none_is_a_word_and_only_null_is_nothing():
    # TRL: scale_rewards="none" divides by nothing; null would be another thing.
    for text in (
        "scale_rewards: none", "--scale_rewards none", "scale_rewards=none", "scale_rewards = none",
        "GRPOConfig(scale_rewards='none')",
    ):  # fmt: skip
        pasted = read_settings(text)
        assert options(pasted, "advantage")[0] == "mean_only", text
        assert pasted.reading.not_understood == ()
    for text in ("delta: null", "--delta null", "delta: ~", "delta:  # empty", "delta = None",
                 "GRPOConfig(delta=None)"):  # fmt: skip
        pasted = read_settings(f"{text}\n" if "(" in text else f"{text}\nbeta: 0.1")
        assert options(pasted, "surrogate")[0] == "clip", text


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("beta = 0.1", "beta", 0.1),
        ("  beta= 0.1,  # weak", "beta", 0.1),
        ("beta =0.1", "beta", 0.1),
        ('loss_type = "dr_grpo"', "loss_type", "dr_grpo"),
        ("reward_weights = [1.0, 0.5],", "reward_weights", [1.0, 0.5]),
        ("delta = None", "delta", None),
        ("name = 'a # b'", "name", "a # b"),
        ("actor.clip_ratio = 0.3", "actor.clip_ratio", 0.3),
    ],
)
def test_a_line_with_blanks_around_its_sign_is_a_setting(line, key, value):
    entries, unread = read_shell(line)
    assert [(entry.key, entry.value) for entry in entries] == [(key, value)]
    assert unread == []


def test_lines_with_blanks_around_their_signs_are_read_as_settings():
    pasted = read_settings("beta = 0.1\nepsilon_high = 0.28")
    assert options(pasted, "kl")[1]["beta"] == 0.1
    assert options(pasted, "surrogate")[1]["epsilon_high"] == 0.28
    assert pasted.unread == ()


def test_a_number_of_thousands_of_digits_is_refused_in_words_of_our_own():
    with pytest.raises(ScenarioError) as refused:
        read_settings(f"GRPOConfig(\n  beta={'1' * 6_000})")
    assert str(refused.value) == "line 2: a number that is too long"


def test_long_lists_are_cut_and_counted():
    pasted = read_settings("beta: 0.1\n" + "".join(f"other_{n}: 1\n" for n in range(30)))
    lines = dict(reading_lines(pasted))["Without a counterpart here"]
    assert len(lines) == 13
    assert lines[-1] == "and 18 more"


def test_the_verdict_counts_what_matters():
    setting = to_trl(PRESETS["deepseekmath"].conventions)
    assert len(cannot_lines(setting)[0]) == 2  # population std, and its eps
    assert verdict_line(setting).startswith("TRL 1.16 computes something else in 2 respects")
    exact = to_trl(PRESETS["trl-classic"].conventions)
    assert verdict_line(exact) == "TRL 1.16 computes this with the lines below."
