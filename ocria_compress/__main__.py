"""The command `ocria-compress`."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line; exits with 0 done, 1 a check or gate failed, 2 the request cannot be done,
    130 interrupted."""
    from ocria_compress.cli.app import run

    code = run(sys.argv[1:])
    # CPython remembers an interrupt that came inside exec() (making a dataclass, say) and under `python -m` dies of
    # SIGINT at its end, although it was handled; the next exec() makes it forget.
    exec("")
    sys.exit(code)


if __name__ == "__main__":
    main()
