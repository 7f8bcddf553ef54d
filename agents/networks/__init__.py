r"""Networks for observations of pages, (m, F).

Pages are exchangeable: the decision for a page depends on its row, and on the set of the others.
``pages`` scores all rows with the same small network, whose size does not depend on the number of
pages; ``mlp`` is Stable-Baselines3's perceptron on the scaled, flattened observation. Both read
columns that :class:`agents.networks.scaling.PageScaling` has made free of units.

Public modules: encoder, resizing, scaling.
"""

from crawl_envs.system.own_packages import check_own

check_own("agents")
