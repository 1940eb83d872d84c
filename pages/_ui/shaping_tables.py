"""Tables of the shaping page: what to log, and how heavily prompts count."""

import numpy as np
import pandas as pd

from grpo_core.shaping_potential import CREDITS

from .numbers import MISSING, number, percent


def log_frame(log, names):
    """What a run should log, computed on the batch.

    Returns
    -------
    DataFrame
        A row for the task and for each term: mean value, share of the spread, correlation
        with the task within groups.
    """
    correlation = ["", *(number(value, 3) for value in log.correlation.tolist())]
    means = [log.task_mean, *log.term_means.tolist()]
    return pd.DataFrame(
        {
            "mean": [number(value) for value in means],
            "share of spread": [percent(value) for value in log.mean_shares.tolist()],
            "correlation with task": correlation,
        },
        index=pd.Index(list(names), name="log apart"),
    )


def batch_frame(log):
    """What a run should log of the batch as a whole: one row a quantity."""
    right, wrong = log.right_length, log.wrong_length
    above = "" if np.isnan(log.right_above) else f" (task above {number(log.right_above)})"
    rows = {
        "groups decided by shaping alone": percent(log.decided_share),
        f"mean length of right answers{above}": number(right) if right == right else MISSING,
        "mean length of wrong answers": number(wrong) if wrong == wrong else MISSING,
    }
    return pd.DataFrame({"this batch": rows}).rename_axis("log beside it")


def prompt_weight_frame(view):
    """How heavily two prompts count under each way of giving credit."""
    rows = {
        CREDITS[key].label: {
            "rewards as above": number(view.wide[key], 3),
            "ten times closer": number(view.close[key], 3),
        }
        for key in CREDITS
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("weight of a prompt")
