"""The configuration of a folder: `config.json`, `generation_config.json` and `genai_config.json`."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sabir.base import FileError, UnsupportedError, quote
from sabir.files import reason
from sabir.generation._ports import ROLES, Role, Sizes
from sabir.generation._settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GENAI = "genai_config.json"
_DECODERS = ("decoder_model_merged.onnx", "decoder_with_past_model.onnx", "decoder_model.onnx", "model.onnx")


class Files(NamedTuple):
    """The model files of a folder.

    `first` computes the first positions and `later` the others, where the folder has a file for each; else
    they are the same.
    """

    first: Path
    later: Path
    encoder: Path | None = None
    has_windows: bool = False
    """Whether layers may keep the positions of a window only."""


class Configuration(NamedTuple):
    """What a folder states about its model; None is what it does not state."""

    context_length: int | None = None
    vocabulary: int | None = None
    bos: int | None = None
    pad: int | None = None
    decoder_start: tuple[int, ...] = ()
    sizes: Sizes = Sizes()
    settings: Settings = Settings()
    roles: Mapping[str, Role] = ROLES
    cache: Mapping[str, str] | None = None
    """Names of inputs of the cache with their outputs; `%d` is the number of a layer."""


class Json:
    """A JSON object of a file; a value of another kind than the one that is asked for is a FileError."""

    def __init__(self, source: str, values: Mapping[str, Any]) -> None:
        self._source, self._values = source, values

    @classmethod
    def read(cls, path: Path) -> Json:
        """Read a file; one that does not exist is an empty object."""
        if not path.exists():
            return cls(str(path), {})
        try:
            values = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise FileError(f"{path}: this is no JSON: {error}") from None
        except OSError as error:
            raise FileError(f"{path}: {reason(error)}") from error
        if not isinstance(values, dict):
            raise FileError(f"{path}: this must be a JSON object")
        return cls(str(path), cast("dict[str, Any]", values))

    def __bool__(self) -> bool:
        return bool(self._values)

    def any(self, key: str) -> Any:
        """Return a value of any kind, or None."""
        return self._values.get(key)

    def object(self, key: str) -> Json:
        """Return an object; an absent one is empty."""
        value = self._of(key, "an object", dict)
        return Json(f"{self._source}: {key}", {} if value is None else value)

    def text(self, key: str) -> str | None:
        """Return a text."""
        return self._of(key, "a text", str)

    def integer(self, *keys: str) -> int | None:
        """Return the first integer that one of the keys has."""
        found = (self._of(key, "an integer", int) for key in keys)
        return next((value for value in found if value is not None), None)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return an integer or a list of integers as a tuple."""
        value = self._values.get(key)
        items = cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(item, int) for item in items):
            raise FileError(f"{self._source}: {key!r} must be an integer or a list of integers")
        return tuple(items)

    def flag(self, key: str) -> bool | None:
        """Return a truth value."""
        return self._of(key, "true or false", bool)

    def number(self, key: str) -> float | None:
        """Return a number."""
        return self._of(key, "a number", (int, float))

    def texts(self) -> dict[str, str]:
        """Return all values that are texts."""
        return {key: value for key, value in self._values.items() if isinstance(value, str)}

    def _of(self, key: str, described: str, kind: Any) -> Any:
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise FileError(f"{self._source}: {key!r} must be {described}; it is {quote(str(value))}")
        return value


def find_files(folder: Path) -> Files:
    """Return the model files of a folder; raises FileError where there are none."""
    if not folder.is_dir():
        raise FileError(f"{folder}: {'this is no folder' if folder.exists() else 'there is no such folder'}")
    model = Json.read(folder / _GENAI).object("model")
    encoder = _genai_file(folder, model.object("encoder")) or _existing(folder, "encoder_model.onnx")
    named = _genai_file(folder, model.object("decoder"))
    if named is not None:
        return Files(
            named, named, encoder, has_windows=bool(model.object("decoder").object("sliding_window"))
        )
    found = {name: path for name in _DECODERS if (path := _existing(folder, name)) is not None}
    merged = found.get("decoder_model_merged.onnx")
    if merged is not None:
        return Files(merged, merged, encoder)
    first, later = found.get("decoder_model.onnx"), found.get("decoder_with_past_model.onnx")
    if first is not None:
        return Files(first, later or first, encoder)
    only = found.get("model.onnx") or _lone_model(folder)
    if only is None:
        raise FileError(
            f"{folder}: there is no model: none of {', '.join(sorted(_DECODERS))}, and no single .onnx file"
        )
    return Files(only, only, encoder)


def _existing(folder: Path, name: str) -> Path | None:
    places = (folder / name, folder / "onnx" / name)
    return next((place for place in places if place.is_file()), None)


def _genai_file(folder: Path, part: Json) -> Path | None:
    name = part.text("filename")
    if name is None:
        return None
    if PurePath(name).name != name:
        raise FileError(f"{folder / _GENAI}: the file {quote(name)} must be in the same folder")
    return folder / name


