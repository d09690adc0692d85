"""Classical models and small networks that scikit-learn trained, for one row and for ten thousand.

    python benchmarks/classical.py

Pipelines on texts are measured in process time, for one row, 200 and 10,000, and batches of 1 to 40 rows.

`BENCH_THREADS` is the number of threads of both sides. Models of LightGBM and XGBoost join where these and
onnxmltools are installed.
"""

from __future__ import annotations

import time
import warnings
from importlib import import_module
from itertools import starmap
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import sabir

if TYPE_CHECKING:
    from collections.abc import Iterator

FEATURES, ROWS = 20, 10_000
OPSETS = {"": 18, "ai.onnx.ml": 3}


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{h.THREADS} thread(s) on both sides. Rows have {FEATURES} features.\n")
    rows = list(starmap(_row, _models()))
    head = ("model", "1 row", "onnxruntime", "ratio", f"{ROWS} rows", "onnxruntime", "ratio", "difference")
    h.table(head, rows)
    counts = [f"{count} rows" for count in (1, 200, ROWS)] + ["1 to 40 rows"]
    h.table(
        ("model on texts", *(x for count in counts for x in (count, "onnxruntime", "ratio"))),
        list(starmap(_text_row, _text_models())),
    )


def _text_row(name: str, data: bytes, feeds: Any) -> tuple[str, ...]:
    """Return the process times of single runs, and of a run of a batch that changes from run to run."""
    h.progress(name)
    peer, session = h.onnxruntime_session(data), sabir.Session(data, threads=h.THREADS, engine="compiled")
    found = [name]
    few = ROWS if "n-grams" not in name else 1000
    order = np.random.default_rng(0).permutation(np.tile(np.arange(1, 41), 2))
    for batches in ([feeds(1)], [feeds(200)], [feeds(few)], [feeds(int(count)) for count in order]):
        for _ in range(2):
            for batch in batches:
                session.run(batch)
        ours, theirs = h.blocks(
            [
                h.Case("Sabir", lambda _, b=batches: _runs(session.run, b)),
                h.Case("onnxruntime", lambda _, b=batches: _runs(lambda x: peer.run(None, x), b)),
            ],
            rounds=21, size=7, pick=min, clock=time.process_time,
        ).values()  # fmt: skip
        times = _turns(batches)
        found += [h.time_text(ours / times), h.time_text(theirs / times), h.ratio_text(theirs, ours)]
    return tuple(found)


