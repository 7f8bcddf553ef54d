"""Timing: a method, one table of scale cases, and their commands.

:mod:`scripts.timing.turns` has the method, :mod:`scripts.timing.cases` what a case is, and
:mod:`scripts.timing.scale` the table, which ``scripts.speed`` measures. With ``--against`` it steps
the environments of :mod:`scripts.timing.stepped` beside another checkout.
:mod:`scripts.timing.first_use` is a command of its own.

Public modules: cases, checkouts, commands, first_use, scale, turns.
"""
