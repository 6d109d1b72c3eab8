"""Break the mathematics on purpose, one change at a time, and see whether its tests notice.

    python tests/mutation.py                      all modules below, every mutant: about an hour
    python tests/mutation.py masks heads          some modules
    python tests/mutation.py model --sample 40    some mutants of it, the same ones each time

A *mutant* is a module with one thing changed: another operator, a number one off, an argument or a
statement left out. It is *killed* if a test fails. The score is over all mutants but those of
`EQUIVALENT`, which nobody can tell from the original; the exit code is 1 if one is under 98 %.
Needs `os.fork`: one process imports what tests need, and each mutant is tried in a copy of it.
"""

import argparse
import ast
import copy
import os
import random
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = ["dot_product", "masks", "heads", "efficient", "positions", "blocks", "model", "backward"]
TESTS = {"model": ["blocks", "interventions"], "interventions": ["interventions", "blocks"]}
PROCESSES, WANTED = 2, 98  # per cent
PATIENCE = 60  # seconds of computing for one mutant: some never end
MEMORY = 8 * 2**30

# Why the changes below, as they are printed, are none that anybody can see.
EQUIVALENT = {
    "nothing divided by anything is 0": """
        softmax: return positive / np.where(total == 0, 1, total) → return positive / np.where(total == 0, 2, total)
    """,  # noqa: E501
    "apply_mask asks the same of the mask, in the same words": """
        attention_scores: …, m, d_k)', scale=a_scale, mask=mask_for('Q', 'K'))… → …, m, d_k)', scale=a_scale)…
    """,  # noqa: E501
    "a weight of 0 makes nothing of its logarithm": """
        entropy: bits = np.log2(np.where(weights > 0, weights, 1)) → bits = np.log2(np.where(weights > 0, weights, 2))
    """,  # noqa: E501
    "a repeat by 1 is a copy": """
        share_heads: …return M if groups == heads else np.repeat(M, heads // gro… → …return np.repeat(M, heads // gro…
    """,  # noqa: E501
    "a slice from 0 is one from the start": """
        sinusoidal_positions: …table[..., 0::2], table[..., 1::2] = … → …table[..., ::2], table[..., 1::2] = …
    """,  # noqa: E501
    "what is too long is cut off below": """
        alibi_slopes: ….0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power… → ….0 ** (-8 * np.arange(1, 3 * power, 2) / (2 * power…
    """,  # noqa: E501
    "a series from another place, or of one term more, is as near": """
        : _STEP, _LAST = (1 / 64, 6.0) → _STEP, _LAST = (1 / 65, 6.0)
        : _STEP, _LAST = (1 / 64, 6.0) → _STEP, _LAST = (1 / 63, 6.0)
        : _STEP, _LAST = (1 / 64, 6.0) → _STEP, _LAST = (1 / 64, 7.0)
        _erf_series: for r in range(1, 5): → for r in range(1, 6):
        : _ERF_SHORT = _ERF[:4].astype(np.float32) → _ERF_SHORT = _ERF[:].astype(np.float32)
        : _ERF_SHORT = _ERF[:4].astype(np.float32) → _ERF_SHORT = _ERF[:5].astype(np.float32)
        erf: series = _ERF_SHORT if x.dtype == np.float32 else _ERF → series = _ERF
        erf: for row in series[-2::-1]: → for row in series[::-1]:
        erf: for row in series[-2::-1]: → for row in series[-1::-1]:
    """,
    "order of names does not matter here": """
        __post_init__: for name in ('layers', 'd_ff'): → for name in ('d_ff', 'layers'):
        count_params: elif part.startswith(('gain', 'bias')): → elif part.startswith(('bias', 'gain')):
        two_sizes: except (TypeError, ValueError): → except (ValueError, TypeError):
    """,  # noqa: E501
    "all layers, keys and values hold equally many tokens": """
        _past_length: return past[0][0].shape[-2] → return past[-1][0].shape[-2]
        _past_length: return past[0][0].shape[-2] → return past[0][1].shape[-2]
        _past_length: return past[0][0].shape[-2] → return past[0][-1].shape[-2]
    """,
    "any number will do that is finite, or not 0": """
        finite_or_zero: return np.where(np.isneginf(maximum), 0, maximum) → return np.where(np.isneginf(maximum), 1, maximum)
        finite_or_zero: return np.where(np.isneginf(maximum), 0, maximum) → return np.where(np.isneginf(maximum), -1, maximum)
        divide: ….where(denominator == 0, 1, denominator)[..., None]… → ….where(denominator == 0, 2, denominator)[..., None]…
    """,  # noqa: E501
    "an axis of length 1 ends where it starts": """
        cross_entropy: ….., None], axis=-1)[..., 0]… → ….., None], axis=-1)[..., -1]…
        read: …maliser[..., None])[..., 0])… → …maliser[..., None])[..., -1])…
        linear_attention_step: …verage(features(q))[..., 0, :], state)… → …verage(features(q))[..., -1, :], state)…
    """,  # noqa: E501
    "the last step is 1, up to rounding": """
        sample: …s.shape[:-1])[..., None] * steps[..., -1:]… → …s.shape[:-1])[..., None] / steps[..., -1:]…
    """,  # noqa: E501
    "no queries are none, in one slice or two": """
        attention_in_tiles: for i in range(0, max(1, Q.shape[-2]), rows): → for i in range(0, max(2, Q.shape[-2]), rows):
    """,  # noqa: E501
    "both branches give 1 at 0, and the other is not looked at": """
        elu_plus_one: …return np.where(x > 0, x + 1, np.exp(np.mini… → …return np.where(x >= 0, x + 1, np.exp(np.mini…
        elu_plus_one: … 1, np.exp(np.minimum(x, 0)))… → … 1, np.exp(np.minimum(x, 1)))…
    """,  # noqa: E501
    "a state more is kept; it costs memory": """
        _attend: …s(plan, queries), maxlen=1):… → …s(plan, queries), maxlen=2):…
    """,
    "a type says nothing when it runs": """
        : Params = dict[str, np.ndarray] → Params = dict[np.ndarray, str]
    """,
    "a mask of True hides nothing": """
        _tile_mask: if m - 1 <= offset and n - 1 + offset < plan.window: → if False:
        _tile_mask: …if m - 1 <= offset and n - 1 + … → …if m + 1 <= offset and n - 1 + …
        _tile_mask: …if m - 1 <= offset and n - 1 + of… → …if m - 0 <= offset and n - 1 + of…
        _tile_mask: …if m - 1 <= offset and n - 1 + offse… → …if m - 1 < offset and n - 1 + offse…
        _tile_mask: …if m - 1 <= offset and n - 1 + offset < plan.window… → …if m - 1 <= offset and n + 1 + offset < plan.window…
        _tile_mask: … m - 1 <= offset and n - 1 + offset < plan.window:… → … m - 1 <= offset and n - 0 + offset < plan.window:…
    """,  # noqa: E501
    "a window of 2 for 1 key, or of 0 for none, hides no more": """
        _unlimited: return max(1, Q.shape[-2] + offset) → return max(2, Q.shape[-2] + offset)
        _unlimited: return max(1, Q.shape[-2] + offset) → return max(0, Q.shape[-2] + offset)
    """,
}

