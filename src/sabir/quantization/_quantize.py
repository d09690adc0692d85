"""`quantize`: a copy of a model with weights, or weights and activations, in fewer bits."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypeVar, cast

from sabir.base import UnsupportedError, listed_names, quote, suggest
from sabir.conversion import convert
from sabir.drawing import counting_bar
from sabir.elements import BFLOAT16, FLOAT16
from sabir.ir import check_is_model
from sabir.opsets import STANDARD
from sabir.quantization import _blocks, _dynamic, _halves, _static
from sabir.quantization._budget import Damage, within_budget
from sabir.quantization._exclusion import Exclusion
from sabir.quantization._report import Quantization
from sabir.quantization._sources import Feeds, feeds_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Mapping

    from sabir.drawing import Shown
    from sabir.ir import Model
    from sabir.schema import Registry

FORMATS = ("int8", "int4", "float16", "bfloat16")
METHODS = ("minmax", "percentile", "mse", "entropy")
Format: TypeAlias = Literal["int8", "int4", "float16", "bfloat16"]
P = ParamSpec("P")
T = TypeVar("T")
_MOST_RUNS = 8  # that measure what one choice of nodes does, for a budget
_MEDIAN, _ALL = 50, 100  # percentiles
_BITS = {"int4": 4, "int8": 8}
_HALVES = {"float16": FLOAT16, "bfloat16": BFLOAT16}


def _with_parameters_of(source: Callable[P, object]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Return a decorator that gives a function the parameters of another one, also for type checkers."""

    def decorate(function: Callable[..., T]) -> Callable[P, T]:
        vars(function)["__signature__"] = inspect.signature(source).replace(
            return_annotation=inspect.signature(function).return_annotation
        )
        return function

    return decorate


def quantize_and_report(  # ruff: ignore[too-many-arguments]  all but two are by keyword
    model: Model,
    to: Format = "int8",
    *,
    calibration: Iterable[Mapping[str, Any]] | str | os.PathLike[str] | None = None,
    weights_only: bool = False,
    block: int = 32,
    symmetric: bool | None = None,
    method: Literal["minmax", "percentile", "mse", "entropy"] = "minmax",
    percentile: float = 99.99,
    exclude: Collection[str] = (),
    keep_io: bool = True,
    correct_bias: bool | None = None,
    equalize: bool = False,
    budget: float | None = None,
    progress: Callable[[int, int], None] | Shown = None,
    registry: Registry = STANDARD,
) -> Quantization:
    """Quantize a model as `quantize` does, and report what was done to each node.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }''')
    >>> quantize_and_report(model, exclude=[]).nodes[0].op
    'MatMul'
    """
    check_is_model(model)
    _check_choice("to", to, FORMATS)
    _check_choice("method", method, METHODS)
    ranges = _static.RangeChoice(method, percentile, is_symmetric=bool(symmetric))
    job = _Job(
        to, ranges, block, symmetric, registry,
        weights_only=weights_only, keep_io=keep_io, correct_bias=correct_bias, equalize=equalize,
        is_read_once=isinstance(calibration, Iterator),
    )  # fmt: skip
    job.check(has_data=calibration is not None, has_budget=budget is not None)
    feeds = None if calibration is None else feeds_of(calibration)
    with counting_bar(progress, "quantizing", "run" if budget is None else "node") as report:
        if budget is None or feeds is None:
            return job.run(model, feeds, feeds, Exclusion(exclude), report)
        if budget < 0:
            raise UnsupportedError(f"a budget is 0 or more, such as 0.005; got {budget}")
        few = feeds.first(_MOST_RUNS)
        return within_budget(
            lambda locations: job.run(model, feeds, few, Exclusion(exclude, locations), None),
            Damage(model, few, registry),
            budget,
            report,
        )


@_with_parameters_of(quantize_and_report)
def quantize(*arguments: Any, **options: Any) -> Model:
    """Return a copy of a model with operands of fewer bits: integers, or 16-bit floats.

    Integers are operands of MatMul, Gemm and Conv, and rows that Gather reads from a constant matrix, which
    have 8 bits and a scale each; 16-bit floats are operands of most operators.

    - `weights_only`, or to `"int4"`: constant weights become integers with one scale for each `block` of
      products that are summed, or with a block of 0 for each output channel. Products are computed in float.
    - `"int8"` without calibration: weights have one scale for each output channel, and each run determines
      the scale of an activation (DynamicQuantizeLinear).
    - `"int8"` with `calibration`: the scales of activations are constants, found in runs with these feeds,
      around operators in float (QuantizeLinear and DequantizeLinear), which engines join to operators on
      integers. Residual additions and pools of convolutions are quantized too. `calibration` yields feeds by
      input name, or is a .npz file with the feeds of one run, or a folder of such files. `method` chooses
      the range from what was observed: all of it (`minmax`), the part without the outer values
      (`percentile`, of `percentile` in each direction), that of the least squared error (`mse`), or of the
      least divergence of the distributions (`entropy`).
    - `"float16"` and `"bfloat16"`: every operator computes in this type that admits it, with a Cast where a
      value is read in another type. With `calibration`, nodes whose operands or results come within a factor
      of 2 of the largest number of the type stay float32. Inputs and outputs stay float32 with `keep_io`.

    Static int8 adds to the bias of each product the mean error of its output channels in runs with the
    calibration data, which is read twice for this: by default where it can be, so not from a generator;
    `correct_bias=False` leaves it out. `equalize` first scales the channels between two layers to ranges
    alike, which changes no result of the float model.

    `symmetric` chooses zero points of 0: for weights alone by default, for activations only if True. Weights
    of dynamic and static int8 are always symmetric. `exclude` has the names of nodes that stay wide.
    With a `budget`, such as 0.005, the nodes that do most damage stay wide, as few of them as suffice: the
    root mean square of the error of the results, relative to that of the results, is then at most the budget
    for the first 8 feeds of the calibration data. `progress` is called with the number of calibration runs
    that are done and of all, 0 if that is unknown, or with the number of nodes measured for the budget; True
    shows a bar of tqdm, the extra `sabir[progress]`, and "auto" one in a terminal or a notebook.

    A model of an old opset is converted to the one that the operators need. Nodes in functions stay wide.
    Raises NotFoundError for an excluded name that no node has, UnsupportedError for options that contradict
    each other, FeedError for feeds that the model refuses or that are missing, ConversionError, FileError.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }''')
    >>> [node.op for node in sabir.quantize(model, "int4", block=0).graph]
    ['DequantizeLinear', 'MatMul']
    """
    return quantize_and_report(*arguments, **options).model


