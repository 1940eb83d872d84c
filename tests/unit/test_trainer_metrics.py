"""Metrics under the trainers' names: those that TRL and verl recorded, and small ones by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core import STAGES, Conventions, build_scenario, evaluate
from grpo_core.presets import PRESETS
from grpo_core.terms import Term
from grpo_core.trainer_metrics import TRAINERS, metric_help, trl_metrics, verl_metrics
from pages._ui.examples import load_examples
from tests.reference import trl, verl
from tests.reference.recorded import Case
from tests.reference.sources import READERS

FOLDER = Path(__file__).parents[1] / "reference"
METRICS = {"trl": (trl, trl_metrics), "verl": (verl, verl_metrics)}
EXAMPLES = load_examples()


# --- what the trainers recorded ----------------------------------------------------------


def recorded(pattern):
    """Cases with metrics whose source a reader knows."""
    files = sorted(FOLDER.glob(pattern))
    assert files, f"no recorded cases match {pattern}"
    found = [case for file in files for case in json.loads(file.read_text())["cases"]]
    known = [case for case in found if case["source"].split()[-1] in READERS]
    return [pytest.param(case, id=case["id"]) for case in known if case["outputs"].get("metrics")]


def as_scenario(conventions, groups, *, mask, rewards=None, terms=(), **rows):
    """A recorded call as a scenario.

    Some cases hold log-probabilities above 0, which a scenario refuses: all are lowered by one
    number, which no metric of a ratio or a KL sees.
    """
    new = rows.setdefault("logp_new", np.zeros(np.shape(mask)))
    rows = {"logp_old": new, "logp_ref": new, **rows}
    logps = [key for key in rows if key.startswith("logp")]
    top = max(0.0, *(float(np.max(rows[key])) for key in logps))
    columns = {key: groups.up(np.asarray(array)) for key, array in rows.items()}
    columns |= {key: columns[key] - top for key in logps}
    if terms:
        values = [groups.up(np.asarray(column, dtype=float), np.nan) for _, column in terms]
        columns["term_values"] = np.stack(values, axis=-1)
    return build_scenario(
        conventions=conventions,
        rewards=groups.up(np.zeros(len(mask)) if rewards is None else rewards, np.nan),
        mask=groups.up(np.asarray(mask, dtype=bool), False),
        present=groups.present,
        terms=[Term(f"f{k}", weight) for k, (weight, _) in enumerate(terms, 1)],
        **columns,
    )


def metrics_of(case, monkeypatch):
    """The metrics of the one evaluation that a case's reader asks for."""
    reader = READERS[case["source"].split()[-1]]
    module, metrics = METRICS["trl" if case["source"].startswith("trl") else "verl"]
    asked = []

    def run(*args, **kwargs):
        asked.append(evaluate(as_scenario(*args, **kwargs)))
        return asked[-1]

    monkeypatch.setattr(module, "run", run)
    list(reader(Case(case)))
    (evaluation,) = asked
    return metrics(evaluation)


@pytest.mark.parametrize(
    "case",
    recorded("trl_losses*.json") + recorded("trl_advantages*.json") + recorded("verl_losses*.json"),
)
def test_metrics_are_those_that_the_trainer_recorded(case, monkeypatch):
    computed = metrics_of(case, monkeypatch)
    for name, value in case["outputs"]["metrics"].items():
        ours = name.replace("rewards/f0/", "rewards/task/")
        if value == "nan":  # undefined, which is left out here
            assert ours not in computed
        else:
            # TRL computes its metrics in float32.
            assert computed[ours] == pytest.approx(value, rel=1e-6, abs=1e-6), name


# --- by hand -----------------------------------------------------------------------------


