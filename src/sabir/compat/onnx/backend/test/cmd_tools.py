"""The program that writes the cases to a folder in the official layout: `generate-data -o FOLDER`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sabir.compat import onnx
from sabir.compat.onnx.backend.test.loader import DATA_DIR, load_model_tests
from sabir.serial import from_proto, save_value

if TYPE_CHECKING:
    from sabir.compat.onnx.backend.test.case.test_case import TestCase


def generate_data(args: argparse.Namespace) -> None:
    """Write the generated cases to `args.output`: a folder for each, below that of its kind.

    Raises FileError where a file cannot be written.
    """
    for case in load_model_tests():
        _write(case, Path(args.output, case.kind, case.name))


def _write(case: TestCase, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    for number, (inputs, outputs) in enumerate(case.data_sets or ()):
        data = folder / f"test_data_set_{number}"
        data.mkdir(exist_ok=True)
        _write_values(inputs, case.model.graph.input, data, "input")
        _write_values(outputs, case.model.graph.output, data, "output")


def _write_values(values: Any, declared: Any, folder: Path, word: str) -> None:
    for place, (value, port) in enumerate(zip(values, declared, strict=True)):
        save_value(value, folder / f"{word}_{place}.pb", from_proto(port.type), name=port.name)


def parse_args() -> argparse.Namespace:
    """Return the options of the command line; it ends the program if they are wrong."""
    parser = argparse.ArgumentParser("backend-test-tools")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("generate-data", help="write the generated cases to a folder")
    command.add_argument("-o", "--output", default=DATA_DIR, help="the folder (default: %(default)s)")
    command.set_defaults(func=generate_data)
    return parser.parse_args()


def main() -> None:
    """Run the program."""
    args = parse_args()
    args.func(args)


if __name__ == "__main__":
    main()
