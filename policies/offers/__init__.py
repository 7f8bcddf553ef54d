"""The policies of the paper on shopping offers."""
