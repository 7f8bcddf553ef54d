"""Recrawl scheduling by the longevity of information (Olston and Pandey, WWW 2008).

A page should be crawled once its utility U(t) = t D*(t) - int_0^t D*(x) dx, with t the time since
the last crawl and D* the expected divergence, has reached a threshold (section 2.2).

Public modules: bounds, cgm, curve_fitting, informed, learning, offline, refreshing.
"""

from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.learning import LearningLongevity
from policies.longevity.offline import (
    CurrentDivergence,
    FragmentDynamic,
    FragmentStatic,
    HolisticDynamic,
    HolisticStatic,
    UniformRefresh,
)

__all__ = [
    "ChoGarciaMolina",
    "CurrentDivergence",
    "CurveFitting",
    "DivergenceBounds",
    "FragmentDynamic",
    "FragmentStatic",
    "HolisticDynamic",
    "HolisticStatic",
    "LearningLongevity",
    "UniformRefresh",
]
