"""Networks of Stable-Baselines3 agents on observations of pages, (m, F).

The network ``pages`` scores every row with the same small network, so the number of pages may be
any. A page's score depends on its row and on the set of all rows. ``mlp`` is Stable-Baselines3's
perceptron on the flattened observation. Both read columns without units, from
:class:`agents.networks.scaling.PageScaling`.

Public modules: encoder, resizing, scaling.
"""

from crawl_envs.system.own_packages import check_own

check_own("agents")
