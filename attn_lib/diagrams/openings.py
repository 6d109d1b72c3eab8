"""The drawings, one function each. What is drawn as a weight is a softmax of the numbers here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from attn_lib.arrays import Array
from attn_lib.diagrams.sketch import Sketch
from attn_lib.dot_product import self_attention, softmax
from attn_lib.examples import ACCOUNT, RIVER, Scene

WIDE = 366.0


def _sentence(sketch: Sketch, scene: Scene, y: float, rise: float) -> None:
    """Draw a scene's words, and what its chosen query reads in its own layer."""
    sizes = [max(2.0, len(token)) for token in scene.tokens]
    room = (sketch.width - 12 - 8 * sum(sizes)) / (len(sizes) - 1)
    starts = np.cumsum([0, *(8 * size + room for size in sizes[:-1])])
    xs = [float(start + 6 + 4 * size) for start, size in zip(starts, sizes, strict=True)]
    weights = self_attention(scene.X, scene.W_Q, scene.W_K, scene.W_V).weights[scene.query]
    sketch.reading(xs, y, scene.query, weights, rise=rise, whole=26)
    for j, (x, token) in enumerate(zip(xs, scene.tokens, strict=True)):
        role = "query" if j == scene.query else "ink"
        sketch.word(x, y + 18, token, role, size=15, anchor="middle", serif=True)


def lookup_in_context() -> Sketch:
    """One word in two sentences, and what it reads in each."""
    says = "The word bank in two sentences: beside river it reads river, beside account, account."
    sketch = Sketch(WIDE, 204, says)
    _sentence(sketch, RIVER, 82, 0.17)
    _sentence(sketch, ACCOUNT, 180, 0.24)
    return sketch


def queries_keys_values() -> Sketch:
    """Tokens give queries, keys and values; scores become weights, weights mix."""
    says = (
        "Each token gives a key and a value; the last one asks with its query; scores become "
        "weights; the weights mix the values."
    )
    sketch = Sketch(WIDE, 312, says)
    tokens, scores = [104.0, 182.0, 260.0, 338.0], np.array([-0.4, 1.0, -0.9, 0.35])
    weights, whole, out = softmax(scores), 46.0, 221.0
    for y, letters in ((31, ["x"]), (90, ["q", "k", "v"])):
        for at, letter in enumerate(letters):
            role = {"q": "query", "k": "key", "v": "value"}.get(letter, "ink")
            sketch.word(14 * at, y, letter, role, size=18, italic=True)
    for y, word in ((147, "scores"), (201, "weights"), (288, "mix")):
        sketch.word(0, y, word)
    asks = tokens[3] - 20
    keys = [x - (0 if j == 3 else 10) for j, x in enumerate(tokens)]
    values = [x + (20 if j == 3 else 10) for j, x in enumerate(tokens)]
    sketch.path(f"M{asks} 90V108Q{asks} 116 {asks - 8} 116H{keys[0]}", "query", 1.8)
    sketch.path(f"M{asks} 108Q{asks} 116 {asks + 8} 116H{keys[3]}", "query", 1.8)
    sketch.path(f"M{tokens[3]} 32C{tokens[3]} 54 {asks} 54 {asks} 78", "query", 1.8)
    slot = out - whole / 2
    for j, (x, k, v) in enumerate(zip(tokens, keys, values, strict=True)):
        width, size = float(weights[j]) * whole, 4.5 + 2.6 * float(scores[j] - scores.min())
        end, slot = slot + width / 2, slot + width
        sketch.path(f"M{x} 32C{x} 54 {k} 54 {k} 78", "key", 1.8)
        sketch.path(f"M{x} 32C{x} 54 {v} 54 {v} 78", "value", 1.8)
        sketch.path(f"M{k} 90V{142 - size:.1f}", "key", 1.8)
        sketch.band(f"M{k} 212V222C{k} 268 {end:.1f} 234 {end:.1f} 284", "value", width - 0.8)
        inner = k + max(0.0, width / 2 - 1.5)
        sketch.path(f"M{v} 90V190C{v} 206 {inner:.1f} 202 {inner:.1f} 214", "value", 1.8)
        sketch.path(f"M{k} {142 + size:.1f}V184", "high", 1.4)
        sketch.dot(k, 142, size, "high", "high")
        sketch.dot(k, 116, 2.6, "query", "query")
        sketch.box(k - width / 2, 184, width, 26, "weight")
        sketch.dot(x, 26, fill="ink" if j == 3 else "paper")
        sketch.dot(k, 84, edge="key")
        sketch.dot(v, 84, edge="value")
    sketch.dot(asks, 84, fill="query", edge="query")
    sketch.box(out - whole / 2, 282, whole, 4.5, "output")
    sketch.path(f"M{out} 286V298", "output", 1.8)
    sketch.dot(out, 303, fill="output", edge="output")
    return sketch


