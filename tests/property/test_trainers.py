"""Laws of a trainer's settings, for any conventions and any values."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grpo_core import evaluate
from grpo_core.idle import without_idle
from grpo_core.presets import differences
from grpo_core.trainers import DIALECTS, Entry
from grpo_core.trainers.alike import telling_differences
from grpo_core.trainers.reading import read
from grpo_core.trainers.writing import write
from pages._ui.trainer_text import read_settings
from tests.property.scenarios import conventions, scenarios

dialects = st.sampled_from(DIALECTS)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 40) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(dialects, conventions())
def test_what_is_not_named_survives_the_way_through_the_text(dialect, chosen):
    setting = write(dialect, chosen)
    pasted = read_settings(setting.text)
    assert pasted.unread == ()
    assert pasted.reading.name == dialect.name
    assert not pasted.reading.not_understood
    assert not pasted.reading.no_counterpart
    lost = telling_differences(chosen, pasted.reading.conventions)
    assert [(each.stage, each.option) for each in lost] == [
        (each.stage, each.option) for each in setting.cannot
    ]


@given(dialects, st.data())
def test_what_was_read_is_written_and_read_again_the_same(dialect, data):
    keys = st.sampled_from(sorted(dialect.defaults))
    drawn = data.draw(st.dictionaries(keys, values, max_size=8))
    first = read(dialect, drawn).conventions
    setting = write(dialect, first)
    assert setting.cannot == ()
    again = read_settings(setting.text).reading.conventions
    assert telling_differences(first, again) == ()


@given(dialects, st.data())
def test_every_setting_that_is_given_is_answered_for(dialect, data):
    keys = st.sampled_from(sorted(dialect.defaults)) | st.text(min_size=1, max_size=12)
    drawn = data.draw(st.dictionaries(keys, values, max_size=8))
    entries = [Entry(key=key, value=value, line=n) for n, (key, value) in enumerate(drawn.items())]
    reading = read(dialect, entries)
    said = (*reading.not_understood, *reading.no_counterpart, *reading.no_effect)
    assert len(reading.taken) + len(said) == len(entries)


@given(scenarios())
def test_an_option_that_nothing_reads_changes_nothing(scenario):
    plain = scenario.with_conventions(without_idle(scenario.conventions))
    one, other = evaluate(scenario), evaluate(plain)
    assert one.loss == other.loss
    assert np.array_equal(one.gradient, other.gradient)


@given(dialects, conventions())
def test_the_fewer_lines_change_nothing(dialect, chosen):
    kept, every = {}, {}

    def lines(settings):
        kept.update(settings)
        return ()

    write(type(dialect)(**{**vars(dialect), "lines": lines}), chosen)
    every.update({key: dialect.value(key, kept) for key in dialect.defaults})
    assert not differences(read(dialect, kept).conventions, read(dialect, every).conventions)
