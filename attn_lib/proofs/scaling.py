"""Proofs of chapter 3: the size of a score, and how softmax answers a change."""

from collections.abc import Sequence

import sympy as sp
from sympy import Matrix, Rational, Symbol, diag, exp, ones, sqrt, zeros

from attn_lib.proofs.steps import (
    Proof,
    at_least,
    differ,
    equal,
    expectation,
    let,
    limits,
    row,
    softmax,
    softmax_rows,
    stand_for,
    symbols,
    variance_under,
)

__all__ = [
    "jacobian_limits",
    "jacobian_norm",
    "median_and_mean",
    "random_sign",
    "raw_is_stretched",
    "score_variance",
    "score_variance_with_means",
    "softmax_jacobian",
    "tied_weights",
    "tied_weights_two_tokens",
    "variance_given_the_query",
    "variance_over_the_weights",
]


d_k = Symbol("d_k", integer=True, positive=True)


def _terms(q_moments: Sequence, k_moments: Sequence) -> tuple[sp.Expr, ...]:
    """Give E Z, E Z² and Var Z for a term Z = q k, and the covariance of two terms."""
    q, k, p, l = sp.symbols("q k p l")
    moments = {q: q_moments, p: q_moments, k: k_moments, l: k_moments}
    mean, square = expectation(q * k, moments), expectation((q * k) ** 2, moments)
    return mean, square, square - mean**2, expectation(q * k * p * l, moments) - mean**2


def sum_variance(variance: sp.Expr, covariance: sp.Expr) -> sp.Expr:
    """Give the variance of a sum of d_k terms: all variances, and twice all covariances."""
    r, t = sp.symbols("r t", integer=True, positive=True)
    pairs = sp.Sum(sp.Sum(covariance, (t, r + 1, d_k)), (r, 1, d_k))
    return sp.Sum(variance, (r, 1, d_k)).doit() + 2 * pairs.doit()


def _gaussian_moments() -> tuple[sp.Expr, ...]:
    """Integrate x, x², x³ and x⁴ against the standard normal density."""
    x = Symbol("x", real=True)
    density = exp(-(x**2) / 2) / sqrt(2 * sp.pi)
    return tuple(sp.integrate(x**p * density, (x, -sp.oo, sp.oo)) for p in range(1, 5))


def score_variance() -> Proof:
    """Prove that a score has mean 0 and variance d_k, and variance 1 once scaled.

    Assumed: means 0, variances 1, q_r and k_r independent, and terms that are uncorrelated, as they
    are if all coordinates are independent. Not assumed: a distribution.
    """
    mean, square, variance, covariance = _terms((0, 1), (0, 1))
    r = Symbol("r", integer=True, positive=True)
    q, k = sp.IndexedBase("q"), sp.IndexedBase("k")
    total = sum_variance(variance, covariance)
    return Proof(
        r"A score of independent coordinates with mean 0 and variance 1 has mean 0 and variance "
        r"$d_k$; divided by $\sqrt{d_k}$ it has variance 1.",
        (
            let(
                r"The score is a sum of $d_k$ terms.",
                "s",
                sp.Sum(q[r] * k[r], (r, 1, d_k)),
                r"\sum_{r=1}^{d_k} q_r k_r",
            ),
            let(r"Look at one of them.", "Z_r", q[r] * k[r], "q_r k_r"),
            equal(
                r"$q_r$ and $k_r$ are independent, so the mean of their product is the product "
                r"of their means, 0 and 0.",
                r"\operatorname{E}[Z_r]",
                mean,
                0,
            ),
            equal(
                r"Their squares are independent too. A mean square is the variance, 1, because "
                r"the mean is 0.",
                r"\operatorname{E}[Z_r^2] = \operatorname{E}[q_r^2]\,\operatorname{E}[k_r^2]",
                square,
                1,
            ),
            equal(
                r"A variance is the mean square less the squared mean.",
                r"\operatorname{Var}(Z_r)",
                variance,
                1,
            ),
            equal(
                r"Two different terms share no coordinate: they are uncorrelated.",
                r"\operatorname{Cov}(Z_r, Z_t)",
                covariance,
                0,
            ),
            equal(
                r"The mean of a sum is the sum of the means, whatever the dependence.",
                r"\operatorname{E}[s]",
                sp.Sum(mean, (r, 1, d_k)).doit(),
                0,
            ),
            equal(
                r"The variance of a sum is the sum of the variances, plus twice the covariance "
                r"of every pair.",
                r"\operatorname{Var}(s)",
                total,
                d_k,
            ),
            equal(
                r"A constant factor leaves a variance squared.",
                r"\operatorname{Var}(s / \sqrt{d_k})",
                total / sqrt(d_k) ** 2,
                1,
            ),
        ),
    )


