"""AttentionLab in Python: it says no clearly, follows its scenes, and writes safe HTML."""

from __future__ import annotations

import base64
import html
import json
import re
from html.parser import HTMLParser

import ipywidgets
import numpy as np
import pytest
import traitlets

from attn_lib import attention, causal_mask
from attn_lib.examples import ACCOUNT, CHEF, RIVER, Scene, random_scene
from attn_lib.labs import AttentionLab

# What a lab refuses ------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scene": "moon"}, "scene must be one of chef, river, account, random, got 'moon'"),
        ({"query": 9}, "query must be from 0 to 8, got 9"),
        ({"query": -1}, "query must be from 0 to 8, got -1"),
        (
            {"order": [0, 1, 2]},
            r"each of 0 to 8 once \(scene 'chef' has 9 tokens\), got \[0, 1, 2\]",
        ),
        ({"order": [0, 0, 1, 2, 3, 4, 5, 6, 7]}, "each of 0 to 8 once"),
        ({"d_k": 5}, "'chef' has keys of width 4, .* in scene 'random' only, got 5"),
        ({"scene": "random", "d_k": 65}, "d_k must be from 1 to 64, got 65"),
        ({"scene": "random", "d_k": 0}, "d_k must be from 1 to 64, got 0"),
        ({"temperature": 0.0}, "temperature must be from 0.01 to 100.*, got 0.0"),
        ({"temperature": -1.0}, "temperature must be .*, got -1"),
        ({"temperature": float("nan")}, "temperature must be .*, got nan"),
        ({"temperature": float("inf")}, "temperature must be .*, got inf"),
        ({"seed": -1}, "seed must be from 0 to 9999, got -1"),
        ({"mask": "upper"}, "mask must be one of none, causal, got 'upper'"),
        ({"n": 1}, "must be from 2 to 64, got 1"),
        ({"n": 65}, "must be from 2 to 64, got 65"),
    ],
)
def test_what_cannot_be_shown_is_named(given, said):
    with pytest.raises(ValueError, match=said):
        AttentionLab(**given)


def test_a_word_is_no_number():
    with pytest.raises(traitlets.TraitError):
        AttentionLab(temperature="hot")
    with pytest.raises(TypeError):
        AttentionLab("chef")  # keyword-only


# What it shows -------------------------------------------------------------------


@pytest.mark.parametrize("scene", [CHEF, RIVER, ACCOUNT], ids=lambda scene: scene.name)
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_numbers_are_those_of_the_scene(scene, mask):
    lab = AttentionLab(scene=scene.name, mask=mask, temperature=0.5)
    keep = causal_mask(len(scene.tokens)) if mask == "causal" else None
    Q, K, V = scene.X @ scene.W_Q, scene.X @ scene.W_K, scene.X @ scene.W_V
    expected = attention(Q, K, V, mask=keep, temperature=0.5)
    np.testing.assert_allclose(lab.scores, expected.scores)
    np.testing.assert_allclose(lab.weights, expected.weights)
    np.testing.assert_allclose(lab.output, expected.output)
    assert (lab.query, lab.tokens) == (scene.query, list(scene.tokens))


def test_order_moves_rows_and_columns_and_each_output_stays_with_its_token():
    order = [3, 0, 2, 1, 8, 7, 4, 6, 5]
    plain, moved = AttentionLab(), AttentionLab(order=order)
    assert moved.tokens == [plain.tokens[i] for i in order]
    np.testing.assert_allclose(moved.scores, plain.scores[np.ix_(order, order)])
    np.testing.assert_allclose(moved.weights, plain.weights[np.ix_(order, order)])
    np.testing.assert_allclose(moved.output, plain.output[order])
    assert moved.query_row == 4 and moved.tokens[4] == "bland"


def test_a_smaller_d_k_keeps_the_first_coordinates():
    scene = random_scene(8, seed=4)
    Q, K = scene.X @ scene.W_Q, scene.X @ scene.W_K
    for d_k in (1, 5, 64):
        lab = AttentionLab(scene="random", seed=4, d_k=d_k)
        np.testing.assert_allclose(lab.scores, Q[:, :d_k] @ K[:, :d_k].T / np.sqrt(d_k))
        lab.scale = False
        np.testing.assert_allclose(lab.scores, Q[:, :d_k] @ K[:, :d_k].T)


