"""STAGES: every step of the computation and every way of doing it; and the choice of one each.

Menus, the link codec, the documentation and the parametrised tests read this table and
know no variant by name. The stages are listed in the order in which they run.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .advantage_variants import ADVANTAGES
from .aggregation import AGGREGATIONS
from .correction import CORRECTIONS
from .errors import ScenarioError
from .extras import ACCUMULATIONS, ENTROPIES
from .filters import SELECTIONS, TIED, TRUNCATED
from .kl import KLS
from .ratio import RATIOS
from .rewards import REWARDS
from .surrogate import SURROGATES
from .variants import Choice, Stage, complete_choice, table
from .whitening import WHITENINGS

STAGES = table(
    Stage(
        key="ratio",
        label="Ratio",
        contract="(batch, **options) -> Ratio",
        variants=RATIOS,
    ),
    Stage(
        key="kl",
        label="KL",
        contract="(batch, ratio, **options) -> KL",
        variants=KLS,
    ),
    Stage(
        key="rewards",
        label="Rewards",
        contract="(batch, reward_penalty, **options) -> Scores",
        variants=REWARDS,
    ),
    Stage(
        key="advantage",
        label="Advantage",
        contract="(batch, scores, **options) -> Advantages",
        variants=ADVANTAGES,
    ),
    Stage(
        key="whitening",
        label="Whitening",
        contract="(batch, token_advantages, taken, **options) -> token_advantages",
        variants=WHITENINGS,
    ),
    Stage(
        key="truncated",
        label="Truncated completions",
        contract="(batch, scores, advantages, **options) -> Kept",
        variants=TRUNCATED,
    ),
    Stage(
        key="tied",
        label="Tied groups",
        contract="(batch, scores, advantages, **options) -> Kept",
        variants=TIED,
    ),
    Stage(
        key="selection",
        label="Selected tokens",
        contract="(batch, token_advantages, **options) -> factor (P, G, L)",
        variants=SELECTIONS,
    ),
    Stage(
        key="correction",
        label="Sampler correction",
        contract="(batch, **options) -> weight (P, G, L)",
        variants=CORRECTIONS,
    ),
    Stage(
        key="surrogate",
        label="Surrogate",
        contract="(batch, ratio, token_advantages, **options) -> Surrogate",
        variants=SURROGATES,
    ),
    Stage(
        key="entropy",
        label="Entropy",
        contract="(batch, **options) -> bonus (P, G, L)",
        variants=ENTROPIES,
    ),
    Stage(
        key="aggregation",
        label="Aggregation",
        contract="(batch, **options) -> weight (P, G, L)",
        variants=AGGREGATIONS,
    ),
    Stage(
        key="accumulation",
        label="Accumulation",
        contract="(batch, **options) -> factor",
        variants=ACCUMULATIONS,
    ),
)


@dataclass(frozen=True, eq=True)
class Conventions:
    """One `Choice` for each stage; stages and options left open take their defaults.

    Raises
    ------
    ScenarioError
        Unknown stage, variant or option, or a value outside its domain.

    Examples
    --------
    >>> trl = Conventions.of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}))
    >>> trl["advantage"].options["ddof"]
    1
    """

    choices: Mapping[str, Choice]

    def __post_init__(self):
        for key in self.choices:
            if key not in STAGES:
                name, known = reprlib.repr(key), ", ".join(STAGES)
                raise ScenarioError(f"unknown stage {name}; the stages are {known}", field=key)
        complete = {
            key: complete_choice(stage, self.choices.get(key, Choice(stage.default)))
            for key, stage in STAGES.items()
        }
        object.__setattr__(self, "choices", MappingProxyType(complete))

    def __hash__(self):
        return hash(tuple(self.choices.items()))

    def __getitem__(self, stage):
        return self.choices[stage]

    @classmethod
    def of(cls, **choices):
        """Build from ``stage="variant"`` or ``stage=("variant", {option: value})``."""
        named = {
            stage: Choice(given) if isinstance(given, str) else Choice(*given)
            for stage, given in choices.items()
        }
        return cls(named)

    def replace(self, stage, variant=None, **options):
        """A copy with another variant (its options at default) or other options of one stage."""
        present = self.choices[stage]
        kept = present.options if variant in (None, present.variant) else {}
        choice = Choice(variant or present.variant, {**kept, **options})
        return Conventions({**self.choices, stage: choice})

    def variant(self, stage):
        """The row of `STAGES` chosen for one stage."""
        return STAGES[stage].variants[self.choices[stage].variant]

    def run(self, stage, *inputs):
        """Call the chosen variant of one stage with its options."""
        return self.variant(stage).function(*inputs, **self.choices[stage].options)


DEFAULT_CONVENTIONS = Conventions({})
