"""What proofs are made of: steps that sympy checks, how they are printed, and small parts.

Where a theorem is about every n, its algebra is checked for a named small n whose symbols stand
for any numbers, and the reason says why the size does not matter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sympy as sp
from sympy import Matrix, Rational, Symbol, cos, exp, sin, sqrt


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
            return any(sample_value(gap) != 0 for gap in gaps)
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


def equal(reason: str, tex: str, left: sp.Basic, right: object, **how: Any) -> Step:
    """Say that both sides are equal for all values of the symbols."""
    return Step(reason, _sympify(left), _sympify(right), "=", tex, **how)


def differ(reason: str, tex: str, left: sp.Basic, right: object, **how: Any) -> Step:
    """Say that the sides are not always equal: one point where they differ is computed."""
    return Step(reason, _sympify(left), _sympify(right), "≠", tex, **how)


def at_least(reason: str, tex: str, left: sp.Basic, right: object, **how: Any) -> Step:
    """Say that left − right is never negative, by the signs of its factors and terms."""
    return Step(reason, _sympify(left), _sympify(right), "≥", tex, **how)


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
    if sample_value(expression) != 0:
        return False
    numerator = sp.numer(sp.together(expression.rewrite(exp)))  # a cosine is two powers of e
    return sp.expand(sp.powsimp(sp.expand(numerator))) == 0 or sp.simplify(expression) == 0


def _never_negative(expression: sp.Expr) -> bool:
    """Whether an expression is ≥ 0 by the signs of its terms, or else of its factors."""
    return bool(expression.is_nonnegative or sp.factor(expression).is_nonnegative)


def sample_value(expression: sp.Expr) -> sp.Expr:
    """Evaluate at one point of no special kind; 0 stands for zero to 40 digits."""
    unknowns = sorted(expression.free_symbols, key=str)
    point = {
        x: sp.Integer(i + 2) if x.is_integer else sp.Float(7 * i + 3, 60) / (7 * i + 11)
        for i, x in enumerate(unknowns)
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
    rules: list[tuple[str, Any]] = [
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
    ]
    for pattern, text in rules:
        tex = re.sub(pattern, text, tex)
    return tex


def row(*entries: object) -> Matrix:
    """Give a matrix of one row."""
    return Matrix([entries])


def symbols(name: str, *shape: int, **assumptions: bool) -> Matrix:
    """Give a matrix of real symbols: x_1, x_2, … for one size, x_11, x_12, … for two."""
    assumptions = {"real": True} | assumptions
    if len(shape) == 1:
        return row(*(Symbol(f"{name}_{j + 1}", **assumptions) for j in range(shape[0])))
    return Matrix(*shape, lambda i, j: Symbol(f"{name}_{i + 1}{j + 1}", **assumptions))


def stand_for(unknowns: Matrix, values: Matrix) -> dict:
    """Say which value each symbol stands for."""
    return dict(zip(unknowns, values, strict=True))


def softmax(*scores: sp.Expr) -> Matrix:
    """Give the weights of one row of scores."""
    return softmax_rows(row(*scores))


def softmax_rows(S: Matrix) -> Matrix:
    """Give the softmax of each row, written out. An entry of −∞ gets 0."""
    powers = sp.Matrix(S).applyfunc(exp)
    return Matrix(*S.shape, lambda i, j: powers[i, j] / sum(powers[i, :]))


def variance_under(weights: Matrix, numbers: Matrix) -> sp.Expr:
    """Give the variance of numbers under weights that sum to 1."""
    return weights.dot(numbers.applyfunc(lambda x: x**2)) - weights.dot(numbers) ** 2


def permutation(order: Sequence[int]) -> Matrix:
    """Give P with P[i, ρ(i)] = 1: row i of PX is row ρ(i) of X."""
    return Matrix(len(order), len(order), lambda i, j: 1 if order[i] == j else 0)


def limits(M: Matrix, x: Symbol, to: object, side: str = "-") -> Matrix:
    """Take the limit of each entry."""
    return M.applyfunc(lambda entry: sp.limit(entry, x, to, side))


def rotation(angle: sp.Expr) -> Matrix:
    """Give the rotation of a column by an angle."""
    return Matrix([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])


def attend(
    X: Matrix, W_Q: Matrix, W_K: Matrix, W_V: Matrix, *, bias: Matrix | None = None
) -> Matrix:
    """Give the output of one layer, written out in symbols."""
    scores = X * W_Q * (X * W_K).T / sqrt(sp.Integer(W_K.shape[1]))
    scores = scores.applyfunc(sp.expand)
    return softmax_rows(scores if bias is None else scores + bias) * (X * W_V)


def two_layers() -> list[list[Matrix]]:
    """Give W_Q, W_K, W_V of two layers for tokens of one feature: one number each."""
    first, second = symbols("w", 3), symbols("u", 3)
    return [[row(w) for w in weights] for weights in (first, second)]


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
    No distribution is named: nothing but moments is used.
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
