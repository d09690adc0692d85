"""Operators: the official node suite, and single ones at realistic sizes, against the reference evaluator.

Both sides evaluate a loaded model once, binding included. onnxruntime, a session made beforehand, is shown
beside the single operators for information.
"""
# ruff: file-ignore[banned-api]  onnx is the peer
# ruff: file-ignore[ambiguous-unicode-character-string]  the sign of multiplication

from __future__ import annotations

import contextlib
import gc
import signal
import statistics
import time
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.backend.test.loader import load_node_model_tests
from onnx.numpy_helper import to_array
from onnx.reference import ReferenceEvaluator

import sabir

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

SUITE_ROUNDS, ROUNDS = 5, 5
SLOW, LIMIT = 2.0, 60.0  # seconds: a run slower than the first is made once, one over the second cut off
WORST = 10
LONG = 5e-3  # seconds: the few cases above it would speak for all the others
OPSET, ML_OPSET, IR = 21, 3, 10
RTOL, ATOL = 1e-3, 1e-4  # the second is a share of the largest number
DRAW = np.random.default_rng(0)


def main() -> None:
    """Print the suite's tables, then those of single operators."""
    warnings.simplefilter("ignore")  # cases divide by zero on purpose, and the peer tells of every one
    suite()
    singles()


# ---------------------------------------------------------------- the official node suite


class Timed(NamedTuple):
    """One case of the suite: the median seconds of the processor for both sides."""

    name: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """How many times faster Sabir is."""
        return self.theirs / self.ours


def suite() -> None:
    """Time every case of the node suite that both sides can run."""
    outcomes: Counter[str] = Counter()
    runnable = []
    for case in load_node_model_tests():
        contestants = _contestants(case)
        outcome = _outcome(case.name, contestants)
        outcomes[outcome] += 1
        if outcome == "both":
            runnable.append((case.name, *contestants))
    found = _suite_times(runnable)
    print(
        f"The official node suite, in processor time: {len(found)} cases run on both sides and are timed,\n"
        f"{outcomes['ours']} run on Sabir alone, {outcomes['theirs']} on the reference evaluator alone,"
        f" {outcomes['neither']} on neither.\n"
    )
    _suite_tables(found)


def _contestants(case: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return the two evaluations of a case, as functions of nothing."""
    proto = case.model
    constants = {t.name for t in proto.graph.initializer}
    names = [v.name for v in proto.graph.input if v.name not in constants]
    given = [to_array(x) if isinstance(x, onnx.TensorProto) else x for x in case.data_sets[0][0]]
    feeds = dict(zip(names, given, strict=False))
    try:
        model = sabir.loads(proto.SerializeToString())
    except sabir.SabirError as error:
        failure = error
        return (lambda: _fail(failure)), (lambda: ReferenceEvaluator(proto).run(None, feeds))
    return (lambda: sabir.evaluate(model, feeds)), (lambda: ReferenceEvaluator(proto).run(None, feeds))


def _fail(error: Exception) -> None:
    raise error


def _outcome(name: str, contestants: Sequence[Callable[[], Any]]) -> str:
    """Return who can run a case: both, ours, theirs or neither; say so on stderr where ours cannot."""
    able = []
    for work in contestants:
        try:
            work()
        except Exception as error:  # ruff: ignore[blind-except]  the peer fails in every way there is
            able.append(False)
            if work is contestants[0]:
                h.progress(f"{name} does not run on Sabir: {str(error).splitlines()[0][:100]}")
        else:
            able.append(True)
    return {(True, True): "both", (True, False): "ours", (False, True): "theirs"}.get(tuple(able), "neither")


@contextlib.contextmanager
def _without_collections() -> Generator[None, None, None]:
    """Keep the collector away: the suite's own thousands of arrays would be walked in some case's time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _suite_times(cases: Sequence[tuple[str, Callable[[], Any], Callable[[], Any]]]) -> list[Timed]:
    """Return the medians of each case, the two sides taking turns at being first."""
    taken: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name, _, _ in cases}
    for number in range(SUITE_ROUNDS):
        h.progress(f"the suite, round {number + 1} of {SUITE_ROUNDS}")
        with _without_collections():
            for name, *works in cases:
                for side in (0, 1) if number % 2 else (1, 0):
                    taken[name][side].append(_seconds(works[side]))
    return [Timed(name, *map(statistics.median, times)) for name, times in taken.items()]


def _seconds(work: Callable[[], Any]) -> float:
    """Return the processor's seconds: a case takes microseconds, and another process's turn milliseconds."""
    started = time.process_time()
    kept = work()
    seconds = time.process_time() - started
    del kept
    return seconds


