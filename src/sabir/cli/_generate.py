"""`sabir generate`: continue text with a language model, or answer as in a chat."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import FeedError, quote

# ruff: ignore[typing-only-first-party-import]  typer reads these at run time
from sabir.cli._feed_options import EngineOption, ThreadsOption
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._screen import Screen
from sabir.cli._usage import write_error
from sabir.drawing import seconds_text
from sabir.generation import Generation, TextGenerator, TextPieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.generation import Options

EXAMPLES = (
    "sabir generate FOLDER --prompt 'The compiler' --max-new-tokens 40 --stats",
    "sabir generate FOLDER --chat --prompt 'What is a tensor?' --temperature 0.7 --seed 1",
    "sabir generate FOLDER --interactive --system 'Answer briefly.'",
    "sabir generate FOLDER --ids 12,7,3 --json",
    "cat question.txt | sabir generate FOLDER --prompt - --stop END",
)
_INTERRUPTED = 130


def generate(  # ruff: ignore[too-many-arguments]  each is an option
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            show_default=False,
            help="A folder with the model, its configuration and its tokenizer, or an .onnx file.",
        ),
    ],
    *,
    prompt: Annotated[
        str | None,
        typer.Option("--prompt", "-p", metavar="TEXT", help="The text to continue; - is standard input."),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option("--ids", metavar="N,N,…", help="The prompt as token ids, without a tokenizer."),
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Take the prompt as a message, by the folder's chat template.")
    ] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Answer each line of standard input, as in a chat.")
    ] = False,
    system: Annotated[
        str | None,
        typer.Option("--system", metavar="TEXT", help="The message of the system before a chat."),
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option("--max-new-tokens", min=0, metavar="N", help="Generate at most N tokens.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", min=0, help="Sample at this temperature; at 0 do not sample."),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", min=0, metavar="K", help="Sample from the K most probable tokens."),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option("--top-p", metavar="P", help="Sample from the tokens that make up this probability."),
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option(
            "--min-p", metavar="P", help="Sample from tokens with this part of the greatest probability."
        ),
    ] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option("--repetition-penalty", help="Above 1, repeat less.")
    ] = None,
    num_beams: Annotated[
        int | None, typer.Option("--beams", min=1, metavar="N", help="Search with N beams.")
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option("--stop", metavar="TEXT", help="End before this text. May be repeated."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, metavar="S", help="Seed of the draws, which repeats them.")
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Report tokens and times on standard error.")
    ] = False,
    engine: EngineOption = "auto",
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Continue text with a language model.

    The text appears as it is generated. Where the folder has no tokenizer, pass --ids; the new ids are
    printed. Defaults are those of the folder: without any the most probable token is taken, 256 times at
    most.

    --interactive answers line by line, and remembers the conversation; an empty line or the end of the
    input ends it. Ctrl-C ends an answer.

    The exit code is 1 if a run of the model fails, and 130 after an interrupt.
    """
    _require_one(prompt, ids, interactive=interactive)
    generator = TextGenerator(folder, engine=engine, threads=threads)
    options: Options = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "num_beams": num_beams,
        "stop": stop,
        "seed": seed,
    }
    if interactive:
        _converse(generator, system, options, stats=stats)
        return
    result = _answer(
        generator, _prompt_ids(generator, prompt, ids, system, chat=chat), options, shows=not as_json
    )
    if as_json:
        write_json({**dataclasses.asdict(result), "tokens_per_second": result.tokens_per_second})
    if stats:
        _report(result)
    if result.finish_reason == "interrupted":
        raise typer.Exit(_INTERRUPTED)


def _require_one(prompt: str | None, ids: str | None, *, interactive: bool) -> None:
    passed = [
        name
        for name, is_passed in (
            ("--prompt", prompt is not None),
            ("--ids", ids is not None),
            ("--interactive", interactive),
        )
        if is_passed
    ]
    if len(passed) != 1:
        found = f"not {' and '.join(passed)} together" if passed else "there is none"
        raise FeedError(f"pass one of --prompt, --ids and --interactive; {found}")


def _prompt_ids(
    generator: TextGenerator, prompt: str | None, ids: str | None, system: str | None, *, chat: bool
) -> list[int]:
    if ids is not None:
        return _ids(ids)
    text = sys.stdin.read() if prompt == "-" else prompt or ""
    if chat or system is not None:
        return generator.chat_ids([*_system(system), {"role": "user", "content": text}])
    return generator.encode(text)


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise FeedError(f"--ids {quote(text)}: write token ids separated by commas") from None


def _system(text: str | None) -> list[dict[str, str]]:
    return [] if text is None else [{"role": "system", "content": text}]


def _converse(generator: TextGenerator, system: str | None, options: Options, *, stats: bool) -> None:
    """Answer the lines of standard input until it ends or a line is empty."""
    messages = _system(system)
    for line in _lines():
        messages.append({"role": "user", "content": line})
        result = _answer(generator, generator.chat_ids(messages), options, shows=True)
        messages.append({"role": "assistant", "content": result.text or ""})
        if stats:
            _report(result)


def _lines() -> Iterator[str]:
    asks = sys.stdin.isatty()
    while True:
        if asks:
            typer.echo("> ", nl=False, err=True)
        line = sys.stdin.readline().rstrip("\n")
        if not line:
            return
        yield line


def _answer(generator: TextGenerator, prompt: list[int], options: Options, *, shows: bool) -> Generation:
    """Generate, and with `shows` write the text or the ids as they come, and a line break at the end."""
    if not shows:
        return generator.generate(prompt, **options)
    write, finish = _text_writer(generator, options) if generator.tokenizer else _id_writer()

    def on_token(_: int, token: int) -> None:
        write(token)

    result = generator.generate(prompt, **{**options, "on_token": on_token})
    finish()
    return result


def _text_writer(
    generator: TextGenerator, options: Options
) -> tuple[Callable[[int], None], Callable[[], None]]:
    """Return what writes the text of the next token, and what writes the rest."""
    tokenizer: Any = generator.tokenizer
    stop: Any = options.get("stop") or ()
    pieces, ends = (
        TextPieces(tokenizer, [*generator.defaults.stop_strings, *stop]),
        generator.defaults.stop_ids,
    )

    def write(token: int) -> None:
        if token not in ends:
            _write(pieces.push(token))

    return write, lambda: _write(f"{pieces.rest()}\n")


def _id_writer() -> tuple[Callable[[int], None], Callable[[], None]]:
    """Return what writes the next token id, and what ends the line."""
    separators = iter([""])

    def write(token: int) -> None:
        _write(f"{next(separators, ',')}{token}")

    return write, lambda: _write("\n")


def _write(text: str) -> None:
    Screen().chunks([text])
    sys.stdout.flush()


def _report(result: Generation) -> None:
    known = f", {result.reused_tokens} of them known" if result.reused_tokens else ""
    first, speed = seconds_text(result.first_token_seconds), f"{result.tokens_per_second:.1f} tokens/s"
    write_error(f"prompt: {result.prompt_tokens} tokens{known}; first token after {first}")
    write_error(f"answer: {len(result.ids)} tokens ({result.finish_reason}); then {speed}")
