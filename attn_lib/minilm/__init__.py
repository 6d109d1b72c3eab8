"""all-MiniLM-L6-v2, a trained model of 22 million parameters, run by this book's own blocks."""

from attn_lib.minilm.export import (
    Reading,
    head_scene,
    read_export,
    read_origin,
    read_sentence,
    write_export,
)
from attn_lib.minilm.model import (
    INSTALL,
    PACKAGE,
    SHA256,
    MiniLM,
    MiniLMResult,
    beyond_mean,
    load_minilm,
    minilm,
    rename_tensors,
    value_norms,
    value_products,
    with_a_position,
)

__all__ = [
    "INSTALL",
    "PACKAGE",
    "SHA256",
    "MiniLM",
    "MiniLMResult",
    "Reading",
    "beyond_mean",
    "head_scene",
    "load_minilm",
    "minilm",
    "read_export",
    "read_origin",
    "read_sentence",
    "rename_tensors",
    "value_norms",
    "value_products",
    "with_a_position",
    "write_export",
]
