"""The optimal continuous policy with noisy signals (NCIS, Theorem 1)."""