def two_bells() -> Sketch:
    """Scores of width 64, raw and divided, on one axis, and a softmax of each."""
    says = "A wide bell of raw scores whose softmax picks one key; a narrow bell of scaled scores."
    sketch = Sketch(WIDE, 214, says)
    drawn = np.array([0.31, -1.2, 0.86, -0.37, 1.45, -0.72, 0.05, -1.71])
    middle, unit = 128.0, 4.6
    for k, (spread, words) in enumerate(((8.0, "q · k"), (1.0, "q · k / √64"))):
        floor = 84.0 + 104 * k
        z = np.linspace(-3.2, 3.2, 65)
        # equal areas: the narrow bell is as much higher as it is narrower, up to its room
        high = 30.0 if spread > 1 else 70.0
        curve = [
            f"{middle + unit * spread * t:.1f} {floor - high * np.exp(-t * t / 2):.1f}" for t in z
        ]
        sketch.path(f"M{'L'.join(curve)}", "high", 1.8)
        sketch.path(f"M0 {floor}H256", "muted", 1.2)
        sketch.word(0, floor - 56, words, "ink", size=15, italic=True)
        for score in spread * drawn:
            sketch.dot(middle + unit * float(score), floor, 3, "high", "paper")
        weights = softmax(spread * drawn)
        sketch.path(f"M276 {floor}H366", "muted", 1.2)
        for j, weight in enumerate(weights):
            sketch.box(278 + 11 * j, floor - 58 * float(weight), 8, 58 * float(weight), "weight")
    sketch.word(366, 14, "softmax of the eight", size=12.5, anchor="end")
    return sketch


def shuffled_strands() -> Sketch:
    """Tokens are moved, outputs move with them, rows and columns too."""
    says = "Four tokens change places; each output moves with its token, and each row and column."
    sketch = Sketch(WIDE, 168, says)
    xs, order = [22.0, 72.0, 122.0, 172.0], [2, 0, 3, 1]
    for j, place in enumerate(order):
        d = f"M{xs[j]} 34C{xs[j]} 84 {xs[place]} 80 {xs[place]} 130"
        sketch.path(d, "paper", 7)
        sketch.path(d, "ink", 1.6)
    for y, places in ((26.0, range(4)), (138.0, order)):
        for j, place in enumerate(places):
            _shape(sketch, xs[place], y, j)
    rng = np.random.default_rng(3)
    weights = softmax(1.4 * rng.normal(size=(4, 4)))
    moved = np.empty_like(weights)
    moved[np.ix_(order, order)] = weights
    for x, matrix in ((226.0, weights), (304.0, moved)):
        for (i, j), weight in np.ndenumerate(matrix):
            side = 13.5 * np.sqrt(weight)
            sketch.box(
                x + 15 * j + (15 - side) / 2, 52 + 15 * i + (15 - side) / 2, side, side, "weight"
            )
        sketch.box(x - 1, 51, 62, 62, edge="line")
    sketch.path("M291 82h6", "muted", 1.4)
    sketch.word(256, 132, "A", "weight", size=16, anchor="middle", italic=True)
    sketch.word(334, 132, "PAPᵀ", "weight", size=16, anchor="middle", italic=True)
    return sketch


def _shape(sketch: Sketch, x: float, y: float, which: int) -> None:
    """One of four tokens that can be told apart without colour."""
    fill = "ink" if which % 2 else "paper"
    if which < 2:
        sketch.dot(x, y, 6.5, fill)
    else:
        sketch.box(x - 6, y - 6, 12, 12, fill, "ink")


