"""Feeds: the values for the inputs of a run, converted and compared with the declared types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import ACCIDENTS, FeedError, SabirError, suggest
from sabir.elements import element
from sabir.evaluation._declared import (
    Dimensions,
    TensorDeclaration,
    declaration,
    differing_items,
    whole_range,
)
from sabir.ir import (
    ArrayTensor,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    Tensor,
    TensorType,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.elements import ElementType
    from sabir.evaluation._declared import Declaration
    from sabir.evaluation._run import Run
    from sabir.ir import Array, Constant, Dim
    from sabir.scheduling import ValueInfo

_SPARSE_FEEDS = "pass a sparse array of scipy, a sabir.ir.SparseTensor, or a dense array"
_WHOLE = "biu"  # kinds of numpy dtypes of whole numbers and truth values
_KINDS = {"integer": _WHOLE, "bool": _WHOLE, "float": f"{_WHOLE}f", "complex": f"{_WHOLE}fc"}


class ModelPort(NamedTuple):
    """An input or output of a model: its name, its type, and for an input whether it may be left out.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> port = Runner(model).inputs[0]
    >>> print(port.name, port.type, port.optional)
    x float[N] False
    """

    name: str
    type: Type | None
    optional: bool = False

    @property
    def shape(self) -> tuple[Dim, ...] | None:
        """The declared shape of a tensor, None where there is none."""
        return self.type.shape if isinstance(self.type, TensorType) else None


class _Input(NamedTuple):
    """An input with its declared type and its default; `problem` is how the default contradicts the type."""

    port: ModelPort
    declared: Declaration | None
    default: Array | None = None
    problem: str = ""
    is_compound: bool = False

    @property
    def where(self) -> str:
        return f"input {self.port.name!r}"


class FeedReader:
    """Reads the feeds of a run as the values of a model's inputs."""

    def __init__(self, inputs: Sequence[ValueInfo], constants: Mapping[int, Array]) -> None:
        """Take the inputs, and the arrays of the initializers by slot; one of an input is its default."""
        self._inputs = [_input(value, constants.get(value.slot)) for value in inputs]
        self._names = {i.port.name for i in self._inputs}
        self._compounds = [n for n, i in enumerate(self._inputs) if i.is_compound]

    @property
    def ports(self) -> tuple[ModelPort, ...]:
        """The inputs; one with a default may be left out."""
        return tuple(i.port for i in self._inputs)

    def read(self, feeds: Mapping[Any, Any], run: Run) -> list[Any]:
        """Return the feeds in the order of the inputs, None where the default is used.

        Raises FeedError that names the input, its declared type and the feed. Each dimension variable has
        one size throughout, in the defaults that are used too. A variable that only items of sequences have
        may differ between items; the run reports it, and a strict one refuses it.
        """
        for name in feeds:
            if name not in self._names:
                if not isinstance(name, str):
                    raise FeedError(f"feeds are keyed by input names, and {name!r} is {shown_class(name)}")
                hint = suggest(name, self._names) or f"; the inputs are {self._listed()}"
                raise FeedError(f"the model has no input {name!r}{hint}")
        found = [_read(i, feeds, run.dims) for i in self._inputs]
        for port, value in zip(self._inputs, found, strict=True):
            if value is None and port.default is not None:
                _check_default(port, run.dims)
        for number in self._compounds:  # after the tensors, whose sizes hold for the items
            _check_compound(self._inputs[number], found[number], run)
        return found

    def _listed(self) -> str:
        return ", ".join(repr(i.port.name) for i in self._inputs) or "none"


def _input(value: ValueInfo, default: Array | None) -> _Input:
    port = ModelPort(value.name, value.type, default is not None or isinstance(value.type, OptionalType))
    declared = declaration(value.type)
    if default is None or declared is None:
        compound = declared is not None and isinstance(value.type, (SequenceType, OptionalType, MapType))
        return _Input(port, declared, is_compound=compound)
    problem = declared.conflict(default, _default_of(port), Dimensions())
    varies = isinstance(declared, TensorDeclaration) and declared.has_variables
    return _Input(port, declared, default if problem or varies else None, problem)


def _check_default(port: _Input, dims: Dimensions) -> None:
    """Raise FeedError for a default that contradicts its declared type, or a size that a feed fixed."""
    problem = port.problem
    if not problem and port.declared is not None:
        problem = port.declared.conflict(port.default, _default_of(port.port), dims)
    if problem:
        raise FeedError(problem)


