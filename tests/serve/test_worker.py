"""The worker: an engine on its thread, streams on any event loop."""

import asyncio
import threading

import pytest
from serving import engine, request, run, same, tokens
from small import config, model, schedule

from k3.errors import RequestError
from k3.serve.worker import Worker

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def net():
    return model(made=config(num_hidden_layers=4, linear=schedule(4)))


@pytest.fixture
def worker(net):
    made = Worker(engine(net))
    yield made
    made.close()


async def collect(worker, asked):
    return [output async for output in worker.stream(asked)]


def test_streams_give_what_the_engine_gives(net, worker):
    asked = [request(name, 5 + 7 * i, n=1 + i % 2) for i, name in enumerate("abcde")]

    async def main():
        return await asyncio.gather(*(collect(worker, one) for one in asked))

    for one, outputs in zip(asked, asyncio.run(main()), strict=True):
        want = run(engine(net), [one])
        for index in range(one.n):
            mine = [output for output in outputs if output.index == index]
            same(mine, want[one.id, index])


def test_a_refused_request_raises_before_the_first_output(worker):
    async def main():
        with pytest.raises(RequestError, match=r"must be from 0 to 60: got 61"):
            await worker.open(request("a", tokens=(61,)))
        with pytest.raises(RequestError, match=r"must be from 0 to 60: got 61"):
            await anext(worker.stream(request("a", tokens=(61,))))
        assert len(await collect(worker, request("a"))) == 12

    asyncio.run(main())


def test_leaving_a_stream_cancels_its_request(worker):
    asked = request("a", 20, max_tokens=10**6)

    async def main():
        stream = worker.stream(asked)
        async for _ in stream:
            break
        await stream.aclose()
        assert await worker.call(lambda made: dict(made.sequences)) == {}
        assert (await worker.call(lambda made: made.snapshot())).finished_abort == 1
        task = asyncio.create_task(collect(worker, asked))
        while not await worker.call(lambda made: made.sequences):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await worker.call(lambda made: dict(made.sequences)) == {}
        left = await worker.open(request("b", max_tokens=10**6))
        await left.aclose()
        assert len(await collect(worker, request("b"))) == 12

    asyncio.run(main())


def test_ids_are_used_once_at_a_time(worker):
    async def main():
        one = await worker.open(request("a", max_tokens=10**6))
        with pytest.raises(RequestError, match="used once at a time: got a again"):
            await worker.open(request("a"))
        assert (await anext(one)).request_id == "a"
        await one.aclose()

    asyncio.run(main())


def test_drain_finishes_what_runs_and_takes_nothing_new(worker):
    async def main():
        task = asyncio.create_task(collect(worker, request("a")))
        while not await worker.call(lambda made: made.sequences):
            await asyncio.sleep(0)
        assert await worker.drain(60)
        assert (await task)[-1].finish == "length"
        assert not worker.alive
        with pytest.raises(RequestError, match="is shutting down and takes no new"):
            await worker.open(request("b"))

    asyncio.run(main())


def test_drain_cancels_what_takes_too_long(worker):
    async def main():
        stream = await worker.open(request("a", max_tokens=10**6))
        assert not await worker.drain(0.01)
        return [output.finish async for output in stream]

    assert asyncio.run(main())[-1] == "abort"


def test_a_crash_ends_every_stream_with_an_error(net):
    made = engine(net)
    worker, fails = Worker(made), threading.Event()
    step = made.step

    def crashes():
        if fails.is_set():
            raise MemoryError
        return step()

    made.step = crashes

    async def main():
        stream = await worker.open(request("a", n=2, max_tokens=10**6))
        await anext(stream)
        fails.set()
        ends = [output async for output in stream if output.finish]
        assert [(o.finish, o.index) for o in ends] == [("error", 0), ("error", 1)]
        assert ends[0].error == (
            "the engine has stopped: a step failed with MemoryError; start it again"
        )
        with pytest.raises(RequestError, match="the engine has stopped"):
            await worker.open(request("b"))
        await stream.aclose()

    asyncio.run(main())
    worker.close()


def test_calls_return_raise_and_end_with_the_worker(net):
    worker = Worker(engine(net))

    async def main():
        assert await worker.call(lambda made: made.limit(3)) == 256
        with pytest.raises(ZeroDivisionError):
            await worker.call(lambda made: 1 / 0)
        worker.close()
        with pytest.raises(RequestError, match="it was closed; start it again"):
            await worker.call(lambda made: made)

    asyncio.run(main())


def test_each_event_loop_gets_its_own_outputs(net, worker):
    found = {}

    def client(name):
        found[name] = asyncio.run(collect(worker, request(name)))

    threads = [threading.Thread(target=client, args=(name,)) for name in "abc"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all({o.request_id for o in found[name]} == {name} for name in "abc")
    assert all(len(tokens(found[name])) == 12 for name in "abc")
