"""Slow and obvious twins of the bandits: plain Python, weights multiplied as the papers print.

``update`` takes the probability with which the arm was played. Fed back into the twin's own, a
difference of one rounding would grow from round to round: losses over small probabilities make the
next probabilities, and so on.
"""

from __future__ import annotations

import math

from mpmath import mp, mpf


def naive_draw(probabilities, uniform):
    """The first arm at which the running sum of probabilities exceeds the number."""
    reached = 0.0
    for arm, probability in enumerate(probabilities):
        reached += probability
        if uniform < reached:
            return arm
    return max(arm for arm, probability in enumerate(probabilities) if probability > 0.0)


class NaiveExp3:
    """Han et al. 2020, Algorithm 1, line by line; line 11 divides by the q of the arm."""

    def __init__(self, num_arms, gamma):
        self.gamma, self.weights = gamma, [mpf(1)] * num_arms

    def probabilities(self):
        total = sum(self.weights)
        share = self.gamma / len(self.weights)
        return [float((1 - self.gamma) * w / total + share) for w in self.weights]

    def update(self, arm, reward, chance):
        self.weights[arm] *= mp.exp(self.gamma / len(self.weights) * reward / chance)


class NaiveFallingExp3:
    """The same where gamma falls: all that was learned is weighed by the gamma of the round."""

    def __init__(self, num_arms):
        self.round, self.gains = 1, [mpf(0)] * num_arms

    def probabilities(self):
        count = len(self.gains)
        gamma = min(1.0, math.sqrt(count * math.log(count) / ((math.e - 1) * self.round)))
        weights = [mp.exp(gamma / count * gain) for gain in self.gains]
        return [float((1 - gamma) * w / sum(weights) + gamma / count) for w in weights]

    def update(self, arm, reward, chance):
        self.gains[arm] += reward / chance
        self.round += 1


class NaiveExp3IX:
    """Neu 2015; ``rate`` is a function of the round."""

    def __init__(self, num_arms, rate):
        self.round, self.rate, self.losses = 1, rate, [mpf(0)] * num_arms

    def probabilities(self):
        weights = [mp.exp(-self.rate(self.round) * loss) for loss in self.losses]
        return [float(w / sum(weights)) for w in weights]

    def update(self, arm, reward, chance):
        gamma = self.rate(self.round) / 2
        self.losses[arm] += (1 - reward) / (chance + gamma)
        self.round += 1


class NaiveExp3PlusPlus:
    """Seldin and Lugosi 2017, with each arm's losses kept in a list."""

    def __init__(self, num_arms, alpha, beta):
        self.alpha, self.beta, self.round = alpha, beta, 1
        self.seen = [[] for _ in range(num_arms)]
        self.weighted = [[] for _ in range(num_arms)]

    def gaps(self):
        count = len(self.seen)
        inside = self.alpha * math.log(self.round * count ** (1 / self.alpha))
        means = [sum(seen) / len(seen) for seen in self.seen]
        widths = [math.sqrt(inside / (2 * len(seen))) for seen in self.seen]
        upper = [min(1.0, mean + width) for mean, width in zip(means, widths, strict=True)]
        lower = [max(0.0, mean - width) for mean, width in zip(means, widths, strict=True)]
        return [max(0.0, low - min(upper)) for low in lower]

    def probabilities(self):
        count = len(self.seen)
        for arm, seen in enumerate(self.seen):
            if not seen:
                return [float(arm == other) for other in range(count)]
        eta = math.sqrt(math.log(count) / (self.round * count)) / 2
        weights = [mp.exp(-eta * sum(weighted)) for weighted in self.weighted]
        epsilons = []
        for worse in self.gaps():
            xi = math.inf
            if worse > 0:
                xi = self.beta * math.log(self.round) / (self.round * worse**2)
            epsilons.append(min(1 / (2 * count), eta, xi))
        left, total = 1 - sum(epsilons), sum(weights)
        return [float(left * w / total + e) for w, e in zip(weights, epsilons, strict=True)]

    def update(self, arm, reward, chance):
        self.weighted[arm].append((1 - reward) / chance)
        self.seen[arm].append(1 - reward)
        self.round += 1
