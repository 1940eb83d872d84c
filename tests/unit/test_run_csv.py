"""CSV of any names and separators."""

import csv
import io

import numpy as np
import pytest

from pages._ui.runs.records import RunFileError
from tests.unit.run_files import cells, roles_of, uploaded

TEXT = '''prompt,completion,reward,style
a,"one, two",1,0.5
a,"three
lines
long",0,0.25
b,"say ""hi""",,1
b,four,true,nan
'''


def one(text, roles=None, name="mine.csv"):
    return uploaded({name: text.encode() if isinstance(text, str) else text}, roles)


def refusal(text, roles=None, name="mine.csv"):
    with pytest.raises(RunFileError) as error:
        one(text, roles, name)
    return str(error.value)


def test_quoted_cells_and_blanks():
    run = one(TEXT)
    assert run.format.key == "table"
    assert cells(run) == [["one, two", "three\nlines\nlong"], ['say "hi"', "four"]]
    np.testing.assert_array_equal(run.run.terms[..., 0], [[1, 0], [np.nan, 1]])
    np.testing.assert_array_equal(run.run.measures["style"], [[0.5, 0.25], [1, np.nan]])
    assert run.run.lengths.tolist() == [[8, 16], [8, 4]]
    assert run.run.every_step.tolist() == [0]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_separators_ends_of_lines_and_a_byte_order_mark(separator, end, encoding):
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator, lineterminator=end)
    writer.writerows(csv.reader(io.StringIO(TEXT)))
    run = one(file.getvalue().encode(encoding))
    assert cells(run) == cells(one(TEXT))


def test_a_decimal_comma_between_semicolons():
    assert one("prompt;completion;reward\na;x;0,5\na;y;1,25\n").run.terms[0, :, 0].tolist() == [
        0.5,
        1.25,
    ]


def test_any_names_and_every_column_is_asked():
    text = "Frage,Antwort,Note\na,x,1\na,y,2\n"
    assert roles_of({"n.csv": text.encode()}) == {
        "Frage": "ignore",
        "Antwort": "ignore",
        "Note": "term",
    }
    assert "no column with the prompt; its columns are 'Frage', 'Antwort', 'Note'" in refusal(text)
    run = one(text, {"Frage": "prompt", "Antwort": "completion"})
    assert cells(run) == [["x", "y"]]
    assert all(column.asked for column in run.columns)


def test_steps_and_groups_of_their_own():
    run = one("step,group_id,prompt,completion,reward\n2,g,a,x,1\n1,h,a,y,0\n2,g,a,z,0\n")
    assert run.run.steps.tolist() == [1, 2]
    assert cells(run) == [["y", ""], ["x", "z"]]


def test_examples_are_short():
    text = f"prompt,completion,reward\n{'x' * 500},y,1\n"
    (example,) = (c.example for c in one(text).columns if c.name == "prompt")
    assert len(example) == 60


def test_rows_that_cannot_be_read_are_named():
    run = one("prompt,completion,reward\na,x,1\na,y\na,z,good\na,w,0\n")
    assert cells(run) == [["x", "w"]]
    assert "line 3 has 2 cells; wanted 3" in run.notes[0]
    assert "1 more lines" in run.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prompt,completion,reward\n", "no rows below it"),
        ("prompt,prompt,reward\na,x,1\n", "two columns called 'prompt'"),
        ("prompt,completion\na,x\n", "no column with a reward; its columns are 'prompt'"),
        ("completion,reward\na,1\n", "no column with the prompt"),
        ("prompt,completion,reward\na,x,\n", "no completion has a score"),
        ("step,prompt,completion,reward\n1.5,a,x,1\n", "'1.5' for the step"),
        (b"prompt,completion,reward\n" + b"a,x,1\n" * 20_000 + b"\xff,x,1\n", "not UTF-8 text"),
        ("just a line of text\n", "of no known kind"),
        (",".join(f"c{at}" for at in range(400)) + "\n", "400 columns; at most 300"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_read_says_why(text, words):
    said = refusal(text)
    assert "mine.csv" in said
    assert words in said