def _suite_tables(found: Sequence[Timed]) -> None:
    ours, theirs = sum(t.ours for t in found), sum(t.theirs for t in found)
    rows = [("`sabir.evaluate`", h.time_text(ours), ""),
            ("`ReferenceEvaluator`", h.time_text(theirs), h.ratio_text(theirs, ours))]  # fmt: skip
    h.table(("all cases together", "time", "ratio"), rows)
    rest = [t for t in found if t.theirs < LONG]
    mine, other = sum(t.ours for t in rest), sum(t.theirs for t in rest)
    print(
        f"Without the {len(found) - len(rest)} cases that take the peer over {h.time_text(LONG)}:"
        f" {h.time_text(mine)} against {h.time_text(other)}, {h.ratio_text(other, mine)}.\n"
    )
    ratios = np.array([t.ratio for t in found])
    shares = [("slowest", 0), ("1 %", 1), ("10 %", 10), ("median", 50), ("90 %", 90), ("fastest", 100)]
    print("The ratio of each case:\n")
    spread = [f"{np.percentile(ratios, share):.2f}×" for _, share in shares]
    slower = int(np.count_nonzero(ratios < 1))
    head = ("", *(name for name, _ in shares), "cases below 1")
    h.table(head, [("ratio", *spread, slower)])
    print(f"The {WORST} cases with the lowest ratio:\n")
    h.table(HEAD[:1] + HEAD[2:5], [_suite_row(t) for t in sorted(found, key=lambda t: t.ratio)[:WORST]])
    print(f"The {WORST} cases in which Sabir loses the most time:\n")
    losers = sorted((t for t in found if t.ratio < 1), key=lambda t: t.theirs - t.ours)[:WORST]
    h.table(HEAD[:1] + HEAD[2:5], [_suite_row(t) for t in losers])


def _suite_row(timed: Timed) -> tuple[str, ...]:
    name = timed.name.removeprefix("test_")
    return name, h.time_text(timed.ours), h.time_text(timed.theirs), h.ratio_text(timed.theirs, timed.ours)


HEAD = ("operator", "size", "`sabir.evaluate`", "`ReferenceEvaluator`", "ratio", "onnxruntime", "agrees")


# ---------------------------------------------------------------- single operators


class Single(NamedTuple):
    """One operator at one size; `inputs` are in the order of its signature, None for one left out."""

    op: str
    size: str
    inputs: Sequence[np.ndarray | None]
    outputs: int = 1
    domain: str = ""
    attributes: dict[str, Any] = {}  # ruff: ignore[mutable-class-default]  read alone

    def model(self) -> onnx.ModelProto:
        """Return a model of this one node."""
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, self.inputs, strict=True)
            if x is not None
        ]
        told = [helper.make_empty_tensor_value_info(name) for name in results]
        opsets = [helper.make_opsetid("", OPSET if self.op != "Attention" else 23)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, ML_OPSET))
        graph = helper.make_graph([node], self.op, given, told)
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR)

    def feeds(self) -> dict[str, np.ndarray]:
        """Return the inputs by name."""
        return {f"x{i}": x for i, x in enumerate(self.inputs) if x is not None}


class Run(NamedTuple):
    """What came of one contestant: seconds, its outputs, and what is to be said where there are none."""

    seconds: float | None
    outputs: Sequence[Any] | None = None
    told: str = ""

    @property
    def text(self) -> str:
        """The seconds as a table shows them, or why there are none."""
        return self.told if self.seconds is None else h.time_text(self.seconds) + self.told


def singles() -> None:
    """Time each operator by itself."""
    rows = [_single_row(single) for single in every_single()]
    print("Single operators:\n")
    h.table(HEAD, rows)
    print(
        f"A peer's run above {SLOW:g} s was made once, and one above {LIMIT:g} s cut off there. The last\n"
        f"column is against the reference evaluator, and against onnxruntime where that gave none in time."
    )


def _single_row(single: Single) -> tuple[str, ...]:
    h.progress(f"{single.op}, {single.size}")
    proto, feeds = single.model(), single.feeds()
    model = sabir.loads(proto.SerializeToString())
    works = [
        lambda: list(sabir.evaluate(model, feeds).values()),
        lambda: ReferenceEvaluator(proto).run(None, feeds),
        _runtime_work(proto, feeds),
    ]
    ours, theirs, runtime = _medians_of([_trial(work) for work in works], works)
    ratio = ""
    if ours.seconds is not None and theirs.told.startswith("over"):
        ratio = f"> {h.ratio_text(LIMIT, ours.seconds)}"
    elif ours.seconds is not None and theirs.seconds is not None:
        ratio = h.ratio_text(theirs.seconds, ours.seconds)
    agreed = _agrees(ours, theirs if theirs.outputs is not None else runtime)
    return single.op, single.size, ours.text, theirs.text, ratio, runtime.text, agreed


