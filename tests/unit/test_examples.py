"""The shipped examples: every file opens, and is fit for the picker and for a short link."""

import json
import re

import pytest

from grpo_core import ScenarioError
from grpo_core.scenario import same_scenario
from pages._ui.examples import FOLDER, load_examples
from pages._ui.files import scenario_from_json, scenario_to_json
from pages._ui.link import decode, encode

EXAMPLES = load_examples()
each = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


def test_every_file_is_an_example_in_its_order():
    assert set(EXAMPLES) == {path.stem for path in FOLDER.glob("*.json")}
    orders = [json.loads((FOLDER / f"{key}.json").read_text("utf-8"))["order"] for key in EXAMPLES]
    assert orders == sorted(set(orders))


def test_titles_differ():
    assert len({example.title for example in EXAMPLES.values()}) == len(EXAMPLES)


@each
def test_title_and_sentence_are_fit_to_show(example):
    assert re.fullmatch(r"[a-z0-9-]+", example.key)
    assert 0 < len(example.title) <= 34
    assert example.teaches.endswith(".")


@each
def test_tokens_have_a_text_for_every_position_or_none(example):
    P, G, L = example.scenario.sizes.values()
    tokens = example.scenario.texts.tokens
    assert tokens == () or [[len(row) for row in group] for group in tokens] == [[L] * G] * P


@each
def test_unchanged_example_has_a_short_link_to_itself(example):
    link = encode(example.scenario, None, EXAMPLES)
    assert len(link) < 60
    assert decode(link, EXAMPLES)[0] is example.scenario


@each
def test_example_written_out_in_full_fits_in_a_link(example):
    link = encode(example.scenario)
    assert len("https://some-host.example/Advantages?s=" + link) < 8_000
    assert same_scenario(decode(link)[0], example.scenario)


@each
def test_one_edited_reward_has_a_short_link(example):
    rewards = example.scenario["rewards"].copy()
    rewards[0, 0] = 0.35
    edited = example.scenario.replace(rewards=rewards)
    link = encode(edited, None, EXAMPLES)
    assert len(link) < 90
    assert same_scenario(decode(link, EXAMPLES)[0], edited)


@each
def test_saved_example_opens_again(example):
    assert same_scenario(scenario_from_json(scenario_to_json(example.scenario)), example.scenario)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"title": "A", "teaches": "B."}', "no arrays"),
        ('{"arrays": {"rewards": [[1]]}, "title": "A", "order": 1}', "teaches is missing"),
        ("{", "not JSON"),
    ],
)
def test_a_broken_file_is_named(tmp_path, text, words):
    (tmp_path / "broken.json").write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=f"^broken.json: .*{words}"):
        load_examples(tmp_path)
