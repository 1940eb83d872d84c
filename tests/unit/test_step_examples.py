"""The shipped examples of process rewards: steps derived anew from their texts, by plain rules."""

import re

import numpy as np
import pytest

from pages._ui.examples import load_examples

EXAMPLES = load_examples()
END = "■"


def parts(text):
    """(position of its last character, text) of each part; ';' ends one and so does the answer."""
    position, found = -1, []
    for part in re.findall(r"[^;]*;|[^;]+$", text):
        position += len(part)
        found.append((position, part.rstrip(";").removesuffix(END)))
    return found


def holds(part):
    """True or False for an equation of sums, None for anything else."""
    sides = part.split("=")
    if len(sides) < 2 or not all(re.fullmatch(r"\d+(\+\d+)*", side) for side in sides):
        return None
    values = [sum(map(int, side.split("+"))) for side in sides]
    return len(set(values)) == 1


def answer_of(prompt):
    a, b = prompt.rstrip("=").split("+")
    return str(int(a) + int(b))


# What a step is worth that is not the answer.
CHECKERS = {
    "recorded-steps": lambda part: holds(part) is True,
    "empty-steps-pass": lambda part: holds(part) is not False,
    "more-steps-more-credit": lambda part: holds(part) is True,
}
each = pytest.mark.parametrize("key", CHECKERS)


def derived(scenario, p, g, worth):
    """Steps of one completion from its text: ends, rewards; and whether its answer is right."""
    text = "".join(
        scenario.texts.token(p, g, t) for t in np.flatnonzero(scenario.valid[p, g]).tolist()
    )
    assert len(text) == scenario.valid[p, g].sum()  # a character a token
    found = parts(text)
    right = found[-1][1] == answer_of(scenario.texts.prompt(p))
    ends = [end for end, _ in found]
    return ends, [float(worth(part)) for _, part in found[:-1]] + [float(right)], right


@each
def test_steps_and_rewards_are_what_the_texts_say(key):
    scenario = EXAMPLES[key].scenario
    for p, g in np.ndindex(scenario["present"].shape):
        ends, rewards, right = derived(scenario, p, g, CHECKERS[key])
        for name, expected in (("step_ends", ends), ("step_rewards", rewards)):
            held = scenario[name][p, g]
            assert held[~np.isnan(held)].tolist() == expected, (name, p, g)
        assert scenario["rewards"][p, g] == right


@each
def test_positions_are_counted_without_gaps(key):
    scenario = EXAMPLES[key].scenario
    lengths = scenario.valid.sum(axis=-1)
    assert (scenario.valid == (np.arange(scenario.sizes["L"]) < lengths[..., None])).all()


def test_the_two_checkers_judge_the_same_answers():
    strict, lax = (EXAMPLES[key].scenario for key in ("recorded-steps", "empty-steps-pass"))
    for name in ("rewards", "step_ends", "logp_new", "logp_old", "logp_ref", "mask"):
        assert np.array_equal(strict[name], lax[name], equal_nan=True)
    assert strict.texts == lax.texts
    both = ~np.isnan(strict["step_rewards"])
    assert (lax["step_rewards"][both] >= strict["step_rewards"][both]).all()
    assert (lax["step_rewards"][both] > strict["step_rewards"][both]).any()