def variance_over_the_weights() -> Proof:
    """Prove that for two fixed tokens the variance d_k holds over random W_Q and W_K."""
    d = 2
    x, y = symbols("x", d), symbols("y", d)
    W, U = symbols("w", d, 2), symbols("u", d, 2)
    moments = dict.fromkeys([*W, *U], (0, Rational(1, d)))
    first, second = ((x * W)[r] * (y * U)[r] for r in range(2))
    mean, square = expectation(first, moments), expectation(first**2, moments)
    across = expectation(first * second, moments) - mean * expectation(second, moments)
    total = sum_variance(square - mean**2, across)
    length = {x[0]: sqrt(d - x[1] ** 2), y[0]: sqrt(d - y[1] ** 2)}
    return Proof(
        r"For two fixed tokens the variance is over the weights: "
        r"$d_k \lVert\mathbf{x}\rVert^2 \lVert\mathbf{y}\rVert^2 / d^2$, even if "
        r"$\mathbf{x} = \mathbf{y}$.",
        (
            let(
                r"$W_Q$ and $W_K$ are independent, their entries $w$ and $u$ too, with mean 0 and "
                r"variance $1/d$. Here $d$ = 2; one term of the score is",
                "Z_1",
                first,
            ),
            equal(r"Every summand has a factor of mean 0.", r"\operatorname{E}[Z_1]", mean, 0),
            equal(
                r"Mixed terms vanish; squares give $1/d$ for each of the two weights.",
                r"\operatorname{Var}(Z_1)",
                square - mean**2,
                x.dot(x) * y.dot(y) / d**2,
            ),
            equal(
                r"Another term uses other columns of the weights.",
                r"\operatorname{Cov}(Z_1, Z_2)",
                across,
                0,
            ),
            equal(
                r"If both squared lengths are $d$, the variance is $d_k$.",
                r"\operatorname{Var}(s)",
                total.subs(length),
                d_k,
            ),
            equal(
                r"Nothing asked the tokens to differ: put $\mathbf{y} = \mathbf{x}$.",
                r"\operatorname{Var}(s)",
                total.subs(stand_for(y, x)),
                d_k * x.dot(x) ** 2 / d**2,
            ),
            equal(
                r"In general, for tokens of any length.",
                r"\operatorname{Var}(s)",
                total,
                d_k * x.dot(x) * y.dot(y) / d**2,
            ),
        ),
    )


