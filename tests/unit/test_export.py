"""The exported script and notebook give the core's numbers with NumPy alone; the CSV is safe."""

import ast
import csv
import io
import json
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from grpo_core import STAGES, Conventions, Texts, build_scenario, evaluate
from grpo_core.terms import TERMS, Term
from grpo_core.variants import Choice, OneOf
from pages._ui import export
from pages._ui.computed import acts, per_token
from pages._ui.examples import load_examples
from pages._ui.export_code import SNIPPETS
from pages._ui.export_terms import TERM_SNIPPETS
from tests import made_up
from tests.needed import MAKERS

# What every script computes; some conventions add to it.
ALWAYS = {
    *("valid", "logp_new", "logp_old", "logp_ref", "scores", "scored", "mean", "std"),
    *("advantages", "token_advantages", "log_ratio", "ratio", "clipped_low", "clipped_high"),
    *("surrogate", "kl", "per_token", "weight", "contribution", "policy_gradient"),
    *("kl_gradient", "gradient", "objective", "loss", "mean_kl"),
}

# Runs every script of a folder, saves what each calls its results, and refuses any import
# beyond NumPy and the standard library.
RUNNER = """
import pathlib, runpy, sys
before = set(sys.modules)
import numpy as np
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    names = runpy.run_path(str(path))
    extra = {f"own_{name}": names[name] for name in ("parts", "shares") if name in names}
    np.savez(path.with_suffix(".npz"), **names["results"], **extra)
names = {name.partition(".")[0] for name in set(sys.modules) - before}
foreign = sorted(
    name for name in names
    if "site-packages" in str(getattr(sys.modules.get(name), "__file__", None) or "")
)
print("FOREIGN", foreign)
"""


def run_scripts(folder, scripts):
    """Run scripts in one isolated interpreter; results by name of the script."""
    runner = folder / "runner" / "run.py"
    runner.parent.mkdir()
    runner.write_text(RUNNER)
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", str(runner), str(folder)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().splitlines()[-1] == "FOREIGN ['numpy']"
    return {name: np.load(folder / f"{name}.npz") for name in scripts}


def assert_equal_numbers(name, results, scenario):
    """Every result has the core's shape and value, to 1e-12 in float64 and 1e-5 in float32."""
    evaluation = evaluate(scenario)
    single = evaluation.ratio.dtype == np.float32
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if single else {"rtol": 1e-12, "atol": 1e-15}
    assert set(results.files) >= ALWAYS
    own = [key for key in results.files if key.startswith("own_")]
    for key in own if evaluation.attribution else ():
        wanted = getattr(evaluation.attribution, key.removeprefix("own_"))
        np.testing.assert_allclose(results[key], wanted, rtol=1e-5, atol=1e-6, err_msg=name)
    for key in set(results.files) - set(own):
        wanted, got = np.asarray(getattr(evaluation, key)), results[key]
        assert got.shape == wanted.shape, f"{name}: {key}"
        if wanted.dtype == bool:
            np.testing.assert_array_equal(got, wanted, err_msg=f"{name}: {key}")
        else:
            np.testing.assert_allclose(got, wanted, **tolerance, err_msg=f"{name}: {key}")


def rough_scenario(seed=0, conventions=None, dtype=np.float64, **more):
    """A batch with padding, holes, a missing reward, an absent completion and a tied group."""
    rng = np.random.default_rng(seed)
    shape = (3, 4, 5)
    old = -rng.exponential(1.0, shape)
    arrays = {
        "rewards": np.array(
            [[1.0, 0.1, np.nan, 0.25], [0.1, 0.1, 0.1, 0.1], [2.0, -1.0, 0.5, 7.0]], dtype
        ),
        "logp_old": old.astype(dtype),
        "logp_new": np.minimum(old + rng.normal(0, 0.4, shape), 0).astype(dtype),
        "logp_ref": np.minimum(old + rng.normal(0, 0.3, shape), 0).astype(dtype),
        "mask": np.arange(5) < rng.integers(1, 6, (3, 4, 1)),
        "present": np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]], bool),
        "advantages": rng.normal(size=(3, 4)),
    }
    arrays["mask"][0, 1] = [True, False, True, True, False]
    arrays["mask"][0, 3] = False  # a completion without tokens
    for key in ("logp_old", "logp_new", "logp_ref"):
        arrays[key][~arrays["mask"]] = np.nan
        arrays[key][0, 0, 0] = arrays["logp_old"][0, 0, 0]  # a log-ratio of exactly 0
    arrays["logp_ref"][1, 0, 0] = arrays["logp_new"][1, 0, 0] - 1e-9
    arrays.update(shaping(rng, arrays["mask"], arrays["present"]))
    arrays.update(more)
    drift = arrays.pop("drift", 1.0)
    return with_optional(build_scenario(drift=drift, **arrays), conventions)


