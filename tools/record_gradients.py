"""Write tests/differentiation/torch.json: what PyTorch computes for operators, in double precision.

    python tools/record_gradients.py [--check]

The file has models, values and gradients. Run this by hand, in an environment with numpy and PyTorch
(`pip install torch numpy`): no test needs PyTorch, they read the file. `tools/gradient_cases` has the calls.
Inputs and cotangents are drawn from the names of the cases, so a second run writes the same file. `--check`
writes nothing, and fails if the file differs in more than rounding.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradient_cases.case import Case

TARGET = Path(__file__).parents[1] / "tests" / "differentiation" / "torch.json"
DIGITS = 13
TOLERANCE = 1e-10


def main() -> None:
    """Record every case."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    given = cli.parse_args()
    try:
        import torch  # pyright: ignore[reportMissingImports]  # ruff: ignore[import-outside-top-level]  --help needs no PyTorch
    except ImportError:
        raise SystemExit(
            "PyTorch is not installed; `pip install torch numpy` in a scratch environment"
        ) from None
    from gradient_cases.table import CASES  # ruff: ignore[import-outside-top-level]  it imports PyTorch

    torch.set_num_threads(1)
    found = [_recorded(case, torch) for case in CASES]
    names = [case["name"] for case in found]
    if len(set(names)) < len(names):
        raise SystemExit(f"two cases have one name: {sorted({n for n in names if names.count(n) > 1})}")
    if given.check:
        return _compare(found, json.loads(TARGET.read_text(encoding="utf-8"))["cases"])
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in found)
    written = f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n'
    TARGET.write_text(written, encoding="utf-8")
    return print(f"{len(found)} cases, {len(written) / 1000:.0f} KB")


def _recorded(case: Case, torch: Any) -> dict[str, Any]:
    """Return the case as it is written: the model, its feeds, outputs, and what is pulled back from each."""
    tensors = {n: torch.tensor(array, requires_grad=n in case.wrt) for n, array in case.inputs.items()}
    try:
        results = case.function(*tensors.values())
    except Exception as error:
        error.add_note(f"in the case {case.name}")
        raise
    results = results if isinstance(results, tuple) else (results,)
    random = np.random.default_rng(zlib.crc32(f"{case.name}: cotangents".encode()))
    outputs = {}
    for name, result in zip(case.outputs, results, strict=True):
        seed = random.standard_normal(tuple(result.shape)).round(2)
        gradients: dict[str, Any] = {}
        if result.requires_grad:
            found = torch.autograd.grad(
                result,
                [tensors[n] for n in case.wrt],
                torch.tensor(seed),
                retain_graph=True,
                allow_unused=True,
            )
            gradients = {n: _listed(d) for n, d in zip(case.wrt, found, strict=True) if d is not None}
        outputs[name] = {"value": _listed(result), "seed": seed.tolist(), "gradients": gradients}
    feeds = {name: array.tolist() for name, array in case.inputs.items()}
    return {"name": case.name, "model": case.model, "feeds": feeds, "outputs": outputs}


def _listed(tensor: Any) -> Any:
    """Return nested lists of the numbers with the digits that are compared."""
    array = tensor.detach().numpy()
    short = [float(f"{v:.{DIGITS}g}") for v in array.ravel().tolist()]
    return np.array(short).reshape(array.shape).tolist()


def _compare(found: list[dict[str, Any]], recorded: list[dict[str, Any]]) -> None:
    """Fail if the record differs from what PyTorch computes now."""
    old = {case["name"]: case for case in recorded}
    if [*old] != [case["name"] for case in found]:
        raise SystemExit("the names of the cases differ; run it without --check")
    for case in found:
        same = old[case["name"]]
        if (case["model"], case["feeds"]) != (same["model"], same["feeds"]):
            raise SystemExit(f"{case['name']}: its model or its feeds differ; run it without --check")
        for name, output in case["outputs"].items():
            for key, value in [("value", output["value"]), *output["gradients"].items()]:
                before = same["outputs"][name]
                other = before["value"] if key == "value" else before["gradients"][key]
                if not np.allclose(value, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                    raise SystemExit(f"{case['name']}: {name}, {key} differs")
    print(f"{len(found)} cases are as recorded")


if __name__ == "__main__":
    sys.exit(main())
