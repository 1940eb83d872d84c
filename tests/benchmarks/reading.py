"""Time a long run, opened and explained, against pandas: ``python -m tests.benchmarks.reading``.

Writes Parquet files as TRL does, then opens them as a run, opens and explains them, and reads the
same columns with ``pandas.read_parquet``, in turn. Not a test: it asserts nothing.
"""

import argparse
import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from grpo_core.runs.explain import explain, say
from pages._ui.runs.opening import look, open_run, sources_of_path

GROUP = 8
REWARDS = ("accuracy_reward", "format_reward", "length_reward")
COLUMNS = ["step", "prompt", "completion", *REWARDS, "advantage"]
SENTENCE = """the sum of both sides is then we add multiply so that x equals 4 12 37 therefore wait
let me check again substitute into equation first second answer \\boxed{42} ."""
WORDS = np.array(SENTENCE.split())


def write_run(folder, steps, rows):
    """Parquet files with made-up completions of about a thousand characters."""
    random = np.random.default_rng(7)
    for step in range(1, steps + 1):
        words = random.choice(WORDS, size=(rows, 180))
        prompts = [f"Problem {step}-{i}: " + " ".join(words[i, :40]) for i in range(rows // GROUP)]
        rewards = random.random((len(REWARDS), rows)).round(2)
        total = rewards.sum(axis=0).reshape(-1, GROUP)
        scale = total.std(axis=1, ddof=1, keepdims=True) + 1e-4
        table = pd.DataFrame(
            {
                "step": [step] * rows,
                "prompt": np.repeat(prompts, GROUP),
                "completion": [" ".join(line) for line in words],
                **dict(zip(REWARDS, rewards, strict=True)),
                "advantage": ((total - total.mean(axis=1, keepdims=True)) / scale).ravel(),
            }
        )
        pq.write_table(pa.Table.from_pandas(table), folder / f"completions_{step:05d}.parquet")


def opened(folder):
    """The run in a folder."""
    return open_run(look(sources_of_path(folder)))


def explained(run):
    """What the page shows at once: the convention, all steps, the sentences."""
    return say(explain(run.run, run.log))


def seconds(function):
    """Wall and processor time of one call."""
    gc.collect()
    wall, spent = time.perf_counter(), time.process_time()
    kept = function()
    times = time.perf_counter() - wall, time.process_time() - spent
    del kept
    return times


def main(arguments):
    """Measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.reading", description=__doc__)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_run(folder, options.files, options.rows)
        files = sorted(folder.glob("*.parquet"))
        ways = {
            "opened": lambda: opened(scratch),
            "explained": lambda: explained(opened(scratch)),
            "pandas": lambda: [pd.read_parquet(file, columns=COLUMNS) for file in files],
        }
        spent = {name: [] for name in ways}
        for count in range(options.rounds + 1):
            for name, way in ways.items():
                times = seconds(way)
                if count:  # the first round only warms up
                    spent[name].append(times)
    print(f"{options.files} files of {options.rows} rows, median of {options.rounds} rounds")
    for name, times in spent.items():
        wall, own = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"  {name:9} {wall:6.3f} s by the clock, {own:6.3f} s of processor time")
    for at, what in enumerate(("clock", "processor time")):
        *ours, bare = (statistics.median(t[at] for t in times) for times in spent.values())
        ratios = ", ".join(
            f"{name} {each / bare:.2f}" for name, each in zip(ways, ours, strict=False)
        )
        print(f"  ratio by {what}: {ratios}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
