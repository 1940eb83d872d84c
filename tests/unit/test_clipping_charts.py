"""Pictures of clipping: every token stands on the curve, and none is lost at the edge."""

import json
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import STAGES, Conventions, Texts, build_scenario, evaluate
from grpo_core.clip_cases import clip_cases, follows_ratio
from grpo_core.curves import surrogate_curve
from grpo_core.drift import with_drift
from pages._ui import charts, surrogate_points
from pages._ui.examples import load_examples
from pages._ui.palette import PALETTES
from pages._ui.quantities import clipped
from pages._ui.ratio_axis import ratio_axis

LIGHT = PALETTES["light"]
EXAMPLES = {key: example.scenario for key, example in load_examples().items()}
by_example = pytest.mark.parametrize("key", EXAMPLES)
both_signs = pytest.mark.parametrize("sign", [1, -1])
TOKENS = ("tokens", "clipped", "beyond, above", "beyond, below")


def chart(evaluation, sign, **settings):
    return charts.surrogate_chart(evaluation, sign, palette=LIGHT, **settings)


def trace(figure, name):
    return next((trace for trace in figure.data if trace.name == name), None)


def points(figure):
    """{(p, g, t): (x, y)} of the tokens in a picture, and the names of the traces of each."""
    places, names = {}, {}
    for name in TOKENS:
        found = trace(figure, name)
        if found is None:
            continue
        for cell, x, y in zip(found.customdata, found.x, found.y, strict=True):
            places[tuple(cell[:3])] = (x, y)
            names.setdefault(tuple(cell[:3]), set()).add(name)
    return places, names


def number(text):
    return float(text.replace("−", "-"))


@by_example
@both_signs
def test_every_token_of_the_sign_stands_at_its_ratio_and_surrogate(key, sign):
    evaluation = evaluate(EXAMPLES[key])
    figure = chart(evaluation, sign)
    places, names = points(figure)
    drawn = evaluation.valid & (np.sign(evaluation.token_advantages) == sign)
    assert set(places) == set(map(tuple, np.argwhere(drawn).tolist()))
    log = figure.layout.xaxis.type == "log"
    for at, (x, y) in places.items():
        ratio, advantage = evaluation.ratio[at], evaluation.token_advantages[at]
        assert ("clipped" in names[at]) == clipped(evaluation)[at]
        if any(name.startswith("beyond") for name in names[at]):
            assert x in (figure.data[0].x[0], figure.data[0].x[-1])
            continue
        assert x == ratio
        height = evaluation.surrogate[at] / abs(advantage)
        # on a logarithmic axis negative values stand as magnitudes, upside down
        assert y == pytest.approx(sign * height if log else height, rel=1e-6)


@by_example
@both_signs
def test_tokens_stand_on_the_drawn_curve(key, sign):
    figure = chart(evaluate(EXAMPLES[key]), sign)
    line = trace(figure, "surrogate")
    places, _ = points(figure)
    for x, y in places.values():
        # straight between the samples on a straight axis; nearly so on a logarithmic one
        assert y == pytest.approx(np.interp(x, line.x, line.y), rel=2e-3)


@pytest.mark.parametrize("variant", list(STAGES["surrogate"].variants))
@both_signs
def test_the_drawn_curve_is_the_core_s_at_two_hundred_ratios(variant, sign):
    scenario = EXAMPLES["four-answers"].choose("surrogate", variant)
    figure = chart(evaluate(scenario), sign)
    sent = json.loads(figure.to_json())["data"]
    line = next(item for item in sent if item["name"] == "surrogate")
    x, y = (np.frombuffer(b64decode(line[a]["bdata"])) for a in "xy")
    assert len(x) >= 200
    # on a logarithmic axis negative values stand as magnitudes, upside down
    side = sign if figure.layout.yaxis.type == "log" else 1
    assert_array_equal(side * y, surrogate_curve(scenario.conventions, x, sign)[0])


UNLIKE_THE_RATIO = ["cispo", "vespo", "dro", "reinforce", "sapo", "dppo_tv", "dppo_kl"]


@pytest.mark.parametrize("variant", STAGES["surrogate"].variants)
def test_rows_whose_slope_is_no_advantage_are_told_apart(variant):
    followed = follows_ratio(Conventions.of(surrogate=variant))
    assert followed == (variant not in UNLIKE_THE_RATIO)


@pytest.mark.parametrize("variant", UNLIKE_THE_RATIO)
@both_signs
def test_a_curve_unlike_the_ratio_has_an_axis_of_its_own_that_holds_all_of_it(variant, sign):
    figure = chart(evaluate(EXAMPLES["every-clip-case"].choose("surrogate", variant)), sign)
    line, shown = trace(figure, "surrogate"), figure.layout.yaxis
    assert shown.range[0] <= np.min(line.y) < np.max(line.y) <= shown.range[1]
    assert trace(figure, "without clipping") is None


