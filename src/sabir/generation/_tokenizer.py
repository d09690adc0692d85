"""Tokenizers of folders, and chat templates: text to token ids and back."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Protocol, cast

from sabir.base import FeedError, FileError, UnsupportedError
from sabir.files import reason
from sabir.generation._configuration import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_INSTALL = "install it with `pip install 'sabir[text]'`"


class Tokenizer(Protocol):
    """What turns text into token ids and back, as the tokenizers of `tokenizers` and `transformers` do.

    `encode` returns a list of ids, or an object with the attribute `ids`.

    >>> class Letters:
    ...     def encode(self, text):
    ...         return [ord(letter) for letter in text]
    ...     def decode(self, ids):
    ...         return ''.join(map(chr, ids))
    >>> tokenizer: Tokenizer = Letters()
    """

    def encode(self, text: str, /) -> Any:
        """Return the token ids of a text, with the special tokens that begin or end one."""
        ...

    def decode(self, ids: Sequence[int], /) -> str:
        """Return the text of token ids."""
        ...


class FolderTokenizer:
    """The tokenizer of a folder: `tokenizer.json`, or `tokenizer.model` of SentencePiece."""

    def __init__(
        self, encode: Callable[[str, bool], Sequence[int]], decode: Callable[[Sequence[int]], str]
    ) -> None:
        self._encode, self._decode = encode, decode

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the token ids of a text, with the special tokens around it if `special`."""
        return list(self._encode(text, special))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, without special tokens."""
        return self._decode(ids)


def read_tokenizer(folder: Path) -> FolderTokenizer | None:
    """Return the tokenizer of a folder, or None where it has none.

    Raises UnsupportedError where the package that reads it is not installed, FileError for an invalid file.
    """
    fast, pieces = folder / "tokenizer.json", folder / "tokenizer.model"
    if fast.is_file():
        return _of_tokenizers(fast)
    if pieces.is_file():
        return _of_sentencepiece(pieces, Json.read(folder / "tokenizer_config.json"))
    return None


def _of_tokenizers(path: Path) -> FolderTokenizer:
    try:
        import tokenizers  # ruff: ignore[import-outside-top-level]  an extra
    except ModuleNotFoundError:
        raise UnsupportedError(f"{path} is read with the package tokenizers; {_INSTALL}") from None
    library: Any = tokenizers
    try:
        tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as error:  # what the library raises has no class of its own
        raise FileError(f"{path}: this is no tokenizer: {error}") from error

    def encode(text: str, special: bool) -> Sequence[int]:  # ruff: ignore[boolean-type-hint-positional-argument]  a callback
        return tokenizer.encode(text, add_special_tokens=special).ids

    def decode(ids: Sequence[int]) -> str:
        return tokenizer.decode(list(ids), skip_special_tokens=True)

    return FolderTokenizer(encode, decode)


def _of_sentencepiece(path: Path, config: Json) -> FolderTokenizer:
    try:
        import sentencepiece  # ruff: ignore[import-outside-top-level]  an extra
    except ModuleNotFoundError:
        raise UnsupportedError(f"{path} is read with the package sentencepiece; {_INSTALL}") from None
    library: Any = sentencepiece
    try:
        tokenizer = library.SentencePieceProcessor(model_file=str(path))
    except Exception as error:  # what the library raises has no class of its own
        raise FileError(f"{path}: this is no model of SentencePiece: {error}") from error
    size = tokenizer.vocab_size()
    begins, ends = config.flag("add_bos_token") is not False, config.flag("add_eos_token") is True

    def encode(text: str, special: bool) -> Sequence[int]:  # ruff: ignore[boolean-type-hint-positional-argument]  a callback
        return tokenizer.encode(
            text, add_bos=special and begins and tokenizer.bos_id() >= 0, add_eos=special and ends
        )

    def decode(ids: Sequence[int]) -> str:
        return tokenizer.decode([i for i in ids if i < size and not tokenizer.is_control(i)])

    return FolderTokenizer(encode, decode)


def encoded(tokenizer: Tokenizer, text: str, *, special: bool = True) -> list[int]:
    """Return the ids of a text; without `special` a folder's tokenizer adds no special tokens."""
    if isinstance(tokenizer, FolderTokenizer):
        return tokenizer.encode(text, special=special)
    result = tokenizer.encode(text)
    return [int(i) for i in getattr(result, "ids", result)]


# chats


class ChatTemplate:
    """The text of a conversation, as the model was trained to read it."""

    def __init__(self, template: str, tokens: Mapping[str, str]) -> None:
        self._template, self._tokens = template, tokens

    @classmethod
    def read(cls, folder: Path) -> ChatTemplate | None:
        """Return the template of a folder, or None where it has none."""
        config = Json.read(folder / "tokenizer_config.json")
        path = folder / "chat_template.jinja"
        if path.is_file():
            try:
                template = path.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise FileError(f"{path}: {reason(error)}") from error
        else:
            found = Json.read(folder / "chat_template.json").any("chat_template") or config.any(
                "chat_template"
            )
            template = _default_of(found)
        return None if template is None else cls(template, _special_tokens(config))

    def text(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the text of the messages, and the beginning of an answer.

        Raises FeedError for messages that the template refuses, and UnsupportedError without jinja2.
        """
        try:
            from jinja2 import TemplateError  # ruff: ignore[import-outside-top-level]  an extra
            from jinja2.sandbox import (  # ruff: ignore[import-outside-top-level]  an extra
                ImmutableSandboxedEnvironment,
            )
        except ModuleNotFoundError:
            raise UnsupportedError(f"chat templates need the package jinja2; {_INSTALL}") from None
        environment: Any = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _json_of
        environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
        try:
            return environment.from_string(self._template).render(
                messages=list(messages), add_generation_prompt=True, **self._tokens
            )
        except FeedError:
            raise
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise FeedError(f"the chat template refuses these messages: {error}") from error


def _default_of(found: Any) -> str | None:
    """Return the template, or the one with the name default where there are several."""
    if isinstance(found, str) or found is None:
        return found
    named = cast("list[Any]", found if isinstance(found, list) else [])
    items = [cast("dict[str, Any]", t) for t in named if isinstance(t, dict)]
    return next((t["template"] for t in items if t.get("name") == "default"), None)


def _special_tokens(config: Json) -> dict[str, str]:
    """Return the special tokens by name; some files have an object with the text as its content."""
    tokens: dict[str, str] = {}
    for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
        value = config.any(name)
        text = cast("dict[str, Any]", value).get("content") if isinstance(value, dict) else value
        tokens[name] = text if isinstance(text, str) else ""
    return tokens


def _json_of(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> None:
    raise FeedError(f"the chat template refuses these messages: {message}")


def _now(form: str) -> str:
    return dt.datetime.now().astimezone().strftime(form)