@dataclass(frozen=True)
class _Job:
    """What the caller asked for, apart from the model and the data."""

    to: str
    ranges: _static.RangeChoice
    block: int
    symmetric: bool | None
    registry: Registry
    weights_only: bool
    keep_io: bool
    correct_bias: bool | None
    equalize: bool
    is_read_once: bool

    @property
    def has_weights_alone(self) -> bool:
        return self.weights_only or self.to == "int4"

    @property
    def static(self) -> _static.StaticChoice:
        corrects = self.correct_bias is not False and not self.is_read_once
        why = "the calibration data can be read once" if self.is_read_once else ""
        return _static.StaticChoice(self.ranges, corrects, self.equalize, why)

    def check(self, *, has_data: bool, has_budget: bool) -> None:
        """Raise UnsupportedError for options that contradict each other."""
        is_half = self.to in _HALVES
        is_static = has_data and not is_half and not self.has_weights_alone
        for is_wrong, message in (
            (is_half and (self.weights_only or self.symmetric is not None),
             f"{self.to} has no scales: leave out weights_only and symmetric"),
            (not is_half and not self.keep_io,
             "keep_io=False is for 16-bit floats; integers are never inputs or outputs"),
            (has_budget and not has_data,
             "a budget needs calibration data, with which the damage is measured"),
            (not is_half and self.has_weights_alone and has_data and not has_budget,
             "weights alone need no calibration; leave it out, pass a budget, or quantize to int8"),
            (not is_half and not self.has_weights_alone and not has_data and self.symmetric,
             "dynamic int8 has zero points: DynamicQuantizeLinear is not symmetric; pass calibration data"),
            (not is_static and (self.correct_bias or self.equalize),
             "bias correction and equalization are for static int8: to int8, with calibration data"),
            (has_budget and self.is_read_once,
             "a budget needs calibration data that can be iterated several times, such as a list"),
            (is_static and self.correct_bias and self.is_read_once,
             "bias correction reads the calibration data again: pass a list, or correct_bias=False"),
            (self.block < 0, f"a block has 1 weight or more, or 0 for whole channels; got {self.block}"),
            (not _MEDIAN < self.ranges.percentile <= _ALL,
             f"the percentile is above 50 and at most 100; got {self.ranges.percentile}"),
        ):  # fmt: skip
            if is_wrong:
                raise UnsupportedError(message)

    def run(
        self,
        model: Model,
        feeds: Feeds | None,
        correcting: Feeds | None,
        excluded: Exclusion,
        progress: Callable[[int, int], None] | None,
    ) -> Quantization:
        """Return the quantization of a model in which some nodes are excluded.

        `correcting` are the feeds for bias correction: where there are many quantizations, fewer than all.
        """
        registry = self.registry
        if self.to in _HALVES:
            copy, opset = _converted(model, _halves.OPSETS[self.to], registry)
            copy, nodes = _halves.narrow(
                copy, _HALVES[self.to], feeds, excluded, registry, progress, keep_io=self.keep_io
            )
        elif self.has_weights_alone:
            copy, opset = _converted(model, _blocks.OPSET, registry)
            copy, nodes = _blocks.quantize_weights(
                copy, _BITS[self.to], self.block, excluded, registry, symmetric=self.symmetric is not False
            )
        elif feeds is None or correcting is None:
            copy, opset = _converted(model, _dynamic.OPSET, registry)
            copy, nodes = _dynamic.quantize_dynamically(copy, excluded, registry)
        else:
            copy, opset = _converted(model, _static.OPSET, registry)
            copy, nodes = _static.quantize_statically(
                copy, feeds, correcting, self.static, excluded, registry, progress
            )
        return Quantization(copy, nodes, opset)


def _converted(model: Model, least: int, registry: Registry) -> tuple[Model, int | None]:
    """Return a copy for at least an opset, and the opset where it is another one."""
    before = model.opset() or 0
    opset = max(before, least)
    return convert(model, opset, registry=registry), None if opset == before else opset


def _check_choice(option: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        near = suggest(str(value), known) or f"; known are {listed_names(known)}"
        raise UnsupportedError(f"{option}={quote(cast('str', value))} is not known{near}")
