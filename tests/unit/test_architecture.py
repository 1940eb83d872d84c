"""Who may import what, and where loops and arithmetic may stand, read from the source text."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = sorted((ROOT / "grpo_core").rglob("*.py"))
PAGES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))]
SHARED = sorted((ROOT / "pages" / "_ui").rglob("*.py"))

# The only modules of pages/_ui that may know Streamlit. Everything else there is pure.
STREAMLIT = {
    "foot",
    "clipping_panels",
    "controls",
    "conventions_panels",
    "difficulty_panels",
    "editors",
    "following",
    "length_panels",
    "page",
    "panels",
    "process_panels",
    "run_group_panels",
    "run_open_panels",
    "run_panels",
    "run_report_panels",
    "run_state",
    "shaping_panels",
    "share",
    "silent_panels",
    "size_panels",
    "state",
    "term_controls",
    "trainer_panels",
}

# No loop over P, G or L: in these modules every loop is one over cells, unless listed below.
NUMERIC = (
    *("advantage_rows", "advantages", "aggregation", "attribution", "batch", "combination"),
    *("components", "correction", "evaluation", "extras", "filters", "group_statistics", "kl"),
    *("numerics", "process", "ratio", "returns", "rewards", "step_checks", "step_credit"),
    *("step_edits", "surrogate_base", "surrogate_clipped", "surrogate_smooth"),
    *("surrogate_weighted", "whitening"),
)
LOOPS_OVER_SOMETHING_ELSE = {
    ("numerics", "k3"): "coefficients of the series",
    ("numerics", "floating"): "the few arrays given as arguments",
    ("batch", "prepare"): "the optional arrays",
    ("returns", "_to_go"): "the powers of two up to the length",
    ("surrogate_smooth", "_bernoulli_kl"): "the two chances",
    ("step_checks", "check_steps"): "the two arrays of steps",
    ("step_edits", "completion_at"): "the indices of one place",
    ("step_edits", "step_at"): "the indices of one place",
    ("step_edits", "_row"): "the rows of a table, for a message",
    ("step_credit", "credit_changes"): "the indices of one place",
    ("process", "_check_options"): "the rows of a table, for a message",
    ("attribution", "spread_shares"): "reward terms",
    ("combination", "normalised_sum"): "reward terms",
    ("combination", "sum_of_normalised"): "reward terms",
    ("combination", "_combined"): "reward terms",
    ("components", "components"): "reward terms",
    ("rewards", "tied"): "what is judged apart",
}
LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
HIDDEN_LOOPS = {
    "map",
    "filter",
    "vectorize",
    "frompyfunc",
    "apply_along_axis",
    "nditer",
    "ndenumerate",
}


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def label(path):
    return path.relative_to(ROOT).as_posix()


def imported(path):
    """Top-level names of all that a file imports from elsewhere; relative imports left out."""
    names = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def imports_module(path, name):
    """Whether a file imports `pages._ui.<name>` in any spelling."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            if any(alias.name == f"pages._ui.{name}" for alias in node.names):
                return True
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")
            if module[-1] == name or (
                module[-1] in ("", "_ui") and any(alias.name == name for alias in node.names)
            ):
                return True
    return False


def functions(path):
    """All functions of a file that are not inside another one."""
    found = []

    def visit(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                found.append(child)
            else:
                visit(child)

    visit(tree(path))
    return found


def loops(node):
    return [
        child
        for child in ast.walk(node)
        if isinstance(child, LOOPS)
        or (isinstance(child, ast.Call) and called(child) in HIDDEN_LOOPS)
    ]


def called(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


@pytest.mark.parametrize("path", CORE, ids=label)
def test_core_imports_numpy_and_the_standard_library_only(path):
    assert imported(path) <= {"numpy", "grpo_core", *sys.stdlib_module_names}


@pytest.mark.parametrize("path", CORE, ids=label)
def test_core_modules_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350


@pytest.mark.parametrize("path", CORE, ids=label)
def test_core_functions_are_short(path):
    for function in functions(path):
        first = function.body[1 if ast.get_docstring(function) else 0 :]
        lines = function.end_lineno - first[0].lineno + 1 if first else 0
        # evaluate_batch runs the stages and lists the fields of Evaluation, one a line.
        assert lines <= (70 if function.name == "evaluate_batch" else 40), function.name


@pytest.mark.parametrize("module", NUMERIC)
def test_no_loop_over_prompts_completions_or_tokens(module):
    for function in functions(ROOT / "grpo_core" / f"{module}.py"):
        if (module, function.name) not in LOOPS_OVER_SOMETHING_ELSE:
            lines = [loop.lineno for loop in loops(function)]
            assert not lines, f"{module}.{function.name} loops on line {lines}"


def test_exceptions_to_the_loop_rule_are_still_needed():
    for module, name in LOOPS_OVER_SOMETHING_ELSE:
        function = next(f for f in functions(ROOT / "grpo_core" / f"{module}.py") if f.name == name)
        assert loops(function)


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_pages_do_not_import_numpy_or_pandas(path):
    assert not imported(path) & {"numpy", "pandas"}


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_pages_do_no_arithmetic(path):
    # A string with a string is text, not arithmetic; everything else belongs into the core or _ui.
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.BinOp):
            is_text = any(
                isinstance(side, ast.JoinedStr)
                or (isinstance(side, ast.Constant) and isinstance(side.value, str))
                for side in (node.left, node.right)
            )
            is_type = isinstance(node.op, ast.BitOr)
            assert is_text or is_type, f"line {node.lineno}: {ast.unparse(node)}"
        assert not isinstance(node, ast.AugAssign), ast.unparse(node)


@pytest.mark.parametrize("path", SHARED, ids=label)
def test_only_the_listed_modules_know_streamlit(path):
    if path.stem in STREAMLIT:
        return
    assert "streamlit" not in imported(path)
    known = [name for name in STREAMLIT if imports_module(path, name)]
    assert not known, f"reaches Streamlit through {known}"


def test_every_module_on_the_streamlit_list_needs_to_be_there():
    stems = {path.stem for path in SHARED}
    assert stems >= STREAMLIT
    for path in SHARED:
        if path.stem in STREAMLIT:
            assert "streamlit" in imported(path), path.stem


@pytest.mark.parametrize("path", [*CORE, *SHARED, *PAGES], ids=label)
def test_nothing_executes_text_or_unpickles(path):
    assert not imported(path) & {"pickle", "marshal", "shelve", "dill", "joblib"}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "__import__"), f"line {node.lineno}"
        if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "unsafe_allow_html"):
            assert isinstance(node.value, ast.Constant), f"line {node.lineno}"
            assert node.value.value is False, f"line {node.lineno}"
