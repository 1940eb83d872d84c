"""QUESTIONS: what users of trainers asked in public, each with a small batch that answers it."""

from grpo_core import same_scenario
from grpo_core.variants import table

from . import questions_groups, questions_kl, questions_losses, questions_ratios
from .question_row import Answer, Question

QUESTIONS = table(
    *questions_groups.ROWS, *questions_losses.ROWS, *questions_ratios.ROWS, *questions_kl.ROWS
)
TOPICS = tuple(dict.fromkeys(row.topic for row in QUESTIONS.values()))


def of_topic(topic):
    """The questions on one topic, in order."""
    return [row for row in QUESTIONS.values() if row.topic == topic]


def asked_with(scenario):
    """The question whose small batch this is, bit for bit; None if it is another one."""
    return next((row for row in QUESTIONS.values() if same_scenario(scenario, row.scenario)), None)


__all__ = ["QUESTIONS", "TOPICS", "Answer", "Question", "asked_with", "of_topic"]
