"""What every lab shares: the front end, the picture for pages without a script, saving, links."""

from __future__ import annotations

import base64
import difflib
import html
import inspect
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib.dot_product import AttentionResult
from attn_lib.examples import Scene
from attn_lib.labs.traits import one_of

STATIC = Path(__file__).parent / "static"
HEIGHTS = Path(__file__).parent / "heights.json"  # measured by tests/browser/heights.py
UNMEASURED = [{"px": [700, 1400]}]

# What `save` writes: one file, nothing beside it.
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}
:root {{ color-scheme: light dark }}
body {{ margin: 1rem; display: grid; justify-content: center }}
.attn-lab {{ inline-size: min(60rem, 100vw - 2rem); margin: 0 }}</style>
<main><h1 class="attn-sr">{title}</h1>{lab}</main>
<script>{script}</script>
</html>
"""


class Lab(anywidget.AnyWidget):
    """A lab: traits that Python and the reader both move, and one front end that draws them.

    A subclass names its state in `settings`, checks it, and says what it shows in `describe` and
    `figure`. Every lab also takes `controls` and `panels`, lists of names that say what of it is
    seen at once (the rest is behind *More*), and `ask`, the name of a question that the reader
    answers before the lab does: `all_controls`, `all_panels` and `asks` list what there is.
    """

    _esm = STATIC / "labs.mjs"
    _css = STATIC / "labs.css"

    settings: tuple[str, ...] = ()
    # What the front end has, and what of it is seen at once; the rest is behind More.
    all_controls: tuple[str, ...] = ()
    all_panels: tuple[str, ...] = ()
    first_controls: tuple[str, ...] = ()
    first_panels: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()  # the questions that it can ask before it answers

    controls: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
    panels: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
    ask = traitlets.Unicode().tag(sync=True)
    kind = traitlets.Unicode(read_only=True).tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    name = traitlets.Unicode(help="HTML id of the lab in a page, and its name in a link")

    def __init__(self, **state: Any) -> None:
        for key in state:
            if not self.has_trait(key):
                names = [*self.settings, "controls", "panels", "ask", "name", "title"]
                near = difflib.get_close_matches(key, names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f": it has {', '.join(names)}"
                raise TypeError(f"{type(self).__name__} has no setting {key!r}{hint}")
        super().__init__(**state)

    def set_state(self, sync_data: dict) -> None:
        """Take a front end's message; if it is refused, tell the front end what still holds."""
        try:
            super().set_state(sync_data)
        except traitlets.TraitError:
            self.send_state([key for key in sync_data if key in self.keys])
            raise

    @traitlets.default("controls")
    def _first_controls(self) -> list[str]:
        return list(self.first_controls)

    @traitlets.default("panels")
    def _first_panels(self) -> list[str]:
        return list(self.first_panels)

    @traitlets.validate("controls", "panels")
    def _valid_parts(self, proposal) -> list[str]:
        what, names = proposal["trait"].name, proposal["value"]
        known = self.all_controls if what == "controls" else self.all_panels
        for name in names:
            one_of(f"an entry of {what}", name, known)
        return names

    @traitlets.validate("ask")
    def _valid_ask(self, proposal) -> str:
        return one_of("ask", proposal["value"], (*self.asks, ""))

    @traitlets.default("kind")
    def _kind(self) -> str:
        return type(self).__name__

    @property
    def reserve(self) -> tuple[int, int]:
        """Height in px that a page keeps for the lab before it is drawn: in a column, on a phone.

        It is that of the book's lab of this name, or of the nearest state that was measured.
        """
        named = _heights().get("by name", {}).get(self.name)
        if named:
            return named[0], named[1]
        wide, narrow = min(_heights().get(self.kind, UNMEASURED), key=self._distance)["px"]
        return wide, narrow

    def _distance(self, measured: dict) -> float:
        """Tell how far a measured state is from the present one; of a list the length counts."""
        far = 0.0
        for name, there in measured.items():
            if name != "px":
                here = getattr(self, name)
                if isinstance(there, str):
                    far += 1000 * (here != there)
                else:
                    far += abs((len(here) if isinstance(here, list) else here) - there)
        return far

    def describe(self) -> str:
        """Say in one sentence what the lab shows now."""
        raise NotImplementedError

    def figure(self) -> Figure:
        """Draw the present state with matplotlib, for print."""
        raise NotImplementedError

    def data(self) -> dict:
        """Give the lab's state and what its front end needs beside it, ready for JSON."""
        return {
            key: getattr(self, key)
            for key in ("kind", "title", "controls", "panels", "ask", *self.settings)
        }

    def to_html(self, *, picture: bool = True) -> str:
        """Write the lab as a figure: its state as JSON, and a picture for when no script runs."""
        name = f' id="{html.escape(self.name, quote=True)}"' if self.name else ""
        wide, narrow = self.reserve
        # "</script>" inside a string would end the element
        state = json.dumps(self.data(), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        return (
            f'<figure class="attn-lab full_width" data-lab="{self.kind}"{name} '
            f'style="--attn-wide:{wide}px;--attn-narrow:{narrow}px" '
            f'aria-label="{html.escape(self.title, quote=True)}">'
            f'<script type="application/json" class="attn-state">{state}</script>'
            f"{self._still() if picture else ''}</figure>"
        )

    def _still(self) -> str:
        """Write the picture that stands where no script runs."""
        alt = html.escape(f"{self.title}. {self.describe()}", quote=True)
        width, height, image = _png(self.figure())
        return (
            f'<img class="attn-static" width="{width}" height="{height}" alt="{alt}" '
            f'src="data:image/png;base64,{image}">'
        )

    def save(self, path: str | Path, *, picture: bool = True) -> Path:
        """Write one HTML file that holds the lab alive: for slides or a learning platform.

        Parameters
        ----------
        path : str or Path
            Where to write it.
        picture : bool, default True
            Also draw the picture that stands where no script runs; without it the file is
            written at once, and smaller.

        Returns
        -------
        Path
            The file, which needs no network and no other file.
        """
        path = Path(path)
        script = (STATIC / "labs.page.js").read_text(encoding="utf-8")
        page = _PAGE.format(
            title=html.escape(self.title),
            css=(STATIC / "labs.css").read_text(encoding="utf-8"),
            lab=self.to_html(picture=picture),
            script=script.replace("</script", "<\\/script"),
        )
        path.write_text(page, encoding="utf-8")
        return path

    def _repr_mimebundle_(self, **kwargs):
        """Offer the live widget where there is a kernel, and the figure where there is none."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/html": self.to_html(), "text/plain": self.describe()}, metadata


class ShowsAttention:
    """What a lab of one attention layer shows of its `result`."""

    @property
    def result(self) -> AttentionResult:
        """Scores, weights and output together."""
        raise NotImplementedError

    @property
    def scores(self) -> np.ndarray:
        """The scores S, (n, m): rows are queries, columns are keys, −∞ where forbidden."""
        return self.result.scores

    @property
    def weights(self) -> np.ndarray:
        """The weights A, (n, m): each row sums to one, or is zero where nothing is allowed."""
        return self.result.weights

    @property
    def output(self) -> np.ndarray:
        """The outputs O, (n, d_v)."""
        return self.result.output


class OrdersTokens:
    """What a lab shows of a scene whose tokens the reader puts in another `order`."""

    order: list[int]
    query: int

    def _scene(self) -> Scene:
        """Give the present scene, in its own order."""
        raise NotImplementedError

    @property
    def tokens(self) -> list[str]:
        """The n tokens."""
        tokens = self._scene().tokens
        return [tokens[i] for i in self.order]

    @property
    def X(self) -> np.ndarray:
        """The tokens' vectors, (n, d)."""
        return self._scene().X[self.order]

    @property
    def query_row(self) -> int:
        """The row in which the chosen query stands now."""
        return self.order.index(self.query)


class Overview:
    """A table of the labs: class, what it shows, settings."""

    def rows(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Give name, summary and settings of every lab."""
        return [
            (lab.__name__, str(inspect.getdoc(lab)).partition("\n")[0], lab.settings)
            for lab in sorted(Lab.__subclasses__(), key=lambda lab: lab.__name__)
        ]

    def __repr__(self) -> str:
        return "\n".join(f"{lab}: {what} {', '.join(names)}." for lab, what, names in self.rows())

    def _repr_markdown_(self) -> str:
        lines = ["| lab | what it shows | settings |", "|---|---|---|"]
        for lab, what, names in self.rows():
            lines.append(f"| `{lab}` | {what} | {', '.join(f'`{name}`' for name in names)} |")
        return "\n".join(lines)


def overview() -> Overview:
    """Show every lab of the book in a table."""
    return Overview()


@cache
def _heights() -> dict[str, Any]:
    return json.loads(HEIGHTS.read_text(encoding="ascii"))


def _png(figure: Figure) -> tuple[int, int, str]:
    """Draw a figure to PNG: its width and height in CSS pixels, and the bytes in base64."""
    buffer = io.BytesIO()
    dpi = 144  # two image pixels for one of the page's 72 to the inch
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    width, height = (round(inches * 96) for inches in figure.get_size_inches())
    return width, height, base64.b64encode(buffer.getvalue()).decode("ascii")
