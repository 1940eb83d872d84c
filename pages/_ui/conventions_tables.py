"""The settings side by side, as a table to read."""

import pandas as pd

from .conventions_words import short_cause
from .numbers import MISSING, change, number, percent

BASE_MARK = "◆"
_ROUNDING = 1e-15  # a sum of KLs of both signs that is smaller is 0


def settings_frame(rows, base, former=None):
    """Loss, KL, gradient, clipping and difference to the base, a row a setting.

    Parameters
    ----------
    rows : mapping of str to Row
    base : str
    former : mapping of str to Row or None
        Before the last edit; what changed is written as ``before → now``.
    """
    before = former or {}
    return pd.DataFrame(
        [_cells(row, before.get(key, row)) for key, row in rows.items()],
        index=pd.Index(
            [_name(row, base) for row in rows.values()], name=f"{BASE_MARK} is the base"
        ),
    )


def _name(row, base):
    return f"{BASE_MARK} {row.label}" if row.key == base else row.label


def _cells(row, before):
    return {
        "loss": change(before.loss, row.loss),
        "mean KL": number(row.mean_kl if abs(row.mean_kl) > _ROUNDING else 0.0),
        "gradient norm": number(row.gradient_norm),
        "clipped": percent(row.clip),
        "largest difference": number(row.largest) if row.where else "0",
        "comes mostly from": short_cause(row) or MISSING,
    }
