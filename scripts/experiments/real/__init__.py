"""The experiments on recorded histories of real sites."""
