"""Measure the speed and memory of the suite.

``scripts.speed`` measures the cases of :mod:`scripts.timing.scale` by the method of
:mod:`scripts.timing.turns`. With ``--against`` it compares the environments of
:mod:`scripts.timing.stepped` with another checkout. :mod:`scripts.timing.first_use` is a command.

Public modules: cases, checkouts, commands, first_use, scale, turns.
"""
