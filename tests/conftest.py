"""Fixtures for every test: tiny checkpoints made once, copies of them to break, and a hub without a network."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.hub import FakeHub

REPOSITORY = Path(__file__).resolve().parent.parent
if str(REPOSITORY) not in sys.path:  # so that `tests` and `tools` are found from wherever pytest is started
    sys.path.insert(0, str(REPOSITORY))

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell's background job: processes started here would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # tests that talk to the loopback hub do so in a process of their own
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`models(**options)`: what `tests.models.make_model` makes, once per set of options. Do not change it."""
    from tests.models import make_model

    made: dict[tuple, Path] = {}

    def get(**options: object) -> Path:
        key = tuple(sorted(options.items()))
        if key not in made:
            made[key] = make_model(tmp_path_factory.mktemp("models") / "model", **options)  # type: ignore[arg-type]
        return made[key]

    return get


@pytest.fixture(scope="session")
def tiny(models: Callable[..., Path]) -> Path:
    """Four layers, tied, MTP among the rest, one file. Do not change it."""
    return models()


@pytest.fixture(scope="session")
def tiny_sharded(models: Callable[..., Path]) -> Path:
    """As `tiny`, in two shards with an index. Do not change it."""
    return models(shards=2)


@pytest.fixture(scope="session")
def tiny_untied(models: Callable[..., Path]) -> Path:
    """As `tiny`, with an `lm_head` of its own. Do not change it."""
    return models(tied=False)


@pytest.fixture(scope="session")
def tiny_no_mtp(models: Callable[..., Path]) -> Path:
    """As `tiny`, without MTP, and a config that says so. Do not change it."""
    return models(mtp="none")


@pytest.fixture(scope="session")
def tiny_other_layout(models: Callable[..., Path]) -> Path:
    """As `tiny_untied`, spelled `language_model.model.*`, `visual.*`, `language_model.lm_head.*`. Do not change it."""
    return models(tied=False, layout="vllm")


@pytest.fixture(scope="session")
def mini() -> Path:
    """The bundled page reader. Do not change it."""
    from ocria_compress.bundled import mini_folder

    return mini_folder()


@pytest.fixture
def breakable(tmp_path: Path) -> Callable[[Path], Path]:
    """`breakable(folder)`: a copy of a checkpoint that a test may change."""
    from tests.models import copied

    count = iter(range(1000))
    return lambda folder: copied(folder, tmp_path / f"copy{next(count)}" / "model")


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """An empty hub on the loopback interface: `hub.add("owner/name", folder)`, then `hub.environment(...)`."""
    from tests.hub import FakeHub

    with FakeHub() as running:
        yield running
