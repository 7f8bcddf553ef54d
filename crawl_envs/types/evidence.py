"""Evidence of signals that their page has changed, and the equivalent elapsed time.

By eq. 1 of Busa-Fekete et al. (2025) a page is unchanged since its crawl with probability
``exp(-alpha tau) * prod (nu_s / gamma_s)``, where the product is over the signals since, with s the
source of each. So a signal is equivalent to a time ``beta_s = ln(gamma_s / nu_s) / alpha``, and
``tau + sum beta_s`` is the effective elapsed time.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.compiled import FloatArray


def signal_evidence(
    change_rate: FloatArray, recall: FloatArray, false_signal_rate: FloatArray
) -> FloatArray:
    """Return how strongly one signal speaks for a change, ``ln(gamma / nu)`` in nats, >= 0.

    It is 0 where no change emits a signal, and inf where there are no false signals.

    Args:
        change_rate: rates of changes, (m,).
        recall: shares of changes that emit a signal of the source, (m,) or (S, m).
        false_signal_rate: rates of signals without a change, like ``recall``.
    """
    true_rate = recall * change_rate
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(true_rate > 0.0, true_rate / false_signal_rate, 0.0)
        evidence: FloatArray = np.log1p(ratio)
    return evidence


def signal_time(
    change_rate: FloatArray,
    recall: FloatArray,
    false_signal_rate: FloatArray,
    unsignalled_rate: FloatArray,
) -> FloatArray:
    """Return the elapsed time that is equivalent evidence to one signal (beta), >= 0.

    It is :func:`signal_evidence` divided by ``unsignalled_rate``, (m,). It is inf where a signal is
    certain, and where every change is signalled, so that elapsed time has no evidence.
    """
    evidence = signal_evidence(change_rate, recall, false_signal_rate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(evidence > 0.0, evidence / unsignalled_rate, 0.0)
