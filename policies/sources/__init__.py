"""Pages with several sources of signals.

:mod:`~policies.sources.values` has the formulas, as functions of arrays; :mod:`~policies.sources
.kernels` what compiled code takes, with the tables of :mod:`~policies.sources.tables`. A page's
value has one of three forms: that of one source, a lattice, or pieces.
"""
