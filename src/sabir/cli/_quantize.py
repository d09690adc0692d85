"""`sabir quantize`: weights, or weights and activations, in fewer bits."""

from __future__ import annotations

from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sabir.base import quote
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import (
    ModelPath,
    RequiredOutputPath,
    load_any,
    refuse_two_reports,
    report_saved,
    report_screen,
    save_any,
)
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._progress import counting_bar
from sabir.cli._screen import plain
from sabir.cli._usage import refuse
from sabir.quantization import quantize_and_report

if TYPE_CHECKING:
    from sabir.cli._screen import Screen
    from sabir.quantization import NodeReport, Quantization

EXAMPLES = (
    "sabir quantize model.onnx --to int4 -o small.onnx",
    "sabir quantize model.onnx --to int8 --weights-only --block 64 -o small.onnx",
    "sabir quantize model.onnx --to int8 --calibrate images/ --method mse -o fast.onnx",
    "sabir quantize model.onnx --to int8 --exclude classifier -o fast.onnx",
    "sabir quantize model.onnx --to int8 --calibrate images/ --budget 0.5% -o fast.onnx",
    "sabir quantize model.onnx --to int8 --calibrate images/ --equalize -o fast.onnx",
    "sabir quantize model.onnx --to float16 -o half.onnx",
)

_PERCENT = 100


def quantize(  # ruff: ignore[too-many-arguments]  the options of the command
    model: ModelPath,
    *,
    output: RequiredOutputPath,
    to: Annotated[
        Literal["int8", "int4", "float16", "bfloat16"],
        typer.Option("--to", help="The element type; int4: weights alone."),
    ] = "int8",
    calibrate: Annotated[
        Path | None,
        typer.Option(
            "--calibrate",
            metavar="DATA",
            help="Find constant scales of activations in runs with this data: a .npz file with the inputs of "
            "one run, or a folder of such files. Without it each run determines them. For 16-bit floats: "
            "find nodes that would overflow, which stay.",
        ),
    ] = None,
    method: Annotated[
        Literal["minmax", "percentile", "mse", "entropy"],
        typer.Option("--method", help="How the range of an activation is chosen."),
    ] = "minmax",
    percentile: Annotated[
        float, typer.Option("--percentile", metavar="P", help="The percentile of --method percentile.")
    ] = 99.99,
    weights_only: Annotated[
        bool, typer.Option("--weights-only", help="Quantize weights alone; products are those of floats.")
    ] = False,
    block: Annotated[
        int,
        typer.Option("--block", min=0, help="Weights alone: how many share a scale; 0: an output channel."),
    ] = 32,
    symmetric: Annotated[
        bool | None,
        typer.Option(
            "--symmetric/--asymmetric",
            help="Whether zero points are 0; by default those of weights are, those of activations are not.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="NAME", help="Keep a node as it is. May be repeated."),
    ] = None,
    keep_io: Annotated[
        bool,
        typer.Option("--keep-io/--change-io", help="16-bit floats: whether inputs and outputs stay float32."),
    ] = True,
    correct_bias: Annotated[
        bool | None,
        typer.Option(
            "--correct-bias/--keep-bias",
            help="With --calibrate, for int8: whether mean errors of output channels go into the bias.",
        ),
    ] = None,
    equalize: Annotated[
        bool,
        typer.Option(
            "--equalize",
            help="With --calibrate, for int8: first scale the channels between two layers to ranges alike.",
        ),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="0.5%",
            help="With --calibrate: keep the nodes that do most damage, until the error of results is below.",
        ),
    ] = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Write a model with operands of fewer bits.

    Those of MatMul, Gemm and Conv become integers: weights alone, or weights and activations. Or all nodes
    that can compute in 16-bit floats. The report has each node with its type and the relative error of its
    weights, or the reason why it stays.
    """
    refuse_two_reports(output, as_json=as_json)
    loaded, screen = load_any(model), report_screen(output)
    with counting_bar("calibrating") as progress:
        found = quantize_and_report(
            loaded,
            to,
            calibration=calibrate,
            method=method,
            percentile=percentile,
            weights_only=weights_only,
            block=block,
            symmetric=symmetric,
            exclude=exclude or (),
            keep_io=keep_io,
            correct_bias=correct_bias,
            equalize=equalize,
            budget=None if budget is None else _fraction(budget),
            progress=progress,
            registry=registry_of(operators, documents),
        )
    save_any(found.model, output)
    if as_json:
        write_json(_as_json(found))
        return
    _show(screen, found)
    report_saved(screen, output)


def _fraction(text: str) -> float:
    """Return `0.5%` or `0.005` as 0.005."""
    number, is_percentage = text.removesuffix("%"), text.endswith("%")
    try:
        return float(number) / (_PERCENT if is_percentage else 1)
    except ValueError:
        refuse(f"--budget {quote(text)}: write it as a percentage or a fraction, such as 0.5% or 0.005")


def _show(screen: Screen, found: Quantization) -> None:
    if found.opset is not None:
        screen.line(f"converted to opset {found.opset}, which the operators need")
    screen.table(map(_row, found.nodes), "", "cyan")
    quantized = sum(node.is_quantized for node in found.nodes)
    screen.line(f"{quantized} of {len(found.nodes)} nodes quantized")
    if found.damage is not None:
        screen.line(f"error of the results: {found.damage:.3%}")


def _row(node: NodeReport) -> tuple[str, str, str, str]:
    errors = [] if node.error is None else [f"error {node.error:.2%}"]
    errors += [] if node.damage is None else [f"damage {node.damage:.3%}"]
    errors += [] if node.shift is None else [f"bias corrected by {node.shift:.2%}"]
    errors += [f"bias not corrected: {node.uncorrected}"] if node.uncorrected else []
    errors += [] if node.equalized is None else [f"channels scaled by up to {node.equalized:g}"]
    notes = [node.reason, *errors] if node.reason else errors
    return plain(node.name or node.location), plain(node.op), node.to or "stays", plain(", ".join(notes))


def _as_json(found: Quantization) -> dict[str, Any]:
    return {
        "opset": found.opset,
        "damage": found.damage,
        "nodes": [
            {
                "location": node.location,
                "name": node.name,
                "op": node.op,
                "to": node.to or None,
                "reason": node.reason or None,
                "error": node.error,
                "damage": node.damage,
                "shift": node.shift,
                "uncorrected": node.uncorrected or None,
                "equalized": node.equalized,
            }
            for node in found.nodes
        ],
    }