@both_signs
def test_the_hover_holds_ratio_advantage_and_surrogate_in_full(sign):
    evaluation = evaluate(EXAMPLES["every-clip-case"])
    figure = chart(evaluation, sign)
    for name in TOKENS:
        for *at, ratio, advantage, surrogate in getattr(trace(figure, name), "customdata", ()):
            place = tuple(at)
            assert number(ratio) == evaluation.ratio[place]
            assert number(advantage) == evaluation.token_advantages[place]
            assert number(surrogate) == evaluation.surrogate[place]


def test_customdata_are_lists_so_that_a_click_can_be_read():
    (sent,) = [t for t in json.loads(chart(evaluate(EXAMPLES["four-answers"]), 1).to_json())["data"]
               if t["name"] == "tokens"]  # fmt: skip
    assert isinstance(sent["customdata"][0], list)


def test_regions_without_gradient_are_shaded_and_the_harmless_side_is_named():
    evaluation = evaluate(EXAMPLES["every-clip-case"])
    for sign, shaded, words in ((1, 1, "gradient<br>stays"), (-1, 2, "outside the band")):
        layout = chart(evaluation, sign).layout
        rects = [shape for shape in layout.shapes if shape.type == "rect"]
        assert len(rects) == shaded
        said = " | ".join(note.text for note in layout.annotations)
        assert words in said
        assert "no gradient" in said


@both_signs
def test_both_pictures_share_their_ratio_axis(sign):
    for scenario in EXAMPLES.values():
        evaluation = evaluate(scenario)
        assert chart(evaluation, sign).layout.xaxis.range == chart(evaluation, 1).layout.xaxis.range


def test_a_ratio_beyond_the_axis_is_an_arrow_at_its_end():
    figure = chart(evaluate(EXAMPLES["float32-overflow"]), -1)
    arrow = trace(figure, "beyond, above")
    assert arrow.marker.symbol == "triangle-right"
    assert arrow.x.tolist() == [100.0]
    assert number(arrow.customdata[0][3]) > 1e39
    assert "1 beyond the axis ▸" in figure.layout.annotations[-1].text


def test_ratios_of_zero_and_infinity_are_drawn():
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-np.inf, -1.0], [-1.0, -1.0]]],
        logp_old=[[[-1.0, -2.0], [-1.0, -1e4]]],
    )
    evaluation = evaluate(scenario)
    assert np.isinf(evaluation.ratio[0, 1, 1])
    assert len(trace(chart(evaluation, 1), "beyond, below").x) == 1
    assert len(trace(chart(evaluation, -1), "beyond, above").x) == 1
    for sign in (1, -1):
        for item in chart(evaluation, sign).data:
            assert np.all(np.isfinite(np.asarray(item.y, dtype=float)))


@pytest.mark.parametrize(
    ("ratios", "log"), [([0.0, 3.8], False), ([0.9, 4.2], True), ([1e-30, 1e30], True), ([], False)]
)
def test_the_axis_is_straight_near_one_and_logarithmic_where_ratios_are_far(ratios, log):
    axis = ratio_axis(np.array(ratios), [0.8, 1.2])
    assert axis.log == log
    inside = [r for r in ratios if 0.01 <= r <= 100] if log else ratios
    assert all(axis.low <= ratio <= axis.high for ratio in [*inside, 0.8, 1.2])


def test_a_narrow_band_is_seen_from_near():
    axis = ratio_axis(np.array([1.0]), [1 - 3e-4, 1 + 4e-4])
    assert 1 - 2e-3 < axis.low < 1 - 4e-4
    assert 1 + 4e-4 < axis.high < 1 + 2e-3


def test_the_axis_holds_still_in_small_edits():
    ranges = {ratio_axis(np.array([r]), [0.8, 1.2]) for r in (1.0, 1.1, 1.3, 1.36)}
    assert len(ranges) == 1


@both_signs
def test_one_prompt_can_be_drawn_alone(sign):
    evaluation = evaluate(EXAMPLES["recorded-batch"])
    places, _ = points(chart(evaluation, sign, prompts=3))
    drawn = evaluation.valid[3] & (np.sign(evaluation.token_advantages[3]) == sign)
    assert len(places) == np.sum(drawn)
    assert {at[0] for at in places} == {3}


