"""What trainers call a variant or an option, as one sentence each."""

from grpo_core.trainers import openrlhf_flags


def named(row, stage, variant, option="", mark=""):
    """Names of a row in TRL, verl and OpenRLHF.

    Parameters
    ----------
    row : Variant or Option
    stage, variant, option : str
        Where it stands; no option for a variant.
    mark : str
        Put around the names of TRL and verl: a backtick shows them as code.

    Returns
    -------
    str
        Markdown: dashes of flags are kept as they are by marking them as code.
    """
    flags = openrlhf_flags(stage, variant, option) or "not offered"
    shown = f"`{flags}`" if mark or "--" in flags else flags
    return f"TRL: {mark}{row.trl}{mark}. verl: {mark}{row.verl}{mark}. OpenRLHF: {shown}."