# Arrays that one row or another reads, beside those of `shaping`; a few cells are unknown or 0.
OPTIONAL = ("token_advantages", "logp_sampler", "sampler_weights", "entropy", "truncated")


def with_optional(scenario, conventions=None):
    """With what any row may read, in the number type of the batch, under these conventions."""
    made = {key: MAKERS[key](scenario).astype(scenario["logp_new"].dtype) for key in OPTIONAL}
    scenario = scenario.replace(**made)
    for stage, choice in (conventions or Conventions.of()).choices.items():
        scenario = scenario.choose(stage, choice.variant, **choice.options)
    return scenario


# Options that fit completions of a few tokens.
SMALL = {
    "length_linear": {"free": 1, "per": 7.0},
    "overlong": {"limit": 4, "buffer": 2},
    "cosine_length": {"limit": 3.0},
    "repetition": {"n": 2},
}


def shaping(rng, mask, present):
    """A term of every formula, with blanks, and steps: none, several at one token, a tied pool."""
    shape = mask.shape
    weights = np.resize([0.5, 1.0, 0.25, -0.5, 0.1, 2.0, 0.3], len(TERMS)).tolist()
    terms = tuple(
        Term(f"{key} $1|*", weight, Choice(key, SMALL.get(key, {})))
        for key, weight in zip(TERMS, weights, strict=True)
    )
    values = np.round(rng.normal(size=(*shape[:2], len(terms))), 1)
    values[rng.random(values.shape) < 0.25] = np.nan
    values[..., 1] = rng.choice([0.0, 1.0, np.nan], shape[:2])
    ends = np.full((*shape[:2], 4), np.nan)
    for p, g in zip(*np.nonzero(mask.any(axis=-1) & present), strict=True):
        count = rng.integers(0, 5)
        ends[p, g, :count] = np.sort(rng.choice(np.flatnonzero(mask[p, g]), count))
    rewards = np.where(np.isnan(ends), np.nan, rng.choice([0.0, 0.5, 1.0, -0.3], ends.shape))
    rewards[1] = np.where(np.isnan(ends[1]), np.nan, 0.1)
    return {
        "terms": terms,
        "term_values": values,
        "token_rewards": np.where(rng.random(shape) < 0.5, np.round(rng.normal(size=shape), 1), 0),
        "token_ids": rng.integers(0, 2, shape),
        "step_ends": ends,
        "step_rewards": rewards,
    }


SHAPED = [key for key in STAGES["rewards"].variants if key != "outcome"]


def combinations():
    """Every way of combining with every judge, and both places of the KL."""
    options = {
        "to-go": {},
        "sum": {"tokens": "sum", "missing": "as_zero", "task_weight": 0.3},
    }
    judges = {
        "std": ("mean_std", {"ddof": 1, "eps": 1e-4}),
        "mean": "mean_only",
        "given": "given",
        "process": ("process", {"outcome_weight": 0.5, "over": "completion", "ddof": 1}),
    }
    for row in SHAPED:
        rows = {f"{row}-{key}": (row, chosen) for key, chosen in options.items()}
        if row == "normalize_then_sum":
            rows |= {f"{row}-{b}": (row, {"batch_scale": b}) for b in ("completion", "token")}
        for name, chosen in rows.items():
            for judge, advantage in judges.items():
                for place in ("objective", "reward"):
                    yield (
                        f"{name}-{judge}-{place}",
                        Conventions.of(
                            rewards=chosen, advantage=advantage, kl=("k3", {"place": place})
                        ),
                    )


