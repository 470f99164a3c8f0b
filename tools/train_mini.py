"""Trains `mini`, or goes on: python -m tools.train_mini --out run --seconds 1200 (see tools/mini/README.md)."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    from tools.mini.train import main

    main()
    sys.stdout.flush()
    # The loader's thread and queues wait for workers that are gone by now; the results are on disk.
    os._exit(0)