# What is tried instead of what; a comparison at its border and the other way round.
OPERATORS = """
    Lt LtE GtE, LtE Lt Gt, Gt GtE LtE, GtE Gt Lt, Eq NotEq, NotEq Eq, Is IsNot, IsNot Is, In NotIn,
    NotIn In, Add Sub, Sub Add, Mult Div, Div Mult, FloorDiv Mult, Mod Mult, Pow Mult, MatMult Mult,
    BitOr BitAnd, BitAnd BitOr, LShift RShift, And Or, Or And"""
INSTEAD = {names.split()[0]: names.split()[1:] for names in OPERATORS.split(",")}
PAIRS = "min max, minimum maximum, argmin argmax, any all, zeros ones, sin cos, tril triu, exp log"
TWINS = {a: b for pair in PAIRS.split(", ") for a, b in [pair.split(), pair.split()[::-1]]}


# Making mutants -------------------------------------------------------------------------


def mutants_of(source: str) -> Iterator[tuple[str, str]]:
    """Give every mutant of a module: what is changed, and the changed source."""
    tree = ast.parse(source)
    whole = ast.unparse(tree)
    for holder, key, node, function in places(tree):
        for other in changes(node, function):
            put(holder, key, other)
            changed = ast.unparse(tree)
            if changed != whole:
                yield f"{function}: {difference(whole, changed)}", changed
        put(holder, key, node)


