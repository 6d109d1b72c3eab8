"""What a user writes, for a type checker: `test_types.py` has mypy read it, nobody runs it.

A line ends in ``# refused`` where mypy must say no.
"""

from dataclasses import replace
from typing import assert_type

import numpy as np

from attn_lib import (
    AttentionResult,
    Config,
    KVCache,
    attention,
    causal_mask,
    check_gradient,
    combine_masks,
    generate,
    init_params,
    layer_cost,
    loss_and_gradients,
    multi_head_attention,
    rope,
    softmax,
    softmax_state,
    tiled_attention,
    transformer,
    zero_heads,
)
from attn_lib.checks import check_softmax, check_value
from attn_lib.labs import AttentionLab
from attn_lib.proofs import softmax_shift
from attn_lib.training import RECIPES, Score, score, start, train

# Lists, numbers and arrays are arrays; results have their parts by name and in order.
X = np.random.default_rng(0).normal(size=(4, 8))
assert_type(softmax([[0, 1.5], [2, 3]]), np.ndarray)
assert_type(attention([[1.0, 0]], np.eye(2), [[1], [2]]), AttentionResult)
assert_type(attention(X, X, X, mask=causal_mask(4), temperature=0.5).weights, np.ndarray)
scores, weights, output = attention(X, X, X, mask=None, scale=None)
assert_type(output, np.ndarray)
assert_type(causal_mask(3, None, offset=1), np.ndarray)
assert_type(combine_masks(causal_mask(4), None), np.ndarray | None)
assert_type(rope(X, [0, 1, 2, 3]), np.ndarray)
assert_type(tiled_attention(X, X, X, tile=(2, 2)), np.ndarray)
assert_type(softmax_state(X, X[:, :3]).output, np.ndarray)
assert_type(layer_cost(4, 8, past=2)["scores"], int)
cache = KVCache()
cache.append(X, X)
assert_type(cache.attend(X[-1:]).output, np.ndarray)
W = np.eye(8)
assert_type(multi_head_attention(X, W, W, W, W, heads=2).output, np.ndarray)
softmax(X, axis="rows")  # refused
causal_mask("four")  # refused
attention(X, X)  # refused
attention(X, X, X, temprature=2.0)  # refused
print(attention(X, X, X).wieghts)  # refused
multi_head_attention(X, W, W, W, W)  # refused
tiled_attention(X, X, X, tile=2)  # refused

# A model, and experiments on it.
config = replace(Config(vocabulary=5, context=8, d=8), heads=2)
params = init_params(config, seed=1)
assert_type(params["E"], np.ndarray)
assert_type(transformer(params, [0, 1], config, edit=zero_heads(0, [1])).logits, np.ndarray)
assert_type(generate(params, [0], config, count=3), np.ndarray)
loss, gradients = loss_and_gradients(params, [0, 1], [1, 2], config)
assert_type(loss, float)
assert_type(gradients["E"], np.ndarray)
assert_type(check_gradient(lambda x: float(x.sum()), X, np.ones((4, 8))).ok, bool)
Config(5, 8, d="wide")  # refused
generate(params, [0], config)  # refused

# Training, checks, proofs, labs.
run = train(start("copy"), until=1, progress=False)
assert_type(score(run.params, RECIPES["copy"]), Score)
assert_type(check_softmax(softmax).ok, bool)
assert_type(check_value([1, 2], right=X[0, :2], mistakes={"twice": 2}).ok, bool)
assert_type(softmax_shift().holds, bool)
AttentionLab(scene="river", d_k=4).figure().savefig("river.png")
start(7)  # refused
check_value(1)  # refused