def test_a_change_of_scene_keeps_what_fits_and_takes_the_rest():
    lab = AttentionLab(query=3, order=[8, 7, 6, 5, 4, 3, 2, 1, 0], mask="causal", temperature=2.0)
    lab.scene = "river"
    assert (lab.order, lab.query, lab.d_k) == ([0, 1, 2, 3, 4, 5], RIVER.query, 4)
    assert (lab.mask, lab.temperature) == ("causal", 2.0)
    lab.scene = "random"
    assert (lab.order, lab.query) == (list(range(8)), 0) and 1 <= lab.d_k <= 64
    lab.d_k = 40
    lab.scene = "account"
    assert lab.d_k == 4
    assert lab.weights.shape == (5, 5)


@pytest.mark.parametrize("first", ["chef", "river", "account", "random"])
@pytest.mark.parametrize("second", ["chef", "river", "account", "random"])
def test_every_change_of_scene_gives_a_lab_that_works(first, second):
    lab = AttentionLab(scene=first)
    lab.scene = second
    assert sorted(lab.order) == list(range(len(lab.tokens)))
    np.testing.assert_allclose(lab.weights.sum(axis=1), 1)
    assert lab.describe()


def test_scenes_of_ones_own():
    mine = Scene("mine", "my scene", ("a", "b"), ("x",), np.eye(2)[:, :1], np.ones((1, 3)), np.ones((1, 3)), np.ones((1, 2)), ("o", "p"), 1, "note")  # fmt: skip # noqa: E501
    lab = AttentionLab(scenes=[mine])
    assert (lab.scene, lab.query, lab.d_k, lab.tokens) == ("mine", 1, 3, ["a", "b"])
    with pytest.raises(ValueError, match="one of mine, random, got 'chef'"):
        lab.scene = "chef"
    alone = AttentionLab(scenes=[mine], n=None)
    assert [scene["name"] for scene in alone.scenes] == ["mine"] and alone.describe()
    with pytest.raises(ValueError, match="scene must be one of mine, got"):
        alone.scene = "random"
    with pytest.raises(ValueError, match="there is nothing to show"):
        AttentionLab(scenes=[], n=None)


def test_the_sentence_names_the_most_read():
    assert AttentionLab().describe() == "bland reads soup most (weight 0.57), then tasted (0.26)."
    first = AttentionLab(mask="causal", query=0)
    assert first.describe() == "The reads The most (weight 1.00)."


def test_a_scene_of_one_token():
    alone = Scene("alone", "alone", ("hm",), ("x",), np.ones((1, 1)), np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 3)), ("o", "p", "q"), 0, "")  # fmt: skip # noqa: E501
    lab = AttentionLab(scenes=[alone])
    assert lab.weights.tolist() == [[1.0]]
    assert lab.describe().startswith("hm reads hm most (weight 1.00)")


def test_the_figure_is_of_the_present_state():
    lab = AttentionLab(query=1, order=[8, 7, 6, 5, 4, 3, 2, 1, 0], temperature=3.0)
    scores, weights, output = lab.figure().axes[:3]
    np.testing.assert_allclose(scores.images[0].get_array(), lab.scores)
    np.testing.assert_allclose(weights.images[0].get_array(), lab.weights)
    np.testing.assert_allclose(output.images[0].get_array(), lab.output)
    assert [label.get_text() for label in weights.get_xticklabels()] == lab.tokens
    assert weights.patches[-1].get_xy() == (-0.5, 6.5)  # chef, now in row 7


# As a widget --------------------------------------------------------------------------


def test_it_links_and_observes_like_any_ipywidget():
    lab, slider = AttentionLab(), ipywidgets.FloatSlider(value=2.0, min=0.1, max=10.0)
    ipywidgets.link((lab, "temperature"), (slider, "value"))
    slider.value = 4.0
    np.testing.assert_allclose(lab.weights, AttentionLab(temperature=4.0).weights)
    seen = []
    lab.observe(lambda change: seen.append(change["new"]), names="query")
    lab.query = 2
    assert seen == [2] and ipywidgets.VBox([lab, slider]).children[0] is lab


def test_state_from_a_browser_is_checked_too():
    lab = AttentionLab()
    lab.set_state({"scene": "river", "order": [5, 4, 3, 2, 1, 0], "query": 2, "d_k": 4})
    assert (lab.scene, lab.order, lab.query) == ("river", [5, 4, 3, 2, 1, 0], 2)
    with pytest.raises(ValueError, match="temperature must be"):
        lab.set_state({"temperature": -1.0})
    assert lab.temperature == 1.0


