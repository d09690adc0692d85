"""`sabir prepend` and `sabir append`: steps before and after a model."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sabir
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
from sabir.cli._screen import plain
from sabir.cli._usage import refuse

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.ir import Model

PREPEND_EXAMPLES = (
    "sabir prepend resnet.onnx image --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 -o pixels.onnx",
    "sabir prepend resnet.onnx image --size 224,224 -o any-size.onnx",
    "sabir prepend resnet.onnx image --decode -o files.onnx",
)
APPEND_EXAMPLES = (
    "sabir append resnet.onnx softmax -o probabilities.onnx",
    "sabir append resnet.onnx top_k --output-name logits --k 3 --keep -o classes.onnx",
    "sabir append detector.onnx nms --output-name boxes --output-name scores -o final.onnx",
)


class Layout(StrEnum):
    """The orders of the axes of an image."""

    NHWC = "NHWC"
    NCHW = "NCHW"
    HWC = "HWC"
    CHW = "CHW"


class PixelFormat(StrEnum):
    """The channels of a decoded image."""

    RGB = "RGB"
    BGR = "BGR"
    GRAYSCALE = "Grayscale"


class BoxFormat(StrEnum):
    """The forms of a box."""

    CORNERS = "corners"
    CENTER = "center"


def prepend(  # ruff: ignore[too-many-arguments]  each is an option
    model: ModelPath,
    name: Annotated[str, typer.Argument(metavar="INPUT", help="The input that takes images.")],
    *,
    output: RequiredOutputPath,
    mean: Annotated[
        str, typer.Option("--mean", metavar="M,...", help="The mean of each channel, or one for all.")
    ] = "",
    std: Annotated[
        str, typer.Option("--std", metavar="S,...", help="The standard deviation of each channel.")
    ] = "",
    scale: Annotated[
        float, typer.Option("--scale", metavar="X", help="What pixels are multiplied by; 1/255 by default.")
    ] = 1 / 255,
    size: Annotated[
        str, typer.Option("--size", metavar="H,W", help="Resize images to this height and width.")
    ] = "",
    layout: Annotated[Layout, typer.Option("--layout", help="The layout of the pixels.")] = Layout.NHWC,
    network_layout: Annotated[
        Layout, typer.Option("--network-layout", help="The layout that the model itself takes.")
    ] = Layout.NCHW,
    decode: Annotated[
        bool, typer.Option("--decode", help="Take the bytes of an image file, such as PNG or JPEG.")
    ] = False,
    pixel_format: Annotated[
        PixelFormat, typer.Option("--pixel-format", help="The channels of decoded images.")
    ] = PixelFormat.RGB,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Let an input take the pixels of images.

    New nodes resize, scale and normalize them: each becomes (pixel * scale - mean) / std.
    """
    refuse_two_reports(output, as_json=as_json)
    sides = [int(side) for side in _numbers("--size", size)]
    if len(sides) not in {0, 2}:
        refuse(f"--size {quote(size)}: write a height and a width, such as 224,224")
    changed = sabir.prepend(
        load_any(model), name,
        mean=_numbers("--mean", mean), std=_numbers("--std", std), scale=scale,
        size=(sides[0], sides[1]) if sides else None,
        layout=layout.value, network_layout=network_layout.value,
        decode=decode, pixel_format=pixel_format.value,
    )  # fmt: skip
    _save(changed, output, as_json=as_json)


def append(  # ruff: ignore[too-many-arguments]  each is an option
    model: ModelPath,
    step: Annotated[
        str, typer.Argument(metavar="STEP", help="softmax, argmax, top_k or nms: what is done with outputs.")
    ],
    *,
    output: RequiredOutputPath,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--output-name",
            metavar="NAME",
            help="An output that the step reads, by default the first; nms reads boxes and scores. May be "
            "repeated.",
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep these outputs too.")] = False,
    axis: Annotated[
        int | None, typer.Option("--axis", metavar="N", help="The axis of the classes; -1 by default.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", metavar="N", help="top_k: how many classes; 5 by default.")
    ] = None,
    iou_threshold: Annotated[
        float | None,
        typer.Option("--iou-threshold", metavar="X", help="nms: the largest overlap; 0.5 by default."),
    ] = None,
    score_threshold: Annotated[
        float | None,
        typer.Option("--score-threshold", metavar="X", help="nms: the least score; 0 by default."),
    ] = None,
    max_boxes: Annotated[
        int | None,
        typer.Option("--max-boxes", metavar="N", help="nms: the most boxes of a class; 100 by default."),
    ] = None,
    box_format: Annotated[
        BoxFormat | None, typer.Option("--box-format", help="nms: the form of a box; corners by default.")
    ] = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Add a step after a model: softmax, argmax, top_k or nms.

    The results of the step replace the outputs that it reads, unless --keep is passed.
    """
    refuse_two_reports(output, as_json=as_json)
    options: dict[str, Any] = {
        "axis": axis,
        "k": k,
        "iou_threshold": iou_threshold,
        "score_threshold": score_threshold,
        "max_boxes": max_boxes,
        "box_format": None if box_format is None else box_format.value,
    }
    given = {name: value for name, value in options.items() if value is not None}
    _save(sabir.append(load_any(model), step, outputs, keep=keep, **given), output, as_json=as_json)


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(",")) if text else ()
    except ValueError:
        refuse(f"{option} {quote(text)}: write numbers with commas between them")


def _save(model: Model, output: Path, *, as_json: bool) -> None:
    """Write a model, and report its inputs and outputs."""
    screen = report_screen(output)
    save_any(model, output)
    ports = {
        "inputs": {v.name: str(v.type or "of unknown type") for v in model.graph.inputs},
        "outputs": {v.name: str(v.type or "of unknown type") for v in model.graph.outputs if v is not None},
    }
    if as_json:
        write_json(ports)
        return
    for what, found in ports.items():
        screen.table([(what.removesuffix("s"), plain(n), plain(t)) for n, t in found.items()], "cyan")
    report_saved(screen, output)
