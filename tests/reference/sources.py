"""SOURCES: which reader a case's ``source`` belongs to, and what no reader computes."""

from tests.reference import openrlhf, plain, trl, verl
from tests.reference.recorded import Case, Unsupported

# The last part of the name of the function that was called -> reader, or why there is none.
_VERL = "verl.trainer.ppo.core_algos."
_TRL = "trl.trainer.grpo_trainer.GRPOTrainer."
_OPENRLHF = "openrlhf."
_EXPERIENCE = f"{_OPENRLHF}trainer.ppo_utils.experience_maker.RemoteExperienceMaker."

READERS = {
    f"{_TRL}_compute_loss": trl.loss,
    f"{_TRL}get_gamma_weights": trl.gamma_weights,
    f"{_TRL}get_off_policy_mask": trl.off_policy_mask,
    f"{_TRL}_generate_and_score_completions": trl.scored,
    f"{_VERL}compute_grpo_outcome_advantage": verl.grpo,
    f"{_VERL}compute_grpo_vectorized_outcome_advantage": verl.grpo_vectorized,
    f"{_VERL}compute_grpo_passk_outcome_advantage": verl.grpo_passk,
    f"{_VERL}compute_rloo_outcome_advantage": verl.rloo,
    f"{_VERL}compute_rloo_vectorized_outcome_advantage": verl.rloo_vectorized,
    f"{_VERL}compute_opo_outcome_advantage": verl.opo,
    f"{_VERL}compute_gpg_outcome_advantage": verl.gpg,
    f"{_VERL}compute_reinforce_plus_plus_baseline_outcome_advantage": verl.reinforce_baseline,
    f"{_VERL}compute_reinforce_plus_plus_outcome_advantage": verl.reinforce,
    f"{_VERL}compute_gdpo_outcome_advantage": verl.gdpo,
    f"{_VERL}agg_loss": verl.aggregate,
    f"{_VERL}kl_penalty": verl.kl_penalty,
    f"{_VERL}compute_rewards": verl.rewards_less_kl,
    **{f"{_VERL}compute_policy_loss_{kind}": verl.loss(kind) for kind in verl.LOSSES},
    f"{_OPENRLHF}models.loss.PolicyLoss": openrlhf.policy_loss,
    f"{_OPENRLHF}models.utils.compute_approx_kl": openrlhf.approximate_kl,
    f"{_OPENRLHF}models.loss.aggregate_loss": openrlhf.aggregate,
    f"{_EXPERIENCE}compute_advantages_and_returns": openrlhf.advantages,
}
UNSUPPORTED = {
    f"{_VERL}compute_gae_advantage_return": "GAE needs a value network",
    f"{_VERL}compute_remax_outcome_advantage": "ReMax needs a greedy completion as its baseline",
    f"{_VERL}compute_optimal_token_baseline_advantage": "the optimal token baseline",
    f"{_VERL}compute_policy_loss_clip_cov": "Clip-Cov drops tokens at random",
    f"{_VERL}compute_policy_loss_kl_cov": "KL-Cov penalises tokens by their covariance",
    f"{_VERL}compute_policy_loss_bypass_mode": "verl's bypass mode",
    f"{_OPENRLHF}models.utils.masked_normalize": "a helper that only whitens",
}
# Formulas that no package computes are told apart by what their cases hold.
_FORMULAS = (
    ("step_rewards", plain.process),
    ("old_logp", plain.objective),
    ("rewards", plain.advantages),
)


def checks(case):
    """Every check of a case.

    Raises
    ------
    Unsupported
        No reader knows the case's source, or the reader does not know its options.
    """
    return list(_reader(case)(Case(case)))


def _reader(case):
    name = case["source"].split()[-1]
    if name in UNSUPPORTED:
        raise Unsupported(UNSUPPORTED[name])
    if name in READERS:
        return READERS[name]
    if case["provenance"].startswith(("reference", "reimplemented")):
        for key, reader in _FORMULAS:
            if key in case["inputs"]:
                return reader
    raise Unsupported(f"an unknown source: {case['source']}")
