"""What HeadsLab alone does in a browser; what every lab promises: `test_every_lab`."""

from __future__ import annotations

import re

import numpy as np
from browser.driver import LabDriver, number
from browser.specs.heads import SPEC

from attn_lib.labs import HeadsLab


def test_the_blocks_are_drawn_to_scale(open_lab):
    """Twelve heads share three key heads: three of twelve columns are left of W_K and W_V."""
    lab = open_lab(HeadsLab, heads=12, kv_heads=3, head=5)
    lab.shown()
    blocks = lab.figure.evaluate(
        """(figure) => [...figure.querySelectorAll(".attn-parameters .attn-block")].map((rect) =>
          [rect.width.baseVal.value, rect.height.baseVal.value, rect.matches(".attn-chosen")])"""
    )
    areas = [width * height for width, height, _ in blocks]
    assert len(blocks) == 12 + 3 + 3 + 12
    np.testing.assert_allclose(areas, areas[0], rtol=1e-6)
    assert [at for at, block in enumerate(blocks) if block[2]] == [5, 12 + 1, 15 + 1, 18 + 5]


def test_a_link_can_take_the_sharing_of_keys_back(open_lab, open_page):
    lab = open_lab(HeadsLab, heads=6, kv_heads=2)
    lab.control("kv_heads").select_option("6")
    lab.control("query").select_option("1")
    lab.action("link").click()
    lab.shown()
    assert lab.page.url.endswith("#lab?kv_heads=&query=1")
    SPEC.parity(LabDriver(open_page(lab.page.url)), HeadsLab(heads=6, query=1))


def test_a_cell_under_the_pointer_is_read_out(open_lab):
    lab, python = open_lab(HeadsLab), HeadsLab()
    readout = lab.figure.locator(".attn-foot > .attn-readout")
    lab.cell("output", 2, 4).hover()
    parts = [number(x) for x in re.findall(r"−?\d\.\d\d(?!\d)", readout.inner_text())]
    np.testing.assert_allclose(parts[-4:], np.abs(python.contributions[:, 2, 4]), atol=0.0051)
    lab.cell("mean", 0, 1).hover()
    assert f"{python.mean_weights[0, 1]:.3f}" in readout.inner_text()
    lab.page.mouse.move(0, 0)
    assert readout.inner_text().startswith("Point at a cell")
