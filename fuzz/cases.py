"""Run the hostile corpus: `--slow` the slow cases too, `--only TEXT` those whose name holds a text.

Prints what failed, with `--verbose` what came of every stage; exits with 1 where something did.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from hostile.corpus import CASES
from hostile.driver import Server, unexpected


def main() -> int:
    """Run what the command line asks for; returns 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    failed = 0
    cases = [c for c in CASES.values() if options.only in c.name and (options.slow or not c.slow)]
    with Server() as server:
        for case in cases:
            result = server.run(case.make(), case.form)
            problems = [*result.problems(), *unexpected(case, result)]
            failed += bool(problems)
            if options.verbose or problems:
                seconds = sum(t.seconds for t in result.stages)
                print(f"{case.name}: {seconds:.2f} s, {result.memory >> 20} MiB", flush=True)
            for problem in problems:
                print(f"    {problem}", flush=True)
            for t in result.stages if options.verbose else ():
                print(f"    {t.stage:9} {t.seconds:6.2f} {t.outcome} {t.message[:150]}")
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
