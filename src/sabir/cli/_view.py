"""`sabir view`: a page that shows a model in a browser, or a server of such pages."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir import viewing
from sabir.base import counted
from sabir.cli._compile import values_of
from sabir.cli._feed_options import (
    DimsOption,
    InputsOption,
    SeedOption,
    ShapesOption,
    ThreadsOption,
    feed_options,
)
from sabir.cli._feeds import gather

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import STREAM, load_any, shown
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._progress import counting_bar
from sabir.cli._screen import Screen, bytes_text, plain
from sabir.cli._usage import refuse
from sabir.compilation import Compiled
from sabir.debugging import RunPair, trace
from sabir.files import replace_file, writable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from sabir.cli._feeds import Feeds
    from sabir.evaluation import ModelPort
    from sabir.ir import Model
    from sabir.schema import Registry
    from sabir.viewing import ModelPage

    _Gather: TypeAlias = Callable[[Sequence[ModelPort]], Feeds]

EXAMPLES = (
    "sabir view model.onnx",
    "sabir view model.onnx -o page.html --open",
    "sabir view model.onnx --dim batch=8 --profile --decisions",
    "sabir view model.onnx --trace -i feeds.npz",
    "sabir view old.onnx --diff new.onnx",
    "sabir view model.onnx --quantization int8.onnx -i feeds.npz",
    "sabir view models --serve --open",
)
_PAGES = {".html", ".htm"}
_RUNS = 10
_RUN_OPTIONS = "--input, --shape or --threads"
_RUNNING = "--profile, --decisions, --trace or --quantization"


def _page_path(path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in _PAGES:
        raise typer.BadParameter(f"{path}: a page is an .html file")
    return path


def view(  # ruff: ignore[too-many-arguments]  each is an option
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A model; - is standard input. With --serve a folder of models."
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            callback=_page_path,
            help="Write the page here; by default beside the model, with its name.",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Run the model, and colour nodes by their time.")
    ] = False,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="Colour nodes by what the compiler made of them, and why.")
    ] = False,
    traced: Annotated[
        bool, typer.Option("--trace", help="Run the model, and show the range and the NaNs of each value.")
    ] = False,
    other: Annotated[
        Path | None,
        typer.Option("--diff", metavar="OTHER", help="Show another model beside it, and what differs."),
    ] = None,
    quantized: Annotated[
        Path | None,
        typer.Option(
            "--quantization",
            metavar="OTHER",
            help="Run another model too, such as a quantized one, and colour nodes by its error.",
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the pages of a folder's models to this machine alone.")
    ] = False,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, metavar="N", help="The port of --serve; 0 is a free one."),
    ] = 0,
    inputs: InputsOption = None,
    dims: DimsOption = None,
    shapes: ShapesOption = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Show a model in the browser.

    The page is one file that loads nothing from elsewhere. It has the graph with its functions and subgraphs,
    repeated blocks folded, types and shapes, the costs of nodes, the findings of the checker, the
    documentation of the operators, and summaries of the weights, of which large ones are sampled. --profile,
    --decisions, --trace and --quantization take inputs as `sabir run` does.

    --serve lists the models of a folder at a local address, and shows a page again when its file changes.
    """
    registry = registry_of(operators, documents)
    runs_model = profile or decisions or traced or quantized is not None
    of_runs = bool(inputs or shapes or threads)
    if serve:
        if runs_model or of_runs or dims or other is not None or output is not None:
            refuse("--serve shows models as they are; leave out the options of a page, and those of its runs")
        _serve(model, port, registry, open_page=open_page)
        return
    if port:
        refuse("--port is the port of a server; add --serve")
    if of_runs and not runs_model:
        refuse(f"nothing is run that {_RUN_OPTIONS} would apply to; add {_RUNNING}")
    target = _target(model, output)
    loaded = load_any(model)
    beside = None if other is None else load_any(other)
    sizes = feed_options((), None, dims, None).dims
    page = viewing.page_of(loaded, sizes, name=model.name, beside=beside, registry=registry)
    runs = _Runs(loaded, page, registry, threads)

    def feeds(ports: Sequence[ModelPort]) -> Feeds:
        return gather(ports, feed_options({p.name for p in ports}, inputs, dims, shapes, seed))

    if profile:
        runs.profile(feeds)
    if decisions:
        runs.decide(feeds)
    if traced:
        runs.trace(feeds)
    if quantized is not None:
        runs.compare(load_any(quantized), feeds)
    if beside is not None:
        page.add_layer(viewing.difference_layer(page, loaded, beside, registry=registry))
    _write(page, target, runs.assumed, open_page=open_page)


class _Runs:
    """What runs of a model say about its nodes, each added to the page as a layer."""

    def __init__(self, model: Model, page: ModelPage, registry: Registry, threads: int | None) -> None:
        self._model, self._page, self._registry, self._threads = model, page, registry, threads
        self.assumed: tuple[str, ...] = ()

    def profile(self, feeds: _Gather) -> None:
        compiled, values = self._compiled(feeds)
        found = compiled.profile(values, _RUNS)
        self._page.add_layer(viewing.time_layer(self._page, found, compiled.roofline()))

    def decide(self, feeds: _Gather) -> None:
        compiled, values = self._compiled(feeds)
        self._page.add_layer(viewing.decision_layer(self._page, compiled.compile(values).explain()))

    def trace(self, feeds: _Gather) -> None:
        ports = Compiled(self._model, self._registry).inputs
        found = trace(self._model, self._values(feeds, ports), registry=self._registry)
        self._page.add_layer(viewing.trace_layer(self._page, found))

    def compare(self, other: Model, feeds: _Gather) -> None:
        pair = RunPair(self._model, other, threads=self._threads, registry=self._registry)
        self._page.add_layer(viewing.error_layer(self._page, pair.errors(self._values(feeds, pair.inputs))))

    def _compiled(self, feeds: _Gather) -> tuple[Compiled, dict[str, Any]]:
        compiled = Compiled(self._model, self._registry, threads=self._threads)
        values = self._values(feeds, compiled.inputs)
        with counting_bar("compiling") as progress:
            compiled.compile(values, progress)
        return compiled, values

    def _values(self, feeds: _Gather, ports: Sequence[ModelPort]) -> dict[str, Any]:
        found = feeds(ports)
        self.assumed = tuple(dict.fromkeys((*self.assumed, *found.assumed)))
        return values_of(found.values)


def _target(model: Path, output: Path | None) -> Path:
    """Return where the page is written; raises FileError where no file can be written there."""
    if output is None and model == STREAM:
        refuse("the model comes from standard input, so its page has no name; name it with -o")
    return writable(model.with_suffix(".html") if output is None else output)


def _write(page: ModelPage, target: Path, assumed: Sequence[str], *, open_page: bool) -> None:
    screen, content = Screen(), viewing.html_of(page)
    screen.lines(screen.paint(f"   note: {plain(note)}", dim=True) for note in assumed)
    done = "replaced" if target.exists() else "saved"
    replace_file(target, [content])
    found = page.data["findings"]
    nodes = counted(len(page.data["nodes"]), "node")
    also = f", {counted(len(found), 'finding')}" if found else ""
    screen.line(f"{done} {shown(target)} ({nodes}{also}, {bytes_text(len(content))})")
    if open_page:
        webbrowser.open(target.as_uri())


def _serve(folder: Path, port: int, registry: Registry, *, open_page: bool) -> None:
    with viewing.ModelServer(folder, port, registry=registry) as server:
        # a program that waits for the address gets it now
        typer.echo(f"{shown(folder)} at {server.address}; Ctrl-C ends it")
        if open_page:
            webbrowser.open(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.run()