def tied_weights() -> Proof:
    """Prove what a token's score with itself is when W_Q = W_K: its mean is d_k, not 0."""
    q, fourth = sp.symbols("q_r m_4")
    moments = {q: (0, 1, 0, fourth)}
    mean, square = expectation(q**2, moments), expectation(q**4, moments)
    total = d_k * (square - mean**2)
    gaussian = _gaussian_moments()[3]
    return Proof(
        r"If the query of a token is also its key, its score with itself has mean $d_k$ and "
        r"variance $d_k(m_4 - 1)$, where $m_4$ is the fourth moment of a coordinate.",
        (
            let(r"Query and key are one vector: every term is a square.", "Z_r", q**2),
            equal(
                r"The mean of a square is a variance, 1 and not 0: nothing cancels in the sum.",
                r"\operatorname{E}[s]",
                d_k * mean,
                d_k,
            ),
            equal(
                r"The mean square is the fourth moment, for which independent $q_r$ and $k_r$ "
                r"never asked.",
                r"\operatorname{E}[Z_r^2]",
                square,
                fourth,
            ),
            equal(
                r"For a Gaussian coordinate it is an integral,",
                r"\operatorname{E}[q_r^4]",
                gaussian,
                3,
            ),
            equal(
                r"so the variance is twice the usual one.",
                r"\operatorname{Var}(s)",
                total.subs(fourth, gaussian),
                2 * d_k,
            ),
            equal(
                r"In general, with independent coordinates.",
                r"\operatorname{Var}(s)",
                total,
                d_k * (fourth - 1),
            ),
        ),
    )


def tied_weights_two_tokens() -> Proof:
    """Prove the moments of the score of two tokens at cosine c when W_Q = W_K is Gaussian."""
    q, g = sp.symbols("q_r g_r")
    c = Symbol("c", real=True)
    moments = dict.fromkeys([q, g], _gaussian_moments())
    key = c * q + sqrt(1 - c**2) * g
    mean, square = expectation(q * key, moments), expectation((q * key) ** 2, moments)
    return Proof(
        r"With $W_Q = W_K$ Gaussian of variance $1/d$, two tokens of squared length $d$ at cosine "
        r"$c$ have a score of mean $c\,d_k$ and variance $d_k(1 + c^2)$.",
        (
            let(
                r"One Gaussian matrix gives both tokens Gaussian coordinates with correlation "
                r"$c$: write the second by the first and an independent $g_r$.",
                "k_r",
                key,
            ),
            equal(
                r"The key's variance is 1 as before,",
                r"\operatorname{Var}(k_r)",
                expectation(key**2, moments),
                1,
            ),
            equal(
                r"but on average the coordinates agree as far as the tokens do.",
                r"\operatorname{E}[q_r k_r]",
                mean,
                c,
            ),
            equal(
                r"In the part they share the fourth moment, 3, appears.",
                r"\operatorname{E}[q_r^2 k_r^2]",
                square,
                1 + 2 * c**2,
            ),
            equal(r"All terms together: the mean,", r"\operatorname{E}[s]", d_k * mean, c * d_k),
            equal(
                r"and the variance. $c$ = 0 is the usual claim, $c$ = 1 a token with itself.",
                r"\operatorname{Var}(s)",
                sum_variance(square - mean**2, 0),
                d_k * (1 + c**2),
            ),
        ),
    )


def random_sign() -> Proof:
    """Prove that uncorrelated is not enough: keys ±q with a random sign give 3 d_k."""
    q, sign = sp.symbols("q_r varepsilon_r")
    moments = {q: _gaussian_moments(), sign: (0, 1, 0, 1)}
    key = sign * q
    mean, square = expectation(q * key, moments), expectation((q * key) ** 2, moments)
    return Proof(
        r"Uncorrelated is not independent: if each $k_r$ is $q_r$ with a random sign, the score "
        r"of Gaussian coordinates has variance $3 d_k$.",
        (
            let(r"The sign is +1 or −1 with equal chance, independent of $q_r$.", "k_r", key),
            equal(
                r"The key has variance 1,",
                r"\operatorname{Var}(k_r)",
                expectation(key**2, moments),
                1,
            ),
            equal(
                r"it is uncorrelated with the query, and the score has mean 0.",
                r"\operatorname{E}[q_r k_r]",
                mean,
                0,
            ),
            equal(
                r"But the two squares are one and the same: 3, and not 1 · 1.",
                r"\operatorname{E}[q_r^2 k_r^2]",
                square,
                3,
            ),
            equal(
                r"Different terms are independent, so their variances add.",
                r"\operatorname{Var}(s)",
                sum_variance(square - mean**2, 0),
                3 * d_k,
            ),
        ),
    )


