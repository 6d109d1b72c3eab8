"""How numbers are written in sentences, tables and figures: the same in all of them."""


def minus(text: str) -> str:
    """Write a true minus sign for each hyphen in a number."""
    return text.replace("-", "−")


def fixed(value: float, decimals: int = 2) -> str:
    """Write a number with a fixed number of decimals; one that rounds to nothing has no sign."""
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else minus(text)
