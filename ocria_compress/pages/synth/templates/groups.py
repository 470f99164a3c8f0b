"""Which templates belong to which split."""

from __future__ import annotations

from ocria_compress.pages.synth.splits import Split
from ocria_compress.pages.synth.templates import benchmark, calibration, draft, train
from ocria_compress.pages.synth.templates.need import Template

GROUPS: dict[Split, tuple[Template, ...]] = {
    "train": train.TEMPLATES,
    "draft": draft.TEMPLATES,
    "calibration": calibration.TEMPLATES,
    "benchmark": benchmark.TEMPLATES,
}
