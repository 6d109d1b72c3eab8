"""The book's proofs, each step computed by sympy and shown with its reason.

Every function returns a `Proof`: make it the last expression of a cell, or print it. Nothing in
it is taken on trust: ``proof.holds`` compares both sides of every step, and
``proof.claiming(...)`` puts another claim in place of the conclusion, to watch it fail.

Where a theorem is about every n, its algebra is checked for a named small n whose symbols stand
for any numbers, and the reason says why the size does not matter.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, permutations

import sympy as sp
from sympy import Matrix, Rational, Symbol, cos, diag, exp, eye, ones, sin, sqrt, zeros

d_k = Symbol("d_k", integer=True, positive=True)


# --- steps and proofs -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One line of a proof: a reason, and the statement it gives.

    Attributes
    ----------
    reason : str
        Why this line follows, with TeX between dollar signs.
    left, right : sympy expression or Matrix
        The two sides.
    relation : {":=", "=", "≠", "≥"}
        ":=" names something: there is nothing to check. "=" is meant for all values of the
        symbols, "≠" says that this is not so, "≥" is meant for all values again.
    tex : str
        What to print for `left` when its value is lengthy.
    right_tex : str
        The same for `right`.
    where : mapping
        What some symbols stand for: put in on both sides before they are compared.
    """

    reason: str
    left: sp.Basic
    right: sp.Basic
    relation: str = "="
    tex: str = ""
    right_tex: str = ""
    where: Mapping = field(default_factory=dict)

    @cached_property
    def holds(self) -> bool:
        """Whether the two sides stand in the relation."""
        if self.relation == ":=":
            return True
        gaps = _difference(*(_sympify(side).subs(self.where) for side in (self.left, self.right)))
        if gaps is None:
            return False
        if self.relation == "≥":
            return all(_never_negative(gap) for gap in gaps)
        if self.relation == "≠":
            return any(_sample(gap) != 0 for gap in gaps)
        return all(_vanishes(gap) for gap in gaps)

    def latex(self) -> str:
        """Give the statement in TeX, without dollar signs."""
        sign = {"≠": r"\neq", "≥": r"\ge"}.get(self.relation, self.relation)
        left, right = self.tex or _latex(self.left), self.right_tex or _latex(self.right)
        return f"{left} {sign} {right}"

    def __str__(self) -> str:
        left = _plain(self.tex) or _text(self.left)
        right = _plain(self.right_tex) or _text(self.right)
        return f"{left} {self.relation} {right}"


@dataclass(frozen=True)
class Proof:
    """A theorem of the book and the steps that lead to it; the last step is the theorem.

    Attributes
    ----------
    title : str
        The theorem in words, with TeX between dollar signs.
    steps : tuple of Step
        In the order of the proof.
    """

    title: str
    steps: tuple[Step, ...]

    @cached_property
    def failing(self) -> tuple[int, ...]:
        """The numbers of the steps that do not hold, counted from 1."""
        return tuple(i for i, step in enumerate(self.steps, 1) if not step.holds)

    @property
    def holds(self) -> bool:
        """Whether every step holds."""
        return not self.failing

    @property
    def verdict(self) -> str:
        """One sentence: every step holds, or which do not."""
        if self.holds:
            return "Every step is checked exactly. ∎"
        numbers = ", ".join(map(str, self.failing))
        return f"This does not hold: see step {numbers}."

    def claiming(self, right: object, step: int = -1) -> "Proof":
        """Give the same proof with another right side in one step, by default the last.

        Parameters
        ----------
        right : sympy expression, Matrix or number
            What is claimed instead.
        step : int, default -1
            Which of `steps`, counted as Python counts.

        Returns
        -------
        Proof
            Its ``holds`` says whether the other claim is true as well.

        Raises
        ------
        ValueError
            If that step only names something, so that any right side would do.
        """
        steps = list(self.steps)
        if steps[step].relation == ":=":
            raise ValueError(f"step {step} is a definition and claims nothing: {steps[step]}")
        steps[step] = replace(steps[step], right=_sympify(right), right_tex="")
        return Proof(self.title, tuple(steps))

    def __str__(self) -> str:
        lines = [_plain(self.title)]
        for i, step in enumerate(self.steps, 1):
            lines += [f"{i}. {_plain(step.reason)}", f"       {step}"]
        return "\n".join([*lines, self.verdict])

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        lines = [f"**{self.title}**", ""]
        for i, step in enumerate(self.steps, 1):
            indent = " " * (len(str(i)) + 2)  # as far in as the text of the item
            lines += [f"{i}. {step.reason}", "", f"{indent}$${step.latex()}$$", ""]
        return "\n".join([*lines, self.verdict])


def let(reason: str, tex: str, value: sp.Basic, right_tex: str = "") -> Step:
    """Name something; there is nothing to check."""
    return Step(reason, _sympify(value), _sympify(value), ":=", tex, right_tex)


def equal(reason: str, tex: str, left: sp.Basic, right: object, **how: object) -> Step:
    """Say that both sides are equal for all values of the symbols."""
    return Step(reason, _sympify(left), _sympify(right), "=", tex, **how)


def differ(reason: str, tex: str, left: sp.Basic, right: object, **how: object) -> Step:
    """Say that the sides are not always equal: one point where they differ is computed."""
    return Step(reason, _sympify(left), _sympify(right), "≠", tex, **how)


def at_least(reason: str, tex: str, left: sp.Basic, right: object, **how: object) -> Step:
    """Say that left − right is never negative, by the signs of its factors and terms."""
    return Step(reason, _sympify(left), _sympify(right), "≥", tex, **how)


# --- how a step is checked and printed ------------------------------------------------------------


def _sympify(value: object) -> sp.Basic:
    """Give `value` as a sympy object that does not change."""
    return sp.ImmutableMatrix(value) if isinstance(value, sp.MatrixBase) else sp.sympify(value)


def _difference(left: sp.Basic, right: sp.Basic) -> list[sp.Expr] | None:
    """Give left − right entry by entry, or None if their shapes differ."""
    if getattr(left, "shape", None) != getattr(right, "shape", None):
        return None
    return list(left - right) if isinstance(left, sp.MatrixBase) else [left - right]


def _vanishes(expression: sp.Expr) -> bool:
    """Whether an expression is identically zero: refuted at one point, or proved for all."""
    if expression == 0:
        return True
    if _sample(expression) != 0:
        return False
    numerator = sp.numer(sp.together(expression.rewrite(exp)))  # a cosine is two powers of e
    return sp.expand(sp.powsimp(sp.expand(numerator))) == 0 or sp.simplify(expression) == 0


def _never_negative(expression: sp.Expr) -> bool:
    """Whether an expression is ≥ 0 by the signs of its terms, or else of its factors."""
    return bool(expression.is_nonnegative or sp.factor(expression).is_nonnegative)


def _sample(expression: sp.Expr) -> sp.Expr:
    """Evaluate at one point of no special kind; 0 stands for zero to 40 digits."""
    symbols = sorted(expression.free_symbols, key=str)
    point = {
        x: sp.Integer(i + 2) if x.is_integer else sp.Float(7 * i + 3, 60) / (7 * i + 11)
        for i, x in enumerate(symbols)
    }
    value = expression.xreplace(point).evalf(50)
    return sp.Integer(0) if value.is_number and abs(value) < Rational(1, 10**40) else value


def _latex(value: sp.Basic) -> str:
    """Give TeX; a matrix of zeros is printed as 0, whatever its size."""
    return "0" if getattr(value, "is_zero_matrix", False) else sp.latex(value)


def _text(value: sp.Basic) -> str:
    """Give plain text; a matrix row by row."""
    if not isinstance(value, sp.MatrixBase):
        return sp.sstr(value)
    return "0" if value.is_zero_matrix else sp.sstr(value.tolist())


# TeX commands as they would be typed in a terminal; a command not listed keeps its name.
_COMMANDS = {
    "cdot": "·", "circ": "∘", "eta": "η", "ge": "≥", "infty": "∞", "int": "∫", "kappa": "κ",
    "lambda": "λ", "le": "≤", "mathbf": "", "mid": "|", "mu": "μ", "nabla": "∇", "neq": "≠",
    "operatorname": "", "phi": "φ", "pi": "π", "sigma": "σ", "sum": "Σ", "theta": "θ", "times": "×",
    "to": "→",
}  # fmt: skip


def _plain(tex: str) -> str:
    """Give a line of TeX as plain text."""
    for pattern, text in [
        (r"\^\{?(-?)\\top\}?", lambda m: "⁻ᵀ" if m[1] else "ᵀ"),
        (r"\^\{-1\}", "⁻¹"),
        (r"\^2\b", "²"),
        (r"\\tfrac12", "½"),
        (r"\\math(?:bf|rm)\{(\w+)\}", r"\1"),
        (r"\\([lr]Vert|partial) ?", lambda m: {"partial": "∂"}.get(m[1], "‖")),
        (r"\\sqrt\{([^{}]*)\}", r"√\1"),
        (r"\\[,;] ?", " "),
        (r"(?<=[\w)])\\operatorname", " "),
        (r"\\([A-Za-z]+)", lambda m: _COMMANDS.get(m[1], m[1])),
        (r"([_^])\{([^{}(]*[^\w{}(][^{}(]*)\}", r"\1(\2)"),  # a script longer than one name
        (r"[{}$*]", ""),
    ]:
        tex = re.sub(pattern, text, tex)
    return tex


# --- small parts ----------------------------------------------------------------------------------


def expectation(polynomial: sp.Expr, moments: Mapping[Symbol, Sequence]) -> sp.Expr:
    """Take the expectation of a polynomial in **independent** variables.

    Parameters
    ----------
    polynomial : sympy expression
        Symbols that have no moments count as constants.
    moments : mapping from symbol to sequence
        For each variable x its moments E x, E x², …: as many as are assumed, and no more.

    Returns
    -------
    sympy expression
        E of a monomial is the product of its moments, since the variables are independent.

    Raises
    ------
    ValueError
        If a moment is needed that was not assumed.

    Notes
    -----
    No distribution is named: nothing but moments is used. Chapter 3.
    """
    terms = sp.Poly(sp.expand(polynomial), *moments).terms()
    return sp.Add(*(factor * _moment_product(powers, moments) for powers, factor in terms))


def _moment_product(powers: Sequence[int], moments: Mapping[Symbol, Sequence]) -> sp.Expr:
    """Multiply the moments that one monomial needs."""
    product = sp.Integer(1)
    for (x, known), power in zip(moments.items(), powers, strict=True):
        if power > len(known):
            raise ValueError(f"E {x}^{power} is needed, but only {len(known)} moments are given")
        product *= known[power - 1] if power else 1
    return product


def softmax_rows(S: Matrix) -> Matrix:
    """Give the softmax of each row, written out. An entry of −∞ gets 0."""
    powers = sp.Matrix(S).applyfunc(exp)
    return Matrix(*S.shape, lambda i, j: powers[i, j] / sum(powers[i, :]))


def _row(*entries: object) -> Matrix:
    """Give a matrix of one row."""
    return Matrix([entries])


def _softmax(*scores: sp.Expr) -> Matrix:
    """Give the weights of one row of scores."""
    return softmax_rows(_row(*scores))


def _symbols(name: str, *shape: int, **assumptions: bool) -> Matrix:
    """Give a matrix of real symbols: x_1, x_2, … for one size, x_11, x_12, … for two."""
    assumptions = {"real": True} | assumptions
    if len(shape) == 1:
        return _row(*(Symbol(f"{name}_{j + 1}", **assumptions) for j in range(shape[0])))
    return Matrix(*shape, lambda i, j: Symbol(f"{name}_{i + 1}{j + 1}", **assumptions))


def _stand_for(symbols: Matrix, values: Matrix) -> dict:
    """Say which value each symbol stands for."""
    return dict(zip(symbols, values, strict=True))


def _variance(weights: Matrix, numbers: Matrix) -> sp.Expr:
    """Give the variance of numbers under weights that sum to 1."""
    return weights.dot(numbers.applyfunc(lambda x: x**2)) - weights.dot(numbers) ** 2


def _permutation(order: Sequence[int]) -> Matrix:
    """Give P with P[i, ρ(i)] = 1: row i of PX is row ρ(i) of X."""
    return Matrix(len(order), len(order), lambda i, j: 1 if order[i] == j else 0)


def _limit(M: Matrix, x: Symbol, to: object, side: str = "-") -> Matrix:
    """Take the limit of each entry."""
    return M.applyfunc(lambda entry: sp.limit(entry, x, to, side))


def _turn(angle: sp.Expr) -> Matrix:
    """Give the rotation of a column by an angle."""
    return Matrix([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])