def test_many_tokens_are_drawn_once_a_pixel_and_none_is_forgotten():
    rng = np.random.default_rng(5)
    old = np.full((8, 8, 200), -5.0)
    evaluation = evaluate(
        build_scenario(
            rewards=rng.normal(size=(8, 8)),
            logp_old=old,
            logp_new=old + rng.normal(0, 0.3, old.shape),
        )
    )
    figure = chart(evaluation, 1)
    places, _ = points(figure)
    drawn = evaluation.valid & (evaluation.token_advantages > 0)
    assert len(places) <= 2 * surrogate_points.PIXELS + 2 < np.sum(drawn)
    more = 0
    for name in TOKENS:
        found = trace(figure, name)
        for note in [] if found is None else found.hovertext:
            words = note.rpartition("and ")[2].split() if " more token" in note else ["0"]
            more += int(words[0].replace(",", ""))
    assert len(places) + more == np.sum(drawn)
    ratios = evaluation.ratio[drawn]
    x = np.array([x for x, _ in places.values()])
    assert_allclose([x.min(), x.max()], [ratios.min(), ratios.max()], rtol=0.02)


def test_the_selected_token_has_a_ring_in_the_picture_of_its_sign_only():
    evaluation = evaluate(EXAMPLES["four-answers"])
    at = (0, 1, 8)  # A < 0
    ring = trace(chart(evaluation, -1, selected=at), "selected")
    assert ring.x.tolist() == [evaluation.ratio[at]]
    assert trace(chart(evaluation, 1, selected=at), "selected") is None
    padding = (0, 2, 9)
    assert trace(chart(evaluation, 1, selected=padding), "selected") is None


def test_former_tokens_are_ghosts_only_where_they_stood_elsewhere():
    former = evaluate(EXAMPLES["four-answers"])
    same = chart(former, 1, former=former)
    assert trace(same, "before") is None
    now = evaluate(with_drift(EXAMPLES["four-answers"], 0.0))
    ghosts = trace(chart(now, 1, former=former), "before")
    moved = former.valid & (former.token_advantages > 0) & (former.ratio != 1)
    assert sorted(ghosts.x) == sorted(former.ratio[moved])


def test_the_pinned_state_brings_its_tokens_and_its_curve():
    now = evaluate(EXAMPLES["four-answers"])
    pinned = evaluate(EXAMPLES["four-answers"].choose("surrogate", epsilon_high=0.4))
    figure = chart(now, 1, pinned=pinned)
    assert len(trace(figure, "A (pinned)").x) == 14
    assert max(trace(figure, "A (pinned), curve").y) == pytest.approx(1.4)


def test_a_held_drift_and_the_token_s_text_are_in_the_hover_and_never_markup():
    texts = Texts(("p",), ((("<b>six", "a"), ("c", "d")),))
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-0.5, -1.0], [-1.0, -1.0]]],
        logp_old=[[[-1.0, -1.1], [-1.0, -1.0]]],
        texts=texts,
        drift=3.0,
    )
    figure = chart(evaluate(scenario), 1)
    notes = [note for name in TOKENS for note in getattr(trace(figure, name), "hovertext", ())]
    assert sum("held at 0" in note for note in notes) == 1
    assert not any("<b>" in note for note in notes)
    assert any("six" in note for note in notes)


@both_signs
def test_no_token_of_a_sign_is_said_so(sign):
    figure = chart(evaluate(build_scenario(rewards=[[1, 1]])), sign)
    assert points(figure)[0] == {}
    assert "no token has A" in figure.layout.annotations[-1].text


# --- bars of the cases ---------------------------------------------------------------------


@by_example
def test_the_bars_are_the_shares(key):
    evaluation = evaluate(EXAMPLES[key])
    figure = charts.case_bars(evaluation, palette=LIGHT)
    cases = clip_cases(evaluation)
    assert list(trace(figure, "share of the tokens").x) == [item.share for item in cases]
    assert list(trace(figure, "share of the gradient").x) == [item.gradient for item in cases]


def test_what_is_lost_is_hatched_and_a_click_finds_its_largest_token():
    evaluation = evaluate(EXAMPLES["every-clip-case"])
    bars = trace(charts.case_bars(evaluation, palette=LIGHT), "share of the gradient")
    stopped = [item.case.stopped for item in clip_cases(evaluation)]
    assert [shape == "/" for shape in bars.marker.pattern.shape] == stopped
    assert [tuple(cell) for cell in bars.customdata] == [
        item.where for item in clip_cases(evaluation)
    ]


def test_ghosts_and_pinned_marks_stand_beside_the_bars():
    scenario = EXAMPLES["four-answers"]
    now, other = evaluate(scenario), evaluate(replace(scenario, drift=2.0))
    assert trace(charts.case_bars(now, palette=LIGHT, former=now), "before") is None
    figure = charts.case_bars(now, palette=LIGHT, former=other, pinned=other)
    # As many tokens lie below the band and are clipped low as before: two bars did not change.
    assert len(trace(figure, "before").x) == 6
    shares = [item.share for item in clip_cases(other)]
    gradients = [item.gradient for item in clip_cases(other)]
    assert list(trace(figure, "A (pinned)").x) == shares + gradients
