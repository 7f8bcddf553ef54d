"""The optimal continuous policy with noisy signals (NCIS, Theorem 1).

Pages are :class:`OneSource`, :class:`Sources` or :class:`Mixed` of both, three classes with the
same methods; ``search`` has what they look for, page by page.

Public modules: sources, theorem1.
"""
