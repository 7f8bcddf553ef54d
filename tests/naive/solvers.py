"""Slow, obvious twins of the LambdaCrawl solvers: the papers' algorithms as printed."""

from __future__ import annotations

import numpy as np


def harmonic_cost(importance, change_rate, rates):
    """Eq. 4 of Kolobov et al. 2019."""
    return -sum(
        mu * np.log(rho / (rho + delta))
        for mu, delta, rho in zip(importance, change_rate, rates, strict=True)
    )


def incomplete(importance, change_rate, bandwidth):
    """Algorithm 1: bisection on lambda, between the bounds of Prop. 3, to a relative 1e-15."""
    importance, change_rate = np.asarray(importance), np.asarray(change_rate)
    count = len(importance)

    def bound(delta, other, mu):
        return count**2 * delta * mu / (count * other * bandwidth + bandwidth**2)

    low = bound(change_rate.min(), change_rate.max(), importance.min())
    high = bound(change_rate.max(), change_rate.min(), importance.max())

    def rates(multiplier):
        root = np.sqrt(change_rate**2 + 4.0 * importance * change_rate / multiplier)
        return (root - change_rate) / 2.0

    assert rates(low).sum() >= bandwidth * (1.0 - 1e-9)
    assert rates(high).sum() <= bandwidth * (1.0 + 1e-9)
    while high > low * (1.0 + 1e-15):
        middle = np.sqrt(low * high)
        if not low < middle < high:
            break
        if rates(middle).sum() > bandwidth:
            low = middle
        else:
            high = middle
    return rates(low)


def complete(importance, change_rate, bandwidth):
    """Algorithm 2: relaxations solved one after the other; ``bandwidth`` at most sum Delta."""
    probabilities = np.zeros(len(importance))
    rest = set(range(len(importance)))
    while rest:
        total = sum(importance[w] for w in rest)
        guess = {w: bandwidth * importance[w] / (change_rate[w] * total) for w in rest}
        violated = [w for w in rest if guess[w] >= 1.0]
        for w in violated:
            probabilities[w] = 1.0
            bandwidth -= change_rate[w]
        rest -= set(violated)
        if not violated:
            for w in rest:
                probabilities[w] = guess[w]
            break
    return probabilities


def proportional(importance, change_rate, bandwidth):
    """Prop. 9."""
    return bandwidth * np.asarray(importance) / np.sum(importance)


def golden(cost, low, high, steps=200):
    """The minimum of a convex function by golden sections."""
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = cost(right)
    return 0.5 * (low + high)


def mixed(importance, change_rate, bandwidth, complete_mask, unobserved=incomplete, steps=200):
    """Algorithm 3: golden sections on the share of pages with complete observation.

    Returns rates of the pages without, probabilities of those with it, and the cost.
    """
    importance, change_rate = np.asarray(importance), np.asarray(change_rate)
    full, rest = np.asarray(complete_mask), ~np.asarray(complete_mask)

    def split(share):
        rates = unobserved(importance[rest], change_rate[rest], bandwidth - share)
        p = complete(importance[full], change_rate[full], share)
        cost = harmonic_cost(importance[rest], change_rate[rest], rates)
        return rates, p, cost - importance[full] @ np.log(np.maximum(p, 1e-300))

    most = min(bandwidth, change_rate[full].sum())
    best = golden(lambda share: split(share)[2], 1e-9 * most, most * (1.0 - 1e-9), steps)
    return split(best)


def azar(importance, change_rate, bandwidth):
    """Algorithm 1 of Azar et al. 2018: pages sorted by value, the least dropped."""
    rates = np.zeros(len(importance))
    order = sorted(range(len(importance)), key=lambda w: importance[w] / change_rate[w])
    roots = sum(np.sqrt(importance[w] * change_rate[w]) for w in order)
    changes = sum(change_rate[w] for w in order)
    for w in order:
        root = np.sqrt(importance[w] * change_rate[w])
        if importance[w] / change_rate[w] <= (roots / (bandwidth + changes)) ** 2:
            roots -= root
            changes -= change_rate[w]
        else:
            rates[w] = root * (bandwidth + changes) / roots - change_rate[w]
    return rates


def azar_floored(importance, change_rate, bandwidth, floor):
    """The same with a least rate for every page, as published code does it (BLC-eps)."""
    importance, change_rate = np.asarray(importance), np.asarray(change_rate)
    least = floor * bandwidth / len(importance)
    value = importance * change_rate / (change_rate + least) ** 2
    rest = list(np.argsort(value, kind="stable"))
    rates = np.full(len(importance), least)
    while rest:
        roots = np.sqrt(importance[rest] * change_rate[rest]).sum()
        changes = change_rate[rest].sum()
        if value[rest[0]] > (roots / (bandwidth + changes)) ** 2:
            root = np.sqrt(importance[rest] * change_rate[rest])
            rates[rest] = root * (bandwidth + changes) / roots - change_rate[rest]
            break
        bandwidth -= least
        rest = rest[1:]
    return rates
