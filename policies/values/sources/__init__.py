"""Pages with several sources of signals.

``values`` has the formulas, as functions of arrays; ``kernels`` the compiled functions, with the
tables of ``tables``. A page's value has one of three forms: one source, a lattice, or pieces.

Public modules: kernels, lattice, tables.
"""
