"""Nodes that `sabir.simplify` and other simplifiers leave of the models of some folders.

    python benchmarks/simplify_models.py FOLDER        # with torch
    python benchmarks/simplify.py FOLDER... --peer onnxslim=PYTHON --peer onnxsim=PYTHON

A peer is onnxslim, onnxsim or onnxscript, with the Python that has it. Sabir's models are checked by
onnx, and run by onnxruntime beside the models as they were, on random inputs of several shapes.
"""

# ruff: file-ignore[banned-api]  the peers need onnx, and onnxruntime judges

from __future__ import annotations

import argparse
import json
import subprocess  # ruff: ignore[suspicious-subprocess-import]  each peer has a Python of its own
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

import sabir
from sabir.optimization import input_lists, largest_difference, simplify_model

PEERS = ("onnxslim", "onnxsim", "onnxscript")
WORKER = """
import contextlib, json, os, sys, time
tool, out = sys.argv[1], os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # tools print
import onnx
def nodes(graph):
    inner = [g for n in graph.node for a in n.attribute for g in ([a.g] if a.type == 5 else a.graphs)]
    return len(graph.node) + sum(map(nodes, inner))
def simplified(path):
    model = onnx.load(path)
    if tool == "onnxslim":
        import onnxslim
        return onnxslim.slim(model)
    if tool == "onnxsim":
        import onnxsim
        return onnxsim.simplify(model)[0]
    import onnxscript.optimizer
    return onnxscript.optimizer.optimize(model)
for path in sys.argv[2:]:
    started = time.perf_counter()
    try:
        model = simplified(path)
        found = nodes(model.graph) + sum(map(nodes, model.functions))
    except Exception as error:
        found = None
    print(json.dumps([path, found, time.perf_counter() - started]), file=out, flush=True)
"""


def peer_counts(tool: str, python: str, paths: list[str]) -> dict[str, tuple[int | None, float]]:
    """Return the nodes that a peer leaves of each model, None where it fails, and its seconds."""
    command = [python, "-c", WORKER, tool, *paths]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)  # ruff: ignore[subprocess-without-shell-equals-true]  a peer's Python
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {path: (count, seconds) for path, count, seconds in rows}


def session(path: str | bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def difference(old: str, new: sabir.Model) -> str:
    """Return the largest difference of two models in onnxruntime, relative to an output's largest element."""
    data = sabir.dumps(new)
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    first, second = session(old), session(data)
    worst, runs = 0.0, 0
    ports = sabir.Session(sabir.load(old), engine="reference").inputs
    for lists in input_lists(ports):
        for feeds in lists:
            try:
                expected = first.run(None, feeds)
            except Exception:  # ruff: ignore[blind-except, try-except-continue]  random indices may be refused
                continue
            runs += 1
            for a, b in zip(expected, second.run(None, feeds), strict=True):
                worst = max(worst, largest_difference(a, b))
            break
    return f"{worst:.1e} ({runs})" if runs else "no run"


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folders", nargs="+", type=Path)
    arguments.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    options = arguments.parse_args()
    paths = sorted(str(p) for folder in options.folders for p in folder.rglob("*.onnx"))
    peers = {}
    for peer in options.peer:
        tool, _, python = peer.partition("=")
        peers[tool] = peer_counts(tool, python or sys.executable, paths)
    print(" | ".join(["| model | before", "sabir", *peers, "seconds, sabir", "largest difference |"]))
    print("|---|" + "--:|" * (4 + len(peers)))
    for path in paths:
        model = sabir.load(path)
        started = time.process_time()
        found = simplify_model(model, verify=False)
        seconds = time.process_time() - started
        counts = [peers[p].get(path, (None, 0))[0] for p in peers]
        mark = "" if all(c is None or found.after.nodes <= c for c in counts) else " more!"
        row = [
            f"{Path(path).parent.name}/{Path(path).stem}", found.before.nodes, f"{found.after.nodes}{mark}",
            *("fails" if c is None else c for c in counts), f"{seconds:.2f}", difference(path, found.model),
        ]  # fmt: skip
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
