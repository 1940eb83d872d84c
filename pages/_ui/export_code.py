"""SNIPPETS: each variant of each stage as straight-line NumPy, for scripts and notebooks.

The code is written for a reader. It holds the chosen options as named numbers and nothing
about the others.
"""

from .export_baselines import ADVANTAGE_SNIPPETS
from .export_policy import POLICY_SNIPPETS
from .export_process import PROCESS_SNIPPETS
from .export_scores import SCORE_SNIPPETS
from .export_shaping import SHAPING_SNIPPETS
from .export_surrogates import SURROGATE_SNIPPETS
from .export_tokens import TOKEN_SNIPPETS

SNIPPETS = {
    **SCORE_SNIPPETS,
    **SHAPING_SNIPPETS,
    **PROCESS_SNIPPETS,
    **ADVANTAGE_SNIPPETS,
    **POLICY_SNIPPETS,
    **SURROGATE_SNIPPETS,
    **TOKEN_SNIPPETS,
}