def _lone_model(folder: Path) -> Path | None:
    files = sorted(p for p in folder.glob("*.onnx") if p.is_file())
    return files[0] if len(files) == 1 else None


def read_configuration(folder: Path) -> Configuration:
    """Read the files of a folder; raises FileError for values of a wrong kind."""
    genai = Json.read(folder / _GENAI)
    config = Json.read(folder / "config.json")
    generation = Json.read(folder / "generation_config.json")
    try:
        return _of_genai(genai) if genai else _of_transformers(config, generation)
    except UnsupportedError as error:  # of a setting
        raise FileError(f"{folder}: the configuration is invalid: {error}") from None


def _of_genai(genai: Json) -> Configuration:
    model, search = genai.object("model"), genai.object("search")
    decoder = model.object("decoder")
    return Configuration(
        context_length=model.integer("context_length"),
        vocabulary=model.integer("vocab_size"),
        bos=model.integer("bos_token_id"),
        pad=model.integer("pad_token_id"),
        decoder_start=model.integers("decoder_start_token_id"),
        sizes=Sizes(decoder.integer("num_key_value_heads"), decoder.integer("head_size")),
        settings=_settings(search, model),
        roles={**ROLES, **_roles_of_genai(decoder.object("inputs"))},
        cache=_cache_of_genai(decoder.object("inputs"), decoder.object("outputs")),
    )


def _roles_of_genai(inputs: Json) -> dict[str, Role]:
    return {actual: ROLES[name] for name, actual in inputs.texts().items() if name in ROLES}


def _cache_of_genai(inputs: Json, outputs: Json) -> dict[str, str] | None:
    """Return the patterns of names, such as those of `past_key_names` and `present_key_names`."""
    presents = outputs.texts()
    pairs = {
        past: presents[present]
        for key, past in inputs.texts().items()
        if key.startswith("past_") and (present := f"present_{key.removeprefix('past_')}") in presents
    }
    return pairs or None


def _of_transformers(config: Json, generation: Json) -> Configuration:
    text = config.object("text_config") or config
    decoder_start = generation.integers("decoder_start_token_id") or text.integers("decoder_start_token_id")
    forced = generation.any("forced_decoder_ids")
    heads = text.integer("num_attention_heads", "n_head", "decoder_attention_heads", "num_heads")
    hidden = text.integer("hidden_size", "n_embd", "d_model")
    divided = hidden // heads if hidden and heads else None
    return Configuration(
        context_length=text.integer(
            "max_position_embeddings", "n_positions", "max_target_positions", "seq_length"
        ),
        vocabulary=text.integer("vocab_size"),
        bos=_either("bos_token_id", generation, text),
        pad=_either("pad_token_id", generation, text),
        decoder_start=(*decoder_start, *_forced(forced)) if decoder_start else (),
        sizes=Sizes(
            text.integer("num_key_value_heads") or heads, text.integer("head_dim", "d_kv") or divided
        ),
        settings=_settings(generation, text),
    )


def _either(key: str, first: Json, second: Json) -> int | None:
    value = first.integer(key)
    return second.integer(key) if value is None else value


def _forced(pairs: Any) -> Sequence[int]:
    """Return the decoder's first ids after its start, as Whisper's configurations list them."""
    if not isinstance(pairs, list):
        return ()
    lists = [cast("list[Any]", p) for p in cast("list[Any]", pairs) if isinstance(p, list)]
    return [p[-1] for p in lists if p and isinstance(p[-1], int)]


def _settings(search: Json, model: Json) -> Settings:
    """Return the settings that a folder states; sampling bounds count only where it samples."""
    sample = search.flag("do_sample") or False
    early = search.any("early_stopping")
    stated: dict[str, Any] = {
        "max_new_tokens": search.integer("max_new_tokens"),
        "min_new_tokens": search.integer("min_new_tokens"),
        "repetition_penalty": search.number("repetition_penalty"),
        "no_repeat_ngram_size": search.integer("no_repeat_ngram_size"),
        "num_beams": search.integer("num_beams"),
        "length_penalty": search.number("length_penalty"),
        "early_stopping": early if isinstance(early, bool) or early == "never" else None,
        "stop_ids": frozenset(search.integers("eos_token_id") or model.integers("eos_token_id")) or None,
        "suppressed": search.integers("suppress_tokens") or None,
        "suppressed_first": search.integers("begin_suppress_tokens") or None,
        "forced_first": _either("forced_bos_token_id", search, model),
        "forced_last": _either("forced_eos_token_id", search, model),
    }
    if sample:
        stated |= {
            "sample": True,
            "temperature": search.number("temperature"),
            "top_k": search.integer("top_k"),
            "top_p": search.number("top_p"),
            "min_p": search.number("min_p"),
        }
    return Settings(**{name: value for name, value in stated.items() if value is not None})
