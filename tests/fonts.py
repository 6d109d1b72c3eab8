"""The fonts of the browser tests: matplotlib's DejaVu, whatever the machine has.

Where letters are wider, lines break elsewhere and pages grow: a test must not depend on that.
`WIDE` are letters wider than those of any face for text, for a test that pages fit all the same.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib

FOLDER = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
WIDE = """:not(mjx-container, mjx-container *) {
  font-family: "DejaVu Sans" !important;
  font-weight: 700 !important;
}"""

_GENERIC = {
    "serif": "DejaVu Serif",
    "sans-serif": "DejaVu Sans",
    "system-ui": "DejaVu Sans",
    "monospace": "DejaVu Sans Mono",
}
_CONF = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <selectfont>
    <rejectfont><glob>*</glob></rejectfont>
    <acceptfont><glob>*/DejaVu*.ttf</glob></acceptfont>
  </selectfont>
  {generic}
</fontconfig>
"""


def environment(folder: Path) -> dict[str, str]:
    """Give the environment of a browser that sees these fonts and no others.

    On Linux it asks fontconfig, whose settings are written to `folder`; elsewhere it keeps the
    machine's fonts.
    """
    generic = "".join(
        f"<alias><family>{name}</family><prefer><family>{family}</family></prefer></alias>"
        for name, family in _GENERIC.items()
    )
    conf = folder / "fonts.conf"
    conf.write_text(_CONF.format(fonts=FOLDER, cache=folder / "cache", generic=generic))
    return {**os.environ, "FONTCONFIG_FILE": str(conf)}
