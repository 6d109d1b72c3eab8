"""What the pages show of the model: a small file of sentences read, and how it is made."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attn_lib.examples import Scene
from attn_lib.minilm.model import (
    SHA256,
    MiniLM,
    beyond_mean,
    minilm,
    value_norms,
    value_products,
)

LAYERS, HEADS, WIDTH, EPS = 6, 12, 384, 1e-12


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
    rows: dict[str, np.ndarray] = {word: result.hidden[:, tokens.index(word)] for word in kept}
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
    arrays: dict[str, Any] = {"about": np.array(_ABOUT), "names": np.array(list(readings))}
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
        label=f"({layer}, {head}) {reading.text}",
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


_ABOUT = (
    "Attention weights and some vectors of the model sentence-transformers/all-MiniLM-L6-v2, "
    "licensed under Apache-2.0, for a few sentences; computed by attn_lib.minilm from "
    f"model.safetensors with SHA-256 {SHA256['model.safetensors']}. Weights are uint16 multiples "
    "of 1/65535 (error below 8e-6), rows to compare with are float16, all else is float32."
)


def _reading(name: str, file: Any) -> Reading:
    """Put one sentence together from the arrays of the file."""
    start = f"{name}.head."
    keys = [key for key in file.files if key.startswith(start)]
    places = [key[len(start) :].split(".") for key in keys]
    heads = {(int(r), int(h)): file[key] for key, (r, h) in zip(keys, places, strict=True)}
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
        {place: tuple(whole.astype(float)) for place, whole in heads.items()},
        bank,
        products,
        beyond,
        others or None,
    )