def score_variance_with_means() -> Proof:
    """Prove the variance of a score for any means and variances, with two instances."""
    mu_q, mu_k = sp.symbols("mu_q mu_k", real=True)
    sigma_q, sigma_k = sp.symbols("sigma_q sigma_k", positive=True)
    q_square, k_square = sigma_q**2 + mu_q**2, sigma_k**2 + mu_k**2
    mean, square, variance, covariance = _terms((mu_q, q_square), (mu_k, k_square))
    total = sum_variance(variance, covariance)
    formula = sigma_q**2 * sigma_k**2 + mu_q**2 * sigma_k**2 + mu_k**2 * sigma_q**2
    x = Symbol("x", real=True)
    spread = sqrt(sp.integrate(x**2 / 2, (x, -1, 1)))
    half = {mu_q: Rational(1, 2), mu_k: Rational(1, 2), sigma_q: 1, sigma_k: 1, d_k: 16}
    uniform = {mu_q: 0, mu_k: 0, sigma_q: spread, sigma_k: spread}
    return Proof(
        r"With means $\mu$ and variances $\sigma^2$ a score has mean $d_k\,\mu_q\mu_k$, and every "
        r"mean that is not 0 makes its variance larger.",
        (
            equal(
                r"The mean of a product of independent factors.",
                r"\operatorname{E}[Z_r]",
                mean,
                mu_q * mu_k,
            ),
            equal(
                r"A mean square is the variance plus the squared mean.",
                r"\operatorname{E}[Z_r^2] = \operatorname{E}[q_r^2]\,\operatorname{E}[k_r^2]",
                square,
                q_square * k_square,
            ),
            equal(r"Subtract the squared mean.", r"\operatorname{Var}(Z_r)", variance, formula),
            equal(
                r"Terms that share no coordinate stay uncorrelated.",
                r"\operatorname{Cov}(Z_r, Z_t)",
                covariance,
                0,
            ),
            equal(
                r"Means $\tfrac12$, variances 1, $d_k$ = 16: the mean score is not 0,",
                r"\operatorname{E}[s]",
                (d_k * mean).subs(half),
                4,
            ),
            equal(
                r"and the variance is half as large again as 16.",
                r"\operatorname{Var}(s)",
                total.subs(half),
                24,
            ),
            equal(
                r"Uniform on (−1, 1): each variance is a third, so a term has a ninth.",
                r"\operatorname{Var}(s)",
                total.subs(uniform),
                d_k / 9,
            ),
            equal(
                r"In general: all $d_k$ terms together.",
                r"\operatorname{Var}(s)",
                total,
                d_k * formula,
            ),
        ),
    )


def variance_given_the_query() -> Proof:
    """Prove that, for one fixed query, the scaled scores of a row have variance ``|q|²/d_k``."""
    width = 3
    q, k = symbols("q", width), symbols("k", width)
    moments = dict.fromkeys(k, (0, 1))
    score, length = q.dot(k), q.dot(q)
    mean, square = expectation(score, moments), expectation(score**2, moments)
    return Proof(
        r"The scores of one row share their query: given it, a scaled score has variance "
        r"$\lVert\mathbf{q}\rVert^2 / d_k$.",
        (
            let(
                r"Hold the query fixed and draw the key. Here $d_k$ = 3; a further coordinate "
                r"adds a further square.",
                "s",
                score,
            ),
            equal(
                r"Constants come out of a mean.", r"\operatorname{E}[s \mid \mathbf{q}]", mean, 0
            ),
            equal(
                r"Constants come out of a variance squared; the key's variances are 1.",
                r"\operatorname{Var}(s \mid \mathbf{q})",
                square - mean**2,
                length,
            ),
            equal(
                r"Divide by $d_k$. Averaged over queries this is 1 again, but a long query has a "
                r"sharper row.",
                r"\operatorname{Var}(s / \sqrt{d_k} \mid \mathbf{q})",
                (square - mean**2) / width,
                length / width,
            ),
        ),
    )


