"""QUESTIONS: what users of trainers asked in public, each with a small batch that answers it."""

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


__all__ = ["QUESTIONS", "TOPICS", "Answer", "Question", "of_topic"]
