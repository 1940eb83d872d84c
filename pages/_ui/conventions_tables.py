"""The settings side by side, and what their trainers log, as tables to read."""

import pandas as pd

from grpo_core.comparison import OWN, label_of
from grpo_core.trainer_metrics import TRAINERS, metric_help

from .conventions_rows import LOGS
from .conventions_words import NAN, SPOILT_SHORT, kl_words, short_cause
from .numbers import MISSING, number, percent

BASE_MARK = "◆"
HOW = "how it is averaged"
# What a metric's own words leave open: by what it is averaged, and which of several it is.
_MORE = {
    "loss": "Averaged by loss_type.",
    "actor/pg_loss": "Averaged by loss_agg_mode.",
    "clip_ratio/low_mean": "Below the band with A < 0, of all tokens.",
    "clip_ratio/low_min": "Below, in the completion with the least.",
    "clip_ratio/high_mean": "Above the band with A > 0, of all tokens.",
    "clip_ratio/high_max": "Above, in the completion with the most.",
    "clip_ratio/region_mean": "Either, of all tokens.",
}
# What is made of rewards, and so NaN in a trainer that handles no missing one.
_OF_REWARDS = ("actor/pg_loss", "critic/")


def settings_frame(rows, base):
    """Loss, KL, gradient, clipping and difference to the base, a row a setting.

    Parameters
    ----------
    rows : mapping of str to Row
    base : str
    """
    return pd.DataFrame(
        [_cells(row) for row in rows.values()],
        index=pd.Index(
            [_name(row, base) for row in rows.values()], name=f"{BASE_MARK} is the base"
        ),
    )


def _name(row, base):
    return f"{BASE_MARK} {row.label}" if row.key == base else row.label


def _cells(row):
    known = {
        "loss": number(row.loss),
        "mean KL": number(row.mean_kl),
        "which KL": kl_words(row.conventions),
        "gradient norm": number(row.gradient_norm),
        "clipped": percent(row.clip),
        "largest difference": number(row.largest) if row.where or row.lost else "0",
        "explained by one choice": short_cause(row) or MISSING,
    }
    if not row.lost:
        return known if row.largest == row.largest else known | {"largest difference": MISSING}
    lost = {"loss": NAN, "gradient norm": NAN, "clipped": MISSING, "largest difference": MISSING}
    return known | lost | {"explained by one choice": SPOILT_SHORT}


def logged_columns(trainer, keys):
    """Settings whose log of a trainer stands side by side: the example's own, and its presets.

    Of the presets those that are compared; the trainer's first where none of them is.
    """
    begins, _ = LOGS[trainer]
    presets = [key for key in keys if key.startswith(begins)]
    return [OWN, *(presets or [FIRST_PRESET[trainer]])]


FIRST_PRESET = {"TRL": "trl-1.16", "verl": "verl-0.9.1-grpo"}


def logged_frame(trainer, rows):
    """What a trainer's dashboard shows, a row a name.

    Parameters
    ----------
    trainer : str
        Key of `LOGS`.
    rows : mapping of str to Row
        Each with a log of the trainer.

    Returns
    -------
    DataFrame
        A column for each setting, a dash where nothing is logged under it, and how the number
        is averaged.
    """
    logs = {row.label: _log(trainer, row, rows) for row in rows.values()}
    names = dict.fromkeys(name for log in logs.values() for name in log)
    frame = pd.DataFrame(
        {label: [log.get(name, MISSING) for name in names] for label, log in logs.items()},
        index=pd.Index(list(names), name=f"{trainer} logs"),
    )
    return frame.assign(**{HOW: [_how(trainer, name) for name in names]})


def _how(trainer, name):
    return " ".join(filter(None, (metric_help(trainer, name), _MORE.get(name))))


def _log(trainer, row, rows):
    lost = any(each.lost for each in rows.values())
    return {
        name: NAN if lost and name.startswith(_OF_REWARDS) else number(value)
        for name, value in row.logged[trainer].items()
    }


def logged_line(trainer, rows):
    """What the log does not hold here, and what would be no number in it."""
    names = [name for row in rows.values() for name in row.logged[trainer]]
    absent = [row.name for row in TRAINERS[trainer] if not _begins(names, row.name)]
    said = []
    if any(row.lost for row in rows.values()):
        said.append(f"{NAN}: {trainer} does not handle a missing reward.")
    if absent:
        said.append(
            f"Not logged here, since the conventions do not use it or the batch does not hold it: "
            f"{', '.join(name.rstrip('/') for name in absent)}."
        )
    if len({row.label for row in rows.values()}) > 1:
        said.append(f"{label_of(OWN).capitalize()}: as if {trainer} ran the example's conventions.")
    return " ".join(said)


def _begins(names, name):
    return any(each == name or (name.endswith("/") and each.startswith(name)) for each in names)