def softmax_jacobian(n: int = 3) -> Proof:
    """Prove ∂a_i/∂s_j = a_i(δ_ij − a_j), that is J = diag(a) − aᵀa for a row a.

    Parameters
    ----------
    n : int, default 3
        Number of keys.

    Returns
    -------
    Proof
    """
    s, a = symbols("s", n), symbols("a", n, positive=True)
    weights = softmax(*s)
    J = weights.jacobian(s)
    where = stand_for(a, weights)
    return Proof(
        r"The Jacobian of softmax is $\operatorname{diag}(\mathbf{a}) - \mathbf{a}^\top\mathbf{a}$ "
        f"(written out for {n} keys).",
        (
            let(r"A weight is a power over the sum of powers.", "a_1", weights[0]),
            equal(
                r"A weight's own score stands above and below: the quotient rule.",
                r"\partial a_1 / \partial s_1",
                J[0, 0],
                a[0] * (1 - a[0]),
                where=where,
            ),
            equal(
                r"Another score stands below alone.",
                r"\partial a_1 / \partial s_2",
                J[0, 1],
                -a[0] * a[1],
                where=where,
            ),
            equal(
                r"Weights sum to 1: what one gains the others lose, so every column sums to 0,",
                r"\mathbf{1}^\top J",
                ones(1, n) * J,
                zeros(1, n),
            ),
            equal(
                r"and every row, because a common shift of the scores changes nothing.",
                r"J\,\mathbf{1}",
                J * ones(n, 1),
                zeros(n, 1),
            ),
            equal(
                r"All entries together.",
                r"J",
                J,
                diag(*a) - a.T * a,
                where=where,
            ),
        ),
    )


def jacobian_limits() -> Proof:
    """Prove where softmax saturates, how fast, and that two tied winners never do."""
    t, u, v, g = sp.symbols("t u v g", real=True)

    def jacobian(a: Matrix) -> Matrix:
        return diag(*a) - a.T * a

    slope = jacobian(softmax(g, 0))[0, 0]
    winner, tie = (limits(softmax(t, x, v), t, sp.oo) for x in (u, t))
    tied = Rational(1, 4) * Matrix([[1, -1, 0], [-1, 1, 0], [0, 0, 0]])
    return Proof(
        r"One winner saturates softmax exponentially fast in its lead; two tied winners never do.",
        (
            differ(
                r"While the lead $g$ over one rival is finite, the derivative is not 0.",
                "a(1 - a)",
                slope,
                0,
            ),
            equal(
                r"It falls like $e^{-g}$: multiplied by $e^g$ it tends to 1.",
                r"\lim_{g \to \infty} a(1 - a)\,e^g",
                sp.limit(slope * exp(g), g, sp.oo),
                1,
            ),
            equal(
                r"If one score $t$ runs away the weights tend to 1, 0, 0, and with them, by "
                r"continuity, the whole Jacobian to 0.",
                r"\lim_{t \to \infty} J(t, u, v)",
                jacobian(winner),
                zeros(3, 3),
            ),
            equal(
                r"If two run away together each keeps half the weight, and what one gains the "
                r"other still loses.",
                r"\lim_{t \to \infty} J(t, t, v)",
                jacobian(tie),
                tied,
            ),
        ),
    )