def _attend(X: Matrix, W_Q: Matrix, W_K: Matrix, W_V: Matrix, bias: Matrix | None = None) -> Matrix:
    """Give the output of one layer, written out in symbols."""
    scores = X * W_Q * (X * W_K).T / sqrt(sp.Integer(W_K.shape[1]))
    scores = scores.applyfunc(sp.expand)
    return softmax_rows(scores if bias is None else scores + bias) * (X * W_V)


# --- the size of a score (chapter 3) --------------------------------------------------------------


def _terms(q_moments: Sequence, k_moments: Sequence) -> tuple[sp.Expr, ...]:
    """Give E Z, E Z² and Var Z for a term Z = q k, and the covariance of two terms."""
    q, k, p, l = sp.symbols("q k p l")
    moments = {q: q_moments, p: q_moments, k: k_moments, l: k_moments}
    mean, square = expectation(q * k, moments), expectation((q * k) ** 2, moments)
    return mean, square, square - mean**2, expectation(q * k * p * l, moments) - mean**2


def _sum_variance(variance: sp.Expr, covariance: sp.Expr) -> sp.Expr:
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

    Assumed: means 0, variances 1, q_r and k_r independent, and terms that are uncorrelated,
    as they are if all coordinates are independent. Not assumed: a distribution. Chapter 3.
    """
    mean, square, variance, covariance = _terms((0, 1), (0, 1))
    r = Symbol("r", integer=True, positive=True)
    q, k = sp.IndexedBase("q"), sp.IndexedBase("k")
    total = _sum_variance(variance, covariance)
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


def score_variance_by_expansion(width: int = 3) -> Proof:
    """Find mean 0 and variance d_k by multiplying out, for one small d_k.

    Parameters
    ----------
    width : int, default 3
        d_k. Four or less is quick.

    Returns
    -------
    Proof
        Chapter 3.
    """
    q, k = _symbols("q", width), _symbols("k", width)
    moments = dict.fromkeys([*q, *k], (0, 1))
    score = q.dot(k)
    mean, square = expectation(score, moments), expectation(score**2, moments)
    return Proof(
        f"With $d_k$ = {width} a score has mean 0 and variance {width}, multiplied out.",
        (
            let(r"All coordinates are independent, with mean 0 and variance 1.", "s", score),
            equal(r"Every term has a factor of mean 0.", r"\operatorname{E}[s]", mean, 0),
            equal(
                r"In the square every mixed term has a factor of mean 0 as well; the squares "
                r"remain, and each has mean 1.",
                r"\operatorname{E}[s^2]",
                square,
                width,
            ),
            equal(
                r"Subtract the squared mean.",
                r"\operatorname{Var}(s)",
                square - mean**2,
                width,
            ),
        ),
    )


def score_variance_with_means() -> Proof:
    """Prove the variance of a score for any means and variances, with two instances.

    Chapter 3.
    """
    mu_q, mu_k = sp.symbols("mu_q mu_k", real=True)
    sigma_q, sigma_k = sp.symbols("sigma_q sigma_k", positive=True)
    q_square, k_square = sigma_q**2 + mu_q**2, sigma_k**2 + mu_k**2
    mean, square, variance, covariance = _terms((mu_q, q_square), (mu_k, k_square))
    total = _sum_variance(variance, covariance)
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


def tied_weights() -> Proof:
    """Prove what a token's score with itself is when W_Q = W_K: its mean is d_k, not 0.

    Chapter 3.
    """
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
    """Prove the moments of the score of two tokens at cosine c when W_Q = W_K is Gaussian.

    Chapter 3.
    """
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
                _sum_variance(square - mean**2, 0),
                d_k * (1 + c**2),
            ),
        ),
    )


def random_sign() -> Proof:
    """Prove that uncorrelated is not enough: keys ±q with a random sign give 3 d_k.

    Chapter 3.
    """
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
                _sum_variance(square - mean**2, 0),
                3 * d_k,
            ),
        ),
    )


def variance_given_the_query() -> Proof:
    """Prove that, for one fixed query, the scaled scores of a row have variance ``|q|²/d_k``.

    Chapter 3.
    """
    width = 3
    q, k = _symbols("q", width), _symbols("k", width)
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


def variance_over_the_weights() -> Proof:
    """Prove that for two fixed tokens the variance d_k holds over random W_Q and W_K.

    Chapter 3.
    """
    d = 2
    x, y = _symbols("x", d), _symbols("y", d)
    W, U = _symbols("w", d, 2), _symbols("u", d, 2)
    moments = dict.fromkeys([*W, *U], (0, Rational(1, d)))
    first, second = ((x * W)[r] * (y * U)[r] for r in range(2))
    mean, square = expectation(first, moments), expectation(first**2, moments)
    across = expectation(first * second, moments) - mean * expectation(second, moments)
    total = _sum_variance(square - mean**2, across)
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
                total.subs(_stand_for(y, x)),
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


# --- softmax (chapters 1, 2, 3 and 6) -------------------------------------------------------------


def convex_hull() -> Proof:
    """Prove that weights are positive shares, so an output lies between the values. Chapter 1."""
    s, a = _symbols("s", 3), _symbols("a", 3, positive=True)
    low, rise = Symbol("m", real=True), _symbols("r", 3, nonnegative=True)
    values = rise + low * ones(1, 3)
    weights = _softmax(*s)
    return Proof(
        r"Softmax weights are positive and sum to 1, so an output never leaves the convex hull of "
        r"the values.",
        (
            let(r"A weight is a power over the sum of powers.", "a_1", weights[0]),
            at_least(r"A power is positive, whatever the score.", "a_1", weights[0], 0),
            equal(r"Numerators sum to the denominator.", r"\sum_j a_j", sum(weights), 1),
            let(
                r"Measure the values in any direction: the smallest is $m$, the others are $r_j$ "
                r"above it, with $r_j \ge 0$.",
                r"\mathbf{v}",
                values,
            ),
            equal(
                r"Since the weights sum to 1, the output exceeds $m$ by the average excess,",
                r"\sum_j a_j v_j - m",
                a.dot(values) - low,
                a.dot(rise),
                where={a[2]: 1 - a[0] - a[1]},
            ),
            at_least(r"and that is not negative.", r"\sum_j a_j r_j", a.dot(rise), 0),
        ),
    )


def softmax_shift() -> Proof:
    """Prove that softmax ignores a shift of its row, so a bias on all keys cancels.

    Chapters 2 and 5.
    """
    s, a = _symbols("s", 3), _symbols("a", 3)
    q, b, K = _symbols("q", 2), _symbols("b", 2), _symbols("k", 3, 2)
    c, m, i = sp.symbols("c m i", real=True)
    biased = K + ones(3, 1) * b
    by_distance = _row(*(s[j] - m * (i - j) for j in range(3)))
    by_place = _row(*(s[j] + m * j for j in range(3)))
    return Proof(
        r"Softmax ignores a constant added to its row; so a bias that all keys share cancels.",
        (
            let(r"Take a row of three weights.", r"\mathbf{a}", _softmax(*s)),
            equal(
                r"The factor $e^c$ stands in the numerator and in every term below it.",
                r"\operatorname{softmax}(\mathbf{s} + c)",
                _softmax(*(s + c * ones(1, 3))),
                a,
                where=_stand_for(a, _softmax(*s)),
            ),
            equal(
                r"In a causal row ALiBi's loss $m(i - j)$ and a gain $mj$ differ by $mi$, the same "
                r"for every key.",
                r"\operatorname{softmax}(s_j - m(i - j))",
                softmax_rows(by_distance),
                softmax_rows(by_place),
                right_tex=r"\operatorname{softmax}(s_j + mj)",
            ),
            equal(
                r"A bias $\mathbf{b}$ on every key adds one number to the row of a query.",
                r"\mathbf{q}(K + \mathbf{1}\mathbf{b})^\top - \mathbf{q}K^\top",
                q * biased.T - q * K.T,
                ones(1, 3) * q.dot(b),
            ),
            equal(
                r"So it changes no weight.",
                r"\operatorname{softmax}(\mathbf{q}(K + \mathbf{1}\mathbf{b})^\top)",
                softmax_rows(q * biased.T),
                softmax_rows(q * K.T),
                right_tex=r"\operatorname{softmax}(\mathbf{q}K^\top)",
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
        Chapter 3.
    """
    s, a = _symbols("s", n), _symbols("a", n, positive=True)
    weights = _softmax(*s)
    J = weights.jacobian(s)
    where = _stand_for(a, weights)
    return Proof(
        r"The Jacobian of softmax is $\operatorname{diag}(\mathbf{a}) - \mathbf{a}\mathbf{a}^\top$ "
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
    """Prove where softmax saturates, how fast, and that two tied winners never do.

    Chapter 3.
    """
    t, u, v, g = sp.symbols("t u v g", real=True)

    def jacobian(a: Matrix) -> Matrix:
        return diag(*a) - a.T * a

    slope = jacobian(_softmax(g, 0))[0, 0]
    winner, tie = (_limit(_softmax(t, x, v), t, sp.oo) for x in (u, t))
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
    """Prove ‖J‖ ≤ ½: for n = 2 by its eigenvalues, in general by a variance in an interval.

    Chapter 3.
    """
    half, b = Rational(1, 2), Symbol("a", positive=True)
    low, high, mu = sp.symbols("m M mu", real=True)
    a, x = _symbols("a", 3, positive=True), _symbols("x", 3)
    two = diag(b, 1 - b) - Matrix([b, 1 - b]) * _row(b, 1 - b)
    eigenvalues = sorted(two.eigenvals(), key=lambda value: value != 0)
    top = Matrix([1, -1]) / sqrt(2)
    inside = _row(*((high - z) * (z - low) for z in x))
    room = (high - a.dot(x)) * (a.dot(x) - low)
    return Proof(
        r"The Jacobian of softmax never stretches a vector by more than a half.",
        (
            equal(
                r"For two keys the eigenvalues are",
                r"(\lambda_1, \lambda_2)",
                _row(*eigenvalues),
                _row(0, 2 * b * (1 - b)),
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
                _variance(a, x),
            ),
            equal(
                r"Let $m$ be the smallest and $M$ the largest $x_j$, and $\mu$ their mean. The "
                r"variance is less than this product by an average of products that are not "
                r"negative.",
                r"(M - \mu)(\mu - m) - \operatorname{Var}_a(x)",
                room - _variance(a, x),
                a.dot(inside),
                right_tex=r"\sum_j a_j (M - x_j)(x_j - m)",
                where={a[2]: 1 - a[0] - a[1]},
            ),
            at_least(
                r"The product is largest in the middle, where it is a quarter of $(M - m)^2$.",
                "",
                (high - low) ** 2 / 4,
                (high - mu) * (mu - low),
            ),
            at_least(
                r"If $\lVert\mathbf{x}\rVert$ = 1 then $m^2 + M^2 \le 1$, so that quarter is at "
                r"most $\tfrac12$.",
                "",
                (high**2 + low**2) / 2,
                (high - low) ** 2 / 4,
            ),
        ),
    )


def median_and_mean() -> Proof:
    """Prove what wide raw scores do to a gradient: the median goes, the mean stays (two keys).

    Chapter 3.
    """
    q, K, v = _symbols("q", 2), _symbols("k", 2, 2), _symbols("v", 2)
    a, apart = _symbols("a", 2, positive=True), K[0, :] - K[1, :]
    u, z = sp.symbols("u z", real=True)
    kappa, m = sp.symbols("kappa m", positive=True)
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
                where=_stand_for(a, weights),
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
                r"normal $z$. At a fixed $z = m > 0$ it vanishes, so every quantile does.",
                r"\lim_{\kappa \to \infty} \kappa\,a(1 - a)",
                sp.limit(kappa * slope.subs(u, kappa * m), kappa, sp.oo),
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


def undivided() -> Proof:
    """Prove what leaving out 1/√d_k is: another start and another learning rate, nothing else.

    Chapter 3.
    """
    q, p, K, v = _symbols("q", 2), _symbols("p", 2), _symbols("k", 2, 2), _symbols("v", 2)
    eta, root = Symbol("eta", positive=True), sqrt(sp.Integer(2))
    scores = q * K.T, p * K.T / root
    losses = [Matrix([softmax_rows(S).dot(v) ** 2 / 2]) for S in scores]
    raw, scaled = losses[0].jacobian(q), losses[1].jacobian(p)
    where = _stand_for(p, root * q)
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


def temperature_limits() -> Proof:
    """Prove that T → 0 shares among the largest scores, and T → ∞ among all.

    Chapters 1 and 3.
    """
    T, g = sp.symbols("T g", positive=True)
    weights = _softmax(0, 0, -g / T)
    half, third = Rational(1, 2), Rational(1, 3)
    return Proof(
        r"A small temperature shares among the largest scores, a large one among all.",
        (
            let(
                r"Two keys tied in front and one behind by a gap $g > 0$, the row shifted to 0.",
                r"\operatorname{softmax}(\mathbf{s} / T)",
                weights,
            ),
            equal(
                r"As $T$ falls to 0 the gap over $T$ grows without bound: the tied keys share.",
                r"\lim_{T \to 0} \operatorname{softmax}(\mathbf{s} / T)",
                _limit(weights, T, 0, "+"),
                _row(half, half, 0),
            ),
            equal(
                r"As $T$ grows the gap over $T$ vanishes: all keys share.",
                r"\lim_{T \to \infty} \operatorname{softmax}(\mathbf{s} / T)",
                _limit(weights, T, sp.oo),
                _row(third, third, third),
            ),
        ),
    )


def masked_softmax() -> Proof:
    """Prove that masking is the limit of a finite penalty, and what other ways do.

    Chapter 6.
    """
    s, c = _symbols("s", 3), Symbol("c", real=True)
    kept, weights = _softmax(s[0], s[1], -sp.oo), _softmax(*s)
    penalised = _softmax(s[0], s[1], s[2] - c)
    zeroed = _row(weights[0], weights[1], 0)
    return Proof(
        r"A masked softmax is the limit of a finite penalty on the forbidden scores.",
        (
            let(
                r"Two keys may be read and the third may not: its score is −∞, its weight 0.",
                r"\mathbf{a}",
                kept,
            ),
            differ(
                r"A finite penalty, however large, leaves the forbidden key some weight.",
                r"\operatorname{softmax}(s_1, s_2, s_3 - c)",
                penalised,
                kept,
                right_tex=r"\mathbf{a}",
            ),
            differ(
                r"A score multiplied by 0 leaves it $e^0$.",
                r"\operatorname{softmax}(s_1, s_2, 0 \cdot s_3)",
                _softmax(s[0], s[1], 0),
                kept,
                right_tex=r"\mathbf{a}",
            ),
            differ(
                r"A weight set to 0 after softmax leaves a row that does not sum to 1,",
                r"(b_1, b_2, 0)",
                zeroed,
                kept,
                right_tex=r"\mathbf{a}",
            ),
            equal(
                r"until the row is divided by what is left; then, in exact arithmetic, it is the "
                r"masked row.",
                r"(b_1, b_2, 0) / (b_1 + b_2)",
                zeroed / (weights[0] + weights[1]),
                kept,
                right_tex=r"\mathbf{a}",
            ),
            equal(
                r"If every key is penalised the penalty is a shift of the row: for every $c$ it is "
                r"no mask at all.",
                r"\operatorname{softmax}(\mathbf{s} - c)",
                _softmax(*(s - c * ones(1, 3))),
                weights,
                right_tex=r"\operatorname{softmax}(\mathbf{s})",
            ),
            equal(
                r"As $c$ grows the penalised row tends to the masked one.",
                r"\lim_{c \to \infty} \operatorname{softmax}(s_1, s_2, s_3 - c)",
                _limit(penalised, c, sp.oo),
                kept,
                right_tex=r"\mathbf{a}",
            ),
        ),
    )


def cut_key() -> Proof:
    """Prove what it changes to take one key away, in both ways, and what a constant changes.

    Returns
    -------
    Proof
        Chapters 12 and 13.
    """
    s, v, c = _symbols("s", 3), _symbols("v", 3), Symbol("c", real=True)
    a, masked = _softmax(*s), _softmax(s[0], s[1], -sp.oo)
    shifted = v + c * ones(1, 3)

    def by_zeroing(v: Matrix) -> sp.Expr:
        return _row(a[0], a[1], 0).dot(v) - a.dot(v)

    def by_masking(v: Matrix) -> sp.Expr:
        return masked.dot(v) - a.dot(v)

    return Proof(
        r"What it changes to cut a key: by its value if its weight is set to 0, by its distance "
        r"from the rest if it is masked; and only the second survives a constant.",
        (
            equal(
                r"One key's weight and value, and the others' shares among themselves, make the "
                r"output.",
                r"\mathbf{a} \cdot \mathbf{v}",
                a.dot(v),
                a[2] * v[2] + (1 - a[2]) * masked.dot(v),
                right_tex=r"a_3 v_3 + (1 - a_3)\, o'",
            ),
            equal(
                r"Set its weight to 0 and leave the others: its term is missing.",
                r"a_1 v_1 + a_2 v_2 - o",
                by_zeroing(v),
                -a[2] * v[2],
                right_tex=r"-a_3 v_3",
            ),
            equal(
                r"Mask it, and the others share out its weight.",
                r"o' - o",
                by_masking(v),
                a[2] * (masked.dot(v) - v[2]),
                right_tex=r"a_3 (o' - v_3)",
            ),
            equal(
                r"Add a constant to all values: the output has it too, whatever the weights are, "
                r"so a later bias can take it off again.",
                r"\mathbf{a} \cdot (\mathbf{v} + c) - c",
                a.dot(shifted) - c,
                a.dot(v),
                right_tex=r"\mathbf{a} \cdot \mathbf{v}",
            ),
            differ(
                r"The model is the same, yet the term of the key is another one:",
                r"a_3 (v_3 + c)",
                a[2] * shifted[2],
                a[2] * v[2],
                right_tex=r"a_3 v_3",
            ),
            equal(
                r"What masking changes does not see the constant.",
                r"(o' - o)(\mathbf{v} + c)",
                by_masking(shifted),
                by_masking(v),
                right_tex=r"o' - o",
            ),
        ),
    )


# --- queries, keys and values (chapters 1, 2 and 10) ----------------------------------------------


def gaussian_kernel() -> Proof:
    """Prove that with keys of one length attention is a Gaussian kernel smoother. Chapter 1."""
    q, K, l = _symbols("q", 2), _symbols("k", 3, 2), Symbol("l", positive=True)
    nearness = _row(*(-(q - K[j, :]).dot(q - K[j, :]) / 2 for j in range(3)))
    corrected = _row(*(q.dot(K[j, :]) - K[j, :].dot(K[j, :]) / 2 for j in range(3)))
    level = {K[j, 1]: sqrt(l**2 - K[j, 0] ** 2) for j in range(3)}
    kernel = r"\operatorname{softmax}(-\tfrac12\lVert\mathbf{q} - \mathbf{k}_j\rVert^2)"
    return Proof(
        r"With keys of one length, softmax of dot products is a Gaussian kernel smoother.",
        (
            equal(
                r"Half the squared distance, multiplied out.",
                r"-\tfrac12\lVert\mathbf{q} - \mathbf{k}_j\rVert^2",
                nearness[0],
                corrected[0] - q.dot(q) / 2,
                right_tex=r"\mathbf{q}\cdot\mathbf{k}_j - \tfrac12\lVert\mathbf{q}\rVert^2"
                r" - \tfrac12\lVert\mathbf{k}_j\rVert^2",
            ),
            equal(
                r"The query's length is a shift of its row and cancels; the keys' lengths stay.",
                kernel,
                softmax_rows(nearness),
                softmax_rows(corrected),
                right_tex=r"\operatorname{softmax}(\mathbf{q}\cdot\mathbf{k}_j"
                r" - \tfrac12\lVert\mathbf{k}_j\rVert^2)",
            ),
            differ(
                r"So with keys of different lengths nearness and dot product disagree,",
                kernel,
                softmax_rows(nearness),
                softmax_rows(q * K.T),
                right_tex=r"\operatorname{softmax}(\mathbf{q}\cdot\mathbf{k}_j)",
            ),
            equal(
                r"and with keys of one length $l$ their lengths are a shift too: the weights are "
                r"the same.",
                kernel,
                softmax_rows(nearness.subs(level).applyfunc(sp.expand)),
                softmax_rows(q * K.T),
                right_tex=r"\operatorname{softmax}(\mathbf{q}\cdot\mathbf{k}_j)",
                where=level,
            ),
        ),
    )


def own_score_is_largest() -> Proof:
    """Prove when a token scores highest with itself: W_Q = W_K and keys of one length.

    Chapter 2.
    """
    k, l = _symbols("k", 2), _symbols("l", 2)
    lead, gap = k.dot(k) - k.dot(l), (k - l).dot(k - l) / 2
    tex = r"\mathbf{k}\cdot\mathbf{k} - \mathbf{k}\cdot\mathbf{l}"
    return Proof(
        r"With $W_Q = W_K$ and keys of one length no key beats a token's own; a longer key can.",
        (
            equal(
                r"With tied weights the query is the token's own key $\mathbf{k}$. Its lead over "
                r"another key $\mathbf{l}$, rearranged:",
                tex,
                lead,
                gap + (k.dot(k) - l.dot(l)) / 2,
                right_tex=r"\tfrac12\lVert\mathbf{k} - \mathbf{l}\rVert^2"
                r" + \tfrac12(\lVert\mathbf{k}\rVert^2 - \lVert\mathbf{l}\rVert^2)",
            ),
            equal(
                r"A longer key in the same direction wins: for $\mathbf{l} = 2\mathbf{k}$ the lead "
                r"is negative.",
                tex,
                lead.subs(_stand_for(l, 2 * k)),
                -k.dot(k),
            ),
            at_least(
                r"With one length only the squared distance is left, and it is not negative.",
                tex + r" = \tfrac12\lVert\mathbf{k} - \mathbf{l}\rVert^2",
                gap,
                0,
            ),
        ),
    )


def only_products_matter() -> Proof:
    """Prove that W_Q M with W_K M⁻ᵀ, and W_V M with M⁻¹ W_O, change nothing. Chapter 2."""
    X, W_Q, W_K = _symbols("x", 2, 2), _symbols("q", 2, 2), _symbols("k", 2, 2)
    W_V, W_O, M = _symbols("v", 2, 2), _symbols("o", 2, 2), _symbols("m", 2, 2)
    inverse, scores = M.inv(), X * W_Q * (X * W_K).T
    return Proof(
        r"The weights act only through the products $W_Q W_K^\top$ and $W_V W_O$.",
        (
            let(r"Take any invertible matrix, here 2 × 2.", "M", M),
            equal(
                r"Between queries and keys it meets its inverse.", r"M M^{-1}", M * inverse, eye(2)
            ),
            differ(
                r"(Turned alike, queries and keys give other scores, unless $M$ is orthogonal.)",
                r"(X W_Q M)(X W_K M)^\top",
                (X * W_Q * M) * (X * W_K * M).T,
                scores,
                right_tex=r"X W_Q W_K^\top X^\top",
            ),
            equal(
                r"Between values and output it does too; the weights $A$ mix rows and stay out of "
                r"it.",
                r"(X W_V M)(M^{-1} W_O)",
                (X * W_V * M) * (inverse * W_O),
                X * W_V * W_O,
                right_tex=r"X W_V W_O",
            ),
            equal(
                r"Keys turned the opposite way give the same scores.",
                r"(X W_Q M)(X W_K M^{-\top})^\top",
                (X * W_Q * M) * (X * W_K * inverse.T).T,
                scores,
                right_tex=r"X W_Q W_K^\top X^\top",
            ),
        ),
    )


def score_rank() -> Proof:
    """Prove that S has rank at most d_k, here for n = 4 tokens and d_k = 2. Chapter 2."""
    Q, K = _symbols("q", 4, 2), _symbols("k", 4, 2)
    S = Q * K.T
    rows = list(combinations(range(4), 3))
    minors = [sp.expand(S.extract(i, j).det()) for i in rows for j in rows]
    return Proof(
        r"A matrix of scores has rank at most $d_k$, however many tokens there are.",
        (
            let(r"Four tokens, $d_k$ = 2. The first row of scores:", "S_1", S[0, :]),
            equal(
                r"Every row mixes the same two rows, one for each column of $K$.",
                r"S_1",
                S[0, :],
                Q[0, 0] * K[:, 0].T + Q[0, 1] * K[:, 1].T,
                right_tex=r"q_{11} K_{\cdot 1}^\top + q_{12} K_{\cdot 2}^\top",
            ),
            differ(
                r"Two rows are independent in general: a determinant of order 2 is not 0.",
                r"\det S_{12, 12}",
                S[:2, :2].det(),
                0,
            ),
            equal(
                r"Three rows never are: all sixteen determinants of order 3 are identically 0.",
                r"\det S_{ijk, lmn}",
                _row(*minors),
                zeros(1, len(minors)),
            ),
        ),
    )


def tied_keys_and_values() -> Proof:
    """Prove what K = V cannot do: the output is the gradient of a convex function. Chapter 2."""
    q, K, z = _symbols("q", 2), _symbols("k", 3, 2), _symbols("z", 2)
    a, u = _symbols("a", 3, positive=True), _symbols("u", 3)
    T, t = Symbol("T", positive=True), Symbol("t", real=True)
    weights = softmax_rows(q * K.T / T)
    output = weights * K
    potential = T * sp.log(sum((q * K.T / T).applyfunc(exp)))
    along = _stand_for(q, q + t * z)
    speed = sp.diff((output * z.T)[0].subs(along, simultaneous=True), t)
    by_pairs = sum(a[i] * a[j] * (u[i] - u[j]) ** 2 for i, j in combinations(range(3), 2))
    numbers = _stand_for(u, z * K.T) | _stand_for(a, weights.subs(along, simultaneous=True))
    return Proof(
        r"With $K = V$ the output is the gradient of a convex function of the query: "
        r"$(\mathbf{o}(\mathbf{q}') - \mathbf{o}(\mathbf{q}))\cdot"
        r"(\mathbf{q}' - \mathbf{q}) \ge 0$.",
        (
            let(
                r"The soft maximum of the scores; $T$ is $\sqrt{d_k}$ or any temperature.",
                r"f(\mathbf{q})",
                potential,
                r"T \log \sum_j e^{\mathbf{q}\cdot\mathbf{k}_j / T}",
            ),
            equal(
                r"Its gradient weights every key by softmax. The values are the keys, so this is "
                r"the output.",
                r"\nabla f",
                _row(*(sp.diff(potential, x) for x in q)),
                output,
                right_tex=r"\mathbf{o}(\mathbf{q}) = \sum_j a_j \mathbf{k}_j",
            ),
            equal(
                r"Move the query from $\mathbf{q}$ towards $\mathbf{q}' = "
                r"\mathbf{q} + \mathbf{z}$. The output moves in that direction at the speed of "
                r"a variance, that of $u_j = \mathbf{z}\cdot\mathbf{k}_j$ under the weights "
                r"at that place.",
                r"\partial/\partial t\; \mathbf{o}(\mathbf{q} + t\mathbf{z})\cdot\mathbf{z}",
                speed,
                _variance(a, u) / T,
                right_tex=r"\operatorname{Var}_a(u) / T",
                where=numbers,
            ),
            equal(
                r"A variance is an average over pairs.",
                r"\operatorname{Var}_a(u)",
                _variance(a, u),
                by_pairs,
                where={a[2]: 1 - a[0] - a[1]},
            ),
            at_least(
                r"It is not negative: the output never moves back. In one dimension a larger query "
                r"never returns a smaller value.",
                r"\operatorname{Var}_a(u)",
                by_pairs,
                0,
            ),
        ),
    )


def query_gradient() -> Proof:
    """Prove ∇_q o = Cov_a(v, k) / √d_k, the factor included. Chapters 3 and 10."""
    q, K, v = _symbols("q", 2), _symbols("k", 3, 2), _symbols("v", 3)
    a, root = _symbols("a", 3, positive=True), sqrt(sp.Integer(2))
    weights = softmax_rows(q * K.T / root)
    gradient = Matrix([weights.dot(v)]).jacobian(q)
    covariance = sum((a[j] * v[j] * K[j, :] for j in range(3)), zeros(1, 2)) - a.dot(v) * a * K
    where = _stand_for(a, weights)
    tex = r"\operatorname{Cov}_a(v, \mathbf{k})"
    return Proof(
        r"The gradient of an output by its query is the covariance of values and keys under the "
        r"weights, divided by $\sqrt{d_k}$.",
        (
            let(r"One query, three keys, $d_k$ = 2, one column of values.", "o", a.dot(v)),
            equal(
                r"A score changes by $\mathbf{k}_j / \sqrt{d_k}$, so a weight by its key's lead "
                r"over the average key.",
                r"\nabla_q a_1",
                weights.jacobian(q)[0, :],
                a[0] * (K[0, :] - a * K) / root,
                right_tex=r"a_1(\mathbf{k}_1 - \sum_j a_j\mathbf{k}_j) / \sqrt{d_k}",
                where=where,
            ),
            let(
                r"A covariance is the mean of the products less the product of the means.",
                tex,
                covariance,
                r"\sum_j a_j v_j \mathbf{k}_j - o \sum_j a_j\mathbf{k}_j",
            ),
            differ(
                r"Without the factor it is not the gradient.",
                r"\nabla_q o",
                gradient,
                covariance,
                right_tex=tex,
                where=where,
            ),
            equal(
                r"Multiply each change of weight by its value and sum.",
                r"\nabla_q o",
                gradient,
                covariance / root,
                right_tex=tex + r" / \sqrt{d_k}",
                where=where,
            ),
        ),
    )


def _by(value: sp.Expr, M: Matrix) -> Matrix:
    """Differentiate one number by each entry of a matrix."""
    return Matrix(*M.shape, lambda i, j: sp.diff(value, M[i, j]))


def _softmax_back(A: Matrix, dA: Matrix) -> Matrix:
    """Go back through the softmax of each row: A ⊙ (dA − row average)."""
    return Matrix(*A.shape, lambda i, j: A[i, j] * (dA[i, j] - A[i, :].dot(dA[i, :])))


def backward_pass() -> Proof:
    """Prove the backward pass of attention, matrix by matrix, for two queries and two keys.

    Chapter 10.
    """
    Q, K, V = _symbols("q", 2, 2), _symbols("k", 2, 2), _symbols("v", 2, 1)
    X, W, S, G = _symbols("x", 2, 2), _symbols("w", 2, 2), _symbols("s", 2, 2), _symbols("g", 2, 1)
    A, root = _symbols("a", 2, 2, positive=True), sqrt(sp.Integer(2))
    dS, queries = _softmax_back(A, G * V.T), X * W

    def loss(scores: Matrix) -> sp.Expr:
        return G.dot(softmax_rows(scores) * V)

    def weights(scores: Matrix) -> dict:
        return _stand_for(A, softmax_rows(scores))

    return Proof(
        r"The backward pass of attention (two queries, two keys, $d_k$ = 2, $d_v$ = 1).",
        (
            let(
                r"The loss pulls on the outputs: row $i$ of $G = \partial L / \partial O$ is the "
                r"pull $\mathbf{g}_i$. To first order the loss changes as this sum does.",
                "L",
                loss(S),
                r"\sum_i \mathbf{g}_i \cdot \mathbf{o}_i",
            ),
            equal(
                r"A value is pulled by every output that reads it, as much as it is read.",
                r"\partial L / \partial V",
                _by(loss(S), V),
                A.T * G,
                right_tex=r"A^\top G",
                where=weights(S),
            ),
            equal(
                r"A score raises its own weight at the expense of its row.",
                r"\partial L / \partial s_{11}",
                sp.diff(loss(S), S[0, 0]),
                dS[0, 0],
                right_tex=r"a_{11} (\mathbf{g}_1 \cdot \mathbf{v}_1"
                r" - \mathbf{g}_1 \cdot \mathbf{o}_1)",
                where=weights(S),
            ),
            equal(
                r"So each row of this gradient sums to 0: softmax only shares out.",
                r"(\partial L / \partial S)\,\mathbf{1}",
                _by(loss(S), S) * ones(2, 1),
                zeros(2, 1),
            ),
            equal(
                r"A query collects keys, and the factor of the scores comes back.",
                r"\partial L / \partial Q",
                _by(loss(Q * K.T / root), Q),
                dS * K / root,
                right_tex=r"(\partial L / \partial S)\,K / \sqrt{d_k}",
                where=weights(Q * K.T / root),
            ),
            equal(
                r"A key collects the queries that look at it: the transpose.",
                r"\partial L / \partial K",
                _by(loss(Q * K.T / root), K),
                dS.T * Q / root,
                right_tex=r"(\partial L / \partial S)^\top Q / \sqrt{d_k}",
                where=weights(Q * K.T / root),
            ),
            equal(
                r"One map makes all queries, $Q = XW_Q$, so it collects from all rows.",
                r"\partial L / \partial W_Q",
                _by(loss(queries * K.T / root), W),
                X.T * dS * K / root,
                right_tex=r"X^\top\, \partial L / \partial Q",
                where=weights(queries * K.T / root),
            ),
        ),
    )


def nothing_to_match() -> Proof:
    """Prove when queries and keys get no gradient, and that values get theirs all the same.

    Chapter 10.
    """
    Q, K, V = _symbols("q", 2, 2), _symbols("k", 3, 2), _symbols("v", 3, 1)
    S, G, v = _symbols("s", 2, 3), _symbols("g", 2, 1), Symbol("v", real=True)
    decided = Matrix([[1, 0, 0], [0, 0, 1]])

    def loss(scores: Matrix, values: Matrix = V) -> sp.Expr:
        return G.dot(softmax_rows(scores) * values)

    whole = loss(Q * K.T / sqrt(sp.Integer(2)))
    no_queries, no_keys = (_stand_for(M, zeros(*M.shape)) for M in (Q, K))
    return Proof(
        "Where values are equal, or a row is decided, matching learns nothing; values still do.",
        (
            equal(
                r"If all values are one $\mathbf{v}$, it does not matter what is read: no score "
                r"is asked to move, whatever the weights.",
                r"\partial L / \partial S",
                _by(loss(S, v * ones(3, 1)), S),
                zeros(2, 3),
            ),
            equal(
                r"If the whole weight of each row is on one key, no score is asked to move either.",
                r"\partial L / \partial S",
                _softmax_back(decided, G * V.T),
                zeros(2, 3),
            ),
            equal(
                r"If all queries are zero, the keys get no gradient,",
                r"\partial L / \partial K",
                _by(whole, K).subs(no_queries),
                zeros(3, 2),
            ),
            differ(
                r"but the queries get one from the keys,",
                r"\partial L / \partial Q",
                _by(whole, Q).subs(no_queries),
                zeros(2, 2),
            ),
            equal(
                r"unless the keys are zero too: then both stay where they are.",
                r"\partial L / \partial Q",
                _by(whole, Q).subs(no_queries | no_keys),
                zeros(2, 2),
            ),
            equal(
                r"The values learn meanwhile: with even weights each gets its share of all pulls.",
                r"\partial L / \partial \mathbf{v}_1",
                sp.diff(whole, V[0]).subs(no_queries),
                (G[0] + G[1]) / 3,
                right_tex=r"(\mathbf{g}_1 + \mathbf{g}_2) / 3",
            ),
        ),
    )


# --- order (chapters 4, 5 and 6) ------------------------------------------------------------------


def permuted_softmax(n: int = 3) -> Proof:
    """Prove softmax(P S Pᵀ) = P softmax(S) Pᵀ for every permutation, and for a mask moved too.

    Parameters
    ----------
    n : int, default 3
        Number of tokens: all n! permutations are tried, with symbols for all scores.

    Returns
    -------
    Proof
        Chapter 4.
    """
    S, M = _symbols("s", n, n), _symbols("m", n, n)
    every = [_permutation(order) for order in permutations(range(n))]
    swap = _permutation([1, 0, *range(2, n)])
    A, moved = softmax_rows(S), softmax_rows(swap * S * swap.T)

    def gaps(scores: Matrix) -> Matrix:
        """Stack the differences of the two sides for all permutations."""
        pairs = ((softmax_rows(P * scores * P.T), P * softmax_rows(scores) * P.T) for P in every)
        return Matrix.vstack(*(left - right for left, right in pairs))

    return Proof(
        r"Softmax along rows commutes with moving the tokens: "
        r"$\operatorname{softmax}(PSP^\top) = P\operatorname{softmax}(S)P^\top$ "
        f"(all {len(every)} permutations of {n} tokens).",
        (
            equal(
                r"A row of $PSP^\top$ is a row of $S$ with its entries in another order; here "
                r"tokens 1 and 2 change places.",
                r"(PSP^\top)_1",
                (swap * S * swap.T)[0, :],
                _row(S[1, 1], S[1, 0], *S[1, 2:]),
            ),
            equal(
                r"The sum below has the same terms in another order, so every weight goes where "
                r"its score went.",
                r"\operatorname{softmax}(PSP^\top)_{11}",
                moved[0, 0],
                A[1, 1],
            ),
            equal(
                r"Put $S + M$ for $S$: with a bias or mask that moves along, $M \to PMP^\top$, it "
                r"is true again.",
                r"\operatorname{softmax}(PSP^\top + PMP^\top)"
                r" - P\operatorname{softmax}(S + M)P^\top",
                gaps(S + M),
                zeros(n * len(every), n),
            ),
            differ(
                r"With a bias that stays where it was it is not.",
                r"\operatorname{softmax}(PSP^\top + M) - P\operatorname{softmax}(S + M)P^\top",
                softmax_rows(swap * S * swap.T + M) - swap * softmax_rows(S + M) * swap.T,
                zeros(n, n),
            ),
            equal(
                f"All {len(every)} permutations: the difference is identically zero.",
                r"\operatorname{softmax}(PSP^\top) - P\operatorname{softmax}(S)P^\top",
                gaps(S),
                zeros(n * len(every), n),
            ),
        ),
    )


def equivariance(n: int = 3, d_v: int = 2) -> Proof:
    """Prove that a layer without positions maps PX to P times its output, for every P.

    Parameters
    ----------
    n : int, default 3
        Number of tokens.
    d_v : int, default 2
        Width of a value. Tokens and keys have two coordinates.

    Returns
    -------
    Proof
        Chapter 4.
    """
    X, table = _symbols("x", n, 2), _symbols("p", n, 2)
    W_Q, W_K, W_V = _symbols("q", 2, 2), _symbols("k", 2, 2), _symbols("v", 2, d_v)
    every = [_permutation(order) for order in permutations(range(n))]
    P, still = every[-1], _attend(X, W_Q, W_K, W_V)
    moved = [_attend(move * X, W_Q, W_K, W_V) for move in every]
    gaps = Matrix.vstack(*(new - move * still for new, move in zip(moved, every, strict=True)))
    pooled = Matrix.vstack(*(ones(1, n) * (new - still) for new in moved))
    scores = P * X * W_Q * (P * X * W_K).T - P * (X * W_Q * (X * W_K).T) * P.T
    placed = _attend(P * X + table, W_Q, W_K, W_V) - P * _attend(X + table, W_Q, W_K, W_V)
    return Proof(
        r"Self-attention without positions is permutation-equivariant "
        f"(all {len(every)} permutations of {n} tokens, $d_v$ = {d_v}, every entry a symbol).",
        (
            equal(
                r"A projection acts on each token alone, so its rows move with the tokens.",
                r"(PX)W_V - P(XW_V)",
                (P * X) * W_V - P * (X * W_V),
                zeros(n, d_v),
            ),
            equal(
                r"So the scores have their rows and their columns moved.",
                r"(PQ)(PK)^\top - P(QK^\top)P^\top",
                scores,
                zeros(n, n),
            ),
            equal(
                r"Softmax commutes with that move, and the $P^\top$ on its right meets the $P$ of "
                r"the values.",
                r"P^\top P",
                P.T * P,
                eye(n),
            ),
            equal(
                r"A sum over tokens does not see their order: the pooled output is invariant.",
                r"\mathbf{1}^\top \operatorname{Attention}(PX)"
                r" - \mathbf{1}^\top \operatorname{Attention}(X)",
                pooled,
                zeros(*pooled.shape),
            ),
            differ(
                r"A table $T$ of positions, added to the rows, breaks it.",
                r"\operatorname{Attention}(PX + T) - P\operatorname{Attention}(X + T)",
                placed,
                zeros(n, d_v),
            ),
            equal(
                r"Without one the difference is identically zero for every permutation.",
                r"\operatorname{Attention}(PX) - P\operatorname{Attention}(X)",
                gaps,
                zeros(*gaps.shape),
            ),
        ),
    )


def symmetric_bias() -> Proof:
    """Prove that a bias in ``|i − j|`` cannot see a reversal, but sees other orders. Chapter 5."""
    b, c, X, one = _symbols("b", 3), _symbols("c", 3), _symbols("x", 3).T, eye(1)
    B = Matrix(3, 3, lambda i, j: b[abs(i - j)])
    signed = Matrix(3, 3, lambda i, j: b[j - i] if j >= i else c[i - j])
    causal = Matrix(3, 3, lambda i, j: b[i - j] if j <= i else -sp.oo)
    reverse, swap = _permutation([2, 1, 0]), _permutation([1, 0, 2])
    tex = r"\operatorname{Attention}(PX) - P\operatorname{Attention}(X)"

    def gap(P: Matrix, bias: Matrix) -> Matrix:
        return _attend(P * X, one, one, one, bias) - P * _attend(X, one, one, one, bias)

    return Proof(
        r"A bias in the distance $|i - j|$ cannot see a reversal.",
        (
            let(r"Three tokens, one bias for each distance.", "B", B),
            equal(
                r"Reversal keeps every distance: moving rows and columns gives $B$ back.",
                r"PBP^\top",
                reverse * B * reverse.T,
                B,
            ),
            differ(
                r"Another order does not keep them all: let tokens 1 and 2 change places.",
                r"PBP^\top",
                swap * B * swap.T,
                B,
            ),
            differ(r"That order the layer notices.", tex, gap(swap, B), zeros(3, 1)),
            differ(
                r"A bias in the signed step $j - i$ notices the reversal,",
                tex,
                gap(reverse, signed),
                zeros(3, 1),
            ),
            differ(
                r"and so does the bias $B$ under a causal mask.",
                tex,
                gap(reverse, causal),
                zeros(3, 1),
            ),
            equal(
                r"With $B$ alone a reversed input reverses the output, and nothing else happens.",
                tex,
                gap(reverse, B),
                zeros(3, 1),
            ),
        ),
    )


def duplication() -> Proof:
    """Prove that a softmax average cannot count: duplicating every token changes nothing.

    Chapter 4.
    """
    s, v = _symbols("s", 2), _symbols("v", 2)
    once = _softmax(*s).dot(v)
    twice = _softmax(*s, *s).dot(v.row_join(v))
    return Proof(
        r"A softmax average cannot count: with every token doubled no output changes.",
        (
            let(r"Two tokens, one column of values.", "o(s_1, s_2)", once),
            equal(
                r"Doubled, a token has two keys with half the weight each.",
                r"2\,a_1(s_1, s_2, s_1, s_2)",
                2 * _softmax(*s, *s)[0],
                _softmax(*s)[0],
            ),
            differ(
                r"(To double one token alone does change the shares.)",
                r"o(s_1, s_2, s_1)",
                _softmax(*s, s[0]).dot(v.row_join(_row(v[0]))),
                once,
                right_tex="o(s_1, s_2)",
            ),
            equal(
                r"So the average is the same.",
                r"o(s_1, s_2, s_1, s_2)",
                twice,
                once,
                right_tex="o(s_1, s_2)",
            ),
        ),
    )


def _two_layers() -> list[list[Matrix]]:
    """Give W_Q, W_K, W_V of two layers for tokens of one feature: one number each."""
    first, second = _symbols("w", 3), _symbols("u", 3)
    return [[_row(w) for w in weights] for weights in (first, second)]


def causal_derivatives(allowed: Callable[[int, int], bool] = lambda i, j: j <= i) -> Proof:
    """Prove ∂o_i/∂x_j = 0 exactly for j > i under a causal mask, through one layer and many.

    Parameters
    ----------
    allowed : function of (i, j), default causal
        Whether query i may look at key j. Under another mask the proof must fail.

    Returns
    -------
    Proof
        Chapter 6.
    """
    X, (weights, _) = _symbols("x", 3).T, _two_layers()
    bias = Matrix(3, 3, lambda i, j: 0 if allowed(i, j) else -sp.oo)
    causal = Matrix(3, 3, lambda i, j: 1 if j <= i else 0)
    output = _attend(X, *weights, bias)
    reads = (X + output).jacobian(X).applyfunc(lambda e: 0 if e == 0 or _sample(e) == 0 else 1)
    first, second = (reads.multiply_elementwise(_symbols(name, 3, 3)) for name in ("f", "g"))
    return Proof(
        r"Under a causal mask $\partial\mathbf{o}_i / \partial\mathbf{x}_j = 0$ for $j > i$, "
        r"through any depth.",
        (
            let(
                r"Three tokens of one feature. A forbidden score is −∞, so its weight is "
                r"$e^{-\infty}$ = 0.",
                "M",
                bias,
            ),
            equal(
                r"Later tokens do not occur in an output. The first is the first value, $w_3$ "
                r"being its $W_V$.",
                "o_1",
                output[0],
                X[0] * weights[2][0],
            ),
            equal(
                r"Mark with 1 the derivatives that are not identically 0, the input added: those "
                r"with $j \le i$ and no other.",
                r"[\partial(x_i + o_i) / \partial x_j \neq 0]",
                reads,
                causal,
            ),
            equal(
                r"Through two layers derivatives multiply, as matrices of this form: the sum for "
                r"$j > i$ has no term. What works on each token alone is diagonal. So by induction "
                r"for any depth.",
                r"[(GF)_{ij} \neq 0]",
                (second * first).applyfunc(lambda e: 0 if e == 0 else 1),
                causal,
            ),
        ),
    )


def causal_order() -> Proof:
    """Prove that one causal layer cannot order the past of the last token, and two can.

    Chapter 4.
    """
    X, (first, second) = _symbols("x", 3).T, _two_layers()
    bias = Matrix(3, 3, lambda i, j: 0 if j <= i else -sp.oo)
    swap = _permutation([1, 0, 2])

    def last(tokens: Matrix, depth: int) -> sp.Expr:
        """Give the last output of one or two layers."""
        for weights in (first, second)[:depth]:
            tokens = tokens + _attend(tokens, *weights, bias)
        return tokens[2]

    return Proof(
        r"Without positions the last output of one causal layer does not depend on the order of "
        r"its past; that of two layers does.",
        (
            differ(
                r"A causal layer is not equivariant: whoever stands first reads itself alone.",
                r"\operatorname{Attention}(PX) - P\operatorname{Attention}(X)",
                _attend(swap * X, *first, bias) - swap * _attend(X, *first, bias),
                zeros(3, 1),
            ),
            differ(
                r"After two layers the order of the past shows: in the first layer the second "
                r"token has read the first, and not the other way round.",
                r"o_3(x_2, x_1, x_3)",
                last(swap * X, 2),
                last(X, 2),
                right_tex="o_3(x_1, x_2, x_3)",
            ),
            equal(
                r"After one layer it does not: the last token reads all keys, whichever comes "
                r"first.",
                r"o_3(x_2, x_1, x_3)",
                last(swap * X, 1),
                last(X, 1),
                right_tex="o_3(x_1, x_2, x_3)",
            ),
        ),
    )


def source_order() -> Proof:
    """Prove that a reader does not see the order of its source, nor one query the others.

    Returns
    -------
    Proof
        Chapter 7.
    """
    X, Y, ((W_Q, W_K, W_V), _) = _symbols("x", 2).T, _symbols("y", 3).T, _two_layers()
    every = [_permutation(order) for order in permutations(range(3))]
    P, swap = every[-2], _permutation([1, 0])

    def scores(reader: Matrix, source: Matrix) -> Matrix:
        return (reader * W_Q * (source * W_K).T).applyfunc(sp.expand)

    def read(reader: Matrix, source: Matrix) -> Matrix:
        return softmax_rows(scores(reader, source)) * (source * W_V)

    gaps = Matrix.hstack(*(read(X, move * Y) - read(X, Y) for move in every))
    return Proof(
        r"Cross-attention is invariant to the order of its source and equivariant to that of its "
        f"reader (2 readers, all {len(every)} permutations of 3 source rows).",
        (
            equal(
                r"Moving the rows of the source moves the columns of the scores,",
                r"Q(PK)^\top - (QK^\top)P^\top",
                scores(X, P * Y) - scores(X, Y) * P.T,
                zeros(2, 3),
            ),
            differ(
                r"so the weights are other ones:",
                r"A(X, PY)",
                softmax_rows(scores(X, P * Y)),
                softmax_rows(scores(X, Y)),
                right_tex="A(X, Y)",
            ),
            equal(
                r"Each output is made from its own reader row: the other does not occur in it.",
                r"\partial\mathbf{o}_1 / \partial\mathbf{x}_2",
                sp.diff(read(X, Y)[0], X[1]),
                0,
            ),
            equal(
                r"Hence the outputs move with the rows of the reader.",
                r"\operatorname{Attention}(PX, Y) - P\operatorname{Attention}(X, Y)",
                read(swap * X, Y) - swap * read(X, Y),
                zeros(2, 1),
            ),
            equal(
                r"The weights have moved with their values, so the sums are the same, for every "
                r"permutation of the source.",
                r"\operatorname{Attention}(X, PY) - \operatorname{Attention}(X, Y)",
                gaps,
                zeros(2, len(every)),
            ),
        ),
    )


def sinusoid_rotation() -> Proof:
    """Prove that a fixed offset turns each sine–cosine pair by an angle of its own. Chapter 5."""
    p, k, theta = sp.symbols("p k theta", real=True)
    turn = _turn(k * theta)

    def pair(place: sp.Expr) -> Matrix:
        return _row(sin(place * theta), cos(place * theta))

    return Proof(
        r"To move a sinusoidal position by $k$ is to turn each pair by $k\theta$, wherever it "
        r"stands.",
        (
            let(r"One pair, with its frequency $\theta$.", "p(t)", pair(Symbol("t", real=True))),
            let(r"A rotation by $k\theta$: the place does not occur in it.", "R_k", turn),
            equal(
                r"Its transpose undoes it, so lengths and angles are kept.",
                r"R_k R_k^\top",
                turn * turn.T,
                eye(2),
            ),
            equal(
                r"The product of two rows is the cosine of a difference: they compare by their "
                r"distance alone.",
                r"p(t) \cdot p(t + k)",
                pair(p).dot(pair(p + k)),
                cos(k * theta),
            ),
            equal(
                r"The addition theorems of sine and cosine, written as one product.",
                r"p(t + k) - p(t) R_k",
                pair(p + k) - pair(p) * turn,
                zeros(1, 2),
            ),
        ),
    )


def rope_offset() -> Proof:
    """Prove that a RoPE score depends on m − n only, and that lengths are kept. Chapter 5."""
    m, n, t, theta, phi = sp.symbols("m n t theta phi", real=True)
    q, k = _symbols("q", 2).T, _symbols("k", 2).T
    cosines, sines = diag(cos(m * theta), cos(m * phi)), diag(sin(m * theta), sin(m * phi))
    half = Matrix(sp.BlockMatrix([[cosines, -sines], [sines, cosines]]))
    relabel = _permutation([0, 2, 1, 3])

    def score(at_m: sp.Expr, at_n: sp.Expr) -> sp.Expr:
        return (_turn(at_m * theta) * q).dot(_turn(at_n * theta) * k)

    return Proof(
        r"With RoPE the score of a query at $m$ and a key at $n$ depends on $m - n$ only.",
        (
            let(
                r"One pair: the query is turned by $m\theta$, the key by $n\theta$.",
                "R_m",
                _turn(m * theta),
            ),
            equal(
                r"A turn keeps lengths.",
                r"\lVert R_m \mathbf{q}\rVert^2",
                score(m, m).subs(_stand_for(k, q)),
                q.dot(q),
            ),
            equal(
                r"To turn back by $m\theta$ and on by $n\theta$ is to turn by $(n - m)\theta$.",
                r"R_m^\top R_n - R_{n-m}",
                _turn(m * theta).T * _turn(n * theta) - _turn((n - m) * theta),
                zeros(2, 2),
            ),
            differ(
                r"The score does change with one of the places,",
                r"\partial/\partial m\; (R_m\mathbf{q})\cdot(R_n\mathbf{k})",
                sp.diff(score(m, n), m),
                0,
            ),
            equal(
                r"but not when both move by $t$.",
                r"\partial/\partial t\; (R_{m+t}\,\mathbf{q})\cdot(R_{n+t}\,\mathbf{k})",
                sp.diff(score(m + t, n + t), t),
                0,
            ),
            equal(
                r"The pairing *half* is the pairing *interleaved* with its coordinates "
                r"relabelled, which no dot product notices (two pairs, angles $\theta$ and "
                r"$\phi$).",
                r"P R_{\mathrm{half}} P^\top",
                relabel * half * relabel.T,
                diag(_turn(m * theta), _turn(m * phi)),
                right_tex=r"R_{\mathrm{interleaved}}",
            ),
            equal(
                r"All pairs add up, so the whole score is a function of $n - m$.",
                r"(R_m\mathbf{q})\cdot(R_n\mathbf{k})",
                score(m, n),
                q.dot(_turn((n - m) * theta) * k),
                right_tex=r"\mathbf{q}\cdot(R_{n-m}\,\mathbf{k})",
            ),
        ),
    )


# --- heads and cost (chapters 8 and 11) -----------------------------------------------------------


def one_mixture() -> Proof:
    """Prove what one head keeps of who said what, and what two heads keep. Chapter 8."""
    a, b = Symbol("a", positive=True), Symbol("b", positive=True)
    (u, v), rest = (_symbols(name, 1, 2) for name in "uv"), _symbols("r", 1, 2)
    (w, x), (p, q) = (_symbols(n, 1, 2) for n in "wx"), (_symbols(n, 1, 2) for n in "pq")
    W, first, second = (_symbols(name, 2, 2) for name in "mst")
    said, exchanged = a * u + b * v + rest, a * v + b * u + rest
    two, two_exchanged = u * first + v * second, v * first + u * second
    gap = r"\mathbf{o} - \mathbf{o}'"
    return Proof(
        r"One head with two equal weights cannot tell its two sources apart; two heads can, if "
        r"they write differently.",
        (
            let(
                r"One head gives two sources the weights $a$ and $b$; the rest adds up to "
                r"$\mathbf{r}$.",
                r"\mathbf{o}",
                said,
                right_tex=r"a\mathbf{u} + b\mathbf{v} + \mathbf{r}",
            ),
            equal(
                r"Exchange the two values and keep the weights. What moves is the product of two "
                r"differences.",
                gap,
                said - exchanged,
                (a - b) * (u - v),
                right_tex=r"(a - b)(\mathbf{u} - \mathbf{v})",
            ),
            differ(r"(With unequal weights it does move.)", gap, said - exchanged, zeros(1, 2)),
            equal(
                r"With equal weights, $b = a$, nothing moves, whatever the values are.",
                gap,
                said - exchanged,
                zeros(1, 2),
                where={b: a},
            ),
            equal(
                r"A place $\mathbf{p}$, $\mathbf{q}$ added to each word $\mathbf{w}$, $\mathbf{x}$ "
                r"does not help: the map to values is linear, and the sum is the same.",
                r"a(\mathbf{w} + \mathbf{p})W_V + a(\mathbf{x} + \mathbf{q})W_V",
                a * (w + p) * W + a * (x + q) * W,
                a * (x + p) * W + a * (w + q) * W,
                right_tex=r"a(\mathbf{x} + \mathbf{p})W_V + a(\mathbf{w} + \mathbf{q})W_V",
            ),
            let(
                r"Now two heads, one for each source, each with its own rows of $W_O$.",
                r"\mathbf{o}",
                two,
                right_tex=r"\mathbf{u}W^{(1)} + \mathbf{v}W^{(2)}",
            ),
            equal(
                r"If both write alike, $W^{(2)} = W^{(1)}$, the exchange is lost again.",
                gap,
                two - two_exchanged,
                zeros(1, 2),
                where=_stand_for(second, first),
            ),
            equal(
                r"In general it shows as far as they write differently.",
                gap,
                two - two_exchanged,
                (u - v) * (first - second),
                right_tex=r"(\mathbf{u} - \mathbf{v})(W^{(1)} - W^{(2)})",
            ),
        ),
    )


def first_layer() -> Proof:
    """Prove that no head of a first layer finds what follows the earlier copy. Chapter 8."""
    s, t = _symbols("s", 3), Symbol("t", real=True)
    first, second = _softmax(*s), _softmax(s[0], s[1], t)
    ratio = exp(s[0] - s[1])
    return Proof(
        r"No head of a first layer finds the place after the earlier copy.",
        (
            let(
                r"Two places may be the answer; the third key stands for all others.",
                r"\mathbf{a}",
                first,
                right_tex=r"\operatorname{softmax}(s_1, s_2, s_3)",
            ),
            equal(
                r"In a first layer the scores of the two places are made from three rows that both "
                r"texts share. So is the ratio of their weights,",
                r"a_1 / a_2",
                first[0] / first[1],
                ratio,
            ),
            equal(
                r"whatever the other keys have become in the second text.",
                r"a'_1 / a'_2",
                second[0] / second[1],
                ratio,
            ),
            differ(
                r"(The weights themselves do move: they depend on all keys.)",
                r"a'_1",
                second[0],
                first[0],
                right_tex="a_1",
            ),
            equal(
                r"If $a_1$ is at most $a_2$ it is at most ½: what is missing to ½ is half their "
                r"difference and half of all the rest. With the signs exchanged the same holds "
                r"for $a'_2$ in the second text.",
                r"\tfrac12 - a_1",
                Rational(1, 2) - first[0],
                (first[1] - first[0]) / 2 + first[2] / 2,
                right_tex=r"\tfrac12(a_2 - a_1) + \tfrac12 a_3",
            ),
        ),
    )


def head_parameters() -> Proof:
    """Count the parameters of h heads of width d / h, g of them with keys. Chapter 8."""
    d, h, g = (Symbol(name, integer=True, positive=True) for name in "dhg")
    width = d / h
    shared, total = d * g * width, 2 * d * h * width + 2 * d * g * width
    return Proof(
        r"With heads of width $d/h$ the number of parameters does not depend on $h$.",
        (
            let(r"The width is shared out among the heads.", r"d_k = d_v", width),
            equal(
                r"$W_Q$ has $h$ blocks of $d_k$ columns; $W_O$ as many rows.",
                r"d \cdot h \cdot d_k",
                d * h * width,
                d**2,
            ),
            equal(
                r"$W_K$ and $W_V$ have a block for each of $g$ key heads.",
                r"d \cdot g \cdot d_k",
                shared,
                d**2 * g / h,
            ),
            equal(
                r"All four together.",
                r"2\,d\,h\,d_k + 2\,d\,g\,d_k",
                total,
                2 * d**2 * (1 + g / h),
            ),
            differ(r"(Sharing keys and values does save some.)", "2d^2(1 + g/h)", total, 4 * d**2),
            equal(
                r"With keys and values for every head, $g = h$, no $h$ is left.",
                r"2d^2(1 + h/h)",
                total.subs(g, h),
                4 * d**2,
            ),
        ),
    )


def other_weights() -> Proof:
    """Prove when two rows of weights give one output, here for values in two dimensions.

    Returns
    -------
    Proof
        Chapter 12.
    """
    V, a, t = _symbols("v", 4, 2), _symbols("a", 4, positive=True), Symbol("t", real=True)
    M = Matrix.hstack(V, ones(4, 1))
    three, a3 = M[:3, :], a[:, :3]
    minors = [M.extract([i for i in range(4) if i != j], range(3)).det() for j in range(4)]
    z = _row(*((-1) ** j * minor for j, minor in enumerate(minors)))
    return Proof(
        r"With values in two dimensions and in general position, three keys have their weights "
        r"fixed by the output; four keys have other weights with the same output.",
        (
            let(
                r"Three keys first. The output and the sum of the weights are the weights times "
                r"this matrix.",
                r"[V, \mathbf{1}]",
                three,
            ),
            differ(
                r"Its determinant is not 0, unless the three values lie on one line.",
                r"\det [V, \mathbf{1}]",
                three.det(),
                0,
            ),
            equal(
                r"Then it has an inverse, which gives the weights back from the output.",
                r"[\mathbf{a} V, \mathbf{a} \mathbf{1}] [V, \mathbf{1}]^{-1}",
                (a3 * three) * three.inv(),
                a3,
                right_tex=r"\mathbf{a}",
            ),
            let(
                r"Now four keys: of each key, the determinant of the three others, with "
                r"alternating signs. The first of them:",
                r"z_1",
                z[0],
            ),
            differ(
                r"These four numbers are not all 0 in general.",
                r"\mathbf{z}",
                z,
                zeros(1, 4),
            ),
            equal(
                r"But they mix the values to nothing, and they sum to 0.",
                r"\mathbf{z} [V, \mathbf{1}]",
                z * M,
                zeros(1, 3),
            ),
            equal(
                r"So any multiple of them can be added to the weights: same output, same sum. If "
                r"the weights are positive and the multiple is small, they stay positive.",
                r"(\mathbf{a} + t \mathbf{z}) [V, \mathbf{1}]",
                (a + t * z) * M,
                a * M,
                right_tex=r"[\mathbf{a} V, \mathbf{a} \mathbf{1}]",
            ),
        ),
    )


def heads_sum() -> Proof:
    """Prove that concatenating heads and projecting equals a sum over heads. Chapter 8."""
    first, second, W = _symbols("a", 2, 2), _symbols("b", 2, 2), _symbols("w", 4, 3)
    joined = first.row_join(second) * W
    parts = [first[0, c] * W[c, 0] for c in range(2)], [second[0, c] * W[2 + c, 0] for c in (0, 1)]
    return Proof(
        r"To concatenate heads and project is to sum over heads: each has its own rows of $W_O$.",
        (
            let(r"Two heads, two tokens, $d_v$ = 2.", "[O_1, O_2]", first.row_join(second)),
            equal(
                r"An entry is a sum over the columns of all heads. Split it where the next head "
                r"begins.",
                r"([O_1, O_2] W_O)_{11}",
                joined[0, 0],
                sum(parts[0]) + sum(parts[1]),
            ),
            differ(
                r"(The rows belong to their head: exchanged, the result is another.)",
                r"O_1 W^{(2)} + O_2 W^{(1)}",
                first * W[2:, :] + second * W[:2, :],
                joined,
                right_tex=r"[O_1, O_2] W_O",
            ),
            equal(
                r"All entries together.",
                r"[O_1, O_2] W_O",
                joined,
                first * W[:2, :] + second * W[2:, :],
                right_tex=r"O_1 W^{(1)} + O_2 W^{(2)}",
            ),
        ),
    )


# --- the whole block (chapter 9) ------------------------------------------------------------------


def _centred(row: Matrix) -> tuple[Matrix, sp.Expr]:
    """Give a row less its mean, and its variance."""
    width = row.shape[1]
    away = row - ones(1, width) * sum(row) / width
    return away, away.dot(away) / width


def _layer_norm(row: Matrix, eps: sp.Expr) -> Matrix:
    """Give a token with mean 0 and variance 1 over its own features; eps keeps it finite."""
    away, variance = _centred(row)
    return away / sqrt(variance + eps)


def _gelu(x: sp.Expr) -> sp.Expr:
    """Give x Φ(x)."""
    return x * (1 + sp.erf(x / sqrt(2))) / 2


def norm_forgets() -> Proof:
    """Prove that a layer norm forgets the size and the mean of a token. Chapter 9."""
    x, c, b = _symbols("x", 3), Symbol("c", positive=True), Symbol("b", real=True)
    away, variance = _centred(x)
    moved, wider = _centred(c * x + b * ones(1, 3))
    z, v = _symbols("z", 3), Symbol("v", positive=True)
    return Proof(
        r"A layer norm gives $\mathbf{x}$ and $c\mathbf{x} + b$ with $c > 0$ one answer, of length "
        r"$\sqrt d$ ($d$ = 3; $\epsilon$ = 0).",
        (
            equal(
                r"A shift of all features moves their mean by as much, a factor multiplies it.",
                r"c\mathbf{x} + b - \operatorname{mean}",
                moved,
                c * away,
                right_tex=r"c\,(\mathbf{x} - \operatorname{mean})",
            ),
            equal(
                r"So the variance takes the factor twice.",
                r"\operatorname{var}(c\mathbf{x} + b)",
                wider,
                c**2 * variance,
                right_tex=r"c^2\operatorname{var}(\mathbf{x})",
            ),
            equal(
                r"Write $\mathbf{z}$ for what is left of $\mathbf{x}$ and $v$ for its variance. "
                r"The factor cancels.",
                r"\operatorname{LN}(c\mathbf{x} + b)",
                c * z / sqrt(c**2 * v),
                z / sqrt(v),
                right_tex=r"\operatorname{LN}(\mathbf{x})",
            ),
            differ(
                r"(With a root mean square in place of the deviation a shift would show.)",
                r"(\mathbf{x} + b) / \operatorname{rms}(\mathbf{x} + b)",
                (x + b * ones(1, 3)) / sqrt((x + b * ones(1, 3)).dot(x + b * ones(1, 3)) / 3),
                x / sqrt(x.dot(x) / 3),
                right_tex=r"\mathbf{x} / \operatorname{rms}(\mathbf{x})",
            ),
            equal(
                r"The squares of what is left sum to $d$ variances; each is divided by one.",
                r"\operatorname{LN}(\mathbf{x})\operatorname{LN}(\mathbf{x})^\top",
                away.dot(away) / variance,
                3,
            ),
        ),
    )


def tokens_alone() -> Proof:
    """Prove that in a block only attention takes anything from one token to another.

    Returns
    -------
    Proof
        Chapter 9.
    """
    X, eps = _symbols("x", 2, 2), Symbol("epsilon", positive=True)
    W_1, W_2, W_V = _symbols("u", 2).T, _symbols("w", 2), _symbols("v", 2, 2)
    other = X[1, :].T

    def part(row: Matrix) -> Matrix:
        """Give the feed-forward part of one token."""
        return (_layer_norm(row, eps) * W_1).applyfunc(_gelu) * W_2

    def block(weights: Matrix) -> Matrix:
        """Give the first token after a pre-norm block whose weights are given."""
        read = Matrix.vstack(*(_layer_norm(X[i, :], eps) for i in range(2)))
        middle = X[0, :] + weights * read * W_V
        return middle + part(middle)

    a = Symbol("a", positive=True)
    mixed = block(_row(1 - a, a)).jacobian(other)
    return Proof(
        r"In a block a token learns of another through the weights of attention alone (two tokens, "
        r"two features, one hidden unit, any maps).",
        (
            equal(
                r"A layer norm takes mean and variance of one token: the other does not occur.",
                r"\partial\operatorname{LN}(\mathbf{x}_1) / \partial\mathbf{x}_2",
                _layer_norm(X[0, :], eps).jacobian(other),
                zeros(2, 2),
            ),
            equal(
                r"Nor in the feed-forward part, and what is added is the token's own row.",
                r"\partial(\mathbf{x}_1 + \operatorname{FF}(\operatorname{LN}(\mathbf{x}_1))) / "
                r"\partial\mathbf{x}_2",
                (X[0, :] + part(X[0, :])).jacobian(other),
                zeros(2, 2),
            ),
            differ(
                r"With a weight $a$ on the other token it does occur.",
                r"\partial\mathbf{y}_1 / \partial\mathbf{x}_2",
                mixed,
                zeros(2, 2),
            ),
            equal(
                r"Put that weight to 0 and leave all else: whatever one token knew of the other is "
                r"gone.",
                r"[\partial\mathbf{y}_1 / \partial\mathbf{x}_2]_{a = 0}",
                mixed.subs(a, 0),
                zeros(2, 2),
            ),
        ),
    )


def spread_shrinks() -> Proof:
    """Prove that averaging brings tokens closer, by the share two rows of weights have in common.

    Returns
    -------
    Proof
        Chapter 9.
    """
    shared, p, r = (_symbols(name, 3, nonnegative=True) for name in "cpr")
    n, g = _symbols("n", 3, nonnegative=True), _symbols("g", 3, nonnegative=True)
    y, low, high = _symbols("y", 3), Symbol("m", real=True), Symbol("M", real=True)
    delta = Symbol("delta", nonnegative=True)
    one = {p[2]: delta - p[0] - p[1], n[2]: delta - n[0] - n[1]}
    excess = p.dot(high * ones(1, 3) - y) + n.dot(y - low * ones(1, 3))
    return Proof(
        r"Two averages of the same numbers differ by at most $\delta$ times the spread of the "
        r"numbers, where $1 - \delta$ is what their weights have in common (three keys).",
        (
            let(
                r"Take out what two rows of weights have in common, $c_j = \min(a_j, b_j)$. This "
                r"is left of the one,",
                r"\mathbf{a}",
                shared + p,
            ),
            let(r"and this of the other.", r"\mathbf{b}", shared + n),
            equal(
                r"What is common cancels.",
                r"\sum_j a_j y_j - \sum_j b_j y_j",
                (shared + p).dot(y) - (shared + n).dot(y),
                (p - n).dot(y),
            ),
            equal(
                r"Both rows sum to 1, so the rests sum to the same $\delta$. Let $y_j$ lie between "
                r"$m$ and $M$: what is missing to $\delta(M - m)$ is",
                r"\delta(M - m) - \sum_j (p_j - n_j) y_j",
                delta * (high - low) - (p - n).dot(y),
                excess,
                where=one,
            ),
            at_least(
                r"With $g_j = M - y_j$ and $r_j = y_j - m$, both not negative, that is not "
                r"negative.",
                r"\sum_j (p_j g_j + n_j r_j)",
                p.dot(g) + n.dot(r),
                0,
            ),
        ),
    )


def equal_tokens() -> Proof:
    """Prove that attention alone, given equal tokens, computes a linear map of the token.

    Returns
    -------
    Proof
        Chapter 9.
    """
    x, a = _symbols("x", 2), _symbols("a", 3, positive=True)
    first, second, w = _symbols("v", 2, 2), _symbols("w", 2, 2), _symbols("u", 2).T
    values = Matrix.vstack(*[x * first] * 3)
    b = Symbol("b", real=True)

    def both(f: Callable[[sp.Expr, sp.Expr], sp.Expr]) -> sp.Expr:
        """Add a function at two opposite corners of the square, less it at the other two."""
        return sp.expand(f(0, 0) + f(1, 1) - f(0, 1) - f(1, 0))

    half = Rational(1, 2)
    return Proof(
        r"Among equal tokens a stack of attention, with residuals and without norm or feed-forward "
        r"part, is linear in the token, and no threshold of it is the exclusive or.",
        (
            equal(
                r"Averages of equal values are that value, whatever the weights. $V$ stands for "
                r"$W_V W_O$.",
                r"\sum_j a_j\,\mathbf{x}V",
                a * values,
                x * first,
                right_tex=r"\mathbf{x}V",
                where={a[2]: 1 - a[0] - a[1]},
            ),
            equal(
                r"So a layer with its residual is a matrix, and two are their product.",
                r"(\mathbf{x} + \mathbf{x}V) + (\mathbf{x} + \mathbf{x}V)W",
                (x + x * first) + (x + x * first) * second,
                x * ((eye(2) + first) * (eye(2) + second)),
                right_tex=r"\mathbf{x}(I + V)(I + W)",
            ),
            differ(
                r"A feed-forward part is not bound by what follows: take one hidden unit.",
                r"f(0,0) + f(1,1) - f(0,1) - f(1,0)",
                both(lambda p, q: _gelu(p + q - half)),
                0,
            ),
            equal(
                r"A linear map and a bias give a logit that sums to the same over opposite "
                r"corners. The exclusive or wants it negative at (0,0) and (1,1), positive at the "
                r"others: that cannot be.",
                r"f(0,0) + f(1,1) - f(0,1) - f(1,0)",
                both(lambda p, q: (_row(p, q) * w)[0] + b),
                0,
            ),
        ),
    )


# --- what attention costs (chapter 11) ------------------------------------------------------------


def layer_crossings() -> Proof:
    """Prove at which length scores and mixing cost as much as the rest of a layer. Chapter 11."""
    n, d, b, f, h = sp.symbols("n d b f h", positive=True)
    quadratic, projections, feed_forward = 2 * n**2 * b, 4 * n * d * b, 2 * n * d * f
    return Proof(
        r"Scores and mixing cost what the projections cost at $n = 2d$, and what projections and "
        r"feed-forward part cost together at $n = 6d$.",
        (
            equal(
                r"A product of $n \times d$ and $d \times b$ takes $ndb$ multiply-adds. Queries, "
                r"keys, values and the way back are four such products; $b$ is the width of all "
                r"heads together.",
                "3 n d b + n b d",
                3 * n * d * b + n * b * d,
                projections,
            ),
            equal(
                r"Each of $h$ heads has width $b/h$, and compares and mixes $n$ rows with $n$ "
                r"rows: the number of heads cancels.",
                r"h \cdot 2 n (b/h) n",
                h * 2 * n * (b / h) * n,
                quadratic,
            ),
            equal(
                r"Their difference changes its sign once, at $n = 2d$, whatever $b$ is.",
                "2 n^2 b - 4 n d b",
                quadratic - projections,
                2 * n * b * (n - 2 * d),
            ),
            equal(
                r"If a causal layer leaves out what it may not read, $n(n + 1)/2$ pairs remain, "
                r"and it takes $n = 4d - 1$.",
                "n (n + 1) b",
                n * (n + 1) * b,
                projections,
                where={n: 4 * d - 1},
                right_tex="4 n d b",
            ),
            equal(
                r"A feed-forward part of inner width $f$ adds two products: then it takes "
                r"$n = 2d + df/b$.",
                "2 n^2 b",
                quadratic,
                projections + feed_forward,
                where={n: 2 * d + d * f / b},
            ),
            equal(
                r"With the usual $b = d$ and $f = 4d$ that is $6d$.",
                "2 n^2 d",
                quadratic,
                projections + feed_forward,
                where={b: d, f: 4 * d, n: 6 * d},
                right_tex="4 n d^2 + 8 n d^2",
            ),
        ),
    )


def generation_sums() -> Proof:
    """Prove what writing n tokens costs a layer, with a cache and without. Chapter 11."""
    n, t = sp.symbols("n t", integer=True, positive=True)
    d = Symbol("d", positive=True)
    step, whole = 4 * d**2 + 2 * t * d, 4 * t * d**2 + 2 * t**2 * d
    cached, again = (sp.summation(cost, (t, 1, n)) for cost in (step, whole))
    return Proof(
        r"Without a cache, writing $n$ tokens costs a layer a power of $n$ more.",
        (
            let(r"With a cache token $t$ is projected alone and reads $t$ keys.", "c_t", step),
            equal(
                r"Sum over the tokens.",
                r"\sum_{t=1}^n c_t",
                cached,
                4 * n * d**2 + n * (n + 1) * d,
            ),
            let(r"Without one all $t$ tokens run through the layer again.", "r_t", whole),
            equal(
                r"Sum again, with the sum of the squares.",
                r"\sum_{t=1}^n r_t",
                again,
                2 * n * (n + 1) * d**2 + n * (n + 1) * (2 * n + 1) * d / 3,
            ),
            equal(
                r"For long texts the second is $2n/3$ times the first.",
                r"\lim_{n \to \infty} \sum_t r_t / (n \sum_t c_t)",
                sp.limit(again / (n * cached), n, sp.oo),
                Rational(2, 3),
            ),
        ),
    )


def window_reach() -> Proof:
    """Prove how far a window reaches through L layers, for w = 3 and seven tokens. Chapter 11."""
    x = Symbol("x", positive=True)
    w, n, layers = 3, 7, 3
    carried = sum(x**k for k in range(w))
    band = Matrix(n, n, lambda i, j: 1 if 0 <= i - j < w else 0)
    places = sp.Poly(carried**layers, x)
    return Proof(
        r"Through $L$ layers a window of $w$ keys reaches $L(w - 1)$ places back, and no further.",
        (
            let(
                r"A layer carries information 0 to $w - 1$ places. Let powers of $x$ count places.",
                "p",
                carried,
            ),
            equal(
                r"The ways from the first token to the last through $L$ layers are an entry of a "
                r"power of the mask; they are the ways to make $n - 1$ places of $L$ steps, a "
                r"coefficient of $p^L$.",
                r"(M^3)_{71}",
                (band**layers)[n - 1, 0],
                places.coeff_monomial(x ** (n - 1)),
                right_tex=r"[x^6]\, p^3",
            ),
            equal(
                r"One layer fewer, and there is no way.",
                r"(M^2)_{71}",
                (band ** (layers - 1))[n - 1, 0],
                0,
            ),
            equal(
                r"For the highest powers multiply: the longest way has $L(w - 1)$ places, and with "
                r"positive coefficients every shorter one occurs.",
                r"\operatorname{degree} p^3",
                sp.Integer(places.degree()),
                layers * (w - 1),
                right_tex=r"3 \cdot (3 - 1)",
            ),
        ),
    )


def data_moved() -> Proof:
    """Prove how much less tiled attention moves between a slow and a fast memory. Chapter 11."""
    n, d, rows = sp.symbols("n d B", positive=True)
    scores, softmax, mixing = 2 * n * d + n**2, 2 * n**2, n**2 + 2 * n * d
    plain, tiled = 4 * n**2 + 4 * n * d, 2 * n * d + 2 * n**2 * d / rows
    return Proof(
        r"For long texts, tiles of $B$ queries move $2B/d$ times less than plain attention.",
        (
            equal(
                r"Plain: read $Q$ and $K$, write $S$; read $S$, write $A$; read $A$ and $V$, "
                r"write $O$.",
                r"(2nd + n^2) + 2n^2 + (n^2 + 2nd)",
                scores + softmax + mixing,
                plain,
            ),
            equal(
                r"Tiled: read $Q$ and write $O$ once, read $K$ and $V$ once for each of $n/B$ rows "
                r"of tiles.",
                r"2nd + (n/B) \cdot 2nd",
                2 * n * d + n / rows * 2 * n * d,
                tiled,
            ),
            equal(
                r"Tiles only half as tall as a head is wide save next to nothing,",
                "2nd + 2n^2 d / B",
                tiled,
                plain - 2 * n * d,
                where={rows: d / 2},
            ),
            equal(
                r"and taller ones save in proportion.",
                r"\lim_{n \to \infty} (4n^2 + 4nd) / (2nd + 2n^2 d / B)",
                sp.limit(plain / tiled, n, sp.oo),
                2 * rows / d,
            ),
        ),
    )


def linear_attention() -> Proof:
    """Prove that linear attention may sum up its keys first, and read a running sum. Chapter 11."""
    F, G = (_symbols(name, 3, 2, positive=True) for name in "fg")
    V, ahead = _symbols("v", 3, 2), Matrix(3, 3, lambda i, j: 1 if j <= i else 0)
    seen = (F * G.T).multiply_elementwise(ahead)
    shares = F * G.T[:, 0] / (F * G.T * ones(3, 1))[0]
    memory = [sum((G[j, :].T * V[j, :] for j in range(i + 1)), zeros(2, 2)) for i in range(3)]
    return Proof(
        r"With weights in proportion to $\phi(\mathbf{q}) \cdot \phi(\mathbf{k})$ the past fits "
        r"into a matrix that does not grow.",
        (
            let(r"Three keys with two positive features each.", r"\phi(K)", G),
            at_least(r"A share is positive.", "a_{11}", shares[0], 0),
            equal(
                r"Shares sum to 1: divide by the query times the sum of all keys.",
                r"\sum_j \phi(q_1) \cdot \phi(k_j)",
                sum((F * G.T)[0, :]),
                (F * (G.T * ones(3, 1)))[0],
                right_tex=r"\phi(q_1) \cdot \sum_j \phi(k_j)",
            ),
            equal(
                r"Matrix products associate, so keys and values can be multiplied first.",
                r"(\phi(Q) \phi(K)^\top) V",
                F * G.T * V,
                F * (G.T * V),
                right_tex=r"\phi(Q) (\phi(K)^\top V)",
            ),
            differ(
                r"(Not through a mask: the causal numerator is not this product.)",
                r"(M \circ \phi(Q) \phi(K)^\top) V",
                seen * V,
                F * (G.T * V),
                right_tex=r"\phi(Q) (\phi(K)^\top V)",
            ),
            equal(
                r"But row $i$ of it needs only the sum up to $i$, which grows by one term for each "
                r"token.",
                r"(M \circ \phi(Q) \phi(K)^\top) V",
                seen * V,
                Matrix.vstack(*(F[i, :] * memory[i] for i in range(3))),
                right_tex=r"[\phi(q_i) \cdot \sum_{j \le i} \phi(k_j) v_j]",
            ),
        ),
    )


def no_finite_features() -> Proof:
    """Prove that no number of features gives softmax weights at every length. Chapter 11."""
    F, G = _symbols("f", 3, 2), _symbols("g", 3, 2)
    powers = Matrix(3, 3, lambda i, j: exp(i * j))
    sums = diag(*(sum(powers[i, :]) for i in range(3)))
    e = sp.E
    return Proof(
        r"Weights $\phi(\mathbf{q}) \cdot \phi(\mathbf{k})$ with $r$ features are not those of "
        r"softmax for $r + 1$ tokens, whatever $\phi$ is.",
        (
            let(r"Queries and keys of width 1: 0, 1, 2. The powers $e^{q k}$ are", "E", powers),
            equal(
                r"a Vandermonde matrix, with the determinant",
                r"\operatorname{det} E",
                powers.det(),
                (e - 1) * (e**2 - 1) * (e**2 - e),
            ),
            equal(
                r"To normalise rows divides it by positive numbers,",
                r"\operatorname{det} A",
                (sums.inv() * powers).det(),
                powers.det() / sums.det(),
            ),
            differ(
                r"so the weights of softmax have full rank.",
                r"\operatorname{det} A",
                (sums.inv() * powers).det(),
                0,
            ),
            equal(
                r"With two features the matrix has rank 2 at most: it is another one.",
                r"\operatorname{det} (\phi(Q) \phi(K)^\top)",
                (F * G.T).det(),
                0,
            ),
        ),
    )


def heads_mean() -> Proof:
    """Prove what the mean weights of several heads leave out. Chapter 13."""
    A, U = [_symbols(name, 2, 2) for name in "abc"], [_symbols(name, 2, 1) for name in "uvw"]
    mean_A, mean_U = sum(A[1:], A[0]) / 3, sum(U[1:], U[0]) / 3
    whole = sum((B * V for B, V in zip(A[1:], U[1:], strict=True)), A[0] * U[0])
    rest = zeros(2, 1)
    for B, V in zip(A, U, strict=True):
        rest += (B - mean_A) * (V - mean_U)
    exchanged = A[1] * U[0] + A[0] * U[1] + A[2] * U[2]
    return Proof(
        r"Mean weights times mean values, and a covariance over heads, make what a layer writes.",
        (
            let(
                r"Three heads, two tokens, written values of one coordinate. The mean weights:",
                r"\bar{A}",
                mean_A,
            ),
            differ(
                r"Two heads exchange their weights. The mean is the same, and the sum is not.",
                r"A_2 U_1 + A_1 U_2 + A_3 U_3",
                exchanged,
                whole,
                right_tex=r"A_1 U_1 + A_2 U_2 + A_3 U_3",
            ),
            differ(
                r"So the mean weights, with the mean values, cannot give the sum.",
                r"3\, \bar{A}\, \bar{U}",
                3 * mean_A * mean_U,
                whole,
                right_tex=r"A_1 U_1 + A_2 U_2 + A_3 U_3",
            ),
            equal(
                r"What is missing is how weights and values vary together over the heads.",
                r"A_1 U_1 + A_2 U_2 + A_3 U_3",
                whole,
                3 * mean_A * mean_U + rest,
                right_tex=r"3\, \bar{A}\, \bar{U} + \sum_r (A_r - \bar{A})(U_r - \bar{U})",
            ),
        ),
    )


def merge(a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Join two states (m, l, u) of an online softmax: reference, normaliser, weighted sum."""
    (m_a, l_a, u_a), (m_b, l_b, u_b) = a, b
    m = sp.Max(m_a, m_b)
    down_a, down_b = exp(m_a - m), exp(m_b - m)
    return m, down_a * l_a + down_b * l_b, down_a * u_a + down_b * u_b


def online_softmax() -> Proof:
    """Prove that merging tiles is exact, and that the order of merging is free. Chapter 11."""
    s, v, m = _symbols("s", 4), _symbols("v", 4), _symbols("m", 3)
    l, u = _symbols("l", 3, positive=True), _symbols("u", 3)

    def tile(keys: Sequence[int], reference: sp.Expr) -> tuple[sp.Expr, ...]:
        powers = [exp(s[j] - reference) for j in keys]
        return reference, sum(powers), sum(p * v[j] for p, j in zip(powers, keys, strict=True))

    both = merge(tile([0, 1], m[0]), tile([2, 3], m[1]))
    whole = tile(range(4), both[0])
    x, y, z = ((m[i], l[i], u[i]) for i in range(3))
    empty = merge((m[0], sp.Integer(0), sp.Integer(0)), y)
    return Proof(
        r"Merging tiles gives exactly the softmax average over all keys, in any order of merging.",
        (
            let(
                r"A tile keeps a reference $m$ (its largest score, though any number is right), "
                r"the sum $l$ of $e^{s-m}$, and the same sum $u$ weighted by the values.",
                "(m, l, u)",
                _row(*tile([0, 1], m[0])),
            ),
            equal(
                r"Merged, $m$ is the larger reference. The factor $e^{m_1 - m}$ makes of a sum "
                r"against $m_1$ one against $m$: the normaliser is that of all four keys,",
                r"e^{m_1 - m} l_1 + e^{m_2 - m} l_2",
                both[1],
                whole[1],
                right_tex=r"\sum_j e^{s_j - m}",
            ),
            equal(
                r"and the weighted sum as well.",
                r"e^{m_1 - m} u_1 + e^{m_2 - m} u_2",
                both[2],
                whole[2],
                right_tex=r"\sum_j e^{s_j - m} v_j",
            ),
            equal(
                r"A tile where nothing is allowed has $l = u = 0$ and leaves the other's average "
                r"alone.",
                r"u / l",
                empty[2] / empty[1],
                u[1] / l[1],
            ),
            equal(
                r"Three tiles may be merged from the left or from the right.",
                r"(x \circ y) \circ z",
                _row(*merge(merge(x, y), z)),
                _row(*merge(x, merge(y, z))),
                right_tex=r"x \circ (y \circ z)",
            ),
            equal(
                r"In the quotient the reference cancels.",
                r"u / l",
                both[2] / both[1],
                _softmax(*s).dot(v),
                right_tex=r"\sum_j \operatorname{softmax}(\mathbf{s})_j v_j",
            ),
        ),
    )


PROOFS: tuple[Callable[[], Proof], ...] = (
    score_variance,
    score_variance_by_expansion,
    score_variance_with_means,
    tied_weights,
    tied_weights_two_tokens,
    random_sign,
    variance_given_the_query,
    variance_over_the_weights,
    convex_hull,
    softmax_shift,
    softmax_jacobian,
    jacobian_limits,
    jacobian_norm,
    median_and_mean,
    undivided,
    temperature_limits,
    masked_softmax,
    cut_key,
    gaussian_kernel,
    own_score_is_largest,
    only_products_matter,
    score_rank,
    tied_keys_and_values,
    query_gradient,
    backward_pass,
    nothing_to_match,
    permuted_softmax,
    equivariance,
    symmetric_bias,
    duplication,
    causal_derivatives,
    causal_order,
    source_order,
    sinusoid_rotation,
    rope_offset,
    one_mixture,
    other_weights,
    first_layer,
    heads_sum,
    norm_forgets,
    tokens_alone,
    spread_shrinks,
    equal_tokens,
    heads_mean,
    head_parameters,
    layer_crossings,
    generation_sums,
    window_reach,
    data_moved,
    linear_attention,
    no_finite_features,
    online_softmax,
)
