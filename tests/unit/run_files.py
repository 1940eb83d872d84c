"""Made-up files of training runs, as bytes, as folders and as uploads."""

import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

from pages._ui.runs.opening import look, open_run, sources_of_path, sources_of_uploads


def parquet(columns, **options):
    """A Parquet file with columns: name -> list or Arrow array."""
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def trl(step=1, prompts=("a?", "b?"), size=2, **columns):
    """A batch as TRL writes it; ``columns`` replace its own, None takes one away.

    ``step`` may be the whole column, too.
    """
    rows = [prompt for prompt in prompts for _ in range(size)]
    count = len(rows)
    number = step if isinstance(step, int) else 1
    given = {
        "step": [step] * count if isinstance(step, int) else step,
        "prompt": rows,
        "completion": [f"answer {number}.{at}" for at in range(count)],
        "accuracy_reward": [float((at + number) % 2) for at in range(count)],
        "advantage": [(-1.0) ** (at + number + 1) for at in range(count)],
    } | columns
    return {name: values for name, values in given.items() if values is not None}


def trl_name(step):
    return f"completions/completions_{step:05d}.parquet"


def trl_run(steps=(1, 2, 3), **options):
    """name -> bytes of a run with a file a step."""
    return {trl_name(step): parquet(trl(step, **options)) for step in steps}


def lines(records):
    """JSON Lines; Python writes NaN and Infinity as bare words, as trainers do."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def zipped(files, **options):
    """A zip archive of name -> bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data, **options)
    return buffer.getvalue()


def written(folder, files):
    """The folder with files name -> bytes in it."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(folder)


def uploaded(files, roles=None):
    """The `OpenedRun` of an upload, name -> bytes."""
    return open_run(look(sources_of_uploads(list(files.items()))), roles)


def opened(path, roles=None):
    """The `OpenedRun` of a path."""
    return open_run(look(sources_of_path(str(path))), roles)


def roles_of(files):
    """Column -> guessed role of an upload."""
    found = look(sources_of_uploads(list(files.items()))).columns
    return {column.name: column.role for column in found}


def cells(run, name="completion"):
    """Completions of each group, as texts."""
    return [[pair[1] for pair in run.texts(q)] for q in range(len(run.run.steps))]
