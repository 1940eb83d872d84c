"""Small policies over a few answers, whose gradient is known exactly."""

from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError
from .inputs import checked_array, checked_number, refuse
from .variants import Number

LOGIT = Number(low=-1e3, high=1e3)
REWARD = Number(low=-1e6, high=1e6)
RATE = Number(low=0.0, high=1.0)
MOST_ANSWERS = 64
_COUNT = Number(low=1, high=MOST_ANSWERS // 2, integer=True)
_SCORE = Number(low=-1e6, high=1e6)


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerPolicy:
    """What one sample can be: P prompts with K answers each, D parameters.

    Attributes
    ----------
    probabilities, rewards : ndarray, (P, K)
        Of each answer; an answer that is not there has probability 0.
    scores : ndarray, (P, K, D)
        Gradient of the answer's log-probability by the parameters.
    value : ndarray, (P,)
        Expected reward: what a perfect value network would say.
    reward_variance : ndarray, (P,)
    gradient : ndarray, (P, D)
        Of the value by the parameters: E[R S], what every estimator aims at.
    score_square : ndarray, (P,)
        E |S|^2, the trace of the Fisher information.
    best_constant : ndarray, (P,)
        E[R |S|^2] / E |S|^2, the baseline that makes the noise smallest. It is not the value.
    """

    probabilities: np.ndarray
    rewards: np.ndarray
    scores: np.ndarray
    value: np.ndarray
    reward_variance: np.ndarray
    gradient: np.ndarray
    score_square: np.ndarray
    best_constant: np.ndarray

    @property
    def squares(self):
        """|S|^2 of each answer, shape (P, K)."""
        return np.sum(self.scores**2, axis=2)

    def noise_about(self, baseline):
        """E[(R - b)^2 |S|^2] - |gradient|^2 for a constant b of each prompt (P,); (P,).

        The variance of one sample's gradient, all parameters together. A baseline that does
        not read the sample leaves the mean alone, since E S = 0.
        """
        off = self.rewards - np.asarray(baseline)[..., None]
        second = np.sum(self.probabilities * off**2 * self.squares, axis=1)
        return above_rounding(second - np.sum(self.gradient**2, axis=1), second)


def above_rounding(difference, size):
    """A difference that cannot be negative; 0 where rounding could have made it."""
    return np.where(difference > 1e-14 * size, difference, 0.0)


def softmax_policy(logits, rewards):
    """A softmax over a few answers to each prompt, a logit each.

    Parameters
    ----------
    logits : array-like, shape (P, K)
        NaN where a prompt has fewer than K answers.
    rewards : array-like, shape (P, K)
        Of each answer.

    Returns
    -------
    AnswerPolicy
        D is K: ``d log p(a) / d logit(j) = [a = j] - p(j)``.

    Raises
    ------
    ScenarioError
        Logits beyond 1,000, rewards beyond a million, shapes that differ, a prompt without
        answers, or more than 64 of them.
    """
    logits = checked_array("logits", logits, "PK", LOGIT, blank=True)
    there = ~np.isnan(logits)
    if not np.all(np.any(there, axis=1)):
        blank = int(np.argmin(np.any(there, axis=1)))
        raise ScenarioError(
            f"logits of prompt {blank} are blank; wanted at least one answer",
            field="logits",
            where=(blank,),
        )
    top = np.max(np.where(there, logits, -np.inf), axis=1, keepdims=True)
    with np.errstate(under="ignore"):
        weights = np.where(there, np.exp(np.where(there, logits - top, 0.0)), 0.0)
    probabilities = weights / np.sum(weights, axis=1, keepdims=True)
    scores = np.eye(logits.shape[1]) - probabilities[:, None, :]  # (P, K, K)
    return policy_of(probabilities, rewards, scores)


def rate_policy(rates, right=2, wrong=2):
    """A softmax policy that is right at the rates given, evenly over several answers.

    Parameters
    ----------
    rates : array-like, shape (P,)
        Success rate of each prompt.
    right, wrong : int
        How many right answers (reward 1) and wrong ones (0). With one of each the score
        is a function of the reward, and every estimator looks better than it is.
    """
    rates = checked_array("rates", rates, "P", RATE)
    right, wrong = checked_number("right", right, _COUNT), checked_number("wrong", wrong, _COUNT)
    is_right = np.arange(right + wrong) < right
    probabilities = np.where(is_right, rates[:, None] / right, (1 - rates[:, None]) / wrong)
    scores = np.eye(right + wrong) - probabilities[:, None, :]
    return policy_of(probabilities, np.broadcast_to(is_right, probabilities.shape), scores)


def token_policy(rates):
    """Sequences of T tokens, each 1 at a rate of its own, right if all are 1.

    Parameters
    ----------
    rates : array-like, shape (T,)
        At most 6 of them. Every token has a logit.

    Returns
    -------
    AnswerPolicy
        One prompt, ``2**T`` answers, D is T: the token's score is ``token - rate``.
    """
    rates = checked_array("rates", rates, "M", RATE)
    if rates.size > 6:
        raise ScenarioError(f"rates has {rates.size} tokens; wanted at most 6", field="rates")
    tokens = (np.arange(2**rates.size)[:, None] >> np.arange(rates.size)) & 1  # (K, T)
    probabilities = np.prod(np.where(tokens == 1, rates, 1 - rates), axis=1)
    return policy_of(probabilities[None], np.all(tokens, axis=1)[None], (tokens - rates)[None])


def policy_of(probabilities, rewards, scores):
    """Any policy whose answers, rewards and scores are known, see `AnswerPolicy`.

    Raises
    ------
    ScenarioError
        Shapes that do not fit, more than 64 answers, probabilities that do not add up to 1.
    """
    probabilities = checked_array("probabilities", probabilities, "PK", RATE)
    there = probabilities > 0
    rewards = checked_array("rewards", rewards, "PK", REWARD, blank=True)
    scores = checked_array("scores", scores, "PKS", _SCORE)
    if rewards.shape != probabilities.shape or scores.shape[:2] != probabilities.shape:
        raise ScenarioError(
            f"rewards has shape {rewards.shape}; expected {probabilities.shape}, a reward for "
            "each answer",
            field="rewards",
        )
    if probabilities.shape[1] > MOST_ANSWERS:
        raise ScenarioError(
            f"there are {probabilities.shape[1]} answers; wanted at most {MOST_ANSWERS}",
            field="probabilities",
        )
    sums = np.sum(probabilities, axis=1)
    refuse("probabilities", sums, np.abs(sums - 1) > 1e-9, "P", "a sum of 1")
    refuse("rewards", rewards, there & np.isnan(rewards), "PK", "a number for every answer")
    return _with_moments(probabilities, rewards, scores)


def _with_moments(p, rewards, scores):
    first = np.take_along_axis(rewards, np.argmax(p > 0, axis=1)[:, None], axis=1)
    rewards = np.where(p > 0, rewards, first)
    # Deviations from one reward are exactly 0 where all rewards are equal.
    value = first[:, 0] + np.sum(p * (rewards - first), axis=1)
    off = rewards - value[:, None]
    squares = np.sum(scores**2, axis=2)
    score_square = np.sum(p * squares, axis=1)
    pull = np.sum(p * off * squares, axis=1)
    return AnswerPolicy(
        probabilities=p,
        rewards=rewards,
        scores=scores,
        value=value,
        reward_variance=np.sum(p * off**2, axis=1),
        gradient=np.sum((p * off)[..., None] * scores, axis=1),
        score_square=score_square,
        best_constant=value
        + np.where(score_square > 0, pull, 0.0) / np.where(score_square > 0, score_square, 1.0),
    )
