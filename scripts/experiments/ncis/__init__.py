"""The experiments of the NCIS paper."""