def _runtime_work(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> Callable[[], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = h.THREADS, 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    except Exception as error:  # ruff: ignore[blind-except]  its errors have no common ground
        failure = error
        return lambda: _fail(failure)
    return lambda: session.run(None, feeds)


class _CutOffError(Exception):
    pass


def _trial(work: Callable[[], Any]) -> Run:
    """Run once, under the limit."""

    def cut(*_: object) -> None:
        raise _CutOffError

    before = signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    started = time.perf_counter()
    try:
        outputs = work()
        return Run(time.perf_counter() - started, outputs)
    except _CutOffError:
        return Run(None, None, f"over {LIMIT:g} s")
    except Exception as error:  # ruff: ignore[blind-except]  a contestant that fails is a result
        signal.setitimer(signal.ITIMER_REAL, 0)
        h.progress(f"fails: {str(error).splitlines()[0][:160]}")
        return Run(None, None, "fails")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _medians_of(trials: Sequence[Run], works: Sequence[Callable[[], Any]]) -> list[Run]:
    """Replace the trial's time by a median of interleaved runs, for those fast enough."""
    again = [i for i, t in enumerate(trials) if t.seconds is not None and (t.seconds < SLOW or i == 0)]
    cases = [h.Case(str(i), lambda _, work=works[i]: work()) for i in again]
    found = h.medians(cases, ROUNDS) if cases else {}
    return [
        t._replace(seconds=found[str(i)]) if str(i) in found else t._replace(told=t.told or " once")
        for i, t in enumerate(trials)
    ]


def _agrees(ours: Run, theirs: Run) -> str:
    if ours.outputs is None or theirs.outputs is None:
        return "?"
    pairs = zip(ours.outputs, theirs.outputs, strict=True)
    return "yes" if all(_close(np.asarray(a), np.asarray(b)) for a, b in pairs) else "NO"


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype.kind in "OUS":
        return np.array_equal(a, b)
    if a.dtype.kind in "iu":  # a value half way between two numbers may go to either
        return bool(np.max(np.abs(a.astype(np.int64) - b.astype(np.int64)), initial=0) <= 1)
    return np.allclose(a, b, RTOL, ATOL * float(np.nanmax(np.abs(b), initial=0)), equal_nan=True)


def every_single() -> Generator[Single, None, None]:
    """Yield all the operators that are timed."""
    yield from trees()
    yield from recurrences()
    yield from images()
    yield from texts_and_boxes()
    yield from transformer_parts()
    yield from the_rest()


def normal(*shape: int) -> np.ndarray:
    """Return normal float32 numbers."""
    return DRAW.standard_normal(shape, np.float32)


def trees(count: int = 100, depth: int = 8, rows: int = 10_000, features: int = 32) -> Iterable[Single]:
    """Yield ensembles of full binary trees, each node asking of a feature drawn at random."""
    inner, size = (1 << depth) - 1, (1 << (depth + 1)) - 1
    ids = np.arange(size)
    leaf = ids >= inner
    nodes = {
        "nodes_treeids": np.repeat(np.arange(count), size).tolist(),
        "nodes_nodeids": np.tile(ids, count).tolist(),
        "nodes_featureids": DRAW.integers(0, features, count * size).tolist(),
        "nodes_values": normal(count * size).tolist(),
        "nodes_modes": np.tile(np.where(leaf, "LEAF", "BRANCH_LEQ"), count).tolist(),
        "nodes_truenodeids": np.tile(np.where(leaf, 0, 2 * ids + 1), count).tolist(),
        "nodes_falsenodeids": np.tile(np.where(leaf, 0, 2 * ids + 2), count).tolist(),
        "nodes_missing_value_tracks_true": [0] * (count * size),
    }
    x, shown = normal(rows, features), f"{count} trees of depth {depth}, {rows} rows"
    for op, prefix, targets, outputs in (
        ("TreeEnsembleRegressor", "target", {"n_targets": 1}, 1),
        ("TreeEnsembleClassifier", "class", {"classlabels_int64s": [0, 1, 2]}, 2),
    ):
        votes = {
            f"{prefix}_treeids": np.repeat(np.arange(count), inner + 1).tolist(),
            f"{prefix}_nodeids": np.tile(ids[leaf], count).tolist(),
            f"{prefix}_ids": DRAW.integers(0, 1 if outputs == 1 else 3, count * (inner + 1)).tolist(),
            f"{prefix}_weights": normal(count * (inner + 1)).tolist(),
        }
        told = {"post_transform": "NONE", **nodes, **votes, **targets}
        yield Single(op, shown, [x], outputs, "ai.onnx.ml", told)


def recurrences(steps: int = 100, batch: int = 16, hidden: int = 256) -> Iterable[Single]:
    """Yield the three recurrent operators."""
    x, shown = normal(steps, batch, hidden), f"{steps} steps, batch {batch}, hidden {hidden}"
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        w, r = normal(1, gates * hidden, hidden) / 16, normal(1, gates * hidden, hidden) / 16
        attributes = {"hidden_size": hidden}
        yield Single(op, shown, [x, w, r, normal(1, 2 * gates * hidden)], 2, attributes=attributes)


def images() -> Iterable[Single]:
    """Yield the operators that sample images."""
    x, scales = normal(1, 3, 512, 512), np.array([1, 1, 2, 2], np.float32)
    for mode in ("nearest", "linear", "cubic"):
        yield Single("Resize", f"{mode}, 1×3×512×512 to ×2", [x, None, scales], attributes={"mode": mode})
    image, grid = normal(1, 3, 128, 128), DRAW.uniform(-1, 1, (1, 128, 128, 2)).astype(np.float32)
    for mode in ("nearest", "linear", "cubic"):
        yield Single("GridSample", f"{mode}, 1×3×128×128", [image, grid], attributes={"mode": mode})


def texts_and_boxes(rows: int = 1000, tokens: int = 200, boxes: int = 5000) -> Iterable[Single]:
    """Yield TfIdfVectorizer and NonMaxSuppression."""
    ids = DRAW.integers(0, 1000, (rows, tokens)).astype(np.int64)
    ones, pairs = list(range(100)), DRAW.integers(0, 100, (400, 2))
    pool = [*ones, *np.unique(pairs, axis=0).ravel().tolist()]
    count = 100 + (len(pool) - 100) // 2
    attributes = {"mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
                  "ngram_counts": [0, 100], "ngram_indexes": list(range(count)), "pool_int64s": pool,
                  "weights": normal(count).tolist()}  # fmt: skip
    shown = f"{rows} rows of {tokens}, pool of {count}"
    yield Single("TfIdfVectorizer", shown, [ids], attributes=attributes)
    corner = DRAW.uniform(0, 1000, (1, boxes, 2))
    found = np.concatenate([corner, corner + DRAW.uniform(5, 80, (1, boxes, 2))], axis=2).astype(np.float32)
    scores = DRAW.uniform(0, 1, (1, 1, boxes)).astype(np.float32)
    limits = [np.array([boxes], np.int64), np.array([0.5], np.float32), np.array([0.05], np.float32)]
    yield Single("NonMaxSuppression", f"{boxes} boxes", [found, scores, *limits])


def transformer_parts() -> Iterable[Single]:
    """Yield what transformers are made of."""
    x, scale = normal(8, 512, 768), np.ones(768, np.float32)
    yield Single("Softmax", "8×512×768", [x])
    yield Single("LayerNormalization", "8×512×768", [x, scale, scale])
    q, k, v = normal(4, 12, 128, 64), normal(4, 12, 128, 64), normal(4, 12, 128, 64)
    yield Single("Attention", "batch 4, 12 heads, 128×64", [q, k, v])
    yield Single("Einsum", "bhid,bhjd->bhij, 4×12×128×64", [q, k], attributes={"equation": "bhid,bhjd->bhij"})
    yield Single("QuantizeLinear", "8×512×768, by axis", [x, scale / 32, np.zeros(768, np.uint8)],
                 attributes={"axis": 2})  # fmt: skip
    whole = DRAW.integers(0, 256, x.shape).astype(np.uint8)
    yield Single("DequantizeLinear", "8×512×768, by axis", [whole, scale / 32, np.zeros(768, np.uint8)],
                 attributes={"axis": 2})  # fmt: skip


def the_rest() -> Iterable[Single]:
    """Yield sorting and scattering."""
    x = normal(1000, 1000)
    yield Single("TopK", "1000×1000, k = 50", [x, np.array([50], np.int64)], 2)
    numbers = DRAW.integers(0, 10_000, 1_000_000).astype(np.int64)
    yield Single("Unique", "1 000 000 of 10 000 integers", [numbers], 4)
    rows = DRAW.integers(0, 100, (1000, 20)).astype(np.int64) // 50
    yield Single("Unique", "1000×20, axis 0", [rows], 4, attributes={"axis": 0})
    places = np.argsort(normal(200, 1000), axis=1).astype(np.int64)
    yield Single("ScatterElements", "200×1000 into 1000×1000", [x, places, normal(200, 1000)],
                 attributes={"axis": 1})  # fmt: skip
    yield Single("ScatterElements", "200×1000, added", [x, places, normal(200, 1000)],
                 attributes={"axis": 1, "reduction": "add"})  # fmt: skip


if __name__ == "__main__":
    main()
