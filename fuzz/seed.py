"""Make the seed corpus again: small official models, and the smallest hostile cases of each class."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import mutate  # ruff: ignore[module-import-not-at-top-of-file]  after the path is set

import sabir  # ruff: ignore[module-import-not-at-top-of-file]  after the path is set
from hostile.corpus import CASES  # ruff: ignore[module-import-not-at-top-of-file]  after the path is set

LARGEST, MOST = 2000, 33


def main() -> None:
    """Write fuzz/corpus anew."""
    models = [data for data in mutate.official() if len(data) < LARGEST]
    cases = {f: [c.make() for c in CASES.values() if c.form == f and not c.slow] for f in FORMS}
    binary = _spread(models, MOST // 2) + _spread(_small(cases["protobuf"]), MOST // 2)
    readable = [sabir.loads(data) for data in _spread(models, MOST // 2)]
    seeds: dict[str, list[bytes]] = dict.fromkeys(("wire", "check", "infer", "evaluate"), binary)
    seeds["text"] = [sabir.text(m).encode() for m in readable] + _spread(_small(cases["onnxtxt"]), MOST // 2)
    seeds["json"] = [sabir.dumps(m, format="json") for m in readable[::2]]
    seeds["json"] += [b"# \n" + sabir.dumps(m, format="textproto") for m in readable[1::2]]
    seeds["json"] += _spread(_small(cases["json"]), MOST // 4)
    seeds["json"] += [b"# \n" + data for data in _spread(_small(cases["textproto"]), MOST // 4)]
    for target, files in seeds.items():
        folder = HERE / "corpus" / target
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for data in files:
            (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()[:12]).write_bytes(data)


FORMS = ("protobuf", "onnxtxt", "json", "textproto")


def _small(files: list[bytes]) -> list[bytes]:
    return [data for data in files if len(data) < LARGEST]


def _spread(files: list[bytes], count: int) -> list[bytes]:
    """Return so many of them, evenly spread over all."""
    return files[:: max(1, len(files) // count)][:count]


if __name__ == "__main__":
    main()