def clock_hands() -> Sketch:
    """RoPE turns query and key by their places; the angle between them stays."""
    says = "Two clocks: query and key at places 2 and 5, and at 9 and 12. The angle is the same."
    sketch = Sketch(WIDE, 186, says)
    turn, own = 0.42, (0.25, 0.95)  # radians a place, and what the tokens themselves have
    for x, (i, j) in ((92.0, (5, 2)), (274.0, (12, 9))):
        y, r = 84.0, 62.0
        sketch.dot(x, y, r, edge="line")
        hands = [own[0] + turn * i, own[1] + turn * j]
        tips = [(x + 54 * np.cos(a), y - 54 * np.sin(a)) for a in hands]
        near = [(x + 24 * np.cos(a), y - 24 * np.sin(a)) for a in hands]
        sweep = int(np.sin(hands[1] - hands[0]) < 0)
        sketch.path(
            f"M{near[0][0]:.1f} {near[0][1]:.1f}A24 24 0 0 {sweep} {near[1][0]:.1f} "
            f"{near[1][1]:.1f}",
            "high",
            2.2,
        )
        for (tx, ty), role in zip(tips, ("query", "key"), strict=True):
            sketch.path(f"M{x} {y}L{tx:.1f} {ty:.1f}", role, 3)
            sketch.dot(tx, ty, 5, role, role)
        sketch.dot(x, y, 3, "ink")
        sketch.word(x, 170, f"q at {i}, k at {j}", "muted", anchor="middle")
    return sketch


def causal_line() -> Sketch:
    """A token reads what stands before it, nothing from beyond the line."""
    says = "Five tokens; the fourth reads itself and the three before it. A line hides the fifth."
    sketch = Sketch(WIDE, 168, says)
    xs, y = [28.0, 104.0, 180.0, 256.0, 332.0], 132.0
    sketch.reading(xs, y - 9, 3, softmax([0.3, 1.4, 0.7, 0.1, -np.inf]), rise=0.36)
    sketch.path("M294 20V158", "ink", 1.8)
    sketch.path("M268 118A26 40 0 0 1 292 84", "muted", 1.6, dash="1 5")
    for j, x in enumerate(xs):
        role = {3: ("query", "query"), 4: ("paper", "muted")}.get(j, ("paper", "ink"))
        sketch.dot(x, y, fill=role[0], edge=role[1])
    return sketch


def target_shift(tokens: Sequence[str]) -> Sketch:
    """Each place is asked for the token one place to its right.

    Parameters
    ----------
    tokens : sequence of str
        A sentence.
    """
    inputs, targets = tokens[:-1], tokens[1:]
    says = f"Each place reads up to itself and is asked for the next token: {' '.join(tokens)}."
    n = len(inputs)
    step = 640 / n
    sketch = Sketch(640, 132, says)
    for j, (word, target) in enumerate(zip(inputs, targets, strict=True)):
        x = (j + 0.5) * step
        if j + 1 < n:
            d = f"M{x + step - 5:.1f} 40C{x + step - 24:.1f} 66 {x + 22:.1f} 62 {x + 3:.1f} 92"
            sketch.path(d, "line", 1.4, dash="3 4")
        sketch.path(f"M{x:.1f} 42V86m-4 -7l4 8l4 -8", "query", 1.6)
        sketch.word(x, 30, word, "ink", size=15.5, anchor="middle", serif=True)
        sketch.word(x, 110, target, "output", size=15.5, anchor="middle", serif=True)
    return sketch


def encoder_decoder() -> Sketch:
    """What is being written reads what is given."""
    says = "A source of five tokens above, a text that is written below; each new token reads it."
    sketch = Sketch(WIDE, 196, says)
    source, reader = [40.0, 112.0, 184.0, 256.0, 328.0], [76.0, 164.0, 252.0]
    scores = np.array([[3, 1.5, 0, 0, 0], [0, 2.2, 2.4, 0, 0.2], [0, 0, 0, 2.0, 3.0]])
    whole = 28.0
    weights = softmax(scores)
    used = np.zeros(5)
    for i, x in enumerate(reader):
        slot = x - whole / 2
        for j, to in enumerate(source):
            width = float(weights[i, j]) * whole
            start, slot = slot + width / 2, slot + width
            end = to - 12 + used[j] + width / 2
            used[j] += width + 1.5
            sketch.band(
                f"M{start:.1f} 142C{start:.1f} 96 {end:.1f} 92 {end:.1f} 48", "weight", width
            )
    for x in source:
        sketch.dot(x, 38, edge="key")
    for x in reader:
        sketch.dot(x, 152, fill="query", edge="query")
    for before, after in pairwise(reader):
        sketch.path(f"M{before + 10} 152H{after - 12}m-5 -4l6 4l-6 4", "muted", 1.4)
    sketch.dot(340, 152, edge="muted")
    sketch.path("M262 152H328m-5 -4l6 4l-6 4", "muted", 1.4, dash="1 5")
    sketch.word(0, 16, "given")
    sketch.word(0, 186, "being written")
    return sketch


