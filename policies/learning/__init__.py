"""Policies that learn the change model of the pages while they crawl."""

from policies.learning.greedy import LearningGreedyNCIS

__all__ = ["LearningGreedyNCIS"]