def places(parent: ast.AST, function: str = "") -> Iterator[tuple]:
    """Give each node below another, what holds it under which key, and the function it is in."""
    if isinstance(parent, ast.FunctionDef | ast.ClassDef):
        function = parent.name
    for field, value in ast.iter_fields(parent):
        slots = enumerate(value) if isinstance(value, list) else [(field, value)]
        for key, node in slots:
            if isinstance(node, ast.AST) and field not in ("annotation", "returns"):
                yield value if isinstance(value, list) else parent, key, node, function
                yield from places(node, function)


def put(holder, key: str | int, node: ast.AST) -> None:
    """Put a node in its place."""
    holder.__setitem__(key, node) if isinstance(holder, list) else setattr(holder, key, node)


def difference(whole: str, changed: str) -> str:
    """Show the first line that differs, of a long one the part around the difference."""
    lines = zip(whole.splitlines(), changed.splitlines(), strict=False)
    pair = next((old.strip(), new.strip()) for old, new in lines if old != new)
    if sum(map(len, pair)) > 100:
        start = alike(*pair)
        stop = alike(*(text[start:][::-1] for text in pair))
        start, stop = max(0, start - 25), max(0, stop - 25)
        pair = [f"…{text[start : len(text) - stop]}…" for text in pair]
    return " → ".join(pair)


def alike(a: str, b: str) -> int:
    """Count the letters that two texts have in common before they part."""
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def changes(node: ast.AST, function: str) -> Iterator[ast.AST]:
    """Give what may stand in the place of a node."""
    for other in INSTEAD.get(type(node).__name__, ()):
        yield getattr(ast, other)()
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.UnaryOp(operand=inner) | ast.Attribute(value=inner, attr="mT" | "T"):
            yield inner
        case ast.Call(func=ast.Attribute(value=inner, attr="copy")):
            yield inner
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.If() | ast.While():
            yield from (but(node, test=ast.Constant(value)) for value in (True, False))
        case ast.Slice(lower=lower, upper=upper):
            yield but(node, lower=upper, upper=lower)
            yield from (but(node, **{part: None}) for part in ("lower", "upper", "step"))
        case ast.Tuple(elts=[first, second], ctx=ast.Load()):
            yield but(node, elts=[second, first])
        case ast.Attribute(attr=name) if name in TWINS:
            yield but(node, attr=TWINS[name])
        case ast.Name(id=name) if name in TWINS:
            yield but(node, id=TWINS[name])
        case ast.Call():
            yield from less(node)
        case ast.Expr(value=ast.Constant(value=str())):
            return  # a docstring
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Return() | ast.Continue():
            yield ast.Pass()
        case ast.Assign(targets=[target], value=value) if function:
            if not isinstance(target, ast.Name) or target.id in ast.unparse(value):
                yield ast.Pass()  # other names would be missed at once


def but(node: ast.AST, **fields) -> ast.AST:
    """Give a copy of a node with other fields."""
    new = copy.copy(node)
    vars(new).update(fields)
    return new


def less(call: ast.Call) -> Iterator[ast.Call]:
    """Leave out each option of a call; of `takes`, each shape and each bound of a size too."""
    for i, option in enumerate(call.keywords):
        if not isinstance(getattr(option.value, "value", None), bool):  # that is turned round
            yield but(call, keywords=call.keywords[:i] + call.keywords[i + 1 :])
    if isinstance(call.func, ast.Name) and call.func.id == "takes":
        for i, shape in enumerate(call.args):
            unbound = ast.Constant(shape.value.replace("≥1", "").replace("≥2", ""))
            yield from (
                but(call, args=call.args[:i] + new + call.args[i + 1 :]) for new in ([], [unbound])
            )


