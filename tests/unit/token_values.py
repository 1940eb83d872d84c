"""A baseline of each token's own value, beside those of whole answers: in closed form."""

import numpy as np

from grpo_core.answer_policies import above_rounding


def token_value_noise(rates):
    """Variance of one sample's gradient in `token_policy`, each token judged by its own value.

    The baseline of token t is V(s_t), the chance of a right answer given the tokens before it:
    0 after a first wrong token, else the product of the rates from t on. That is what a value
    network per token offers and no baseline of the whole answer can: it takes out the noise
    of the other tokens.

    Notes
    -----
    Token t has a gradient only if all before it are 1 (chance a). With r its rate and h the
    product of the later ones, V = r h and ``E[(R - V)^2 S^2] = a [r (1-r)^2 (h - 2 h V + V^2)
    + (1-r) r^2 V^2]``. Derived here.
    """
    rates = np.array(rates, dtype=float)
    before = np.cumprod(np.concatenate([[1.0], rates[:-1]]))
    after = np.cumprod(np.concatenate([[1.0], rates[:0:-1]]))[::-1]
    value = rates * after
    # If the token is 1, E(R - V)^2 = h - 2 h V + V^2; if it is 0, V^2.
    right = rates * (1 - rates) ** 2 * (after - 2 * after * value + value**2)
    wrong = (1 - rates) * rates**2 * value**2
    second = np.sum(before * (right + wrong))
    size = np.sum((before * rates * (1 - rates) * after) ** 2)
    return float(above_rounding(second - size, second))