def scenario(**changed):
    """Two groups of two; ratios e^0.5, 1; 1, e^-0.5; 1, 1; 1, 1 with lengths 2, 1, 2, 2."""
    old = np.full((2, 2, 2), -1.0)
    step = np.array([[[0.5, 0.0], [-0.5, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    arrays = {
        "rewards": [[1, 0], [1, 1]],
        "logp_new": old + step,
        "logp_old": old,
        "mask": [[[1, 1], [1, 0]], [[1, 1], [1, 1]]],
        "conventions": PRESETS["trl-1.16"].conventions,
    }
    return build_scenario(**(arrays | changed))


def test_trl_logs_of_one_small_batch():
    found = trl_metrics(evaluate(scenario()))
    # Above the band with A > 0: one of 7 tokens, one of two in its completion. Below with A < 0:
    # the only token of the second completion.
    assert found["clip_ratio/high_mean"] == pytest.approx(1 / 7)
    assert found["clip_ratio/high_max"] == 0.5
    assert found["clip_ratio/low_mean"] == pytest.approx(1 / 7)
    assert found["clip_ratio/low_min"] == 0
    assert found["clip_ratio/region_mean"] == pytest.approx(2 / 7)
    # Rewards 1, 0, 1, 1: mean 3/4, sample variance 3/16 * 4/3 = 1/4.
    assert found["reward"] == found["rewards/task/mean"] == 0.75
    assert found["reward_std"] == found["rewards/task/std"] == 0.5
    assert found["frac_reward_zero_std"] == 0.5
    assert found["completions/mean_length"] == 7 / 4
    assert (found["completions/min_length"], found["completions/max_length"]) == (1, 2)
    assert "kl" not in found  # beta is 0


def test_verl_logs_a_kl_in_the_reward():
    # k1 of old to ref: 0.5 0.5 | 1, so 0.5 and 1 a completion, 0.75 their mean. Scores 1 and 0
    # less 0.1 (0.5 + 0.5) and 0.1: 0.9 and -0.1.
    kl = ("k1", {"beta": 0.1, "place": "reward"})
    arrays = {
        "rewards": [[1.0, 0.0]],
        "mask": [[[1, 1], [1, 0]]],
        "logp_new": np.full((1, 2, 2), -1.0),
        "logp_ref": [[[-1.5, -1.5], [-2.0, -9.0]]],
    }
    chosen = PRESETS["verl-0.9.1-grpo"].conventions.replace("advantage", "mean_only")
    in_reward = Conventions({**chosen.choices, "kl": Conventions.of(kl=kl)["kl"]})
    found = verl_metrics(evaluate(build_scenario(**arrays, conventions=in_reward)))
    assert found["actor/reward_kl_penalty"] == pytest.approx(0.75)
    assert found["actor/reward_kl_penalty_coeff"] == 0.1
    assert (found["critic/score/max"], found["critic/rewards/max"]) == pytest.approx((1.0, 0.9))
    # Advantages 0.5 0.5 | -0.5; verl's grpo calls them returns, too.
    assert found["critic/returns/mean"] == found["critic/advantages/mean"] == pytest.approx(1 / 6)
    assert "actor/kl_loss" not in found
    in_loss = verl_metrics(evaluate(build_scenario(**arrays, conventions=chosen)))
    assert "actor/reward_kl_penalty" not in in_loss


def test_verl_s_returns_of_reinforce_plus_plus_are_those_before_whitening():
    # The KL of each token stays on it: 1 - 0.05 - 0.05, 1 - 0.05 | 0 - 0.1.
    conventions = Conventions.of(
        advantage="returns",
        whitening="tokens",
        kl=("k1", {"beta": 0.1, "place": "returns"}),
    )
    scenario = build_scenario(
        rewards=[[1.0, 0.0]],
        mask=[[[1, 1], [1, 0]]],
        logp_new=np.full((1, 2, 2), -1.0),
        logp_ref=[[[-1.5, -1.5], [-2.0, -9.0]]],
        conventions=conventions,
    )
    found = verl_metrics(evaluate(scenario))
    returns = [found[f"critic/returns/{key}"] for key in ("max", "min", "mean")]
    assert returns == pytest.approx([0.95, -0.1, (0.9 + 0.95 - 0.1) / 3])
    assert found["critic/advantages/mean"] == pytest.approx(0, abs=1e-12)


def test_verl_logs_of_one_small_batch():
    found = verl_metrics(evaluate(scenario(conventions=PRESETS["verl-0.9.1-grpo"].conventions)))
    # -(0.5 - 0.5) over 7 tokens.
    assert found["actor/ppo_kl"] == 0
    assert found["actor/pg_clipfrac"] == pytest.approx(2 / 7)
    assert found["actor/pg_clipfrac_lower"] == 0
    assert found["critic/score/mean"] == 0.75
    # Two tokens of 0.7071 and one of -0.7071 on 7: not 0, although each group sums to 0.
    assert found["critic/advantages/mean"] == pytest.approx(0.5**0.5 / 7, rel=1e-5)
    assert found["response_length/mean"] == 7 / 4
    assert found["response_length/clip_ratio"] == 0.75
    assert "actor/kl_loss" not in found


def test_per_reward_std_is_of_the_batch_while_each_group_is_tied():
    # trl#3857: rewards 1, 1 and 0, 0.
    found = trl_metrics(evaluate(build_scenario(rewards=[[1, 1], [0, 0]])))
    assert found["reward_std"] == pytest.approx(1 / 3**0.5)  # 0.57735
    assert found["frac_reward_zero_std"] == 1


def test_batch_scale_has_one_flag_for_the_batch():
    batch = build_scenario(rewards=[[1, 1], [0, 0]]).choose("advantage", "batch_std")
    assert trl_metrics(evaluate(batch))["frac_reward_zero_std"] == 0


def test_a_group_with_one_score_is_not_counted_as_tied():
    assert trl_metrics(evaluate(build_scenario(rewards=[[1, None]])))["frac_reward_zero_std"] == 0


def test_rewards_are_logged_under_the_names_of_their_terms():
    batch = build_scenario(
        rewards=[[1, 0]],
        term_values=[[[0.5], [None]]],
        terms=[Term("format", 2.0)],
        conventions=Conventions.of(rewards="sum_then_normalize"),
    )
    found = trl_metrics(evaluate(batch))
    assert found["rewards/format/mean"] == 0.5
    assert "rewards/format/std" not in found  # of a single value
    assert found["reward"] == 1  # (1 + 2 * 0.5 + 0) / 2


def test_kl_in_the_reward_is_taken_off_after_the_score():
    # log pi old - log pi ref is 1 and 0, beta 0.1.
    batch = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-1.0], [-1.0]]],
        logp_ref=[[[-2.0], [-1.0]]],
        conventions=Conventions.of(kl=("k1", {"place": "reward", "beta": 0.1})),
    )
    found = verl_metrics(evaluate(batch))
    assert found["critic/score/max"] == pytest.approx(1.0)
    assert found["critic/rewards/max"] == pytest.approx(0.9)


