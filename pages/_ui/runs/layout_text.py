"""Our own layout of arrays in words, as Markdown: shown on the page and in the README."""

TITLE = "Your own arrays"

INTRODUCTION = """\
A trainer that is not known here, or tokens that yours does not write: save them as arrays under \
the names below, one file a step, as npz or JSON. P prompts, G completions of each (the group), L \
token positions, K reward terms. Only a log-probability or a reward has to be there; what is \
missing is not shown."""

# name, axes, what it holds.
ROWS = (
    ("`logp_new`", "(P, G, L)", "log-probability of each sampled token under the trained policy"),
    ("`logp_old`", "(P, G, L)", "the same under the policy before the update"),
    ("`logp_ref`", "(P, G, L)", "the same under the reference policy"),
    (
        "`logp_sampler`",
        "(P, G, L)",
        "the same as the engine that sampled reported it; may be blank",
    ),
    ("`mask`", "(P, G, L)", "1 for tokens that are trained on, 0 for padding and tool output"),
    ("`entropy`", "(P, G, L)", "entropy of the policy at each token"),
    ("`token_ids`", "(P, G, L)", "ids of the tokens; `completion_ids` is read, too"),
    ("`pieces`", "(P, G, L)", "what each token reads, as text"),
    ("`rewards`", "(P, G)", "total reward of each completion"),
    ("`rewards_per_term`", "(P, G, K)", "each reward term, unweighted"),
    ("`term_names`", "(K,)", "names of the terms"),
    ("`advantages`", "(P, G)", "as the trainer computed them; (P, G, L) where they are per token"),
    ("`present`", "(P, G)", "0 where a group has fewer completions"),
    ("`prompts`", "(P,)", "texts"),
    ("`completions`", "(P, G)", "texts"),
    ("`step`", "one number", "the training step; else the last number in the file's name"),
    ("`loss`", "one number", "the loss that the trainer itself reported for this batch"),
)

TABLE = "| array | shape | holds |\n|---|---|---|\n" + "\n".join(
    f"| {name} | {axes} | {words} |" for name, axes, words in ROWS
)

FLAT = """\
**Flat form.** Where completions stand in one list, as most trainers hold them, every P, G is one \
axis N: `logp_new` (N, L), `rewards` (N,), `prompts` (N,). What tells the groups apart is \
`group` (N,), equal for the completions of one prompt, or else the prompts. Ids in `group` that \
are texts hold for all files of a step, numbers for one file."""

JSON = """\
**JSON.** The same names with nested lists. A completion's list is as long as its tokens, so that \
no mask is needed; a prompt's list is as long as its group. Several steps: a list of such tables, \
or JSON Lines with one table a line. `null` and `NaN` are blank."""

PADDING = """\
**Padding** may stand left or right and hold anything: only tokens with mask 1 are read, in order. \
A log-probability there is at most 0; a file with another value is refused with its prompt, \
completion and token. Where `logp_new` or `logp_old` is missing the other one stands in."""

BESIDE = """\
**Beside completions.** Array files that lie in one folder with TRL's parquet files, or with any \
other file of completions, are joined to them where prompts and completions read the same. A \
`vocabulary.json`, a list of texts or a table from id to text, says what the tokens read."""

EXAMPLE_NPZ = """\
import numpy as np

np.savez_compressed(
    "step_000010.npz",
    step=10,
    logp_new=logp_new,  # (P, G, L)
    logp_old=logp_old,
    logp_ref=logp_ref,
    mask=mask,
    rewards=rewards,  # (P, G)
    prompts=np.array(["2+2=?"]),
    completions=np.array([["4", "five"]]),
)
"""

EXAMPLE_JSON = """\
{"step": 10, "prompts": ["2+2=?"], "completions": [["4", "five"]],
 "rewards": [[1, 0]], "logp_new": [[[-0.1], [-2.3, -0.4]]], "logp_old": [[[-0.1], [-2.2, -0.4]]]}
"""

MARKDOWN = "\n\n".join((INTRODUCTION, TABLE, FLAT, JSON, PADDING, BESIDE))
