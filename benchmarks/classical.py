"""Classical models and small networks that scikit-learn trained, for one row and for ten thousand.

    python benchmarks/classical.py

`BENCH_THREADS` is the number of threads of both sides. Models of LightGBM and XGBoost join where these and
onnxmltools are installed.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from itertools import starmap
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
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
