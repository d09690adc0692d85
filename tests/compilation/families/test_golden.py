"""Kernel families: golden listings of the kernels of small graphs, with the arguments that the planner packs.

A folder of `golden` for each family, in the form of `support.golden`; the levels are `schedule` and `plan`, as
`sabir compile --show` prints them, and `arguments`: each kernel with its arguments by name.
"""

from pathlib import Path

import pytest

from sabir.compilation import Compiled
from sabir.compilation.backends import cpu
from sabir.compilation.backends.cpu.families import families
from sabir.compilation.inspect.explaining import kind_of
from sabir.compilation.plan.entries import BufferNumber, Computed, Entry, Offset
from sabir.compilation.plan.signature import KernelSignature, Repeated, words_of
from support.golden import check, read

FOLDER = Path(__file__).parent / "golden"
GOLDEN = sorted(FOLDER.glob("*/*.txt"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_golden_listings(path):
    golden = read(path)
    model = golden.model()
    plan = Compiled(model, threads=2).compile(
        golden.feeds(model), target=golden.options.get("target", "x86-64-v3")
    )

    def listing(level):
        return "\n".join(arguments(plan._program.plan) if level == "arguments" else plan.listing(level))

    check(path, listing)


def test_each_family_has_a_golden_listing():
    folders = {p.parent.name for p in Path(cpu.__file__).parent.glob("*/family.py")}
    assert {p.parent.name for p in GOLDEN} == folders


def test_each_kind_of_kernel_has_a_golden_listing():
    words = {
        "Attention": "attention ", "Bands": " bands: ", "Choice": "unless the condition ", "Coupling": "coupling ",
        "Cumulation": "running ", "Descent": " of trees ", "Distinction": "different elements ", "Jump": "\n  jump\n", "LoopEnd": "copy the last states",
        "LoopStart": "begin a loop", "LoopTest": "at the end of the loop", "LoopNext": "begin the next iteration", "MatrixRecurrence": "steps of matrices ", "Nest": "\n  nest ",
        "Packing": "  pack ", "Places": "places of true elements", "Product": "  product ", "Recurrence": "recurrence ", "Regions": " of regions ",
        "Scattering": "scatter with ", "Selection": "places of the ", "Sliding": "  windows ", "Suppression": "suppression of ",
        "Winograd": "  winograd ",
    }  # fmt: skip
    assert words.keys() == families().writers.keys()
    texts = "\n".join(path.read_text() for path in GOLDEN)
    assert {kind for kind, word in words.items() if word not in texts} == set()


def arguments(plan):
    """Yield the kernels of a plan with the arguments of the last choice by name."""
    for entry in [*plan.setup, *plan.entries]:
        if isinstance(entry, Entry):
            *_, spec, block = entry.choices[-1]
            yield f"{kind_of(entry)}: {', '.join(entry.nodes)}"
            names = {b.number: f"{b.kind}{b.slot or ''}" for b in entry.buffers}
            yield from named(spec.signature, [shown(word, names) for word in block], "  ")


def named(signature, block, indent):
    """Yield the arguments of a signature, one on a line."""
    for name in signature.names:
        first, declared = signature.find(name)
        if isinstance(declared, KernelSignature):
            yield f"{indent}{name}"
            yield from named(declared, block[first : first + declared.words], indent + "  ")
        elif isinstance(declared, Repeated):
            count = words_of(declared)
            for place in range(first, len(block), count):
                yield f"{indent}{name}"
                yield from named(declared.signature, block[place : place + count], indent + "  ")
        elif words_of(declared):
            yield f"{indent}{name}: {', '.join(block[first : first + words_of(declared)])}"


def shown(word, names):
    """A word of a block: the name of a buffer, or a number, or what a run computes."""
    match word:
        case BufferNumber():
            return names.get(word.buffer.number, word.buffer.kind)
        case Offset():
            return str(word.bytes)
        case Computed():
            function = getattr(word.function, "func", word.function)
            return f"{function.__name__}({', '.join(map(str, word.sizes))})"
        case _:
            return str(word)