def two_heads() -> Sketch:
    """One head reads the word before the verb, the other the word after it."""
    says = "Dog bites man: one head, above, reads dog; the other, below, reads man."
    sketch = Sketch(WIDE, 186, says)
    xs, y = [60.0, 183.0, 306.0], 94.0
    sketch.reading(xs, y - 16, 1, softmax([4.0, 0.0, 0.6]), rise=0.34)
    sketch.reading(xs, y + 14, 1, softmax([0.6, 0.0, 4.0]), rise=0.34, below=True)
    for j, (x, word) in enumerate(zip(xs, ("dog", "bites", "man"), strict=True)):
        role = "query" if j == 1 else "ink"
        sketch.word(x, y + 5, word, role, size=19, anchor="middle", serif=True)
    sketch.word(0, 22, "head 1")
    sketch.word(0, 178, "head 2")
    return sketch


def block_stream() -> Sketch:
    """Two detours, each added back to the stream."""
    says = "A stream with two detours: attention, and a feed-forward layer; both are added back."
    sketch = Sketch(WIDE, 186, says)
    y, top = 150.0, 62.0
    sketch.path(f"M4 {y}H362", "ink", 4)
    for x in (16.0, 196.0):
        sketch.path(f"M{x} {y}C{x + 26} {y} {x + 8} {top} {x + 34} {top}H{x + 44}", "ink", 1.8)
        sketch.path(f"M{x + 118} {top}H{x + 122}Q{x + 142} {top} {x + 142} {top + 20}V{y - 10}")
    inside = [72.0, 98.0, 124.0]
    sketch.reading(inside, top - 7, 2, softmax([0.2, 1.0, -0.6]), rise=0.5, whole=13)
    for j, x in enumerate(inside):
        role = "query" if j == 2 else "paper"
        sketch.dot(x, top, 6, role, "query" if j == 2 else "ink")
    sketch.path("M244 50L276 26L308 50V74L276 98L244 74ZM276 26V98", "ink", 1.8, fill="paper")
    for x in (158.0, 338.0):
        sketch.dot(x, y, 10)
        sketch.path(f"M{x - 5} {y}h10M{x} {y - 5}v10", "ink", 1.6)
    sketch.word(98, 118, "attention", anchor="middle")
    sketch.word(276, 118, "feed-forward", anchor="middle")
    sketch.word(0, 178, "the stream")
    return sketch


def backward_flow() -> Sketch:
    """From the loss back to the query, through everything between."""
    says = "From query and key to score, weight, output and loss; and the gradient all the way back"
    sketch = Sketch(WIDE, 172, says)
    steps = [
        (24.0, "q", "query"),
        (116.0, "s", "high"),
        (198.0, "a", "weight"),
        (280.0, "o", "output"),
        (348.0, "L", "ink"),
    ]
    y = 76.0
    for (x0, *_), (x1, *_) in pairwise(steps):
        sketch.path(f"M{x0 + 14} {y}H{x1 - 15}m-6 -4l7 4l-7 4", "ink", 1.6)
        back = f"M{x1} {y + 16}C{x1} {y + 50} {x0} {y + 50} {x0} {y + 18}m-4 7l4 -8l5 7"
        sketch.path(back, "accent", 1.8, dash="5 4")
    sketch.path(f"M78 34C94 40 104 50 110 {y - 13}", "key", 1.8)
    sketch.path(f"M238 34C256 40 268 50 274 {y - 13}", "value", 1.8)
    for x, letter, role in (*steps, (70.0, "k", "key"), (230.0, "v", "value")):
        height = 28.0 if letter in "kv" else y
        sketch.dot(x, height, 11, edge=role)
        sketch.word(x, height + 5, letter, role, size=15, anchor="middle", italic=True)
    sketch.word(0, 164, "what to change, and by how much", "accent")
    return sketch


def tiles_in_memory() -> Sketch:
    """Keys and values stay in slow memory; one tile at a time is in the fast one."""
    says = "A large slow memory with keys and values in tiles; one tile is in the small fast one."
    sketch = Sketch(WIDE, 190, says)
    sketch.box(0.8, 24, 196, 150, edge="muted")
    for tile in range(6):
        y = 36 + 22 * tile
        for side, role in ((14.0, "key"), (106.0, "value")):
            out = tile == 2
            sketch.box(side, y, 76, 15, "" if out else role, role)
    sketch.path("M206 88H246m-7 -5l8 5l-8 5", "ink", 1.8)
    sketch.box(258, 46, 104, 92, edge="ink")
    sketch.box(268, 58, 38, 15, "key")
    sketch.box(314, 58, 38, 15, "value")
    sketch.dot(278, 92, 7, "query", "query")
    sketch.path("M278 106V124", "output", 1.6)
    sketch.box(296, 86, 56, 12, "weight")
    sketch.box(268, 116, 84, 12, "output")
    sketch.word(0, 14, "slow, large")
    sketch.word(258, 36, "fast, small")
    return sketch


