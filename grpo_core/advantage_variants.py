"""ADVANTAGES: every way of judging a completion, one row each."""

from dataclasses import replace

from .advantage_rows import (
    best_over_second,
    leave_one_out,
    leave_one_out_std,
    nonzero_scaled,
    over_batch_std,
    over_mean,
    pass_at_k,
    uncompared,
)
from .advantages import given, given_per_token, judged, mean_only, mean_std, opo, process, returns
from .variants import Number, OneOf, Option, Variant, table


def _row(normaliser):
    """A row's function from a normaliser that its options make."""
    return lambda batch, scores, **options: judged(batch, scores, normaliser(**options))


_DDOF = Option(
    key="ddof",
    default=0,
    domain=OneOf({0: "population (n)", 1: "sample (n - 1)"}),
    label="Standard deviation",
    help="The paper writes only 'std'. NumPy's default is the population formula; every "
    "trainer uses the sample one, which gives smaller advantages in small groups.",
    trl="sample, fixed",
    verl="sample, fixed",
)
_EPS = Option(
    key="eps",
    default=1e-8,
    domain=Number(low=0.0, high=1e6),
    label="eps (added to the std)",
    help="Matters only in groups whose rewards are nearly equal, where it decides how far "
    "tiny differences are blown up.",
    trl="1e-4, fixed",
    verl="epsilon=1e-6",
)

_SAMPLE_DDOF = replace(_DDOF, default=1)
_FLOOR = Option(
    key="floor",
    default=0.0,
    domain=Number(low=0.0, high=1e6),
    label="Least std",
    help="A smaller standard deviation is taken as this. verl's grpo_vectorized: 0.001.",
    trl="none",
    verl="none; grpo_vectorized: 0.001",
)
_ALONE = Option(
    key="alone",
    default="zero",
    domain=OneOf(
        {
            "zero": "0",
            "reward": "its score",
            "reward_over_1": "its score over 1 + eps",
        }
    ),
    label="Group of one",
    help="What the only score of a group is worth. It has nothing to be compared with.",
    trl="refused in training, 0 in evaluation",
    verl="its score over 1 + eps (grpo), its score (rloo)",
)


def _eps(default, trl, verl):
    return replace(_EPS, default=default, trl=trl, verl=verl)


