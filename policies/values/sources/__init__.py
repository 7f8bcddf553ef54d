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

and the value is V(y) = mu (w - exp(-y) psi). With time in units of 1 / Delta, psi solves a delay
equation, 0 up to y = 0, and its integral is the share u of the limit mu / Delta::

    alpha psi' = 1 - Gamma psi + sum_s gamma_s psi(y - b_s),    u' = exp(-y) psi.

:mod:`policies.values.sources.recursion` solves it on a grid and keeps the solution at 116 knots, in
single precision: 1,392 bytes of a row of 1,448 + 8 S, for any number of sources. Solvers, which
need cycle lengths too, keep 400 knots in double precision.

Limits: a source without recall adds nothing; after one signal of a source without false signals the
value is mu / Delta; sources of equal b equal one source with summed rates; without changes the
value is 0. Below the least b the value is exact. Over 2,353 pages of two and three sources, with
recalls from Beta(1/4, 1/4), shared at random, and false signals at rates of .1 to .6 or of .01 to
10 times the change rate, the largest error at 30 levels was below 6e-8 of mu / Delta for half of
the pages, 6e-6 for 90%, 4e-5 for 99% and 1e-4 for all (2.4e-4 in another sample, of 193 pages);
below 2e-7 for 90% of those with more than a tenth of the changes unsignalled. The largest are where
alpha tends to 0 and value and cycle length rise in many steps: 1.4e-3 was seen with alpha below
1e-2 Delta and mostly false signals. A value may decrease by 2e-7 of mu / Delta, from rounding: a
small one by 1e-5 of itself. The lazy search (:mod:`crawl_envs.compiled.lazy_argmax`) may therefore
choose a page whose value is below the largest by as much.
Cycle lengths above the level 16 follow their mean pace, and are up to half off where one signal is
worth as many nats.

Public modules: kernels, recursion, tables.
"""
