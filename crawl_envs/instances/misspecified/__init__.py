"""Instances whose events violate an assumption of the formulas; one module per law.

Public modules: corrupted, occurrences, settings.
"""