def three_memories() -> Sketch:
    """Everything is kept, a window is kept, or one state is."""
    says = "Three ways to remember seven tokens: all of them, the last three, one state for all."
    sketch = Sketch(WIDE, 172, says)
    full = softmax([0.4, 0.9, 0.0, 1.2, 0.3, 0.8, 0.1])
    window = softmax([-np.inf] * 4 + [0.3, 0.8, 0.1])
    for row, (name, weights) in enumerate((("all", full), ("window", window))):
        xs, y = [96 + 42.0 * j for j in range(7)], 44.0 + 50 * row
        sketch.reading(xs, y - 6, 6, weights, rise=0.05, whole=17)
        for j, x in enumerate(xs):
            gone = weights[j] == 0
            role = "query" if j == 6 else "paper"
            sketch.dot(x, y, 5, role, "query" if j == 6 else "line" if gone else "ink")
        sketch.word(0, y + 5, name)
    y = 146.0
    for j in range(7):
        x = 96 + 42.0 * j
        if j < 6:
            sketch.path(f"M{x + 6} {y}H{x + 35}m-5 -3.5l6 3.5l-6 3.5", "muted", 1.3)
        sketch.box(x - 7, y - 7, 14, 14, "paper", "query" if j == 6 else "value")
        sketch.box(x - 5, y + 5 - 10 * (j + 1) / 7, 10, 10 * (j + 1) / 7, "value")
    sketch.word(0, y + 5, "state")
    return sketch


def edge_counts() -> Sketch:
    """What an edge does is its weight, times what it carries, times its later use."""
    says = "A thick arc, a short value, and a part that is used later: the product is small."
    sketch = Sketch(WIDE, 168, says)
    sketch.reading([20.0, 96.0], 92, 1, np.array([0.97, 0.03]), rise=0.5)
    sketch.dot(20, 101, edge="key")
    sketch.dot(96, 101, fill="query", edge="query")
    sketch.word(58, 140, "weight", "weight", anchor="middle")
    sketch.word(132, 96, "×", "ink", size=20, anchor="middle")
    sketch.box(158, 76, 52, 18, edge="value")
    sketch.box(158, 76, 13, 18, "value")
    sketch.word(184, 140, "value", "value", anchor="middle")
    sketch.word(238, 96, "×", "ink", size=20, anchor="middle")
    sketch.path("M262 86H284C296 86 296 66 308 66H328", "ink", 1.6)
    sketch.path("M284 86C296 86 296 108 308 108H328", "muted", 1.6, dash="1 5")
    sketch.dot(340, 66, 10)
    sketch.path("M335 66h10M340 61v10", "ink", 1.6)
    sketch.word(304, 140, "later use", "ink", anchor="middle")
    return sketch


def many_heads(weights: Array, query: int) -> Sketch:
    """What one token reads most, in every head of a model.

    Parameters
    ----------
    weights : ndarray, shape (layers, heads, n, n)
    query : int
        The place of the token.
    """
    layers, heads, n, _ = np.shape(weights)
    says = f"What one token reads most, in {layers} layers of {heads} heads: an arc for each head."
    sketch = Sketch(WIDE, 24 + 34 * layers, says)
    room = (WIDE - 22) / heads
    for layer in range(layers):
        sketch.word(0, 40 + 34 * layer, str(layer), size=12.5)
        for head in range(heads):
            row = np.asarray(weights)[layer, head, query]
            most = int(row.argmax())
            place = [22 + room * head + 3 + (room - 8) * j / (n - 1) for j in range(n)]
            y = 42.0 + 34 * layer
            sketch.path(f"M{place[0]:.1f} {y}H{place[-1]:.1f}", "line", 1.4)
            alone = np.where(np.arange(n) == most, row, 0)
            if most == query:
                sketch.path(f"M{place[query]:.1f} {y}v-9", "weight", 0.8 + 4 * float(row[most]))
            else:
                far = abs(place[most] - place[query])
                start, end = sorted((place[most], place[query]))
                sketch.path(
                    f"M{start:.1f} {y}A{far / 2:.1f} {min(22.0, 6 + far):.1f} 0 0 1 {end:.1f} {y}",
                    "weight",
                    0.8 + 4 * float(alone[most]),
                )
            sketch.dot(place[query], y, 2, "query", "query")
    return sketch
