"""Pages with several sources of signals.

:mod:`~policies.values.sources.values` has the formulas, as functions of arrays; :mod:`~policies.values.sources
.kernels` what compiled code takes, with the tables of :mod:`~policies.values.sources.tables`. A page's
value has one of three forms: that of one source, a lattice, or pieces.
"""
