"""`import sabir` against `import onnx`, in fresh processes with warm bytecode."""

from __future__ import annotations

import harness as h

NAMES = ("sabir", "onnx", "onnx_ir", "onnxruntime", "numpy")
ROUNDS = 15


def main() -> None:
    scripts = [h.Script(f"import {name}", "", f"import {name}") for name in NAMES]
    h.costs(scripts, rounds=1)  # writes the bytecode, and brings the files into memory
    found = h.costs(scripts, rounds=ROUNDS)
    ours = found["import sabir"]
    rows = [
        (
            f"`{n}`",
            h.time_text(c.seconds),
            "" if c is ours else h.ratio_text(c.seconds, ours.seconds),
            f"{c.growth:.0f} MiB",
        )
        for n, c in found.items()
    ]
    h.table(("fresh process", "time", "against sabir", "resident memory grows"), rows)
    print("numpy is part of all the others: the floor for each of them.")


if __name__ == "__main__":
    main()