def formulas():
    """Scenarios with one term, of every formula with several values of each option."""
    base = rough_scenario(conventions=Conventions.of(rewards="sum_then_normalize"))
    for key, row in TERMS.items():
        choices = [SMALL.get(key, {})]
        for option in row.options:
            choices += [{**SMALL.get(key, {}), option.key: v} for v in values_of(option.domain)]
        for index, options in enumerate(choices):
            terms = (Term("a name", 0.5, Choice(key, options)),)
            yield f"term-{key}-{index}", base.with_terms(terms, base["term_values"][..., 1:2])


def values_of(domain):
    """Every value of a choice; of a number two that differ from the default."""
    if isinstance(domain, OneOf):
        return tuple(domain.words)
    if domain.integer:
        return (7, min(40, domain.high))
    return (domain.low + 0.5, domain.low + 0.05)


def every_row():
    """Conventions that between them use every variant with several values of each option."""
    rows = {"defaults": Conventions.of()}
    for stage, table in STAGES.items():
        for key, variant in table.variants.items():
            rows[f"{stage}-{key}"] = Conventions.of(**{stage: key})
            for option in variant.options:
                for value in values_of(option.domain):
                    name = f"{stage}-{key}-{option.key}-{value}".replace(".", "_")
                    rows[name] = Conventions.of(**{stage: (key, {option.key: value})})
    for key in STAGES["kl"].variants:
        rows[f"sequence-reward-{key}"] = Conventions.of(
            kl=(key, {"place": "reward"}), ratio="sequence", surrogate="dual_clip"
        )
    return rows


def mixed(seed):
    """Conventions that draw a row of every stage, and some of its options."""
    rng = np.random.default_rng(seed)
    chosen = {}
    for stage, table in STAGES.items():
        row = table.variants[rng.choice(list(table.variants))]
        options = {}
        for option in row.options:
            values = MILD.get(option.key, values_of(option.domain))
            if rng.random() < 0.5:
                options[option.key] = values[rng.integers(len(values))]
        chosen[stage] = (row.key, options)
    return Conventions.of(**chosen)


# What `values_of` would take to the edge of the option's domain, where digits are lost.
MILD = {
    "task_weight": (0.5, -2.0),
    "outcome_weight": (0.5, -2.0),
    "coefficient": (0.01, -0.5),
    "threshold": (-0.1, 0.1),
    "right_above": (0.2, 0.6),
}
ROWS = every_row()
EDGES = {
    "drift": rough_scenario(drift=1.7),
    "drift-half": rough_scenario(drift=0.5),
    "single": rough_scenario(dtype=np.float32, advantages=None),
    "single-sequence": rough_scenario(
        conventions=Conventions.of(ratio="sequence", kl=("k2", {"place": "reward"})),
        dtype=np.float32,
        advantages=None,
    ),
    "huge-rewards": rough_scenario(
        rewards=[[1e200, -1e200, 1e200, 3e200], [1e308, -1e308, 1.0, 0.0], [1e-200, 2e-200, 0, 0]]
    ),
    "no-token": rough_scenario(mask=np.zeros((3, 4, 5), bool), step_ends=None, step_rewards=None),
    "no-score": rough_scenario(rewards=np.full((3, 4), np.nan)),
    "one": build_scenario(rewards=[[1.0]]),
}


def infinite_scenario(**conventions):
    inf = np.inf
    new = [[[-1, -inf], [-1, -1], [-2, -1], [-800.0, -1]]]
    old = [[[-1, -2], [-1, -inf], [-2, -inf], [-1, -800.0]]]
    ref = [[[-inf, -2], [-1, -1], [-2, -1], [-1, -inf]]]
    return build_scenario(
        rewards=[[1, 0, 0, 1]],
        logp_new=new,
        logp_old=old,
        logp_ref=ref,
        conventions=Conventions.of(**conventions),
    )


def endless_terms(**conventions):
    """The same with a term per token and one of the length, which is equal everywhere."""
    keys = ("rewards", "logp_new", "logp_old", "logp_ref")
    return build_scenario(
        terms=(Term("t", 1.0, Choice("per_token")), Term("n", 0.5, Choice("length_linear"))),
        token_rewards=[[[0.5, 0], [0, 0.25], [0, 0], [0, 1]]],
        conventions=Conventions.of(**conventions),
        **{key: infinite_scenario()[key] for key in keys},
    )


