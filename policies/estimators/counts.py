r"""Change rates from counts: of changed crawls, or of signals where every change is signalled.

From the number of changes X, of crawls n, and the time T that they cover (Cho and Garcia-Molina
2003, "Estimating frequency of change"), for crawls at intervals T / n:

==========  ==========================================  ============================================
naive       X / T                                       biased down: crawls miss repeated changes,
                                                        and it saturates at n / T
improved    -ln((n - X + 0.5) / (n + 0.5)) n / T        0 at X = 0, finite at X = n
modified    ((X - 1) - X / (n ln(1 - X / n))) / T'      T' counts a changed interval from its last
                                                        change on (Last-Modified)
==========  ==========================================  ============================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import amounts, quantity, real


def naive_rate(changes: ArrayLike, time: ArrayLike) -> FloatArray:
    """Return changes over time, X / T, of shapes that broadcast; nan where the time is 0."""
    return _per_time(amounts("changes", changes), amounts("time", time))


def improved_rate(changes: ArrayLike, crawls: ArrayLike, time: ArrayLike) -> FloatArray:
    """Return change rates from X changed ones of n crawls, at equal intervals over a time T.

    They are -ln((n - X + 0.5) / (n + 0.5)) n / T (Cho and Garcia-Molina 2003); nan where T is 0.

    Args:
        changes: X, crawls that detected a change, <= n.
        crawls: n.
        time: T, covered by the crawls; intervals should be equal.

    Raises:
        ValueError: a number is negative or not finite, or there are more changes than crawls.
    """
    num_changes, count = _counts(changes, crawls)
    return -np.log1p(-num_changes / (count + 0.5)) * _per_time(count, amounts("time", time))


def last_modified_rate(changes: ArrayLike, crawls: ArrayLike, time: ArrayLike) -> FloatArray:
    """Return change rates from crawls that show the time of the last change (Last-Modified).

    The rate is ((X - 1) - X / (n ln(1 - X / n))) / T' (Cho and Garcia-Molina 2003). X / T' is the
    maximum likelihood estimate; the numerator corrects its bias to first order. Rates are 0 at X =
    0, (n - 1) / T' at X = n (so 0 after a single crawl), and nan where T' is 0.

    Args:
        changes: X, crawls that detected a change, <= n.
        crawls: n.
        time: T', the sum of unchanged intervals, and for changed ones of the times from the last
            change to the crawl.

    Raises:
        ValueError: a number is negative or not finite, or there are more changes than crawls.
    """
    num_changes, count = _counts(changes, crawls)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = num_changes / count
        ratio = np.where(share > 0.0, share / np.log1p(-share), -1.0)
    return _per_time(num_changes - 1.0 - ratio, amounts("time", time))


def complete_observation_rates(
    changes: ArrayLike, time: ArrayLike, *, extra_changes: float = 0.5, extra_time: float = 0.5
) -> FloatArray:
    """Return change rates of pages with counted changes: (changes + a) / (time + b).

    Kolobov et al. print a = 1, b = 0 in eq. 11 and a = b = 0.5 in Algorithm 4, line 13;
    a = b = 0 is the maximum of the likelihood. All are consistent; nan where ``time`` + b is 0.

    Args:
        changes: U, counted in ``time``, >= 0; (m,) or a scalar.
        time: length of the count, >= 0; (m,) or a scalar.
        extra_changes: a >= 0.
        extra_time: b >= 0, in units of time.

    Raises:
        ValueError: a number is negative or not finite.
    """
    count = amounts("changes", changes) + real("extra_changes", extra_changes, least=0.0)
    return _per_time(count, amounts("time", time) + quantity("extra_time", extra_time))


def _per_time(amount: FloatArray, time: FloatArray | float) -> FloatArray:
    """Return amount / time; nan where the time is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(time > 0.0, np.divide(amount, time) + 0.0, np.nan)


def _counts(changes: ArrayLike, crawls: ArrayLike) -> tuple[FloatArray, FloatArray]:
    num_changes, count = amounts("changes", changes), amounts("crawls", crawls)
    if np.any(num_changes > count):
        raise ValueError(f"changes must not exceed crawls, got {changes!r} of {crawls!r}")
    return num_changes, count
