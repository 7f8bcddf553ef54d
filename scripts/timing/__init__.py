"""Timing: a method of measurement, tables of cases, and one runner of all commands.

:mod:`scripts.timing.turns` has the method, and :mod:`scripts.timing.commands` the runner: it
measures cases, and writes their rows by type, the pictures and the provenance.
:mod:`scripts.timing.stepped` has the environments that are stepped, and
:mod:`scripts.timing.comparisons` and :mod:`scripts.timing.parts` what is compared;
``scripts.speed`` measures all of them. The other modules with an ``app`` are commands of their own,
each with its cases and a type of rows.

Public modules: checkouts, commands, comparisons, figures, first_use, growth, parts, turns.
"""