for _row in SHAPED:
    _chosen = Conventions.of(rewards=_row)
    EDGES[f"{_row}-single"] = rough_scenario(conventions=_chosen, dtype=np.float32, advantages=None)
    EDGES[f"{_row}-huge"] = EDGES["huge-rewards"].choose("rewards", _row)
    EDGES[f"{_row}-no-term"] = rough_scenario(conventions=_chosen, terms=(), term_values=None)
    EDGES[f"{_row}-no-token"] = EDGES["no-token"].choose("rewards", _row)
    # A group of equal sums and unlike parts, and one in which all is equal.
    EDGES[f"{_row}-drop"] = rough_scenario(
        conventions=Conventions.of(rewards=_row, tied="drop"),
        rewards=np.array([[1.0, 0.0, 1.0, 0.0], [0.1] * 4, [2.0, -1.0, 0.5, 7.0]]),
        terms=(Term("a", 1.0),),
        term_values=np.array([[[0.0], [1.0], [0.0], [1.0]], [[0.3]] * 4, [[1.0]] * 4]),
    )
    for _place in ("objective", "reward"):
        for _judge in ("mean_std", "mean_only"):
            EDGES[f"{_row}-infinite-{_place}-{_judge}"] = endless_terms(
                kl=("k3", {"place": _place}), rewards=_row, advantage=_judge
            )
for _over in ("group", "completion"):
    _chosen = Conventions.of(advantage=("process", {"over": _over, "outcome_weight": 0.5}))
    EDGES[f"process-{_over}-single"] = rough_scenario(
        conventions=_chosen, dtype=np.float32, advantages=None
    )
    EDGES[f"process-{_over}-drop"] = rough_scenario(
        conventions=Conventions.of(advantage=("process", {"over": _over}), tied="drop"),
    )
    _rough = rough_scenario(conventions=_chosen)
    EDGES[f"process-{_over}-huge"] = _rough.replace(step_rewards=_rough["step_rewards"] * 1e200)

# What whitening meets: equal advantages, and such whose squares leave the range of doubles.
for _name, _reward in {"tied": 0.1, "huge": 1e200, "tiny": 1e-200}.items():
    _rewards = np.full((3, 4), _reward)
    if _name != "tied":
        _rewards[:, ::2] *= -1
    for _dtype in (np.float64, np.float32) if _name == "tied" else (np.float64,):
        EDGES[f"whitened-{_name}-{_dtype.__name__}"] = rough_scenario(
            rewards=_rewards.astype(_dtype),
            dtype=_dtype,
            advantages=None,
            conventions=Conventions.of(
                advantage="uncompared", whitening=("tokens", {"count_eps": 1e-8})
            ),
        )

for _name, _held in {"none": {"limit": 0.5}, "tokens": {"before": 0.5, "limit": 0.8}}.items():
    EDGES[f"held-{_name}"] = rough_scenario(
        conventions=Conventions.of(kl=("k1", {"place": "returns"}), whitening=(_name, _held))
    )

EDGES["infinite"] = infinite_scenario()
EDGES["infinite-both-signs"] = infinite_scenario(kl=("k1", {"place": "reward"})).replace(
    logp_old=[[[-1, -np.inf], [-1, -1], [-1, -1], [-1, -1]]],
    logp_ref=[[[-np.inf, -1], [-1, -1], [-1, -1], [-1, -1]]],
)
EDGES["infinite-zero-advantage"] = infinite_scenario().replace(rewards=[[1.0, 1.0, 1.0, 1.0]])
for _kl in STAGES["kl"].variants:
    EDGES[f"infinite-{_kl}"] = infinite_scenario(kl=_kl, ratio="sequence", surrogate="dual_clip")
    EDGES[f"infinite-reward-{_kl}"] = infinite_scenario(kl=(_kl, {"place": "reward"}))
    EDGES[f"infinite-only-{_kl}"] = infinite_scenario(
        kl=(_kl, {"place": "reward"}), advantage="mean_only"
    )


# Shipped rows that a script holds as arrays instead of computing them, with the reason.
RECORDED = {}


def test_every_variant_has_its_code():
    every = {(s, v) for s, stage in STAGES.items() for v in stage.variants}
    assert every - set(SNIPPETS) == set(RECORDED)
    assert set(SNIPPETS) <= every


