"""The command `ocria-compress`."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line; exits with 0 done, 1 a check or gate failed, 2 the request cannot be done."""
    from ocria_compress.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
