"""Findings: what the numbers of an evaluation say, in sentences.

A finding is added as one row in the module of its subject; `FINDINGS` collects them and
`find` runs them.
"""

from .row import SEVERITIES, FindingRow
from .table import FINDINGS, Finding, find

__all__ = ["FINDINGS", "SEVERITIES", "Finding", "FindingRow", "find"]