def test_what_travels_is_the_state_and_the_scenes_alone():
    """No pixel and no computed number: the front end computes them."""
    lab = AttentionLab()
    state = {key for key, trait in lab.traits(sync=True).items() if not key.startswith("_")}
    state -= {"layout", "tabbable", "tooltip"}
    assert state == {*lab.settings, "kind", "title", "controls", "panels", "ask", "scenes"}


# As HTML -------------------------------------------------------------------------------


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text inside scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.script, self._inside = [], "", None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag

    def handle_data(self, data):
        if self._inside == "script":
            self.script += data

    def handle_endtag(self, tag):
        self._inside = None


def test_the_figure_element_holds_state_and_picture():
    lab = AttentionLab(name="first-look", scene="river", mask="causal")
    found = Elements(lab.to_html())
    assert [tag for tag, _ in found.tags] == ["figure", "script", "img"]
    figure, script, img = (attributes for _, attributes in found.tags)
    assert figure["class"] == "attn-lab full_width" and figure["data-lab"] == "AttentionLab"
    assert figure["id"] == "first-look" and figure["aria-label"] == lab.title
    assert script["type"] == "application/json"
    assert json.loads(found.script) == lab.data()
    assert img["alt"] == f"{lab.title}. {lab.describe()}"
    assert int(img["width"]) > 300 and int(img["height"]) > 100  # room is kept before it loads
    png = base64.b64decode(img["src"].removeprefix("data:image/png;base64,"))
    assert png.startswith(b"\x89PNG")
    assert "id" not in Elements(AttentionLab().to_html()).tags[0][1]


def test_state_as_json_rebuilds_the_lab():
    lab = AttentionLab(scene="random", n=5, d_k=9, seed=3, order=[4, 3, 2, 1, 0], scale=False)
    state = json.loads(json.dumps(lab.data(), allow_nan=False))
    again = AttentionLab(n=5, **{key: state[key] for key in lab.settings})
    np.testing.assert_array_equal(again.weights, lab.weights)
    assert again.data() == lab.data()


def test_hostile_words_stay_words():
    words = ("<img src=x onerror=alert(1)>", 'a" onmouseover="x', "</script>", "a<b", "<!--", "$$")
    n = len(words)
    rng = np.random.default_rng(0)
    scene = Scene("<s>", "<b>", words, ("x", "y"), rng.normal(size=(n, 2)), np.eye(2), np.eye(2), np.eye(2), ("</p>", "&amp;"), 2, "</figure>")  # fmt: skip # noqa: E501
    lab = AttentionLab(scenes=[scene], name='"><i>', title="</title><script>")
    found = Elements(lab.to_html())
    assert [tag for tag, _ in found.tags] == ["figure", "script", "img"]
    assert not any(key.startswith("on") for _, attributes in found.tags for key in attributes)
    assert found.tags[0][1]["id"] == '"><i>'
    assert json.loads(found.script)["scenes"][0]["tokens"] == list(words)
    assert found.tags[2][1]["alt"] == f"{lab.title}. {lab.describe()}"
    assert "<" not in found.script  # not even <!--, which changes how a script is read


def test_save_writes_one_file_that_asks_for_nothing(tmp_path):
    lab = AttentionLab(title="Keys & <queries>")
    path = lab.save(tmp_path / "lab.html")
    text = path.read_text(encoding="utf-8")
    assert path == tmp_path / "lab.html"
    assert f"<title>{html.escape(lab.title)}</title>" in text
    found = Elements(text)
    sources = [attributes.get("src") or attributes.get("href") for _, attributes in found.tags]
    assert all(source.startswith("data:") for source in sources if source)
    assert not re.search(r"url\((?!data:)|@import", text)
    assert text.count("</script>") == 2  # the state's and the program's


def test_two_saves_are_the_same_file(tmp_path):
    first, second = (AttentionLab(name="x").save(tmp_path / f"{k}.html") for k in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_a_notebook_gets_the_widget_and_a_page_the_figure():
    lab = AttentionLab(name="x")
    data, metadata = lab._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == lab.model_id
    assert data["text/html"] == lab.to_html() and data["text/plain"] == lab.describe()
    assert isinstance(metadata, dict)
