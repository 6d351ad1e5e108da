"""Load on a service: texts, and connections that send them one by one at a rate."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from itertools import chain
from typing import Any


def texts(number: int, seed: int = 1) -> list[str]:
    """Return texts of 120 words, one in ten a near-duplicate of the one before it."""
    choose = random.Random(seed)
    vocabulary = [f"word{i}" for i in range(20_000)]
    found: list[str] = []
    for i in range(number):
        words = choose.choices(vocabulary, k=120) if i % 10 or not found else found[-1].split()
        words[choose.randrange(120)] = "changed"
        found.append(" ".join(words))
    return found


class Load:
    """Connections that send one document after the other, at a rate in total; times count from when
    each was due, on connections that are open.

    answers : by id, which is the position of the text. times : in seconds. seconds : from the first
    that was due to the last answer.
    """

    def __init__(self, url: str, sent: Sequence[str], rate: float, connections: int) -> None:
        self.host, _, port = url.removeprefix("http://").rpartition(":")
        self.port = int(port)
        self.rate = rate
        self.connections = connections
        self.times: list[float] = []
        self.seconds = 0.0
        self.answers: dict[str, dict[str, Any]] = {}
        self._bodies = [
            json.dumps({"documents": [{"id": str(i), "text": text}]}) for i, text in enumerate(sent)
        ]

    async def run(self) -> None:
        waiting: asyncio.Queue[tuple[float, str] | None] = asyncio.Queue()
        opened = [
            await asyncio.open_connection(self.host, self.port) for _ in range(self.connections)
        ]
        workers = [asyncio.create_task(self._work(waiting, *streams)) for streams in opened]
        begun = time.perf_counter()
        for i, body in enumerate(self._bodies):
            due = begun + i / self.rate
            while (left := due - time.perf_counter()) > 0:
                await asyncio.sleep(left)
            waiting.put_nowait((due, body))
        for _ in workers:
            waiting.put_nowait(None)
        answered = await asyncio.gather(*workers)
        self.seconds = time.perf_counter() - begun
        for content in chain.from_iterable(answered):  # read after the measurement
            [answer] = json.loads(content)["answers"]
            self.answers[answer["id"]] = answer

    async def _work(
        self,
        waiting: asyncio.Queue[tuple[float, str] | None],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> list[bytes]:
        head = (
            f"POST /v1/documents HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: "
            "application/json\r\nContent-Length:"
        )
        contents = []
        while (item := await waiting.get()) is not None:
            due, body = item
            writer.write(f"{head} {len(body)}\r\n\r\n{body}".encode())
            answer_head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(answer_head.split(b"content-length: ")[1].split(b"\r\n")[0])
            contents.append(await reader.readexactly(length))
            self.times.append(time.perf_counter() - due)
            assert answer_head.startswith(b"http/1.1 200 "), contents[-1]
        writer.close()
        return contents

    def percentile(self, share: float) -> float:
        return sorted(self.times)[int(share * (len(self.times) - 1))]