def jacobian_norm() -> Proof:
    """Prove ‖J‖ ≤ ½: for n = 2 by its eigenvalues, in general by a variance in an interval."""
    half, b = Rational(1, 2), Symbol("a", positive=True)
    low, high, mu = sp.symbols("ell h mu", real=True)
    a, x = symbols("a", 3, positive=True), symbols("x", 3)
    two = diag(b, 1 - b) - Matrix([b, 1 - b]) * row(b, 1 - b)
    eigenvalues = sorted(two.eigenvals(), key=lambda value: value != 0)
    top = Matrix([1, -1]) / sqrt(2)
    inside = row(*((high - z) * (z - low) for z in x))
    room = (high - a.dot(x)) * (a.dot(x) - low)
    return Proof(
        r"The Jacobian of softmax never stretches a vector by more than a half.",
        (
            equal(
                r"For two keys the eigenvalues are",
                r"(\lambda_1, \lambda_2)",
                row(*eigenvalues),
                row(0, 2 * b * (1 - b)),
            ),
            equal(
                r"The larger misses $\tfrac12$ by a square: it reaches it at $a = \tfrac12$ only.",
                r"\tfrac12 - 2a(1 - a)",
                half - 2 * b * (1 - b),
                2 * (b - half) ** 2,
            ),
            equal(
                r"There the difference of the two keys is halved and no more.",
                r"J(1, -1)^\top / \sqrt{2}",
                two.subs(b, half) * top,
                top / 2,
            ),
            equal(
                r"For any number of keys (three here) $\mathbf{x}J\mathbf{x}^\top$ is the variance "
                r"of the numbers $x_j$ under the weights, so no eigenvalue is negative.",
                r"\mathbf{x} J \mathbf{x}^\top",
                (x * (diag(*a) - a.T * a) * x.T)[0],
                variance_under(a, x),
            ),
            equal(
                r"Let $\ell$ be the smallest and $h$ the largest $x_j$, and $\mu$ their mean. The "
                r"variance is less than this product by an average of products that are not "
                r"negative.",
                r"(h - \mu)(\mu - \ell) - \operatorname{Var}_a(x)",
                room - variance_under(a, x),
                a.dot(inside),
                right_tex=r"\sum_j a_j (h - x_j)(x_j - \ell)",
                where={a[2]: 1 - a[0] - a[1]},
            ),
            at_least(
                r"The product is largest in the middle, where it is a quarter of $(h - \ell)^2$.",
                "",
                (high - low) ** 2 / 4,
                (high - mu) * (mu - low),
            ),
            at_least(
                r"If $\lVert\mathbf{x}\rVert$ = 1 then $\ell^2 + h^2 \le 1$, so that quarter is at "
                r"most $\tfrac12$.",
                "",
                (high**2 + low**2) / 2,
                (high - low) ** 2 / 4,
            ),
        ),
    )


