"""Pages of the models in a folder, for the browser of this machine."""

from __future__ import annotations

import contextlib
import urllib.parse
from contextvars import copy_context
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from sabir.base import FeedError, FileError, NotFoundError, SabirError, quote
from sabir.drawing import svg
from sabir.inference import infer
from sabir.opsets import STANDARD
from sabir.serial import format_of, load
from sabir.viewing._document import page_of
from sabir.viewing._page import document_of, html_of
from sabir.viewing._surroundings import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sabir.schema import Registry

_ADDRESS = "127.0.0.1"
_MOST_MODELS = 1000  # in the list
_MOST_PAGES = 8  # that are kept
_STEPS = 2  # edges from the node of a picture
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class _Answer(NamedTuple):
    status: HTTPStatus
    content: bytes
    type: str


class ModelServer:
    """A server of the pages of a folder's models, on the loopback interface only.

    `/` lists the models, `/model?name=NAME` is the page of one, which loads again when its file changes, and
    `/picture.svg?model=NAME&node=NODE&steps=2` is a picture of the nodes near one, or of a small model. Only
    requests that name this machine as their host are answered, so that no other site can read a page. A
    name that leads out of the folder is refused, links included.

    >>> import pathlib
    >>> with ModelServer(pathlib.Path('.')) as server:
    ...     server.address.startswith('http://127.0.0.1:')
    True
    """

    def __init__(self, folder: Path, port: int = 0, *, registry: Registry = STANDARD) -> None:
        """Listen on a port, by default a free one; raises FileError where there is no folder or no port."""
        self._folder = folder.resolve()
        if not self._folder.is_dir():
            raise FileError(f"{folder}: this is no folder; `sabir view MODEL` writes the page of one model")
        self._registry = registry
        self._pages: dict[tuple[Path, str], bytes] = {}
        self._lock = Lock()
        self._context = copy_context()  # the limits of the caller apply to the threads of requests
        try:
            self._server = _Server((_ADDRESS, port), self)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise FileError(f"port {port}: {reason}; choose another one, or 0 for a free one") from error

    @property
    def address(self) -> str:
        """The address of the list of models."""
        return f"http://{_ADDRESS}:{self._server.server_address[1]}/"

    def run(self) -> None:
        """Answer requests until another thread calls `close`."""
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop answering, and free the port."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.server_close()

    def answer(self, host: str, target: str) -> tuple[int, bytes, str]:
        """Return the status, the content and its type for a request of a target from a host."""
        return self._context.copy().run(self._answer, host, target)

    def _answer(self, host: str, target: str) -> _Answer:
        port = self._server.server_address[1]
        if host not in {f"{_ADDRESS}:{port}", f"localhost:{port}"}:
            return _refusal(HTTPStatus.MISDIRECTED_REQUEST, f"this server is not {quote(host)}")
        parts = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        try:
            if parts.path == "/":
                return self._list(stamp="stamp" in query)
            if parts.path == "/model":
                return self._model(query.get("name", ""), stamp="stamp" in query)
            if parts.path == "/picture.svg":
                return self._picture(query)
        except NotFoundError as error:
            return _refusal(HTTPStatus.NOT_FOUND, str(error))
        except SabirError as error:
            return _refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        return _refusal(HTTPStatus.NOT_FOUND, f"there is no page {quote(parts.path)}")

    def _list(self, *, stamp: bool) -> _Answer:
        models = [
            (path.relative_to(self._folder).as_posix(), path) for path in islice(self._models(), _MOST_MODELS)
        ]
        if stamp:
            return _text("\n".join(f"{name} {_stamp(path)}" for name, path in models))
        rows = [
            {
                "name": name,
                "address": "/model?" + urllib.parse.urlencode({"name": name}),
                "size": path.stat().st_size,
            }
            for name, path in models
        ]
        data = {"list": rows, "folder": self._folder.name}
        return _html(document_of(self._folder.name, data, connect="'self'"))

    def _models(self) -> Iterator[Path]:
        """Yield the models of the folder and of those in it, without hidden ones."""
        for path in sorted(self._folder.rglob("*")):
            hidden = any(part.startswith(".") for part in path.relative_to(self._folder).parts)
            if not hidden and format_of(path) is not None and self._inside(path) is not None:
                yield path

    def _inside(self, path: Path) -> Path | None:
        """Return the file that a path leads to, None where there is none in the folder."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            real = path.resolve()
            if real.is_relative_to(self._folder) and real.is_file():
                return real
        return None

    def _named(self, name: str) -> Path:
        """Return the file of a model by its name in the list; raises NotFoundError."""
        path = self._inside(self._folder / name)
        if path is None or format_of(path) is None:
            raise NotFoundError(f"there is no model {quote(name)} in this folder")
        return path

    def _picture(self, query: Mapping[str, str]) -> _Answer:
        """Return the picture of a small model, or of the nodes near one of them."""
        model = infer(load(self._named(query.get("model", ""))), registry=self._registry)
        node, steps = query.get("node"), query.get("steps", str(_STEPS))
        if not (steps.isascii() and steps.isdigit() and len(steps) == 1):
            raise FeedError(f"steps={quote(steps)}: write a number from 0 to 9")
        picture = svg(model if node is None else surroundings(model, node, int(steps)))
        return _Answer(HTTPStatus.OK, picture.encode("utf-8", "replace"), "image/svg+xml; charset=utf-8")

    def _model(self, name: str, *, stamp: bool) -> _Answer:
        path = self._named(name)
        key = path, _stamp(path)
        if stamp:
            return _text(key[1])
        with self._lock:
            if key not in self._pages:
                page = page_of(load(path), name=path.name, registry=self._registry)
                while len(self._pages) >= _MOST_PAGES:
                    del self._pages[next(iter(self._pages))]
                self._pages[key] = html_of(page, reload=True)
            return _html(self._pages[key])


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], models: ModelServer) -> None:
        super().__init__(address, _Handler)
        self.models = models


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        models = cast("_Server", self.server).models
        status, content, kind = models.answer(self.headers.get("Host", ""), self.path)
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the browser has left the page
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # ruff: ignore[builtin-argument-shadowing]  the base class'
        """Write nothing: the program says its address, and the browser shows what is wrong."""


def _html(content: bytes) -> _Answer:
    return _Answer(HTTPStatus.OK, content, "text/html; charset=utf-8")


def _text(text: str) -> _Answer:
    return _Answer(HTTPStatus.OK, text.encode("utf-8", "replace"), "text/plain; charset=utf-8")


def _refusal(status: HTTPStatus, text: str) -> _Answer:
    return _text(text)._replace(status=status)


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{status.st_mtime_ns}-{status.st_size}"
