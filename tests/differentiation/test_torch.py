"""Values and gradients that PyTorch computed: `tools/record_gradients.py` recorded them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sabir
from support.cases import each_of
from support.gradients import IN_FLOAT

RECORD = json.loads(Path(__file__).with_name("torch.json").read_text(encoding="utf-8"))["cases"]
CASES = [pytest.param(case, id=case["name"]) for case in RECORD]
SEED_OF_DET = next(c for c in RECORD if c["name"] == "Det singular")["outputs"]["y"]["seed"]
DIFFERENT = {
    # the cofactors of [[1, 2], [2, 4]]; PyTorch solves with the matrix, and has zeros where that is impossible
    ("Det singular", "x"): SEED_OF_DET * np.array([[4.0, -2.0], [-2.0, 1.0]]),
}


@each_of("case", CASES)
def test_values_and_gradients(case):
    model = sabir.parse(case["model"])
    types = {v.name: v.type.element.dtype for v in model.graph.inputs}
    feeds = {n: np.array(x, types[n]) for n, x in case["feeds"].items()}
    exact = IN_FLOAT.isdisjoint(n.op for n in model.graph)
    close: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11} if exact else {"rtol": 1e-5, "atol": 1e-5}
    for output, recorded in case["outputs"].items():
        if not recorded["gradients"]:
            continue
        names = {n: f"d_{n}" for n in recorded["gradients"]}
        found = sabir.differentiate(model, output, list(names), seed="seed", names=names)
        kind = found.graph.value("seed").element.dtype
        results = sabir.evaluate(found, {**feeds, "seed": np.array(recorded["seed"], kind)})
        np.testing.assert_allclose(results[output], recorded["value"], err_msg=output, **close)
        for n, gradient in recorded["gradients"].items():
            expected = DIFFERENT.get((case["name"], n), gradient)
            np.testing.assert_allclose(results[f"d_{n}"], expected, err_msg=f"{output}, {n}", **close)


def test_the_record():
    """It covers every operator with a gradient that PyTorch has, and each input of a case has a gradient."""
    used = {n.op for case in RECORD for n in sabir.parse(case["model"]).graph.all_nodes()}
    assert len(used) > 130
    assert all(o["gradients"] for case in RECORD for n, o in case["outputs"].items() if n == "y")
