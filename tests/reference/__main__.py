"""``python -m tests.reference PATH...``: recorded cases against the core, counted by source."""

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from tests.reference import recorded_runs
from tests.reference.recorded import Unsupported, cases
from tests.reference.sources import checks

_SHOWN = 5  # failures told in full, for each source


def files(paths):
    """Case files and recorded batches among paths; of folders all that is in them."""
    for path in map(Path, paths):
        if not path.is_dir():
            yield path
            continue
        yield from (file for file in sorted(path.rglob("*.json")) if _holds_cases(file))
        yield from sorted(path.rglob("*.npz"))


def _holds_cases(path):
    return isinstance(json.loads(path.read_text(encoding="utf-8")), dict)


def judge(case):
    """('passed' | 'failed' | 'unsupported', reason)."""
    read = recorded_runs.checks if isinstance(case, Path) else checks
    try:
        with np.errstate(all="ignore"):
            failed = [check for check in read(case) if not check.passes]
    except Unsupported as reason:
        return "unsupported", str(reason)
    except Exception as error:  # a case that cannot be read has failed, whatever the reason
        return "failed", f"{type(error).__name__}: {error}"
    if failed:
        worst = max(failed, key=lambda check: check.distance)
        return "failed", f"{worst.name} is off by {worst.distance:.3g}"
    return "passed", ""


def report(path, out=print):
    """Judge one file; returns its counts."""
    table, reasons = defaultdict(Counter), defaultdict(Counter)
    failures = defaultdict(list)
    for source, name, case in _entries(path):
        verdict, reason = judge(case)
        table[source][verdict] += 1
        if verdict == "unsupported":
            reasons[source][reason] += 1
        if verdict == "failed":
            failures[source].append(f"{name}: {reason}")
    out(str(path))
    for source, counts in sorted(table.items()):
        out(f"  {source}: {_counted(counts)}")
        for reason, count in reasons[source].items():
            out(f"    unsupported {count}: {reason}")
        for line in failures[source][:_SHOWN]:
            out(f"    failed {line}")
        if len(failures[source]) > _SHOWN:
            out(f"    and {len(failures[source]) - _SHOWN} more")
    return sum(table.values(), Counter())


def _entries(path):
    """(source, name, what `judge` takes) of each case; a recorded batch is one."""
    if path.suffix == ".npz":
        return [("a batch recorded in TRL's trainer", path.stem, path)]
    return [(case["source"], case["id"], case) for case in cases(path)]


def _counted(counts):
    return ", ".join(f"{counts[key]} {key}" for key in ("passed", "failed", "unsupported"))


def main(arguments=None):
    """Print the report; the exit code is 1 if a case failed, 2 if there was none."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference", description=__doc__)
    parser.add_argument("paths", nargs="+", help="case files, or folders of them")
    found = list(files(parser.parse_args(arguments).paths))
    counts = sum(map(report, found), Counter())
    print(_counted(counts))
    if not counts:
        return 2
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
