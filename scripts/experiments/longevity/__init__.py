"""The experiments of the paper on information longevity."""
