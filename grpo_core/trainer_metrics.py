"""An evaluation in the words of a trainer's dashboard: TRL's names, and verl's.

Values are those that one process would log for the batch as a single optimisation step. What
a trainer does not log under the chosen conventions is left out, and so is what is undefined,
such as the standard deviation of a single score.
"""

from types import MappingProxyType

from . import metrics_trl, metrics_verl
from .metric_readings import Metric, table_of

# By the trainer; each a table of `Metric` in the order in which it is shown.
TRAINERS = MappingProxyType({"TRL": metrics_trl.ROWS, "verl": metrics_verl.ROWS})


def trl_metrics(evaluation):
    """What TRL 1.16 logs.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario, as `evaluate` returns it.

    Returns
    -------
    dict of str to float
        ``loss``, ``reward``, ``clip_ratio/low_mean``, ... in the order of `metrics_trl.ROWS`.
    """
    return table_of(metrics_trl.ROWS, evaluation)


def verl_metrics(evaluation):
    """What verl 0.9.1 logs.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario, as `evaluate` returns it.

    Returns
    -------
    dict of str to float
        ``actor/pg_loss``, ``actor/ppo_kl``, ``critic/score/mean``, ... in the order of
        `metrics_verl.ROWS`.
    """
    return table_of(metrics_verl.ROWS, evaluation)


def metric_help(trainer, name):
    """What one name of a trainer's log means; '' for a name that is not logged.

    Examples
    --------
    >>> metric_help("verl", "actor/kl_coef")
    'Weight of the KL.'
    """
    rows = [row for row in TRAINERS[trainer] if row.name and name.startswith(row.name)]
    exact = [row for row in rows if row.name == name or row.name.endswith("/")]
    return max(exact, key=lambda row: len(row.name)).help if exact else ""


__all__ = ["TRAINERS", "Metric", "metric_help", "trl_metrics", "verl_metrics"]
