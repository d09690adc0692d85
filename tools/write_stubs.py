"""Write src/sabir/ir/_operators.pyi from the rooms; run it after a change to a room's signature."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sabir.opsets import STANDARD
from sabir.schema import ElementTypes, docstring, shown_default

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.schema import Attribute, Input, Operator, Version

PATH = Path(__file__).parents[1] / "src" / "sabir" / "ir" / "_operators.pyi"
CLASSES = {
    "ai.onnx.ml": ("ml", "MlOperators"),
    "ai.onnx.preview": ("preview", "PreviewOperators"),
    "ai.onnx.preview.training": ("training", "TrainingOperators"),
}
TYPES = {
    "float": "FloatLike",
    "int": "IntLike",
    "string": "StringLike",
    "tensor": "TensorLike",
    "graph": "GraphLike",
    "sparse_tensor": "SparseTensorLike",
    "type": "TypeLike",
    "floats": "FloatsLike",
    "ints": "IntsLike",
    "strings": "StringsLike",
    "tensors": "TensorsLike",
    "graphs": "GraphsLike",
    "sparse_tensors": "SparseTensorsLike",
    "types": "TypesLike",
}
HEADER = '''\
"""The operators as methods, for editors and type checkers.

Written by tools/write_stubs.py from the rooms; edit those. A method has the inputs of the newest version of
its operator, and the attributes of all versions: the docstring says which ones are older.
"""

# One declaration for each operator of the standard: the file is as long as the standard is.
from collections.abc import Callable
from typing import Any, Literal, overload

'''
WIDTH = 110
MOST_OUTPUTS = 4  # of a variadic output, with a type for each number


class Form(NamedTuple):
    """One way to call an operator: the newest of some versions, and the attributes of all of them.

    `required` are the attributes that the newest one requires and all of them have.
    """

    newest: Version
    attributes: dict[str, list[tuple[Attribute, str]]]
    required: set[str]


def stub() -> str:
    """Return the text of the stub."""
    domains: dict[str, list[Operator]] = {}
    for operator in sorted(STANDARD, key=lambda o: o.name):
        domains.setdefault(operator.domain, []).append(operator)
    classes = [
        "class DomainOperators:\n    def __getattr__(self, name: str, /) -> Callable[..., Any]: ...\n",
        *(_class(name, domains[domain]) for domain, (_, name) in CLASSES.items()),
        _class("OperatorMethods", domains[""]) + _namespaces(),
    ]
    body = "\n".join(classes)
    used = sorted({"Operand", "Value", *(t for t in TYPES.values() if f"{t} " in body or f"{t}," in body)})
    used += ["ElementLike"]
    imports = "".join(f"    {name},\n" for name in sorted(used))
    return f"{HEADER}from sabir.ir._operands import (\n{imports})\n\n{body}"


def forms(operator: Operator) -> list[Form]:
    """Return the ways to call an operator, the newest first.

    Older versions are another way if they require fewer inputs, or more than the newest one has.
    """
    newest, *older = (v for v in reversed(operator.versions) if not v.removed)
    alike = [newest]
    others: dict[int, list[Version]] = {}
    for version in older:
        required = len(_required(version))
        fits = len(_required(newest)) <= required <= len(newest.inputs)
        (alike if fits else others.setdefault(required, [])).append(version)
    return [_form(alike), *map(_form, others.values())]


def _form(versions: Sequence[Version]) -> Form:
    """Return the form of some versions, newest first."""
    attributes: dict[str, list[tuple[Attribute, str]]] = {}
    for version in versions:
        for attribute in version.attributes:
            if attribute.legacy:
                continue
            known = attributes.setdefault(attribute.name, [])
            if attribute.type not in [a.type for a, _ in known]:
                known.append((attribute, _since(version, versions[0])))
    everywhere = set.intersection(*({a.name for a in v.attributes} for v in versions))
    required = {a.name for a in versions[0].attributes if a.required} & everywhere
    return Form(versions[0], attributes, required)


def _since(version: Version, newest: Version) -> str:
    return "" if version is newest else f"up to version {version.since}"


def _required(version: Version) -> list[Input]:
    return [p for p in version.inputs if not p.optional and not (p.variadic and p.minimum == 0)]


def _class(name: str, operators: Iterable[Operator]) -> str:
    return f"class {name}:\n" + "\n".join(line for o in operators for line in _methods(o))


def _namespaces() -> str:
    lines = ["    def domain(self, name: str, /) -> DomainOperators: ..."]
    for attribute, name in CLASSES.values():
        lines += ["    @property", f"    def {attribute}(self) -> {name}: ..."]
    return "\n" + "\n".join(lines) + "\n"


def _methods(operator: Operator) -> Iterator[str]:
    declared = [
        (form, outputs, result) for form in forms(operator) for outputs, result in _results(form.newest)
    ]
    for place, (form, outputs, result) in enumerate(declared):
        if len(declared) > 1:
            yield "    @overload"
        parameters = ["self", *_inputs(form), *_keywords(form, outputs)]
        head = _wrapped(f"    def {operator.name}(", parameters, f") -> {result}:")
        if place:  # editors show the docstring of the first one
            yield f"{head} ..."
        else:
            yield head
            yield _documentation(operator, form)
    yield ""


def _wrapped(start: str, parameters: Sequence[str], end: str) -> str:
    whole = f"{start}{', '.join(parameters)}{end}"
    if len(whole) <= WIDTH:
        return whole
    inside = textwrap.wrap(", ".join(parameters), WIDTH - 8, break_on_hyphens=False)
    return "\n".join([start, *(f"        {line}" for line in inside), f"    {end}"])


def _inputs(form: Form) -> Iterator[str]:
    version = form.newest
    last = max((i for i, p in enumerate(version.inputs) if not p.optional and not p.variadic), default=-1)
    positional = [(i, p) for i, p in enumerate(version.inputs) if not p.variadic]
    for place, port in positional:
        name = f"{port.name}_" if port.name in form.attributes else port.name
        type_ = _operand(port)
        if place > last:
            yield f"{name}: {type_} | None = None"
        else:
            yield f"{name}: {type_} | None" if port.optional else f"{name}: {type_}"
    if positional:
        yield "/"
    variadic = [p for p in version.inputs if p.variadic]
    yield f"*{variadic[0].name}: {_operand(variadic[0])}" if variadic else "*"


def _operand(port: Input) -> str:
    return "Operand" if any(t.startswith("tensor(") for t in port.allowed) else "Value"


def _keywords(form: Form, outputs: str) -> Iterator[str]:
    for name, known in form.attributes.items():
        type_ = " | ".join(dict.fromkeys(_type(a) for a, _ in known))
        attribute, since = known[0]
        default = None if since or attribute.required else shown_default(attribute.default)
        yield f"{name}: {type_}" if name in form.required else f"{name}: {type_} | None = {default!r}"
    if outputs:
        yield f"outputs: {outputs}"
    yield 'name: str = ""'


def _type(attribute: Attribute) -> str:
    return "ElementLike" if isinstance(attribute.values, ElementTypes) else TYPES[attribute.type]


def _results(version: Version) -> list[tuple[str, str]]:
    """Return the numbers of outputs that a call may have, and what it then returns."""
    least = sum(not p.optional and not p.variadic for p in version.outputs) or 1
    variadic = any(p.variadic for p in version.outputs)
    most = MOST_OUTPUTS if variadic else max(least, len(version.outputs))
    if least == most == 1:
        return [("", "Value")]
    found = [(f"Literal[{n}]{f' = {n}' if n == least else ''}", _result(n)) for n in range(least, most + 1)]
    return [*found, ("int", "Any")] if len(found) > 1 else found


def _result(number: int) -> str:
    return "Value" if number == 1 else f"tuple[{', '.join(['Value'] * number)}]"


def _documentation(operator: Operator, form: Form) -> str:
    known = {a.name for a in form.newest.attributes}
    older = [
        (a, since)
        for found in form.attributes.values()
        for a, since in found
        if since and a.name not in known
    ]
    text = docstring(form.newest, older=older, title=operator.name)
    last = operator.versions[-1]
    if last.removed:
        text += f"\n\nRemoved with opset {last.since}."
    escaped = text.replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.indent(f'"""{escaped}\n"""', " " * 8, lambda line: bool(line.strip()))


def main() -> None:
    """Replace the stub."""
    PATH.write_text(stub(), encoding="utf-8")
    print(f"{PATH.name} is written")


if __name__ == "__main__":
    main()
