"""Texts of one prompt as lines to edit: a completion a line, its tokens separated by blanks."""

from dataclasses import replace

import numpy as np

from grpo_core import ScenarioError, Texts

# What stands for a character that would be lost between tokens.
_SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"}
_NO_TEXT = "∅"  # a token whose text is not known, between others
_LONGEST = 200  # characters of a token
_LONGEST_PROMPT = 10_000


def lines_of(scenario, prompt):
    """The texts of a prompt's tokens that count, as `with_lines` reads them."""
    texts = scenario.texts
    rows = []
    for g, valid in enumerate(scenario.valid[prompt]):
        tokens = [texts.token(prompt, g, t) for t in np.flatnonzero(valid).tolist()]
        while tokens and not tokens[-1]:
            tokens.pop()
        rows.append(" ".join(_written(token) for token in tokens))
    return "\n".join(rows).rstrip("\n")


def with_lines(scenario, prompt, prompt_text, text):
    """The scenario with other texts for one prompt and its tokens.

    Parameters
    ----------
    scenario : Scenario
    prompt : int
    prompt_text : str
    text : str
        One completion a line, tokens separated by blanks. The signs ␣ ↵ ⇥ stand for a blank,
        a line end and a tab inside a token, ∅ for a token without a text. Fewer tokens than
        positions leave the rest blank.

    Raises
    ------
    ScenarioError
        More lines than completions, more tokens than positions that count, or a text that is
        too long.
    """
    P, G = scenario.sizes["P"], scenario.sizes["G"]
    rows = text.rstrip("\n").split("\n")
    if len(rows) > G:
        raise ScenarioError(f"{len(rows)} lines for {G} completions; write one line for each")
    if len(prompt_text) > _LONGEST_PROMPT:
        raise ScenarioError(f"the prompt is longer than {_LONGEST_PROMPT:,} characters")
    prompts = [scenario.texts.prompt(p) for p in range(P)]
    prompts[prompt] = prompt_text
    tokens = [_tokens_of(scenario, p) for p in range(P)]
    tokens[prompt] = tuple(
        _placed(scenario.valid[prompt, g], rows[g].split() if g < len(rows) else [], g)
        for g in range(G)
    )
    known = any(token for group in tokens for row in group for token in row)
    return replace(
        scenario,
        texts=Texts(tuple(prompts) if any(prompts) else (), tuple(tokens) if known else ()),
    )


def _tokens_of(scenario, p):
    L = scenario.sizes["L"]
    return tuple(
        tuple(scenario.texts.token(p, g, t) for t in range(L)) for g in range(scenario.sizes["G"])
    )


def _placed(valid, words, g):
    """Tokens at the positions that count, '' elsewhere."""
    positions = np.flatnonzero(valid).tolist()
    if len(words) > len(positions):
        raise ScenarioError(
            f"completion {g} has {len(words)} tokens in its line, and {len(positions)} positions "
            "that count; a blank inside a token is written ␣"
        )
    long = next((word for word in words if len(word) > _LONGEST), None)
    if long is not None:
        raise ScenarioError(f"completion {g}: a token is longer than {_LONGEST} characters")
    placed = [""] * len(valid)
    for position, word in zip(positions, words, strict=False):
        placed[position] = _read(word)
    return tuple(placed)


def _written(token):
    if not token:
        return _NO_TEXT
    for character, sign in _SIGNS.items():
        token = token.replace(character, sign)
    return token


def _read(word):
    if word == _NO_TEXT:
        return ""
    for character, sign in _SIGNS.items():
        word = word.replace(sign, character)
    return word
