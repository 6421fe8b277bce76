"""Which of the answers so far does a stream yield?"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from birchbark.pipeline.answers.answer import Answer, SearchStats
from birchbark.retrieve.query_language import literal_query
from birchbark.serve.answer_stream import AnswerStream


def test_a_stream_yields_the_first_and_the_latest_answer() -> None:
    """The first is the first stage's answer, however fast others follow."""

    def search(on_progress: Any) -> Answer:
        for count in range(1, 4):
            on_progress(lambda count=count: Answer((), SearchStats(candidates=count, exact=False)))
            Event().wait(0.15)  # longer than MIN_INTERVAL
        return Answer((), SearchStats(candidates=9))

    async def late() -> list[int]:
        stream = AnswerStream(literal_query("q"), 0.0, intermediate=True)
        with ThreadPoolExecutor(1) as pool:
            running = asyncio.wrap_future(pool.submit(stream.run, search))
            await asyncio.wait([running])
            await asyncio.sleep(0.05)
            return [answer.candidates async for answer in stream.answers(running)]

    assert asyncio.run(late()) == [1, 9]