# Trying them ----------------------------------------------------------------------------


def make_home(root: Path) -> Path:
    """Copy what tests need to a folder where a module may be broken."""
    home = Path(tempfile.mkdtemp(prefix="mutation-"))
    for name in ("attn_lib", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "js", "static")
        shutil.copytree(root / name, home / name, ignore=ignored)
    shutil.copy(root / "pyproject.toml", home)
    (home / "book").symlink_to(root / "book")
    return home


def test(home: Path, *modules: str) -> int:
    """Run the tests of modules in this process; give pytest's exit code."""
    os.chdir(home)
    sys.path.insert(0, str(home))
    names = {name for module in modules for name in TESTS.get(module, [module])}
    options = ["-x", "-q", "--noconftest", "--tb=no", "--assert=plain", f"--rootdir={home}"]
    files = [f"tests/test_{name}.py" for name in sorted(names)]
    code = pytest.main([*options, "-p", "no:cacheprovider", *files])
    sys.path.remove(str(home))
    return int(code)


def warm_up(home: Path, modules: list[str]) -> None:
    """Run the tests once in this process: what they import, but our own, need not be again."""
    options = {"derandomize": True, "database": None, "phases": ["explicit", "generate"]}
    hypothesis.settings.register_profile("mutation", deadline=None, **options)
    hypothesis.settings.load_profile("mutation")
    test(home, *modules)
    for name, loaded in list(sys.modules.items()):
        if str(getattr(loaded, "__file__", None)).startswith(str(home)):
            del sys.modules[name]


def move_in(homes) -> None:
    """Give a process the folder that it alone changes."""
    global HOME
    HOME = homes.get()


def survives(mutant: tuple[str, str]) -> bool:
    """Try one mutant in a process of its own."""
    module, source = mutant
    path = HOME / "attn_lib" / f"{module}.py"
    right = path.read_text(encoding="utf-8")
    path.write_text(source, encoding="utf-8")
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os._exit(test(HOME, module))
    _, status = os.waitpid(child, 0)
    path.write_text(right, encoding="utf-8")
    return status == 0


def score(pool, module: str, source: str, most: int | None) -> float:
    """Try the mutants of a module, print what came of it; give the percentage killed."""
    mutants = list(mutants_of(source))
    if most is not None and most < len(mutants):
        mutants = random.Random(0).sample(mutants, most)
    same = {line.strip() for text in EQUIVALENT.values() for line in text.splitlines()}
    told = [(change, changed) for change, changed in mutants if change not in same]
    if not pool.apply(survives, [(module, source)]):
        sys.exit(f"the tests of {module} fail without any change: mend them first")
    tried = pool.imap(survives, [(module, changed) for _, changed in told])
    killed = len(told)
    for (change, _), survived in zip(told, tried, strict=True):
        if survived:
            killed -= 1
            print(f"survives in {module}, {change}", flush=True)
    rate, left_out = 100 * killed / max(1, len(told)), len(mutants) - len(told)
    count = f"{killed} of {len(told)} killed, {rate:.1f} %; {left_out} equivalent"
    print(f"{module}: {count}", flush=True)
    return rate


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Try mutants, print the score of each module and every survivor; give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--sample", type=int, help="how many mutants of a module, at most")
    asked = parser.parse_args(arguments)
    context = get_context("fork")
    homes, queue = [make_home(root) for _ in range(PROCESSES)], context.SimpleQueue()
    try:
        warm_up(homes[0], asked.modules)
        for home in homes:
            queue.put(home)
        with context.Pool(PROCESSES, move_in, [queue]) as pool:
            sources = [(m, (root / f"attn_lib/{m}.py").read_text("utf-8")) for m in asked.modules]
            rates = [score(pool, *each, asked.sample) for each in sources]
    finally:
        for home in homes:
            shutil.rmtree(home)
    return int(min(rates) < WANTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
