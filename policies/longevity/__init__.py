"""Recrawl scheduling by information longevity (Olston and Pandey, WWW 2008).

A page is worth a crawl at once when its utility U(t) = t D*(t) - int_0^t D*(x) dx, with t the time
since the last crawl and D* the divergence expected by then, has reached a threshold (section 2.2).
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
