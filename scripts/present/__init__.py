"""Present rows as charts, tables, claims with verdicts, and an index of results.

Public modules: charts, claims, claims_table, comparison, experiment, films, filled_tables,
game, index, tables, verdicts.
"""
