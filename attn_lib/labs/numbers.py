"""How numbers are written in a sentence, the same as js/numbers.js."""

from __future__ import annotations

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def significant(value: float) -> str:
    """Write three significant figures: 0.5, 12.6, 1340."""
    return f"{float(f'{value:.3g}'):.12g}".replace("-", "−")


def scientific(value: float) -> str:
    """Write a large or small number with a power of ten: 1.72 × 10¹⁰; others as they are."""
    if value == 0 or 1e-3 <= abs(value) < 99999.5:
        return significant(value)
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits.replace('-', '−')} × 10{str(int(exponent)).translate(_RAISED)}"
