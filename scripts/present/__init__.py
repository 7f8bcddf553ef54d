"""Presentation of rows: charts, tables, claims and their verdicts, the index of results.

Public modules: charts, claims, claims_table, comparison, experiment, films, filled_tables,
game, index, tables, verdicts.
"""
