"""What tokens read: learnt only where it gives the text exactly, else from a vocabulary."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages._ui.runs.records import TokenRow
from pages._ui.runs.vocabulary import learnt, pieces_of, read_vocabulary, with_vocabulary
from tests.unit.token_files import refusal, source

END, UNKNOWN, PAD = 1, 2, 0
SIGNS = "abcdef"


def ids(text):
    """Ids of letters; ``.`` is the end, ``?`` unknown, ``_`` padding: none of them is a text."""
    return np.array([{".": END, "?": UNKNOWN, "_": PAD}.get(c) or 3 + SIGNS.find(c) for c in text])


def rows(*written):
    """Ids as `ids` reads them, and the texts that a trainer would log."""
    return [ids(text) if text else np.zeros(0) for text in written], [
        "".join(c for c in text if c in SIGNS) for text in written
    ]


class TestLearnt:
    def test_characters_are_known_from_the_texts(self):
        found = learnt(*rows("abc.", "cab.", "fed."))
        assert found == {3: "a", 4: "b", 5: "c", 6: "d", 7: "e", 8: "f"}

    def test_tokens_without_a_text_read_nothing(self):
        tokens, texts = rows("abc.", "cab.", "a?bc.", "ab_c.", "cb")
        found = learnt(tokens, texts)
        assert END not in found
        assert UNKNOWN not in found
        assert pieces_of(tokens[2], texts[2], found) == ("a", "", "b", "c", "")
        assert pieces_of(tokens[4], texts[4], found) == ("c", "b")

    def test_an_unknown_token_in_a_row_without_an_end_teaches_nothing_wrong(self):
        # As many tokens more than characters as in the others, but shifted.
        tokens, texts = rows("abc.", "cab.", "bca.", "a?bc")
        found = learnt(tokens, texts)
        assert found == {3: "a", 4: "b", 5: "c"}
        assert pieces_of(tokens[3], texts[3], found) == ("a", "", "b", "c")

    def test_nothing_is_learnt_where_tokens_are_longer_than_a_character(self):
        tokens, texts = rows("abc.", "cab.")
        assert learnt(tokens, ["the cat", "a dog sat"]) == {}
        assert pieces_of(tokens[0], texts[0], {}) == ("",) * 4

    def test_nothing_is_learnt_without_texts(self):
        assert learnt([], []) == {}
        assert learnt([ids("ab")], [""]) == {}

    def test_pieces_that_do_not_give_the_text_are_all_blank(self):
        assert pieces_of(ids("abc"), "abd", {3: "a", 4: "b", 5: "c"}) == ("", "", "")
        assert pieces_of(ids("abc"), "", {3: "a", 4: "b", 5: "c"}) == ("", "", "")

    @given(st.lists(st.text("abcdef?_", max_size=12).map(lambda t: t + "."), min_size=1))
    def test_what_is_read_is_the_text_or_nothing(self, written):
        tokens, texts = rows(*written)
        found = learnt(tokens, texts)
        for row, text in zip(tokens, texts, strict=True):
            assert "".join(pieces_of(row, text, found)) in (text, "")
            assert len(pieces_of(row, text, found)) == len(row)


class TestVocabularyFile:
    def read(self, document):
        return read_vocabulary(source("run/vocabulary.json", json.dumps(document).encode()))

    def test_a_list_or_a_table_from_id_to_text(self):
        assert self.read(["a", "b"]) == self.read({"0": "a", "1": "b"}) == {0: "a", 1: "b"}

    @pytest.mark.parametrize(
        ("document", "words"),
        [
            (7, "holds no vocabulary"),
            ({"a": "b"}, "key 'a'"),
            ({"-1": "b"}, "key '-1'"),
            ({"9" * 50: "b"}, "wanted the id"),
            ({"²": "b"}, "key '²'"),
            (["a", 1], "token 1"),
            (["a" * 201], "at most 200 characters"),
        ],
        ids=str,
    )
    def test_anything_else_is_refused_in_words(self, document, words):
        assert words in refusal(self.read, document)

    def test_what_is_no_json_is_refused(self):
        assert "is not JSON" in refusal(read_vocabulary, source("vocabulary.json", b"{'a'"))

    def test_unknown_pieces_are_filled_and_known_ones_stay(self):
        row = TokenRow(1, {"token_ids": np.array([3, 4, 9])}, ("a", "", ""))
        assert with_vocabulary(row, {3: "x", 4: "y"}).pieces == ("a", "y", "")
        bare = TokenRow(1, {"token_ids": np.array([3, 4])})
        assert with_vocabulary(bare, {3: "x"}).pieces == ("x", "")

    def test_without_ids_nothing_is_known(self):
        row = TokenRow(1, {"mask": np.ones(2, bool)}, ("", ""))
        assert with_vocabulary(row, {3: "x"}) is row
