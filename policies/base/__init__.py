"""The bases of policies: binding to an environment, index policies, schedules."""