def _check_compound(port: _Input, value: Any, run: Run) -> None:
    """Raise FeedError for a sequence, optional or map that contradicts its declared type."""
    declared = port.declared
    if declared is None:
        return
    problem = declared.conflict(value, port.where, run.dims, strict=run.strict)
    if problem:
        raise FeedError(problem)
    problem = differing_items(declared, value, port.where, run)
    if problem:
        run.mismatch(port.where, problem)


def _default_of(port: ModelPort) -> str:
    return f"the default of input {port.name!r}"


def _read(port: _Input, feeds: Mapping[Any, Any], dims: Dimensions) -> Any:
    name, kind = port.port.name, port.port.type
    if name not in feeds:
        if port.port.optional:
            return None
        raise FeedError(f"input {name!r} ({kind or 'of undeclared type'}) is missing from the feeds")
    value = _converted(feeds[name], kind, port.where)
    if port.declared is not None and not port.is_compound:
        problem = port.declared.conflict(value, port.where, dims)
        if problem:
            raise FeedError(problem)
    return value


def _converted(value: Any, declared: Type | None, where: str) -> Any:
    """Return a feed as the value for a run; raises FeedError for one of another type."""
    match declared:
        case TensorType():
            return _tensor(value, declared, where)
        case SparseTensorType():
            return _dense(value, declared, where)
        case SequenceType():
            if not isinstance(value, (list, tuple)):
                raise FeedError(_refusal(where, declared, value, "pass a list"))
            items = cast("Sequence[Any]", value)
            return [_converted(x, declared.item, f"{where}, item {i}") for i, x in enumerate(items)]
        case OptionalType():
            return None if value is None else _converted(value, declared.item, where)
        case MapType():
            return _map(value, declared, where)
        case _:
            return np.asarray(value) if isinstance(value, (int, float, np.generic)) else value


def _dense(value: Any, declared: SparseTensorType, where: str) -> Array:
    """Return a sparse tensor, or a dense array in its place, as the dense array of a run."""
    kind = TensorType(declared.element, declared.shape)
    array = _read_tensor(value, where) if isinstance(value, (SparseTensor, Tensor)) else value
    coordinates: Any = getattr(array, "tocoo", None)  # scipy's, which Sabir does not import
    if coordinates is not None:
        array = _from_coordinates(coordinates(), where)
    if not isinstance(array, np.ndarray):
        raise FeedError(_refusal(where, declared, value, _SPARSE_FEEDS))
    return _tensor(cast("Array", array), kind, where)


def _from_coordinates(value: Any, where: str) -> Array:
    """Return the dense form of a sparse array of scipy, in which equal places are summed."""
    elements = np.asarray(value.data)
    places = np.stack([np.asarray(axis, np.int64) for axis in value.coords], axis=-1)
    shape = tuple(int(size) for size in value.shape)
    distinct, order = np.unique(places, axis=0, return_inverse=True)
    sums = np.zeros(len(distinct), elements.dtype)
    np.add.at(sums, order.ravel(), elements)
    return _read_tensor(SparseTensor(ArrayTensor(sums), ArrayTensor(distinct), shape), where)


def _map(value: Any, declared: MapType, where: str) -> dict[Any, Any]:
    """Return a map whose values have the declared type."""
    if not isinstance(value, dict):
        raise FeedError(_refusal(where, declared, value, "pass a dict"))
    entries = cast("dict[Any, Any]", value)
    found: dict[Any, Any] = {}
    for key, item in entries.items():
        converted = _converted(item, declared.value, f"{where}, key {key!r}")
        # a map has scalars as numpy numbers of the element type, of which operators can make a tensor
        scalar = isinstance(declared.value, TensorType) and not np.ndim(converted)
        found[key] = converted[()] if scalar else converted
    return found


