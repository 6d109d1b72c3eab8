"""Count the multiply-adds and exponentials that numpy really does."""

import contextlib

import numpy as np


class Counted(np.ndarray):
    """An array that books every matrix product and exponential it takes part in."""

    books = {"multiply_adds": 0, "exponentials": 0}  # noqa: RUF012 (one set of books for all)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inputs = [bare(x) for x in inputs]
        if "out" in options:
            options["out"] = tuple(bare(x) for x in options["out"])
        if "where" in options:
            options["where"] = bare(options["where"])
        result = getattr(ufunc, method)(*inputs, **options)
        if ufunc is np.matmul:
            self.books["multiply_adds"] += result.size * inputs[0].shape[-1]
        if ufunc is np.exp:
            self.books["exponentials"] += result.size
        return result.view(Counted) if isinstance(result, np.ndarray) else result


def bare(x):
    return x.view(np.ndarray) if isinstance(x, Counted) else x


@contextlib.contextmanager
def counting(monkeypatch):
    """Yield fresh books; meanwhile ``np.asarray`` and ``np.where`` leave arrays counted."""
    asarray, where = np.asarray, np.where

    def counted_asarray(a, *args, **options):
        return a if isinstance(a, Counted) else asarray(a, *args, **options)

    def counted_where(condition, *choices):
        result = where(condition, *choices)
        return result.view(Counted) if any(isinstance(c, Counted) for c in choices) else result

    Counted.books.update(dict.fromkeys(Counted.books, 0))
    with monkeypatch.context() as patch:
        patch.setattr(np, "asarray", counted_asarray)
        patch.setattr(np, "where", counted_where)
        yield Counted.books
