"""Timing: a method of measurement, tables of cases, and commands made of them.

:mod:`scripts.timing.stepped` has the environments that are stepped, and
:mod:`scripts.timing.comparisons` what is compared with other implementations; ``scripts.speed``
measures all of them, and the other modules here are commands of their own, made by
:func:`scripts.timing.commands.measuring`.

Public modules: checkouts, commands, comparisons, first_use, growth, parts, turns.
"""
