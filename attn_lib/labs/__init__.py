"""The labs: interactive figures that compute attention as you move something.

In Jupyter a lab is an ipywidget. In a built page, with no kernel, the same front end computes the
same numbers. Each lab has a folder: its class, its figure, its front end, its data. ``js/`` holds
what their front ends share, ``static/`` what is bundled from them.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from attn_lib.extras import missing

try:
    import anywidget  # noqa: F401
    import matplotlib  # noqa: F401
except ModuleNotFoundError as error:
    raise missing(error, "labs") from None

from attn_lib.labs.base import Lab, overview

# Every package in this folder is a lab: to copy one is to make one.
for _found in iter_modules(__path__, f"{__name__}."):
    if _found.ispkg:
        import_module(_found.name)

_labs = {lab.__name__: lab for lab in Lab.__subclasses__()}
globals().update(_labs)
__all__ = [*sorted(_labs), "overview"]

if TYPE_CHECKING:  # names that only a running Python knows

    def __getattr__(name: str) -> Any: ...
