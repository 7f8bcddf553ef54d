"""The experiments that compare learned agents with analytic policies."""
