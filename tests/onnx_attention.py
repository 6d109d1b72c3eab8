"""The ONNX operator Attention as onnx itself evaluates it: a reference by other authors."""

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator


def onnx_attention(Q, K, V, *, mask=None, scale=None, causal=False, valid_keys=None, window=None):
    """Output and weights of the operator, for (batch, heads, rows, width) inputs.

    `valid_keys` is the number of keys of each sequence in the batch; with it the causal mask
    aligns the last query with the last valid key. Older releases of onnx (before the change
    onnx/onnx#8068) gave NaN for a query with nothing to look at; the range in
    tests/requirements.txt excludes them.
    """
    feeds = {"Q": Q, "K": K, "V": V}
    inputs = ["Q", "K", "V", "", "", "", ""]
    if mask is not None:
        feeds["mask"], inputs[3] = mask, "mask"
    if valid_keys is not None:
        feeds["valid"], inputs[6] = np.array(valid_keys), "valid"
    options = {"is_causal": int(causal), "qk_matmul_output_mode": 3}
    if scale is not None:
        options["scale"] = scale
    if window is not None:
        options["left_window_size"], options["right_window_size"] = window - 1, 0
    kind = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in feeds.items()}
    graph = helper.make_graph(
        [helper.make_node("Attention", inputs, ["Y", "", "", "A"], **options)],
        "attention",
        [helper.make_tensor_value_info(name, kind[name], x.shape) for name, x in feeds.items()],
        [helper.make_tensor_value_info(name, kind["Q"], None) for name in "YA"],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    return ReferenceEvaluator(model).run(["Y", "A"], feeds)
