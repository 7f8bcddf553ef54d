"""The experiments of the LambdaCrawl paper."""
