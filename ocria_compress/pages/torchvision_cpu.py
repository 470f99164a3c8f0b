"""Lets torchvision be imported beside a CPU build of torch.

PyPI's torchvision wheel is built for CUDA: next to a CPU torch its C++ extension cannot be loaded, and the import then
dies with `operator torchvision::nms does not exist`, because the module registers shape functions for operators that
were never declared. The image processors of transformers only need its transforms, which are pure Python. Declaring
the operators before the import is enough for those; the operators themselves stay unusable.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from ocria_compress.errors import OcriaError

_DECLARED = re.compile(r'register_fake\("torchvision::(\w+)"')


@functools.cache
def activate() -> bool:
    """Makes `import torchvision` work in this process; touches nothing when it works by itself.

    Returns:
        True when the operators had to be declared, False when torchvision loads unaided.

    Raises:
        OcriaError: torchvision is not installed, or cannot be imported for another reason.
    """
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError as error:
        raise _broken(error) from error
    except Exception:
        # A failed import leaves half-initialised submodules behind, which the second try would take for whole ones.
        _forget("torchvision")
        _declare_operators()
        try:
            importlib.import_module("torchvision")
        except Exception as error:
            raise _broken(error) from error
        return True
    return False


def _broken(error: Exception) -> OcriaError:
    return OcriaError(
        f"torchvision cannot be imported: {error}",
        fix="install the torchvision that belongs to your torch: pip install 'torchvision>=0.26,<0.30'",
    )


def _forget(package: str) -> None:
    for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
        del sys.modules[name]


# A torch Library undoes its declarations when it is collected: this keeps them for the life of the process.
_kept: list[Any] = []


def _declare_operators() -> None:
    """Declares every operator that torchvision registers a shape function for without asking whether it exists."""
    import torch

    spec = importlib.util.find_spec("torchvision")
    names = {"nms", "qnms"}
    for folder in (spec.submodule_search_locations if spec else None) or []:
        source = Path(folder, "_meta_registrations.py")
        if source.is_file():
            names |= set(_DECLARED.findall(source.read_text("utf-8")))
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in sorted(names):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)