def test_script_gives_equal_numbers_where_every_stage_acts(tmp_path):
    scenarios = {f"mixed-{seed}": rough_scenario(conventions=mixed(seed)) for seed in range(60)}
    for seed in range(60, 90):
        conventions = mixed(seed)
        if conventions["advantage"].variant != "given":  # which is in double precision
            more = {"dtype": np.float32, "advantages": None}
            scenarios[f"single-{seed}"] = rough_scenario(conventions=conventions, **more)
    programs = {name: export.script(scenario) for name, scenario in scenarios.items()}
    results = run_scripts(tmp_path, programs)
    for name, scenario in scenarios.items():
        assert_equal_numbers(name, results[name], scenario)
        assert max(map(len, programs[name].splitlines())) <= 100, name


def test_script_gives_equal_numbers_of_every_row_beside_infinities(tmp_path):
    base = infinite_scenario()
    needed = ("advantages", "step_ends", "step_rewards", "token_rewards", "token_ids")
    base = base.replace(**{key: MAKERS[key](base) for key in needed})
    scenarios = {name: with_optional(base, row) for name, row in ROWS.items()}
    programs = {name: export.script(scenario) for name, scenario in scenarios.items()}
    results = run_scripts(tmp_path, programs)
    for name, scenario in scenarios.items():
        assert_equal_numbers(name, results[name], scenario)
        assert max(map(len, programs[name].splitlines())) <= 100, name


WIDE_REWARDS = [[1e200, -1e200, 1e200, 3e200], [1e150, 0.0, 1.0, 0.0], [1e-200, 2e-200, 0, 0]]


@pytest.mark.parametrize("row", ["leave_one_out", "batch_std", "over_mean"])
def test_scores_beyond_the_range_of_squares_are_recorded_by_rows_of_no_unit(tmp_path, row):
    scenario = rough_scenario(rewards=WIDE_REWARDS).choose("advantage", row)
    program = export.script(scenario)
    assert "no plain-NumPy transcription yet" in program
    assert_equal_numbers(row, run_scripts(tmp_path, {"wide": program})["wide"], scenario)


def test_every_formula_of_a_term_has_its_code():
    assert set(TERM_SNIPPETS) == set(TERMS)


def test_script_gives_equal_numbers_for_every_combination_and_formula(tmp_path):
    scenarios = {name: rough_scenario(conventions=row) for name, row in combinations()}
    scenarios |= dict(formulas())
    programs = {name: export.script(scenario) for name, scenario in scenarios.items()}
    results = run_scripts(tmp_path, programs)
    for name, scenario in scenarios.items():
        assert_equal_numbers(name, results[name], scenario)
        told = evaluate(scenario).attribution is not None
        assert ("own_shares" in results[name].files) == told, name
        assert max(map(len, programs[name].splitlines())) <= 100, name


def test_steps_are_among_the_results(tmp_path):
    scenario = rough_scenario(conventions=Conventions.of(advantage="process"))
    results = run_scripts(tmp_path, {"steps": export.script(scenario)})["steps"]
    assert_equal_numbers("steps", results, scenario)
    assert "step_advantages" in results.files


def test_a_formula_without_code_is_written_as_its_values(tmp_path, monkeypatch):
    monkeypatch.delitem(TERM_SNIPPETS, "overlong")
    monkeypatch.delitem(TERM_SNIPPETS, "per_token")
    scenario = rough_scenario(conventions=Conventions.of(rewards="sum_then_normalize"))
    program = export.script(scenario)
    assert program.count("no plain-NumPy transcription yet") == 2
    results = run_scripts(tmp_path, {"values": program})["values"]
    assert_equal_numbers("values", results, scenario)


