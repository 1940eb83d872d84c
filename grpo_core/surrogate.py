"""Stage *surrogate*: what a token is worth, and where its gradient stops."""

from . import surrogate_clipped, surrogate_smooth, surrogate_weighted
from .surrogate_base import Surrogate
from .surrogate_clipped import clip, dual_clip
from .variants import table

SURROGATES = table(*surrogate_clipped.ROWS, *surrogate_weighted.ROWS, *surrogate_smooth.ROWS)

__all__ = ["SURROGATES", "Surrogate", "clip", "dual_clip"]
