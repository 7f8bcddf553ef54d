"""The experiments of the paper on shopping offers."""
