"""Our own layout of arrays: one batch, from NumPy arrays or nested lists to a row a completion.

A batch is grouped, (P, G, L), or flat, (N, L). In JSON a completion's list is as long as its
tokens, and a prompt's list as long as its group.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from grpo_core import ARRAYS

from .bounds import check_bound
from .records import RunFileError
from .tokens_flat import flat_lists, flat_numbers, flat_texts, flat_tokens, grid_of
from .tokens_values import LARGEST_STEP, common_value, one_number, parts_digest, shown, unusable

ALIASES = {"completion_ids": "token_ids", "logged_loss": "loss"}
LOGP = ("logp_new", "logp_old", "logp_ref", "logp_sampler")
TOKENS = (*LOGP, "mask", "entropy", "token_ids", "token_advantages")
TERMS = "rewards_per_term"
# Any of them says which completions there are.
PER_TOKEN = (*LOGP, "mask", "token_ids")
LEADERS = (*PER_TOKEN, "rewards", TERMS)
TEXTS = ("prompts", "completions", "pieces", "term_names", "group")
NAMES = (*TOKENS, TERMS, "rewards", "advantages", "present", "step", "loss", *TEXTS)
MOST_TERMS = 64
LONGEST_NAME = 100


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """One batch, N completions that are there, in the file's order.

    ``arrays`` are per token, (N, L), by key of `ARRAYS`; empty where the file holds none.
    ``numbers`` are per completion, (N,). ``pieces`` are lists of texts, one for each position.
    """

    step: int | None
    loss: float | None
    group: np.ndarray
    mask: np.ndarray | None
    arrays: Mapping[str, np.ndarray]
    numbers: Mapping[str, np.ndarray]
    prompts: list | None
    completions: list | None
    pieces: list | None
    remarks: tuple[str, ...] = ()


def renamed(fields):
    """The fields of a batch under the names of this layout; others are left out."""
    found = {}
    for name, value in fields.items():
        key = ALIASES.get(name, name)
        if key in NAMES and value is not None:
            found.setdefault(key, value)
    return found


def batch_of(fields, name):
    """The `Batch` in arrays or nested lists.

    Parameters
    ----------
    fields : mapping from name to ndarray or list
    name : str
        What to call the batch in messages: its file, and the line or position there.

    Raises
    ------
    RunFileError
        Which array is of another shape or breaks its rule, and at which prompt, completion and
        token.
    """
    fields = renamed(fields)
    leader = next((key for key in LEADERS if key in fields), None)
    if leader is None:
        raise RunFileError(
            f"{name} holds none of {', '.join(LEADERS)}; wanted at least one of them."
        )
    inner = 1 if leader in (*TOKENS, TERMS) else 0
    grid = grid_of(fields[leader], leader, inner, name)
    check_bound("rows", grid.count, name)
    per_token = "advantages" in fields and grid.is_per_token(fields["advantages"])
    if per_token:
        fields = {**fields, "token_advantages": fields["advantages"]}
        del fields["advantages"]
    arrays, mask = _tokens(fields, grid, name)
    numbers = _numbers(fields, grid, name)
    if per_token:
        numbers["advantages"] = _one_for_all(arrays["token_advantages"], mask)
    keep = _present(fields, grid, name)
    _check(arrays, mask, numbers, keep, grid, name)
    remarks = _remarks(arrays)
    return _kept(fields, grid, keep, arrays, mask, numbers, remarks, name)


def term_names(fields, count):
    """A name for each reward term; 'term 0', 'term 1' where none are given."""
    given = fields.get("term_names")
    given = given.reshape(-1).tolist() if isinstance(given, np.ndarray) else given
    names = [_name_of(item) for item in given] if isinstance(given, list) else []
    if len(names) != count or len(set(names)) != count:
        names = [f"term {k}" for k in range(count)]
    # These have a meaning of their own among the columns.
    taken = {"rewards", "advantages", "step", "prompts", "completions"}
    return [f"{name} (term)" if name in taken else name for name in names]


def _name_of(item):
    return str(item)[:LONGEST_NAME] if isinstance(item, (str, int, float)) else "term"


def _tokens(fields, grid, name):
    """Arrays per token, (N, L), and which positions count; NaN where a row is shorter."""
    found, first, inside = {}, "", None
    for key in TOKENS:
        if key not in fields:
            continue
        found[key], filled = flat_tokens(fields[key], key, grid, name)
        if inside is None:
            first, inside = key, filled
        elif filled.shape != inside.shape or np.any(filled != inside):
            raise _differs(key, filled, first, inside, grid, name)
    mask = found.pop("mask", None)
    if mask is not None:
        _refuse_flags("mask", mask, inside, grid, name)
        inside = inside & (np.nan_to_num(mask) != 0)
    return found, inside


def _differs(key, filled, first, inside, grid, name):
    lengths, wanted = np.sum(filled, axis=1), np.sum(inside, axis=1)
    row = int(np.argmax(lengths != wanted))
    return RunFileError(
        f"{name}: {key} of {grid.place(row)} has {lengths[row]:,} values, and {first} has "
        f"{wanted[row]:,}; wanted one for each token."
    )


def _refuse_flags(key, array, inside, grid, name):
    bad = inside & (array != 0) & (array != 1)
    if np.any(bad):
        row, *token = (int(i) for i in np.argwhere(bad)[0])
        spot = f", token {token[0]}" if token else ""
        raise RunFileError(
            f"{name}: {key} at {grid.place(row)}{spot} is {array[(row, *token)]:g}; wanted 0 or 1."
        )


def _numbers(fields, grid, name):
    """Numbers per completion by the name of their column, (N,)."""
    found = {}
    if TERMS in fields:
        terms = flat_lists(fields[TERMS], TERMS, grid, name)
        if terms.shape[1] > MOST_TERMS:
            raise RunFileError(
                f"{name}: {TERMS} has {terms.shape[1]:,} terms; at most {MOST_TERMS} are read."
            )
        for k, term in enumerate(term_names(fields, terms.shape[1])):
            found[term] = terms[:, k]
    for key in ("rewards", "advantages"):
        if key in fields:
            found[key] = flat_numbers(fields[key], key, grid, name)
    return found


def _one_for_all(rows, mask):
    return np.array([common_value(row[valid]) for row, valid in zip(rows, mask, strict=True)])


def _present(fields, grid, name):
    if "present" not in fields:
        return np.ones(grid.count, dtype=bool)
    given = flat_numbers(fields["present"], "present", grid, name)
    _refuse_flags("present", given, np.ones(grid.count, bool), grid, name)
    return given != 0


def _check(arrays, mask, numbers, keep, grid, name):
    """Refuse the first value that breaks the rule of its array, where it counts."""
    if mask is not None:
        broken = unusable(arrays, mask & keep[:, None])
        if broken:
            key, (row, token) = broken
            raise RunFileError(
                f"{name}: {key} at {grid.place(row)}, token {token} is "
                f"{arrays[key][row, token]:g}; wanted {ARRAYS[key].rule.words}."
            )
    for key, values in numbers.items():
        bad = keep & np.isinf(values)
        if np.any(bad):
            row = int(np.argmax(bad))
            raise RunFileError(
                f"{name}: {key} at {grid.place(row)} is {values[row]:g}; wanted a finite number, "
                "or blank."
            )


def _remarks(arrays):
    """What stands for log-probabilities that the file does not hold."""
    if not arrays:
        return ()
    has_new, has_old = "logp_new" in arrays, "logp_old" in arrays
    if has_new and has_old:
        return ()
    if not has_new and not has_old and "logp_sampler" not in arrays:
        return ("No log-probabilities: the tokens have texts and masks only.",)
    missing, instead = ("logp_old", "logp_new") if has_new else ("logp_new", "logp_old")
    if not has_new and not has_old:
        missing, instead = "logp_new and logp_old", "logp_sampler"
    return (f"The arrays hold no {missing}: {instead} stands in, and every ratio is 1.",)


def with_stand_ins(arrays):
    """Arrays in which the old policy stands for the new one, or the reverse, or the sampler."""
    given = next((key for key in ("logp_old", "logp_new", "logp_sampler") if key in arrays), None)
    if given is None:
        return dict(arrays)
    return {"logp_new": arrays[given], "logp_old": arrays[given], **arrays}


def _kept(fields, grid, keep, arrays, mask, numbers, remarks, name):
    rows = np.flatnonzero(keep)
    if not rows.size:
        raise RunFileError(f"{name} holds no completion that is present.")
    pieces = fields.get("pieces")
    texts = {
        key: flat_texts(fields.get(key), key, grid, name) for key in ("prompts", "completions")
    }
    return Batch(
        step=_step(fields.get("step"), name),
        loss=_loss(fields.get("loss")),
        group=_groups(fields, grid, texts["prompts"], name)[rows],
        mask=None if mask is None else mask[rows],
        arrays={key: array[rows] for key, array in with_stand_ins(arrays).items()},
        numbers={key: array[rows] for key, array in numbers.items()},
        prompts=_chosen(texts["prompts"], rows),
        completions=_chosen(texts["completions"], rows),
        pieces=_chosen(None if pieces is None else grid.rows(pieces, "pieces", name), rows),
        remarks=remarks,
    )


def _chosen(items, rows):
    return None if items is None else [items[row] for row in rows.tolist()]


def _groups(fields, grid, prompts, name):
    """A digest for each completion's group: of its id or its prompt, the same in every file.

    So a batch that is used twice is known again, and in the flat form a group may be spread
    over several files of a step. A prompt twice in one grid is two groups.
    """
    ids = flat_texts(fields.get("group"), "group", grid, name)
    if grid.sizes is not None:
        starts, seen, found = np.cumsum([0, *grid.sizes]).tolist(), Counter(), []
        for p, size in enumerate(grid.sizes):
            text = ("grid", prompts[starts[p]]) if prompts and size else (name, p)
            found.append(parts_digest(*text, seen[text]))
            seen[text] += 1
        return np.repeat(np.array(found, dtype=np.uint64), grid.sizes)
    if ids is not None:
        # Texts are taken to be ids of the whole run, numbers to count within the file.
        local = "" if all(isinstance(item, str) for item in ids) else name
        return np.array([parts_digest("id", local, item) for item in ids], dtype=np.uint64)
    if prompts is not None:
        return np.array([parts_digest("prompt", text) for text in prompts], dtype=np.uint64)
    raise RunFileError(
        f"{name} has a row a completion but neither group nor prompts; add group, the same number "
        "for each completion of one prompt."
    )


def _step(value, name):
    if value is None:
        return None
    step = one_number(value)
    if not (0 <= step <= LARGEST_STEP and step == math.floor(step)):
        came = value.tolist() if isinstance(value, np.ndarray) else value
        raise RunFileError(f"{name}: step is {shown(came)}; wanted a whole number of at least 0.")
    return int(step)


def _loss(value):
    loss = one_number(value)
    return loss if math.isfinite(loss) else None
