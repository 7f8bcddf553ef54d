"""Solver for the optimal continuous policy with noisy signals (NCIS, Theorem 1).

Pages are :class:`OneSource`, :class:`Sources` or :class:`Mixed` of both: three classes with the
same methods. The module ``search`` finds the state at which a page is crawled.

Public modules: sources, theorem1.
"""