def test_cispo_at_its_default_bound_counts_every_token_with_a_positive_advantage():
    options = {"epsilon_low": 1.0, "epsilon_high": 0.2, "bound": "absolute"}
    conventions = PRESETS["trl-1.16"].conventions.replace("surrogate", "cispo", **options)
    found = trl_metrics(evaluate(scenario(conventions=conventions)))
    assert found["cispo_clip_ratio"] == pytest.approx(2 / 7)
    assert "clip_ratio/low_mean" not in found


def test_sampler_differences_and_weights():
    # old - sampler is ln 2 and ln 8 at the first two tokens: weights 2 and 8, held at 3.
    sampler = np.full((1, 2, 1), -1.0) - np.log([[[2.0], [8.0]]])
    batch = build_scenario(
        rewards=[[1, 0]],
        logp_new=np.full((1, 2, 1), -1.0),
        logp_sampler=sampler,
        conventions=Conventions.of(
            correction=("sampler", {"level": "token", "mode": "truncate", "high": 3.0})
        ),
    )
    found = trl_metrics(evaluate(batch))
    assert found["sampling/sampling_logp_difference/max"] == pytest.approx(np.log(8))
    assert found["sampling/importance_sampling_ratio/mean"] == pytest.approx(2.5)
    assert found["sampling/importance_sampling_ratio/max"] == 3


def test_cut_completions_are_told_apart():
    found = trl_metrics(evaluate(scenario(truncated=[[1, 0], [0, 0]])))
    assert found["completions/clipped_ratio"] == 0.25
    assert found["completions/mean_terminated_length"] == pytest.approx(5 / 3)


def test_cut_completions_that_leave_the_loss_leave_the_fractions():
    batch = scenario(truncated=[[1, 0], [0, 0]]).choose("truncated", "drop")
    found = trl_metrics(evaluate(batch))
    assert found["clip_ratio/high_mean"] == 0
    assert found["clip_ratio/low_mean"] == pytest.approx(1 / 5)


@pytest.mark.parametrize("rewards", [[[1, 0]], [[None, None]]])
def test_an_empty_batch_logs_numbers_or_nothing(rewards):
    batch = evaluate(build_scenario(rewards=rewards, mask=[[[0], [0]]]))
    for metrics in (trl_metrics, verl_metrics):
        assert all(np.isfinite(value) for value in metrics(batch).values())


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("key", EXAMPLES)
def test_every_name_of_an_example_is_a_number_with_a_help(trainer, key):
    metrics = {"TRL": trl_metrics, "verl": verl_metrics}[trainer]
    found = metrics(evaluate(EXAMPLES[key].scenario))
    assert found
    for name, value in found.items():
        assert type(value) in (int, float), name
        assert not np.isnan(value), name
        assert metric_help(trainer, name).endswith("."), name


def test_a_name_that_is_not_logged_has_no_help():
    assert metric_help("TRL", "actor/pg_loss") == ""


@given(st.data())
def test_every_row_of_every_stage_can_be_logged(data):
    rows = [(key, row) for key, stage in STAGES.items() for row in stage.variants]
    stage, row = data.draw(st.sampled_from(rows))
    batch = scenario(
        advantages=[[1, -1], [0, 0]],
        token_advantages=np.ones((2, 2, 2)),
        entropy=np.ones((2, 2, 2)),
        truncated=[[0, 1], [0, 0]],
        logp_sampler=np.full((2, 2, 2), -1.1),
        sampler_weights=np.ones((2, 2, 2)),
        step_ends=np.zeros((2, 2, 1)),
        step_rewards=[[[1.0], [0.0]], [[1.0], [1.0]]],
    ).choose(stage, row)
    for metrics in (trl_metrics, verl_metrics):
        found = metrics(evaluate(batch))
        assert all(not np.isnan(value) for value in found.values()), found
