"""CostLab: its counts are attn_lib.cost's, its crossings are where curves cross."""

import io

import numpy as np
import pytest

from attn_lib.cost import attention_cost, cache_size, generation_cost, layer_cost
from attn_lib.labs import CostLab
from attn_lib.labs.cost.lab import LONG, VARIANTS
from attn_lib.labs.numbers import byte_size, scientific, significant


class TestCounts:
    def test_full_by_hand(self):
        lab = CostLab(n=10, d=4, h=2)
        assert lab.operations == 2 * 10 * 10 * 4
        assert lab.memory == 2 * 2 * 100  # bytes of two heads' weights
        assert lab.layer == {"projections": 4 * 10 * 16, "feed_forward": 8 * 10 * 16}
        assert lab.share == pytest.approx(800 / (800 + 640 + 1280))

    @pytest.mark.parametrize("n", [1, 2, 9])
    def test_cached_is_generation_without_the_rest_of_the_layer(self, n):
        lab = CostLab(n=n, d=6, h=3, variant="cached")
        projections = n * layer_cost(1, 6)["projections"]
        assert lab.operations == generation_cost(n, 6, d_ff=0) - projections
        assert lab.memory == 2 * (cache_size(n, 6) + 3 * n)

    @pytest.mark.parametrize("variant", ["tiled", "windowed", "linear"])
    def test_others_are_the_heads_together(self, variant):
        lab = CostLab(n=700, d=24, h=4, window=50, variant=variant)
        head = attention_cost(
            700, d_k=6, kind=variant, window=50 if variant == "windowed" else None
        )
        assert (lab.operations, lab.memory) == (4 * head.multiply_adds, 8 * head.memory)

    def test_operations_of_full_attention_do_not_depend_on_the_heads_but_memory_does(self):
        one, many = CostLab(h=1), CostLab(h=64)
        assert one.operations == many.operations
        assert many.memory == 64 * one.memory

    def test_at_128k(self):
        assert LONG == 131072
        for variant, spent in CostLab(variant="linear").at_128k.items():
            lab = CostLab(n=LONG, variant=variant)
            assert spent == (lab.operations, lab.memory)

    def test_curves_pass_through_the_present_point(self):
        lab = CostLab(n=3000, variant="windowed")
        now = list(lab.lengths).index(3000)
        assert set(lab.curves) == set(VARIANTS)
        np.testing.assert_array_equal(lab.curves["windowed"][:, now], (lab.operations, lab.memory))


class TestCrossings:
    def test_full_attention_passes_the_others_at_2d_and_6d(self):
        lab = CostLab(d=48, h=8)
        at_2d, at_6d = (CostLab(n=int(n), d=48, h=8) for n in lab.crossings.values())
        assert at_2d.operations == at_2d.layer["projections"]
        assert at_6d.operations == sum(at_6d.layer.values())

    def test_cached_decoding_does_half_the_work_and_passes_them_later(self):
        crossings = CostLab(d=48, h=8, variant="cached").crossings.values()
        first, second = (CostLab(n=int(n), d=48, h=8, variant="cached") for n in crossings)
        assert first.operations == first.layer["projections"]
        assert second.operations == sum(second.layer.values())

    def test_linear_attention_falls_below_the_full_one(self):
        lab = CostLab(d=40, h=4, variant="linear")
        n = int(lab.crossings["n = d/h + ½"])
        full = CostLab(d=40, h=4)
        assert lab.spent("linear", n)[0] > full.spent("full", n)[0]
        assert lab.spent("linear", n + 1)[0] < full.spent("full", n + 1)[0]

    def test_a_window_limits_nothing_before_w(self):
        lab = CostLab(window=256, variant="windowed")
        assert lab.crossings["n = w"] == 256
        assert lab.spent("windowed", 256) == CostLab(window=1024).spent("windowed", 256)
        assert lab.spent("windowed", 512)[0] < CostLab(window=1024).spent("windowed", 512)[0]


class TestClass:
    @pytest.mark.parametrize(
        ("state", "message"),
        [
            ({"n": 0}, "n must be from 1 to 1048576, got 0"),
            ({"d": 0}, "d must be from 1 to 16384, got 0"),
            ({"d": 100}, "d must be a multiple of h, got d = 100 and h = 8"),
            ({"h": 3}, "d must be a multiple of h, got d = 512 and h = 3"),
            ({"h": 129}, "h must be from 1 to 128, got 129"),
            ({"window": 0}, "window must be from 1 to 1048576, got 0"),
            ({"variant": "flash"}, "variant must be one of full, cached, tiled, windowed, linear"),
        ],
    )
    def test_refuses(self, state, message):
        with pytest.raises(ValueError, match=message):
            CostLab(**state)

    def test_width_and_heads_can_change_together(self):
        lab = CostLab()
        with lab.hold_trait_notifications():
            lab.d, lab.h = 100, 5
        assert (lab.d, lab.h) == (100, 5)
        with pytest.raises(ValueError, match="multiple of h"):
            lab.h = 8
        assert lab.h == 5

    def test_says_what_it_shows(self):
        assert "57 % of the layer" in CostLab().describe()
        assert "where full attention holds 275 GB" in CostLab(variant="tiled").describe()

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_figure_can_be_printed(self, variant):
        figure = CostLab(variant=variant, n=5000).figure()
        figure.savefig(io.BytesIO(), format="pdf")
        words = {text.get_text() for text in figure.axes[0].texts}
        assert set(CostLab(variant=variant).crossings) <= words

    def test_page_holds_the_state_and_a_picture(self):
        page = CostLab(name="cost", variant="linear").to_html()
        assert 'data-lab="CostLab" id="cost"' in page
        assert '"variant": "linear"' in page and "data:image/png;base64," in page


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (significant, -0.5, "−0.5"),
        (significant, 1234.5, "1230"),
        (significant, 99999, "100000"),
        (scientific, 0, "0"),
        (scientific, 0.00123, "0.00123"),
        (scientific, 0.000999, "9.99 × 10⁻⁴"),
        (scientific, 1.724e10, "1.72 × 10¹⁰"),
        (scientific, -2e-7, "−2.00 × 10⁻⁷"),
        (byte_size, 999, "999 B"),
        (byte_size, 999_600, "1 MB"),
        (byte_size, 274.9e9, "275 GB"),
        (byte_size, 3.2e15, "3200 TB"),
    ],
)
def test_numbers_are_written_short(write, value, text):
    assert write(value) == text
