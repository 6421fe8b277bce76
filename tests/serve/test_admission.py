"""Which requests may score, which wait, and which are refused?"""

from __future__ import annotations

import asyncio

import pytest

from birchbark.serve.admission import AdmissionControl, BusyError
from birchbark.serve.limits import Limits


def test_admission_grants_slots_then_none_then_refuses() -> None:
    """Two score, two wait, a fifth would wait too long and does not score, a sixth is refused."""

    async def crowd() -> None:
        admission = AdmissionControl(Limits(max_concurrent=2, max_requests=5))
        first, second = await admission.acquire(60), await admission.acquire(60)
        admission._mean_seconds = 10.0
        waiting = [asyncio.create_task(admission.acquire(11)) for _ in range(2)]
        await asyncio.sleep(0.01)
        unscored = await admission.acquire(11)  # two are before it: 15 s at 10 s per slot
        assert (first.may_score, second.may_score, unscored.may_score) == (True, True, False)
        assert not any(task.done() for task in waiting)
        with pytest.raises(BusyError, match="5 being answered"):
            await admission.acquire(60)
        with pytest.raises(BusyError):
            admission.check()
        first.release()
        second.release()
        third, fourth = [await task for task in waiting]
        assert third.may_score
        assert fourth.may_score
        for slot in (third, fourth, unscored):
            slot.release()
        assert admission.active == 0
        assert admission._mean_seconds < 10  # these slots were held for a short time
        again = [await admission.acquire(0), await admission.acquire(0), await admission.acquire(0)]
        assert [slot.may_score for slot in again] == [True, True, False]

    asyncio.run(crowd())
