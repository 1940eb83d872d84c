"""Sums and means over the completions of each step of a run."""

import numpy as np


class BySteps:
    """Q groups with G completions each, added up by the S steps that they belong to."""

    def __init__(self, run):
        self.step, self.size = run.step_index, len(run.every_step)

    def sums(self, per_group):
        """Sum of a value per group (Q,) by step, (S,)."""
        return np.bincount(self.step, per_group, minlength=self.size)

    def mean(self, values, counts):
        """Mean by step of values (Q, G) over the completions that count; NaN without any."""
        counts = counts & np.isfinite(values)
        number = self.sums(counts.sum(axis=1))
        sums = self.sums(np.where(counts, values, 0.0).sum(axis=1))
        return np.divide(sums, number, out=np.full(self.size, np.nan), where=number > 0)

    def mean_and_error(self, values, counts):
        """Mean over completions, and its standard error from the spread of the groups' means."""
        mean = self.mean(values, counts)
        number = np.maximum(counts.sum(axis=1), 1)
        own = np.where(counts, values, 0.0).sum(axis=1) / number
        some = counts.any(axis=1)
        groups = self.sums(some)
        square = self.sums(np.where(some, np.square(own - np.nan_to_num(mean)[self.step]), 0.0))
        error = np.sqrt(square / np.maximum(groups * (groups - 1), 1))
        return mean, np.where(groups > 1, error, np.nan)

    def ratio(self, parts, whole):
        """Pooled shares (S, K): sums of parts (Q, K) over sums of wholes (Q,); NaN over 0."""
        below = self.sums(whole)
        above = np.stack([self.sums(part) for part in parts.T], axis=1)
        safe = np.where(below > 0, below, 1.0)
        return np.where(below[:, None] > 0, above / safe[:, None], np.nan)
