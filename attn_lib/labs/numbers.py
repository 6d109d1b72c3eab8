"""How numbers are written in a sentence, the same as js/numbers.js."""

from __future__ import annotations

from attn_lib.words import minus

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def significant(value: float) -> str:
    """Write three significant figures: 0.5, 12.6, 1340."""
    return minus(f"{float(f'{value:.3g}'):.12g}")


def scientific(value: float) -> str:
    """Write a large or small number with a power of ten: 1.72 × 10¹⁰; others as they are."""
    if value == 0 or 1e-3 <= abs(value) < 99999.5:
        return significant(value)
    digits, exponent = f"{value:.2e}".split("e")
    return f"{minus(digits)} × 10{str(int(exponent)).translate(_RAISED)}"


def byte_size(count: float) -> str:
    """Write a number of bytes with a decimal unit: 268 MB."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * size:
            return f"{significant(count / size)} {unit}"
    return f"{significant(count)} B"