NAMES = ["a\nimport os", "'" * 3, "x\u2028import os", '"' * 3, "a\rb", "#", "\\"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_term_is_never_code(name):
    scenario = rough_scenario(conventions=Conventions.of(rewards="add_after"))

    def program(first):
        terms = (Term(first, 0.5), *scenario.terms[1:])
        return ast.dump(
            ast.parse(export.script(scenario.with_terms(terms, scenario["term_values"])))
        )

    assert program(name) == program("a")


def test_script_gives_equal_numbers_for_every_row_and_edge(tmp_path):
    scenarios = {name: rough_scenario(conventions=row) for name, row in ROWS.items()} | EDGES
    results = run_scripts(tmp_path, {n: export.script(s) for n, s in scenarios.items()})
    for name, scenario in scenarios.items():
        assert_equal_numbers(name, results[name], scenario)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_without_code_is_written_as_its_arrays(tmp_path, monkeypatch, dtype):
    scenarios, more = {}, {} if dtype == np.float64 else {"advantages": None}
    for name, (stage, row) in zip(made_up.NAMES, made_up.ROWS, strict=True):
        made_up.add(monkeypatch, stage, row)
        for ratio in ("token", "sequence"):
            choice = {"ratio": ratio, "surrogate": "dual_clip", stage: row.key}
            scenario = rough_scenario(conventions=Conventions.of(**choice), dtype=dtype, **more)
            scenarios[f"{name}-{ratio}"] = scenario
    programs = {name: export.script(scenario) for name, scenario in scenarios.items()}
    results = run_scripts(tmp_path, programs)
    for name, scenario in scenarios.items():
        assert_equal_numbers(name, results[name], scenario)
        assert "no plain-NumPy transcription yet" in programs[name], name
        assert max(map(len, programs[name].splitlines())) <= 100, name


def test_rows_without_code_work_together(tmp_path, monkeypatch):
    # The last made-up row of each stage: everything is an array, infinities included.
    rows = dict(made_up.ROWS)
    for stage, row in rows.items():
        made_up.add(monkeypatch, stage, row)
    choice = {stage: row.key for stage, row in rows.items()}
    scenario = rough_scenario(conventions=Conventions.of(**choice))
    book = json.loads(export.notebook(scenario, "Title"))
    code = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    results = run_scripts(tmp_path, {"all": export.script(scenario), "book": "\n".join(code)})
    for name in ("all", "book"):
        assert_equal_numbers(name, results[name], scenario)


def test_script_gives_equal_numbers_for_every_example(tmp_path):
    examples = load_examples()
    assert examples
    scripts = {key: export.script(row.scenario) for key, row in examples.items()}
    results = run_scripts(tmp_path, scripts)
    for key, row in examples.items():
        assert_equal_numbers(key, results[key], row.scenario)


def test_script_holds_the_arrays_bit_for_bit():
    scenario = rough_scenario(seed=3)
    program = export.script(scenario)
    tree = ast.parse(program)
    assigned = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    rewards = assigned["rewards"]
    listed = ast.unparse(rewards.args[0]).replace("nan", "None")
    got = np.array(ast.literal_eval(listed), dtype=np.float64)
    present = scenario["present"]
    assert got[present].tobytes() == scenario["rewards"][present].tobytes()


def test_script_stays_within_100_columns_and_names_its_conventions():
    for name, row in ROWS.items():
        program = export.script(rough_scenario(conventions=row))
        assert max(map(len, program.splitlines())) <= 100, name
        flat = " ".join(program.split())
        for stage in STAGES:
            assert row.variant(stage).label in flat
    for name, scenario in EDGES.items():
        assert max(map(len, export.script(scenario).splitlines())) <= 100, name


def test_script_says_only_what_is_chosen():
    program = export.script(rough_scenario())
    words = ("dual", "sequence", "reward_penalty", "float32", "drift", "times(", "kept", "factor",
             "selected", "correction", "entropy", "clamp", "own_kl")  # fmt: skip
    for absent in words:
        assert absent not in program.split('"""')[2]


def test_results_hold_what_only_some_conventions_compute():
    dual = export.script(rough_scenario(conventions=Conventions.of(surrogate="dual_clip")))
    assert '"dual_clipped": dual_clipped' in dual
    reward = Conventions.of(kl=("k1", {"place": "reward"}))
    assert '"reward_penalty": reward_penalty' in export.script(rough_scenario(conventions=reward))


def test_script_holds_no_text_of_the_example():
    texts = Texts(("import os # prompt",), ((("token text",),),))
    scenario = build_scenario(rewards=[[1.0]], texts=texts)
    for made in (export.script(scenario), export.notebook(scenario, "Title")):
        assert "import os" not in made
        assert "token text" not in made


def test_notebook_is_valid_and_runs_to_the_scripts_numbers(tmp_path):
    scenario = rough_scenario(conventions=Conventions.of(ratio="sequence"))
    book = json.loads(export.notebook(scenario, "A *title*\n# with <b>markup</b>"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in book["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        assert isinstance(cell["metadata"], dict)
        assert all(isinstance(line, str) for line in cell["source"])
        assert all(line.endswith("\n") for line in cell["source"][:-1])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            ast.parse("".join(cell["source"]))
    heading = book["cells"][0]["source"][0]
    assert heading == "# A \\*title\\* \\# with \\<b\\>markup\\</b\\>\n"
    code = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    results = run_scripts(tmp_path, {"notebook": "\n\n".join(code)})
    assert_equal_numbers("notebook", results["notebook"], scenario)


def test_notebook_shows_the_formula_of_each_chosen_variant():
    scenario = rough_scenario()
    book = json.loads(export.notebook(scenario, "Title"))
    shown = "".join("".join(c["source"]) for c in book["cells"] if c["cell_type"] == "markdown")
    for stage in STAGES:
        formula = f"${scenario.conventions.variant(stage).formula}$"
        assert (formula in shown) == acts(scenario.conventions, stage), stage


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_tables_hold_every_number_in_full():
    scenario = rough_scenario(seed=5)
    evaluation = evaluate(scenario)
    tables = export.tables_csv(evaluation)
    groups, completions, tokens = (
        read(tables[name]) for name in ("groups.csv", "completions.csv", "tokens.csv")
    )
    assert [float(row["mean"]) for row in groups] == evaluation.mean.tolist()
    assert [row["tied"] for row in groups] == ["false", "true", "false"]
    assert [row["scored"] for row in groups] == ["3", "4", "3"]
    assert len(completions) == scenario["present"].sum()
    present = scenario["present"]
    assert [float(r["advantage"]) for r in completions] == evaluation.advantages[present].tolist()
    assert completions[2]["reward"] == completions[2]["score"] == ""
    assert len(tokens) == evaluation.valid.sum()
    assert {"ratio", "kl_penalty", "dual_clipped", "gradient"} < set(per_token(evaluation))
    for key in per_token(evaluation):
        values = getattr(evaluation, key)[evaluation.valid]
        if values.dtype == bool:
            assert [row[key] == "true" for row in tokens] == values.tolist()
        else:
            assert [float(row[key]) for row in tokens] == values.tolist()


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", ";=1", "a;=1", "a\t-1",
            "a\r\n@x", "a; +1", 'a;"=1"', "a;;=1;@x"]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_csv_text_is_never_a_formula_whatever_the_separator(text):
    texts = Texts((text,), (((text,),),))
    tables = export.tables_csv(evaluate(build_scenario(rewards=[[-1.0]], texts=texts)))
    for name, table in tables.items():
        (row,) = csv.DictReader(io.StringIO(table, newline=""))
        assert row["text"].replace("'", "") == text, name
        starts = [part.lstrip(' "')[:1] for part in re.split("[;\t\r\n]", row["text"])]
        assert not {"=", "+", "-", "@"} & set(starts), name
    assert read(tables["completions.csv"])[0]["reward"] == "-1.0"


@pytest.mark.parametrize("text", ["a-1", "a=b;c", "3 - 2", "a; b-c", "'"])
def test_csv_leaves_other_text_as_it_is(text):
    texts = Texts((text,), ())
    table = export.tables_csv(evaluate(build_scenario(rewards=[[1.0]], texts=texts)))["groups.csv"]
    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    assert row["text"] == text


def test_csv_quotes_what_would_break_a_row():
    texts = Texts(('a "b", c\nd',), ())
    table = export.tables_csv(evaluate(build_scenario(rewards=[[1.0]], texts=texts)))["groups.csv"]
    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    assert row["text"] == 'a "b", c\nd'


def test_zip_holds_the_tables_and_does_not_know_the_time():
    evaluation = evaluate(rough_scenario())
    made = export.tables_zip(evaluation)
    assert made == export.tables_zip(evaluation)
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.testzip() is None
        tables = {name: archive.read(name).decode() for name in archive.namelist()}
    assert tables == export.tables_csv(evaluation)


def test_conventions_text_names_each_choice_in_the_words_of_the_tables():
    for name, row in ROWS.items():
        text = export.conventions_text(row)
        for stage in STAGES:
            variant = row.variant(stage)
            assert f"{variant.label}. TRL: {variant.trl}. verl: {variant.verl}. Open" in text, name
            for key, value in row[stage].options.items():
                option = variant.option(key)
                words = getattr(option.domain, "words", {}).get(value, value)
                assert f"{option.label}: {words}. TRL: {option.trl}." in text, name
