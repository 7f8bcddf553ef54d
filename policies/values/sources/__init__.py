r"""Crawl values of pages with several sources of signals.

Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals", with
the extension that its footnote 2 calls straightforward: every change is signalled by at most one
source, by source s with probability lambda_s, and source s sends false signals at rate nu_s. With::

    alpha = (1 - sum lambda_s) Delta,  gamma_s = lambda_s Delta + nu_s,  Gamma = sum gamma_s,
    b_s = ln(gamma_s / nu_s),  y = alpha elapsed + sum b_s n_s,

exp(-y) is the probability that the page is fresh at the level y, in nats. The cycle length psi
and the fresh time w, at the level y, are sums over all n in N^S with n . b <= y (Theorem 1)::

    psi(y) = sum |n|! prod (gamma_s^n_s / n_s!) Gamma^(-|n|-1) R^|n|_exp(Gamma (y - n . b) / alpha),
    w(y) = sum |n|! prod (nu_s^n_s / n_s!) (alpha + Gamma)^(-|n|-1)
           R^|n|_exp((alpha + Gamma) (y - n . b) / alpha),

and the value is V(y) = mu (w - exp(-y) psi). With time in units of 1 / Delta, its share u of the
limit mu / Delta and psi solve delay equations, both zero up to y = 0::

    alpha u' = 1 - exp(-y) - (alpha + Gamma) u + sum_s nu_s u(y - b_s),
    alpha psi' = 1 - Gamma psi + sum_s gamma_s psi(y - b_s).

A page has the cheapest exact form that serves it: the formula of one source, where at most one
source is informative; a ``lattice``, the sum over n, which is exact, but long for weak sources (b
small); or ``pieces``, polynomials that solve the equations, which weak sources make smooth. Far
from the last crawl an asymptotic form replaces both. Table builders are in ``tables``, the compiled
functions in ``kernels``.

Limits: a source without recall adds nothing; after one signal of a source without false signals the
value is mu / Delta; sources of equal b equal one source with summed rates; without changes the
value is 0. Errors are below 1e-11 of mu / Delta where the value is smooth. Strong signals of
different strength cause kinks, which are smoothed if there are too many: over 1,000 pages with
recalls from Beta(1/4, 1/4), shared by two sources, 90% of the errors were below 4e-9, 99% below
8e-6 and all below 3e-5; as alpha tends to 0 they reach 2e-4.

Public modules: kernels, reduction, tables.
"""
