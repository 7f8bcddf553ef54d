"""The optimal continuous policy with noisy signals (NCIS, Theorem 1).

Pages are :class:`OneSource` or :class:`Sources`, two classes with the same methods; ``search`` has
what both look for, page by page.

Public modules: sources, theorem1.
"""