def median_and_mean() -> Proof:
    """Prove what wide raw scores do to a gradient: the median goes, the mean stays (two keys)."""
    q, K, v = symbols("q", 2), symbols("k", 2, 2), symbols("v", 2)
    a, apart = symbols("a", 2, positive=True), K[0, :] - K[1, :]
    u, z = sp.symbols("u z", real=True)
    kappa, fixed = sp.symbols("kappa z_0", positive=True)
    weights = softmax_rows(q * K.T)
    share = 1 / (1 + exp(-u))
    slope, density = share * (1 - share), exp(-(z**2) / 2) / sqrt(2 * sp.pi)
    mass = sp.limit(share, u, sp.oo) - sp.limit(share, u, -sp.oo)
    return Proof(
        r"With two keys, raw scores and a Gaussian query, the mean of "
        r"$\lVert\nabla_q o\rVert / |v_1 - v_2|$ tends to $1/\sqrt{2\pi}$ as the distance "
        r"$\kappa$ of the keys grows, and every quantile to 0.",
        (
            equal(
                r"One column of values, $d_k$ = 2. What one weight gains the other loses.",
                r"\nabla_q o",
                Matrix([weights.dot(v)]).jacobian(q),
                (v[0] - v[1]) * a[0] * a[1] * apart,
                right_tex=r"(v_1 - v_2)\,a_1 a_2\,(\mathbf{k}_1 - \mathbf{k}_2)",
                where=stand_for(a, weights),
            ),
            equal(
                r"The first key leads by $u = \mathbf{q}\cdot(\mathbf{k}_1 - \mathbf{k}_2)$. Given "
                r"the keys, its variance is their squared distance $\kappa^2$.",
                r"\operatorname{Var}(u)",
                expectation(q.dot(apart) ** 2, dict.fromkeys(q, (0, 1))),
                apart.dot(apart),
                right_tex=r"\lVert\mathbf{k}_1 - \mathbf{k}_2\rVert^2",
            ),
            equal(
                r"The first weight is $a = 1/(1 + e^{-u})$. It rises by",
                r"\mathrm{d}a / \mathrm{d}u",
                sp.diff(share, u),
                slope,
                right_tex="a(1 - a)",
            ),
            equal(
                r"and in all from 0 to 1.",
                r"\int a(1 - a)\,\mathrm{d}u",
                mass,
                1,
            ),
            equal(
                r"So the length sought is $\kappa\,a(1 - a)$ at $u = \kappa z$, with a standard "
                r"normal $z$. At a fixed $z = z_0 > 0$ it vanishes, so every quantile does.",
                r"\lim_{\kappa \to \infty} \kappa\,a(1 - a)",
                sp.limit(kappa * slope.subs(u, kappa * fixed), kappa, sp.oo),
                0,
            ),
            equal(
                r"Its mean is an integral over the density $\phi(z)$ of $z$: put $z = u/\kappa$.",
                r"\kappa\,a(1 - a)\,\phi(z)\,\mathrm{d}z",
                (kappa * slope.subs(u, kappa * z) * density).subs(z, u / kappa) / kappa,
                slope * density.subs(z, u / kappa),
                right_tex=r"a(1 - a)\,\phi(u/\kappa)\,\mathrm{d}u",
            ),
            equal(
                r"As $\kappa$ grows, $\phi(u/\kappa)$ rises to $\phi(0)$ at every $u$, so the "
                r"limit may be taken inside the integral, and that of $a(1 - a)$ is 1.",
                r"\lim_{\kappa \to \infty} \operatorname{E}[\kappa\,a(1 - a)]",
                sp.limit(density.subs(z, u / kappa), kappa, sp.oo) * mass,
                1 / sqrt(2 * sp.pi),
            ),
        ),
    )


def raw_is_stretched() -> Proof:
    """Prove what leaving out 1/√d_k is: another start and another learning rate, nothing else."""
    q, p, K, v = symbols("q", 2), symbols("p", 2), symbols("k", 2, 2), symbols("v", 2)
    eta, root = Symbol("eta", positive=True), sqrt(sp.Integer(2))
    scores = q * K.T, p * K.T / root
    losses = [Matrix([softmax_rows(S).dot(v) ** 2 / 2]) for S in scores]
    raw, scaled = losses[0].jacobian(q), losses[1].jacobian(p)
    where = stand_for(p, root * q)
    return Proof(
        r"Descent on raw scores with rate $\eta$ from $\mathbf{q}$ is descent on scaled scores "
        r"with rate $d_k\eta$ from $\sqrt{d_k}\,\mathbf{q}$.",
        (
            let(
                r"Two keys, $d_k$ = 2, and the loss $o^2/2$ of one output (another loss would "
                r"change the outer derivative alone). Stretch the query.",
                r"\mathbf{p}",
                root * q,
                r"\sqrt{d_k}\,\mathbf{q}",
            ),
            equal(
                r"Its scaled scores are the raw ones.",
                r"\mathbf{q}K^\top",
                scores[0],
                scores[1],
                right_tex=r"\mathbf{p}K^\top / \sqrt{d_k}",
                where=where,
            ),
            equal(
                r"So the losses are equal, and the chain rule stretches one gradient.",
                r"\nabla_q L",
                raw,
                root * scaled,
                right_tex=r"\sqrt{d_k}\,\nabla_p L",
                where=where,
            ),
            equal(
                r"After a step the one query is still the other one stretched: the factor in front "
                r"and the factor of the gradient make $d_k$.",
                r"\sqrt{d_k}\,(\mathbf{q} - \eta\nabla_q L)",
                root * (q - eta * raw),
                p - 2 * eta * scaled,
                right_tex=r"\mathbf{p} - d_k\eta\,\nabla_p L",
                where=where,
            ),
        ),
    )
