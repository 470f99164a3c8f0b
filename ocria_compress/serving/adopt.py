"""Gives vLLM's interpreter the standard-library-only modules of this package, and nothing else of this installation.

The package's folder lies beside what only the compression side may import (another compressed-tensors, for one), so it
must not go on the import path of vLLM's interpreter. Standard library only; run there, by file path.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def adopt_package() -> None:
    """Makes `import ocria_compress.…` find this package's folder without putting its parent on the import path."""
    name = PACKAGE.name
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        name, PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {PACKAGE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