def _turns(batches: list[Any]) -> int:
    return len(batches) * max(1, 80 // len(batches))


def _runs(run: Any, batches: list[Any]) -> None:
    for _ in range(max(1, 80 // len(batches))):
        for batch in batches:
            run(batch)


def _row(name: str, data: bytes) -> tuple[str, ...]:
    h.progress(name)
    peer = h.onnxruntime_session(data)
    session = sabir.Session(data, threads=h.THREADS, engine="compiled")
    x = np.random.default_rng(1).standard_normal((ROWS, FEATURES)).astype(np.float32)
    found = [name]
    for count in (1, ROWS):
        feeds = {peer.get_inputs()[0].name: x[:count]}
        ours, theirs = h.short_blocks([
            h.Case("compiled", lambda _, f=feeds: session.run(f)),
            h.Case("onnxruntime", lambda _, f=feeds: peer.run(None, f)),
        ]).values()
        found += [h.time_text(ours), h.time_text(theirs), h.ratio_text(theirs, ours)]
    scores, expected = [*session.run({peer.get_inputs()[0].name: x}).values()][-1], peer.run(None, feeds)[-1]
    return (*found, f"{np.max(np.abs(scores - expected)):.1e}")


# ---------------------------------------------------------------- models


def _models() -> Iterator[tuple[str, bytes]]:
    x, y = _data(2)
    x3, y3 = _data(3)
    target = (x[:, 0] * x[:, 1] + np.sin(x[:, 2])).astype(np.float32)
    forest = RandomForestClassifier(100, random_state=0)
    trained: dict[str, Any] = {
        "a tree of one test": DecisionTreeClassifier(max_depth=1).fit(x, y),
        "scaler and forest, 10 trees of depth 5": make_pipeline(
            StandardScaler(), RandomForestClassifier(10, max_depth=5, random_state=0)
        ).fit(x, y),
        "forest, 100 whole trees, 3 classes": forest.fit(x3, y3),
        "forest, 100 trees of depth 8, regression": RandomForestRegressor(
            100, max_depth=8, random_state=0
        ).fit(x, target),
        "boosting, 100 trees of depth 3": GradientBoostingClassifier(random_state=0).fit(x, y),
        "boosting, 300 trees of depth 5, regression": GradientBoostingRegressor(
            n_estimators=300, max_depth=5, random_state=0
        ).fit(x, target),
        "scaler and logistic regression": make_pipeline(StandardScaler(), LogisticRegression()).fit(x3, y3),
        "scaler and support vectors": make_pipeline(StandardScaler(), SVC()).fit(x[:1000], y[:1000]),
        "network of 32 and 16": MLPClassifier((32, 16), max_iter=20).fit(x, y),
    }
    texts = np.array(["low", "middle", "high"])[y3]
    trained["forest, classes with names"] = RandomForestClassifier(30, random_state=0).fit(x3, texts)
    trained["support vectors, probabilities"] = SVC(
        probability=True  # pyright: ignore[reportArgumentType] - it knows the type of the default alone
    ).fit(x3[:1000], texts[:1000])
    for name, model in trained.items():
        options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
        found: Any = to_onnx(model, x[:1], options=options, target_opset=OPSETS)
        yield name, found.SerializeToString()
    yield from _boosted(x, y)


def _text_models() -> Iterator[tuple[str, bytes, Any]]:
    random, count = np.random.default_rng(0), 2000
    table = np.empty((count, 4), object)
    table[:, 0] = random.choice(["red", "green", "blue", "violet"], count).tolist()
    table[:, 1] = random.choice(["Rome", "Oslo", "Paris", "Lima", "Quito", "Cairo"], count).tolist()
    table[:, 2:] = random.standard_normal((count, 2)).astype(np.float32)
    y = np.where(random.random(count) + (table[:, 0] == "red") > 0.8, "yes", "no")
    texts, floats = StringTensorType([None, 1]), FloatTensorType([None, 1])
    inputs: Any = [("color", texts), ("city", texts), ("a", floats), ("b", floats)]

    def feeds(rows: int) -> dict[str, Any]:
        some = table[np.random.default_rng(1).integers(0, count, rows)]
        columns = {name: some[:, n : n + 1].copy() for n, (name, _) in enumerate(inputs)}
        return columns | {name: columns[name].astype(np.float32) for name in ("a", "b")}

    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    for name, encoder, maps in (
        ("one-hot categories, logistic regression", OneHotEncoder(handle_unknown="ignore"), False),
        ("the same with ZipMap", OneHotEncoder(handle_unknown="ignore"), True),
        ("ordinal categories, logistic regression", OrdinalEncoder(), False),
    ):
        columns = ColumnTransformer([("texts", encoder, [0, 1]), ("numbers", numbers, [2, 3])])
        model = make_pipeline(columns, LogisticRegression()).fit(table, y)
        made: Any = convert_sklearn(
            model, initial_types=inputs, options={id(model): {"zipmap": maps}}, target_opset=OPSETS
        )
        yield name, made.SerializeToString(), feeds
    words = np.array([f"w{n}" for n in range(2000)])
    documents = [" ".join(random.choice(words, 20)) for _ in range(1000)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(documents, np.arange(1000) % 2)
    options: Any = {id(model): {"zipmap": False}, TfidfVectorizer: {"locale": "C.UTF-8"}}
    made = convert_sklearn(model, initial_types=[("x", texts)], options=options, target_opset=OPSETS)
    rows = np.array(documents, object)
    yield (
        "n-grams of 20 words, logistic regression",
        made.SerializeToString(),
        lambda count: {"x": rows[:count].reshape(-1, 1)},
    )


def _data(classes: int) -> tuple[Any, Any]:
    made: Any = make_classification(4000, FEATURES, n_informative=10, n_classes=classes, random_state=0)
    return made[0].astype(np.float32), made[1]


def _boosted(x: Any, y: Any) -> Iterator[tuple[str, bytes]]:
    """Yield the models of libraries that may be installed."""
    try:
        lightgbm, xgboost, tools = map(import_module, ("lightgbm", "xgboost", "onnxmltools"))
    except ImportError:
        h.progress("no LightGBM, XGBoost or onnxmltools")
        return
    inputs: Any = [("X", import_module("skl2onnx.common.data_types").FloatTensorType([None, FEATURES]))]
    light = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1).fit(x, y)
    found = tools.convert_lightgbm(light, initial_types=inputs, zipmap=False, target_opset=15)
    yield "LightGBM, 100 trees", found.SerializeToString()
    extreme = xgboost.XGBClassifier(n_estimators=100, max_depth=6).fit(x, y)
    yield (
        "XGBoost, 100 trees of depth 6",
        tools.convert_xgboost(extreme, initial_types=inputs, target_opset=15).SerializeToString(),
    )


if __name__ == "__main__":
    main()
