"""Worlds whose events break an assumption of the formulas: one module per law."""