def _tensor(value: Any, declared: TensorType, where: str) -> Array:
    if isinstance(value, Tensor):
        value = _read_tensor(value, where)
    if not hasattr(value, "__array__"):
        if not hasattr(value, "__dlpack__"):
            return _from_python(value, declared, where)
        value = shared_array(value, where)
    if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):  # `np.ma` takes 10 ms to load
        raise FeedError(_refusal(where, declared, cast("object", value), "fill it: a tensor has no mask"))
    array = value if type(value) is np.ndarray else _exported(value, where)
    kind = declared.element
    try:
        found = element(array.dtype)
    except SabirError as error:
        raise FeedError(_refusal(where, declared, array, _conversion(kind))) from error
    if kind.number and found != kind:
        raise FeedError(_refusal(where, declared, array, _conversion(kind)))
    if found.kind == "string":
        _check_texts(array, declared, where)
    return array.astype(found.dtype, copy=False)


def _read_tensor(tensor: Constant, where: str) -> Array:
    try:
        return tensor.array()
    except SabirError as error:
        raise FeedError(f"{where}: {error}") from error


def _exported(value: Any, where: str) -> Array:
    """Return the array that an object of another library converts to."""
    try:
        return np.asarray(value)
    except (
        ACCIDENTS
    ) as error:  # raised by that library, as for a tensor on a GPU or one that needs a gradient
        raise FeedError(f"{where} got {shown_class(value)} that is no array: {error}") from error


def shared_array(value: Any, where: str) -> Array:
    """Return an array in the memory of a tensor of another library, by the DLPack protocol.

    Raises FeedError for one on another device, or of an element type that numpy lacks.

    >>> x = np.zeros(3, np.float32)
    >>> np.shares_memory(shared_array(x, 'x'), x)
    True
    """
    try:
        return np.from_dlpack(value)
    except (*ACCIDENTS, BufferError) as error:
        raise FeedError(
            f"{where} got {shown_class(value)} whose memory numpy cannot share: {error}; copy it to the CPU"
        ) from error


def _conversion(kind: ElementType) -> str:
    """Return the advice how to convert an array to the declared element type, or ""."""
    if not kind.number:
        return ""
    if kind.kind == "string":
        return "convert it with .astype(str)"
    library = "np" if kind.dtype.isbuiltin == 1 else "ml_dtypes"
    return f"convert it with .astype({library}.{kind.dtype.name})"


def _check_texts(array: Array, declared: TensorType, where: str) -> None:
    if array.dtype.kind != "O":
        return
    for item in array.ravel().tolist():
        if not isinstance(item, (str, bytes)):
            raise FeedError(_refusal(where, declared, cast("object", item), "pass texts"))


def _from_python(value: Any, declared: TensorType, where: str) -> Array:
    """Return an array of plain Python numbers, texts, or lists of them."""
    kind = declared.element
    try:
        array = np.asarray(value, dtype=object if kind.kind == "string" else None)
    except (ValueError, TypeError, OverflowError) as error:
        raise FeedError(f"{_refusal(where, declared, value)}: {error}") from error
    if not kind.number:
        return _tensor(array, declared, where)
    if kind.kind == "string":
        _check_texts(array, declared, where)
        return array
    if array.size and array.dtype.kind not in _KINDS[kind.kind]:
        raise FeedError(_refusal(where, declared, value, f"{_content(array)} do not convert to {kind}"))
    _check_range(array, kind, where)
    return array.astype(kind.dtype)


def _check_range(array: Array, kind: ElementType, where: str) -> None:
    """Raise FeedError for a whole number outside the range of the element type."""
    if not array.size or kind.kind not in {"integer", "bool"}:
        return
    lowest, highest = (0, 1) if kind.kind == "bool" else whole_range(kind)
    for number in (int(array.min()), int(array.max())):
        if not lowest <= number <= highest:
            raise FeedError(f"{where} is declared {kind}, and {number} is not in {lowest} to {highest}")


def _content(array: Array) -> str:
    return {"U": "texts", "S": "texts", "f": "fractions", "c": "complex numbers"}.get(
        array.dtype.kind, "such objects"
    )


def shown_class(value: object) -> str:
    """Return the class of an argument for a message: `a list`, `an int`, `None`."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _refusal(where: str, declared: Type, value: object, hint: str = "") -> str:
    if type(value) is np.ndarray:
        array = cast("Array", value)
        try:
            shown = f"{element(array.dtype)}{list(array.shape)}"
        except SabirError:
            shown = f"an array of {array.dtype}"
    else:
        shown = shown_class(value)
    return f"{where} is declared {declared}, and got {shown}{f'; {hint}' if hint else ''}"
