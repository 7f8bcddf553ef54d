"""Mutation testing: faults are put into formulas, and the tests must notice them."""
