"""The optimal continuous policy with noisy signals (NCIS, Theorem 1).

Public modules: pages, theorem1.
"""
