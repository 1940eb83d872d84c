"""What the settings of a trainer say, as lines for the reader."""

from .numbers import count

_SHOWN = 12  # lines of one kind; the rest is counted


def cannot_lines(setting):
    """What a trainer cannot do: what matters in this batch, and what makes no difference there."""
    matters = [each.sentence for each in setting.cannot if each.here]
    quiet = [each.sentence for each in setting.cannot if not each.here]
    return matters, quiet


def verdict_line(setting):
    """One sentence on how much of the conventions a trainer can do."""
    matters, quiet = cannot_lines(setting)
    if matters:
        return (
            f"{setting.name} computes something else in {count(len(matters), 'respect')}; "
            "what the lines cannot say is listed below."
        )
    beside = " Other differences make none in this batch." if quiet else ""
    return f"{setting.name} computes this with the lines below.{beside}"


def reading_line(pasted):
    """One sentence on what was read from a pasted text."""
    reading = pasted.reading
    parts = [f"{count(len(reading.taken), 'setting')} read"]
    for lines, words in (
        (pasted.unread + reading.not_understood, "not understood"),
        (reading.no_effect, "without effect"),
        (reading.no_counterpart, "without a counterpart here"),
    ):
        if lines:
            parts.append(f"{len(lines):,} {words}")
    if pasted.beside:
        parts.append(f"{count(len(pasted.beside), 'line')} beside the call not read")
    return f"Read as {pasted.form} of {reading.name}: {', '.join(parts)}."


def reading_lines(pasted):
    """(title, lines) of all that is to be said of a pasted text; kinds without a line are left out.

    Of a long list the first lines are shown, and the rest counted.
    """
    reading = pasted.reading
    kinds = (
        ("Not understood", (*pasted.unread, *reading.not_understood)),
        ("Beside the call, not read", pasted.beside),
        ("To know", reading.notes),
        ("Read", tuple(str(entry) for entry in reading.taken)),
        ("Without effect", reading.no_effect),
        ("Without a counterpart here", reading.no_counterpart),
    )
    return [(title, _bounded(lines)) for title, lines in kinds if lines]


def _bounded(lines):
    rest = len(lines) - _SHOWN
    return list(lines) if rest <= 0 else [*lines[:_SHOWN], f"and {rest:,} more"]
