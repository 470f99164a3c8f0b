"""What a verification found: checks in three states, and the verdict over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """The state of a check. Not run is no success: it fails the verification unless it was allowed by name."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: what `--allow-not-run` calls it.
        state: passed, failed or not run.
        detail: one sentence: what was found, or why it was not run and what to do about that.
        items: what was found wrong, worst first; or figures worth reading.
        data: figures for machines (`--json`).
    """

    name: str
    state: State
    detail: str
    items: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)


def passed(name: str, detail: str, items: Iterable[str] = (), **data: Any) -> Check:
    """A check that passed."""
    return Check(name, State.PASSED, detail, list(items), data)


def failed(name: str, detail: str, items: Iterable[str] = (), **data: Any) -> Check:
    """A check that failed."""
    return Check(name, State.FAILED, detail, list(items), data)


def not_run(name: str, detail: str, items: Iterable[str] = (), **data: Any) -> Check:
    """A check that could not be made; `detail` ends with what to do about it."""
    return Check(name, State.NOT_RUN, detail, list(items), data)


def judged(name: str, problems: list[str], right: str, wrong: str, **data: Any) -> Check:
    """Passed with the sentence `right` if there are no `problems`, else failed with `wrong` and the problems."""
    return failed(name, wrong, problems, **data) if problems else passed(name, right, **data)


@dataclass
class Report:
    """All checks of one verification.

    Attributes:
        checkpoint: the folder, as given.
        source: the model it was compared with, as given or as its manifest names it; None if unknown.
        checks: in the order in which they were made.
        allowed: names of checks that may be not run.
        notes: what was left out on request.
        pages: for each page read in vLLM: its id, the reference, both readings and their distances.
    """

    checkpoint: str
    source: str | None
    checks: list[Check] = field(default_factory=list)
    allowed: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    pages: list[dict[str, Any]] = field(default_factory=list)

    def of(self, state: State) -> list[Check]:
        """The checks in one state."""
        return [check for check in self.checks if check.state is state]

    def __getitem__(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    @property
    def blocking(self) -> list[Check]:
        """The checks that fail the verification."""
        return [c for c in self.of(State.NOT_RUN) if c.name not in self.allowed] + self.of(State.FAILED)

    @property
    def ok(self) -> bool:
        """Whether everything was checked and is right, but for what was allowed to be not run."""
        return bool(self.checks) and not self.blocking

    def sorted(self) -> list[Check]:
        """Not run first, then failed, then passed: what is missing must be seen before what is right."""
        order = [State.NOT_RUN, State.FAILED, State.PASSED]
        return sorted(self.checks, key=lambda check: order.index(check.state))

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "checkpoint": self.checkpoint,
            "source": self.source,
            "ok": self.ok,
            "counts": {str(state): len(self.of(state)) for state in State},
            "allowed_not_run": sorted(self.allowed),
            "checks": [asdict(check) for check in self.sorted()],
            "pages": self.pages,
            "notes": self.notes,
        }
