"""Adding, changing and removing terms: what is there stays, what a formula reads comes in."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from grpo_core import TERMS, ScenarioError, Term, Texts, build_scenario, evaluate
from grpo_core.arrays import OWN_AXES
from grpo_core.term_edits import add_term, change_term, remove_term


def scenario(**more):
    return build_scenario(rewards=[[1, 0]], logp_new=np.full((1, 2, 3), -1.0), **more)


def two_terms():
    terms = (Term("bonus", 0.5), Term("judge", 0.25))
    return scenario().with_terms(terms, [[[1, 0.2], [0, 0.4]]])


class TestAdd:
    def test_the_first_term_is_combined_from_now_on(self):
        added = add_term(scenario())
        assert [term.name for term in added.terms] == ["term"]
        assert_array_equal(added["term_values"], [[[0], [0]]])
        assert added.conventions["rewards"].variant == "sum_then_normalize"

    def test_others_keep_their_values_and_names_differ(self):
        added = add_term(add_term(two_terms()))
        assert [term.name for term in added.terms] == ["bonus", "judge", "term", "term 2"]
        assert_array_equal(added["term_values"][0, 0], [1, 0.2, 0, 0])

    def test_a_chosen_way_of_combining_stays(self):
        chosen = two_terms().choose("rewards", "add_after")
        assert add_term(chosen).conventions["rewards"].variant == "add_after"

    @pytest.mark.parametrize("formula", TERMS)
    def test_every_formula_can_be_added_and_evaluated(self, formula):
        assert np.isfinite(evaluate(add_term(scenario(), formula)).advantages).all()

    def test_there_is_a_limit(self):
        full = scenario()
        for _ in range(OWN_AXES["K"].high):
            full = add_term(full)
        with pytest.raises(ScenarioError, match="remove one first"):
            add_term(full)


class TestRemove:
    def test_its_column_goes_with_it(self):
        left = remove_term(two_terms(), 0)
        assert [term.name for term in left.terms] == ["judge"]
        assert_array_equal(left["term_values"], [[[0.2], [0.4]]])

    def test_without_the_last_one_there_are_no_values(self):
        left = remove_term(remove_term(two_terms(), 0), 0)
        assert not left.terms
        assert "term_values" not in left


class TestChange:
    def test_one_thing_at_a_time(self):
        changed = change_term(change_term(two_terms(), 1, weight=2), 0, name=" format ")
        assert [(term.name, term.weight) for term in changed.terms] == [
            ("format", 0.5),
            ("judge", 2),
        ]
        assert_array_equal(changed["term_values"], two_terms()["term_values"])

    @pytest.mark.parametrize("name", ["", "  ", "judge"])
    def test_a_name_has_to_be_there_and_its_own(self, name):
        with pytest.raises(ScenarioError, match="name|called"):
            change_term(two_terms(), 0, name=name)

    def test_another_formula_takes_its_own_options(self):
        changed = change_term(two_terms(), 0, formula="length_linear")
        assert dict(changed.terms[0].formula.options) == {"free": 0, "per": 100.0}
        again = change_term(changed, 0, per=10)
        assert again.terms[0].formula.options["per"] == 10

    def test_token_ids_come_from_the_texts(self):
        texts = Texts(tokens=((("a", "b", "a"), ("b", "b", "c")),))
        changed = change_term(scenario(texts=texts).with_terms((Term("x"),), [[[0], [0]]]), 0,
                              formula="repetition")  # fmt: skip
        assert_array_equal(changed["token_ids"], [[[0, 1, 0], [1, 1, 2]]])

    @pytest.mark.parametrize(
        ("tokens", "ids"),
        [
            ((), [[0, 0, 0], [0, 0, 0]]),
            (((("b",), ("a", "", "b")),), [[0, 1, 1], [2, 1, 0]]),  # what is unknown reads ""
            (((("x", "y"),),), [[0, 1, 2], [2, 2, 2]]),
        ],
    )
    def test_texts_may_be_missing_or_short(self, tokens, ids):
        given = scenario(texts=Texts(tokens=tokens)).with_terms((Term("x"),), [[[0], [0]]])
        assert_array_equal(change_term(given, 0, formula="repetition")["token_ids"], [ids])

    def test_values_that_nobody_wrote_start_at_0(self):
        computed = add_term(scenario(), "length_linear").replace(term_values=[[[np.nan], [np.nan]]])
        assert_array_equal(change_term(computed, 0, formula="given")["term_values"], [[[0], [0]]])

    def test_values_outlive_a_computed_formula(self):
        there = change_term(two_terms(), 0, formula="overlong")
        back = change_term(there, 0, formula="given")
        assert_array_equal(back["term_values"], two_terms()["term_values"])
