"""Slow, obvious twins for the harmonic penalty: its mean, its crawl value, its least cost."""

from __future__ import annotations

import math

import mpmath as mp


def mean_penalty(change_rate, elapsed):
    """E[H(N)] for N Poisson, term by term: sum over n of P(N = n) H(n), in 50 digits."""
    with mp.workdps(50):
        mean = mp.mpf(change_rate) * mp.mpf(elapsed)
        weight, harmonic, total, n = mp.exp(-mean), mp.mpf(0), mp.mpf(0), 0
        while n < mean + 60 + 12 * mp.sqrt(mean):
            n += 1
            weight *= mean / n
            harmonic += mp.mpf(1) / n
            total += weight * harmonic
        return total


def crawl_value(elapsed, importance, change_rate):
    """mu (t D(t) - integral of D from 0 to t), by quadrature of the mean penalty."""
    with mp.workdps(30):
        t = mp.mpf(elapsed)
        past = mp.quad(lambda x: mean_penalty(change_rate, x), [0, t / 2, t])
        return mp.mpf(importance) * (t * mean_penalty(change_rate, t) - past)


def closed_value(elapsed, importance, change_rate):
    """mu (t - (1 - exp(-Delta t)) / Delta), with enough digits for the cancellation."""
    with mp.workdps(120):
        t, mu, delta = map(mp.mpf, (elapsed, importance, change_rate))
        return mu * (t - (1 - mp.exp(-delta * t)) / delta)


def observed_value(signals, importance, change_rate):
    """E[T] D - E[integral of D] of the cycle that ends at the n-th change, for D = mu H(k)."""
    gaps = [1 / mp.mpf(change_rate)] * signals
    levels = [mp.harmonic(k) for k in range(signals + 1)]
    lasted = sum(gaps)
    integral = sum(gap * level for gap, level in zip(gaps, levels, strict=False))
    return mp.mpf(importance) * (lasted * levels[signals] - integral)


def exponential_integral(x):
    """Ein(x), the integral of (1 - exp(-t)) / t from 0 to x: E[H(N)] of mean x."""
    return float(mp.euler + mp.log(x) + mp.e1(x))


def periodic_bound(importance, change_rate, complete, bandwidth):
    """The least cost of crawls at free instants, by duality: the largest of its lower bounds.

    At a price of crawls each page is independent: an unobserved one is crawled when its value
    reaches the price, an observed one at the first number of changes whose value does.
    """

    def bound(price):
        total = -price * bandwidth
        for mu, delta, observed in zip(importance, change_rate, complete, strict=True):
            if observed:
                number = max(1, math.ceil(price * delta / mu))
                total += mu * (float(mp.harmonic(number)) - 1.0) + price * delta / number
                continue
            low, high = 0.0, price / mu + 2.0 / delta
            for _ in range(60):
                middle = 0.5 * (low + high)
                value = mu * (middle + math.expm1(-delta * middle) / delta)
                low, high = (middle, high) if value < price else (low, middle)
            x = delta * high
            total += mu * (exponential_integral(x) - 1.0 - math.expm1(-x) / x) + price / high
        return total

    low, high = -12.0, 12.0  # the dual is concave in the price, and so unimodal in its logarithm
    for _ in range(40):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (left, high) if bound(math.exp(left)) < bound(math.exp(right)) else (low, right)
    return bound(math.exp(0.5 * (low + high)))
