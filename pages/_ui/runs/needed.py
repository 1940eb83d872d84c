"""What a table needs before its rows are completions, said in one place for every format."""

from .records import RolesNeeded

# Roles whose columns are read as numbers into `Records.numbers`.
NUMBERS = ("term", "total", "measure", "advantage")
SHOWN = 20  # columns that a message lists


def by_role(roles):
    """Role -> the first column that has it."""
    found = {}
    for name, role in roles.items():
        found.setdefault(role, name)
    return found


def is_lacking(roles, prompt=True):
    """Whether nothing has the role of a reward or, unless groups are known, of a prompt."""
    one = by_role(roles)
    return not ({"term", "total"} & set(one)) or (prompt and not {"prompt", "group"} & set(one))


def check_texts(one, head):
    """Refuse a table without a prompt or a group to tell the groups by.

    Raises
    ------
    RolesNeeded
    """
    if "prompt" not in one and "group" not in one:
        raise RolesNeeded(
            f"{head.source.name} has no column with the prompt; its columns are "
            f"{listed(head.names)}. Say which one holds the prompt."
        )


def listed(names):
    """Names for a message, the first ones if there are many."""
    shown = ", ".join(repr(name[:60]) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"
