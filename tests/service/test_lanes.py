"""A queue of the service: what one request does is done once, even if others are refused."""

from __future__ import annotations

import asyncio

from neardup.errors import InputError
from neardup.service.lanes import Lane


def outcomes_of(work, names):
    """Call a function with each name, all of which wait together; return the results and the
    errors.
    """

    async def run():
        lane = Lane("writes", max_items=9, max_batch=9, wait_s=0.01, on_batch=lambda _: None)
        found = await asyncio.gather(
            *(lane.call(work, name) for name in names), return_exceptions=True
        )
        await lane.close()
        return found

    return asyncio.run(run())


def test_what_a_request_did_is_not_done_again_because_another_is_refused():
    done = []

    def work(name):
        done.append(name)
        if name == "refused":
            raise InputError("no")
        return name.upper()

    first, refused, last = outcomes_of(work, ["a", "refused", "b"])
    assert (first, str(refused), last) == ("A", "no", "B")
    assert done == ["a", "refused", "b"]
