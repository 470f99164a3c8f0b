"""Loops are found at any period, and rightful repetitions are not loops beside their reference."""

from __future__ import annotations

import random
import time

import pytest

from ocria_compress.evaluate.loops import find_loop, loops, new_loop, repetitions

PAGE = (
    "# Delivery note\n\nThe goods were handed over on 3 May in good order, see the list below.\n\n"
    "**Total:** 12.50 €\n\nPlease keep this page for your records; it is the only one."
)
ROW = "<tr><td>0</td><td>0</td></tr>\n"


@pytest.mark.parametrize("unit", ["a", "0, ", "the same ", ROW, PAGE + "\n\n"])
@pytest.mark.parametrize("tail", ["", " And so it ends, after all."])
def test_a_repeated_unit_is_found_whatever_its_length(unit: str, tail: str) -> None:
    repeats = max(5, -(-120 // len(unit)))
    text = "Some words before it: " + unit * repeats + unit[: len(unit) // 2] + tail
    loop = find_loop(text)
    assert loop is not None and len(loop.unit) == len(unit) and loop.repeats >= repeats
    assert text[loop.start :].startswith(loop.unit * repeats)


def test_a_page_is_no_loop() -> None:
    assert find_loop(PAGE) is None and find_loop("") is None and find_loop("a" * 99) is None
    assert find_loop((PAGE + "\n") * 3) is None  # three times is not often enough


def test_repetitions_are_those_of_a_plain_search() -> None:
    rng = random.Random(0)
    for _ in range(300):
        unit = "".join(rng.choice("abc") for _ in range(rng.randint(1, 30)))
        around = ["".join(rng.choice("ab") for _ in range(rng.randint(0, 12))) for _ in range(2)]
        text = around[0] + unit * rng.randint(1, 6) + unit[: rng.randint(0, len(unit))] + around[1]
        expected: dict[tuple[int, int], int] = {}
        for period in range(1, len(text) // 3 + 1):
            start = 0
            while start + period < len(text):
                end = start
                while end + period < len(text) and text[end] == text[end + period]:
                    end += 1
                length = end - start + period
                if end > start and length >= max(3 * period, period + 8):
                    expected.setdefault((start, length), period)
                start = max(end, start + 1)
        found = {(each.start, each.length): len(each.unit) for each in repetitions(text)}
        assert found == expected


def test_what_the_reference_repeats_is_no_loop() -> None:
    table = "<table>\n" + ROW * 8 + "</table>"
    leader = "Introduction " + "." * 120 + " 3"
    assert find_loop(table) is not None and new_loop(table, table) is None
    assert new_loop(table.replace("<td>0</td><td>0</td>", "<td>O</td><td>0</td>"), table) is None  # misread everywhere
    assert new_loop(leader.replace(".", "·"), leader) is None
    assert new_loop(table.replace(ROW * 8, ROW * 9), table) is None
    assert new_loop(table + "\n\n" + leader, leader + "\n\n" + table) is None


def test_what_it_does_not_repeat_is() -> None:
    table = "<table>\n" + ROW * 8 + "</table>"
    assert new_loop(table.replace(ROW * 8, ROW * 16), table) is not None
    found = new_loop(PAGE + (" " + PAGE[-40:]) * 30, PAGE)
    assert found is not None and found.repeats > 29
    assert new_loop("." * 300, PAGE) is not None
    many = "".join(random.Random(2).choice("eeabcd ") for _ in range(600))
    assert new_loop(PAGE + "e" * 120, PAGE + many) is not None  # an "e" here and there is no excuse
    assert new_loop(ROW * 20, PAGE + "\n" + "." * 40) is not None


def test_counting_is_a_loop_only_beside_a_reference_that_does_not() -> None:
    listed = "\n".join(f"{number}. Check the box on the left" for number in range(1, 40))
    found = new_loop(listed, PAGE)
    assert found is not None and found.counting and find_loop(listed) is None
    assert new_loop(listed.replace("box", "bax"), listed) is None
    figures = "".join(f"<tr><td>{n * 37 % 90}</td><td>{n * 91 % 70}.{n % 7}</td></tr>\n" for n in range(12))
    assert new_loop(figures.replace(".", ","), figures) is None


def test_text_cut_by_the_limit_counts_as_a_loop() -> None:
    assert loops(PAGE, PAGE, finished=False) and not loops(PAGE, PAGE, finished=True)
    assert loops("." * 300, PAGE, finished=True)


def test_any_text_is_taken_and_quickly() -> None:
    rng = random.Random(1)
    noise = "".join(rng.choice("abcdefgh \n\ud800😀") for _ in range(20_000))
    find_loop(noise)
    started = time.monotonic()
    assert find_loop(noise) is None and find_loop("." * 20_000) is not None
    assert find_loop((PAGE + "\n") * 90) is not None
    assert time.monotonic() - started < 1  # 0.02 s each where nothing else runs