ADVANTAGES = table(
    Variant(
        key="mean_std",
        label="minus mean, over std (GRPO)",
        function=mean_std,
        formula=r"A_i = \frac{R_i - \operatorname{mean}(R)}{\operatorname{std}(R) + \mathrm{eps}}",
        source="DeepSeekMath (arXiv 2402.03300) section 4.1.2",
        trl='scale_rewards="group"',
        verl="adv_estimator=grpo",
        choose_when="You want every group to push equally hard, however small its spread.",
        options=(_DDOF, _EPS, _FLOOR, _ALONE),
        unit="in standard deviations of the group",
    ),
    Variant(
        key="mean_only",
        label="minus mean (Dr. GRPO)",
        function=mean_only,
        formula=r"A_i = R_i - \operatorname{mean}(R)",
        source="Dr. GRPO (arXiv 2503.20783) section 3.2",
        trl='scale_rewards="none"',
        verl="norm_adv_by_std_in_grpo=False",
        choose_when="Rewards have a scale you trust and hard prompts must not be up-weighted.",
        options=(_ALONE,),
        unit="in reward units",
    ),
    Variant(
        key="batch_std",
        label="minus mean, over batch std",
        function=_row(over_batch_std),
        formula=r"A_i = \frac{R_i - \operatorname{mean}(R)}{\operatorname{std}_{\mathrm{batch}}(R) "
        r"+ \mathrm{eps}}",
        source="Lite PPO (arXiv 2508.08221)",
        trl='scale_rewards="batch"',
        verl="not offered",
        choose_when="Advantages should be of order 1 without favouring groups of small spread.",
        options=(_SAMPLE_DDOF, _eps(1e-4, "1e-4, fixed", "not offered")),
        unit="in standard deviations of the batch",
    ),
    Variant(
        key="leave_one_out",
        label="minus mean of the others (RLOO)",
        function=_row(leave_one_out),
        formula=r"A_i = R_i - \operatorname{mean}_{j\neq i}(R_j)",
        source="RLOO (arXiv 2402.14740); Kool et al. 2019",
        trl="RLOOTrainer",
        verl="adv_estimator=rloo",
        choose_when="The baseline should not contain the completion itself: n / (n - 1) times the "
        "distance to the mean.",
        options=(replace(_ALONE, default="reward"),),
        unit="in reward units",
    ),
    Variant(
        key="leave_one_out_std",
        label="mean and std of the others (NeMo-RL)",
        function=_row(leave_one_out_std),
        formula=r"A_i = \frac{R_i - \operatorname{mean}_{j\neq i}(R_j)}"
        r"{\operatorname{std}_{j\neq i}(R_j) + \mathrm{eps}}",
        source="NeMo-RL, use_leave_one_out_baseline with normalize_rewards; not divided where "
        "the others are equal",
        trl="not offered",
        verl="not offered",
        choose_when="You run NeMo-RL. One right answer among wrong ones is not divided at all.",
        options=(_eps(1e-6, "not offered", "not offered"),),
        unit="in standard deviations of the others",
    ),
    Variant(
        key="uncompared",
        label="the score itself",
        function=_row(lambda: uncompared),
        formula=r"A_i = R_i",
        source="REINFORCE; AReaL's default",
        trl="not offered",
        verl="adv_estimator=reinforce_plus_plus (then whitened)",
        choose_when="Scores are centred already, or advantages are whitened over the batch.",
        unit="in reward units",
    ),
    Variant(
        key="returns",
        label="returns to go",
        function=returns,
        formula=r"A_{i,t} = \sum_{u\ge t}\gamma^{u-t} r_{i,u}",
        source="REINFORCE++ (arXiv 2501.03262), before whitening",
        trl="not offered",
        verl="adv_estimator=reinforce_plus_plus (then whitened)",
        choose_when="Rewards fall on tokens, and groups are not to be compared.",
        options=(
            Option(
                key="gamma",
                default=1.0,
                domain=Number(low=0.0, high=1.0),
                label="gamma",
                help="What a reward loses with each token that lies before it.",
                trl="not offered",
                verl="gamma=1.0",
            ),
        ),
        unit="in reward units",
    ),
    Variant(
        key="length_weighted",
        label="minus length-weighted mean (OPO)",
        function=opo,
        formula=r"A_i = R_i - \frac{\sum_j T_j R_j}{\sum_j T_j}",
        source="OPO (arXiv 2505.23585)",
        trl="not offered",
        verl="adv_estimator=opo",
        choose_when="Long completions have the larger gradients, and the baseline should see it.",
        options=(replace(_ALONE, default="reward"),),
        unit="in reward units",
    ),
    Variant(
        key="over_mean",
        label="minus mean, over mean (MaxRL)",
        function=_row(over_mean),
        formula=r"A_i = \frac{R_i - \operatorname{mean}(R)}{\operatorname{mean}(R) + "
        r"\mathrm{eps}}",
        source="MaxRL (arXiv 2602.02710); prime-rl max_rl, SkyRL maxrl",
        trl="not offered",
        verl="not offered",
        choose_when="Rewards are 0 or 1 and rare successes should count for most.",
        options=(_eps(0.0, "not offered", "not offered"),),
        unit="in means of the group",
    ),
    Variant(
        key="nonzero_scaled",
        label="minus mean, scaled up (GPG)",
        function=_row(nonzero_scaled),
        formula=r"A_i = \frac{\alpha}{f_{\mathrm{norm}}} (R_i - \operatorname{mean}(R)),\quad "
        r"\alpha = \frac{N}{\#\{R \neq 0\}}",
        source="GPG (arXiv 2504.02546); alpha over the whole batch",
        trl="not offered",
        verl="adv_estimator=gpg",
        choose_when="Most scores are 0, and silent groups should not shrink the step.",
        options=(
            Option(
                key="f_norm",
                default=1.0,
                domain=Number(low=0.0, high=1e6, exclusive=True),
                label="f_norm",
                help="A last divisor.",
                trl="not offered",
                verl="f_norm=1.0",
            ),
            replace(_ALONE, default="reward"),
        ),
        unit="in reward units times alpha",
    ),
    Variant(
        key="best_over_second",
        label="best minus second best (Pass@k)",
        function=_row(best_over_second),
        formula=r"A_{\mathrm{best}} = \frac{R_{(1)} - R_{(2)}}{\operatorname{std}(R) + "
        r"\mathrm{eps}},\quad \text{else } 0",
        source="Pass@k policy optimisation (arXiv 2503.19595)",
        trl="not offered",
        verl="adv_estimator=grpo_passk",
        choose_when="Only the best of the group counts.",
        options=(
            _SAMPLE_DDOF,
            _eps(1e-6, "not offered", "epsilon=1e-6"),
            Option(
                key="divide",
                default="std",
                domain=OneOf({"std": "by std + eps", "nothing": "by nothing"}),
                label="Divided",
                help="Whether the lead is divided by the group's std.",
                trl="not offered",
                verl="norm_adv_by_std_in_grpo",
            ),
        ),
        unit="in standard deviations of the group",
    ),
    Variant(
        key="pass_at_k",
        label="pass@k, analytic",
        function=_row(pass_at_k),
        formula=r"A_+ = \frac{1 - p}{s},\quad A_- = \frac{1 - p - \binom{n-c-1}{k-1}/"
        r"\binom{n-1}{k-1}}{s},\quad p = 1 - \tbinom{n-c}{k}/\tbinom{n}{k}",
        source="Pass@k training (arXiv 2508.10751); s is sqrt(p (1 - p)) + eps",
        trl="not offered",
        verl="not offered",
        choose_when="What counts is that one of k answers is right.",
        options=(
            Option(
                key="k",
                default=4,
                domain=Number(low=1, high=512, integer=True),
                label="k",
                help="Answers of which one has to be right.",
                trl="not offered",
                verl="not offered",
            ),
            _eps(1e-6, "not offered", "not offered"),
            Option(
                key="right_above",
                default=0.5,
                domain=Number(low=-1e6, high=1e6),
                label="Right above",
                help="A score above this is right.",
                trl="not offered",
                verl="not offered",
            ),
        ),
        unit="in standard deviations of pass@k",
    ),
    Variant(
        key="given",
        label="given, not computed",
        function=given,
        formula=r"A_i = \text{as given}",
        source="the array 'advantages', e.g. logged by a trainer",
        trl="the advantage column of a completions file",
        verl="advantages",
        choose_when="You want to reproduce a recorded batch, or you compute advantages elsewhere.",
        needs=("advantages",),
        unit="as given",
    ),
    Variant(
        key="given_per_token",
        label="given per token, not computed",
        function=given_per_token,
        formula=r"A_{i,t} = \text{as given}",
        source="the array 'token_advantages', e.g. of a critic",
        trl="advantages of shape (B, T)",
        verl="advantages",
        choose_when="Advantages differ within a completion and are computed elsewhere.",
        needs=("token_advantages",),
        unit="as given",
    ),
    Variant(
        key="process",
        label="step rewards (process supervision)",
        function=process,
        formula=r"A_{i,t} = \sum_{j:\, e_{i,j} \ge t} "
        r"\frac{r_{i,j} - \operatorname{mean}(r)}{\operatorname{std}(r) + \mathrm{eps}}",
        source="DeepSeekMath (arXiv 2402.03300) section 4.1.3; mean and std over all steps of "
        "the group, e is where a step ends",
        trl="not implemented",
        verl="not implemented: grpo sums token rewards to one score first",
        choose_when="A verifier or reward model scores each step of the answer.",
        options=(
            _DDOF,
            _EPS,
            Option(
                key="over",
                default="group",
                domain=OneOf(
                    {"group": "all steps of the group", "completion": "each completion's own"}
                ),
                label="Mean and std over",
                help="The paper pools the steps of the whole group. Within each completion "
                "a step is only compared with its neighbours.",
                trl="not implemented",
                verl="not implemented",
            ),
            Option(
                key="outcome_weight",
                default=0.0,
                domain=Number(low=-1e6, high=1e6),
                label="Weight of the outcome",
                help="Adds the advantage of the whole answer's reward, by the same formula, "
                "times this. 0 leaves it out.",
                trl="not implemented",
                verl="not implemented",
            ),
        ),
        needs=("step_ends", "step_rewards"),
        unit="in standard deviations of the group's steps",
    ),
)
