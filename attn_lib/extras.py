"""What to install where a part of the library needs more than numpy."""


def missing(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """Name the extra that brings a missing package.

    Parameters
    ----------
    error : ModuleNotFoundError
        What Python says.
    extra : str
        ``"labs"``, ``"book"`` or ``"minilm"``.

    Returns
    -------
    ModuleNotFoundError
        An error to raise, whose message says what to install.
    """
    return ModuleNotFoundError(f"{error.msg}: pip install 'attn_lib[{extra}]'", name=error.name)
