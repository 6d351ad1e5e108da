"""Limits of time for parts of requests, which share a timer."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from neardup.service.deadlines import Deadline
from neardup.service.problems import Problem

LIMIT_S = 0.05


async def outcome_of(limit: Deadline, seconds: float) -> str:
    """Wait in a block; return whether it ended in time."""
    try:
        with limit.block():
            await asyncio.sleep(seconds)
    except Problem as problem:
        return str(problem)
    return "in time"


def run(*seconds: float) -> list[str]:
    """Run blocks side by side."""

    async def run_all() -> list[str]:
        limit = Deadline(LIMIT_S, lambda: Problem(408, "late"))
        return await asyncio.gather(*(outcome_of(limit, wait) for wait in seconds))

    return asyncio.run(run_all())


def test_a_block_that_takes_too_long_raises_the_problem() -> None:
    assert run(10 * LIMIT_S) == ["late"]


def test_blocks_side_by_side_have_their_own_ends() -> None:
    assert run(0, 10 * LIMIT_S, 0, 20 * LIMIT_S) == ["in time", "late", "in time", "late"]


def test_a_block_that_begins_later_ends_later() -> None:
    async def run_both() -> list[str]:
        limit = Deadline(LIMIT_S, lambda: Problem(408, "late"))
        first = asyncio.create_task(outcome_of(limit, 10 * LIMIT_S))
        await asyncio.sleep(LIMIT_S / 2)
        began = asyncio.get_running_loop().time()
        second = await outcome_of(limit, 10 * LIMIT_S)
        assert asyncio.get_running_loop().time() - began >= LIMIT_S
        return [await first, second]

    assert asyncio.run(run_both()) == ["late", "late"]


def test_a_task_that_is_cancelled_by_others_is_cancelled() -> None:
    async def cancel() -> None:
        limit = Deadline(10.0, lambda: Problem(408, "late"))
        task = asyncio.create_task(outcome_of(limit, 5.0))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


def test_a_limit_holds_in_one_event_loop_after_another() -> None:
    limit = Deadline(LIMIT_S, lambda: Problem(408, "late"))
    # The first loop ends before its timer.
    assert asyncio.run(outcome_of(limit, 0)) == "in time"
    assert asyncio.run(outcome_of(limit, 10 * LIMIT_S)) == "late"
