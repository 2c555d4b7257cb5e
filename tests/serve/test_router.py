"""The router against scripted replicas: affinity, failover, drain, health, metrics."""

import asyncio
import contextlib
import json

import httpx
import pytest
from scripted import Script, Wire

from k3.serve import attempts, router
from k3.serve.pool import Pool

CHAT = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(attempts, "PATIENCE_SECONDS", 0.5)


@contextlib.asynccontextmanager
async def routed(*scripts, **options):
    wire = Wire(scripts)
    pool = Pool({s.name: f"http://{s.name}" for s in scripts}, transport=wire)
    await pool.check_all()
    transport = httpx.ASGITransport(router.app(pool, **options))
    async with httpx.AsyncClient(transport=transport, base_url="http://r") as client:
        yield client, pool, wire
    assert all(r.in_flight == 0 for r in pool.replicas.values())
    await pool.close()


def chat(text="hi", **more):
    return {"messages": [{"role": "user", "content": text}], **more}


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20))


def owners(pool, scripts, body):
    """The scripts in the order in which a body's key finds them."""
    call = attempts.Call("POST", CHAT, {}, json.dumps(body).encode())
    by_name = {s.name: s for s in scripts}
    return [by_name[name] for name in pool.ring.order(call.key)]


def text(response):
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data")]
    chunks = [json.loads(line) for line in lines if line != "[DONE]"]
    errors = [c["error"] for c in chunks if "error" in c]
    words = [c["choices"][0]["delta"]["content"] for c in chunks if "choices" in c]
    return "".join(words), errors, lines[-1] == "[DONE]"


def test_turns_go_to_one_replica_and_everything_is_passed_on():
    async def check():
        scripts = [Script("a"), Script("b"), Script("c")]
        async with routed(*scripts) as (client, pool, _):
            body = chat()
            first = await client.post(f"{CHAT}?x=1", json=body, headers={"k": "v"})
            body["messages"] += [
                {"role": "assistant", "content": "ho"},
                *body["messages"],
            ]
            again = await client.post(CHAT, json=body)
            owner = owners(pool, scripts, body)[0]
            assert first.json() == again.json() == {"from": owner.name}
            assert first.headers["x-k3-replica"] == owner.name
            path, sent, headers = owner.seen[1]
            assert (path, json.loads(sent), owner.seen[0][2]["k"]) == (CHAT, body, "v")
            assert headers["accept-encoding"] == "identity"
            found = {
                (await client.post(CHAT, json=chat(str(i)))).text for i in range(20)
            }
            assert len(found) == 3
            assert (await client.get("/v1/models")).status_code == 200

    run(check())


def test_a_refused_connection_and_a_busy_replica_lead_to_the_secondary():
    async def check():
        scripts = [Script("a"), Script("b"), Script("c")]
        async with routed(*scripts) as (client, pool, wire):
            first, second, third = owners(pool, scripts, chat())
            first.status = 429
            assert (await client.post(CHAT, json=chat())).json() == {
                "from": second.name
            }
            wire.cut = {first.name, second.name}
            assert (await client.post(CHAT, json=chat())).json() == {"from": third.name}
            assert not pool.replicas[first.name].ready
            third.status = 503
            assert (await client.post(CHAT, json=chat())).status_code == 503
            wire.cut = set()
            await pool.check_all()
            assert pool.replicas[first.name].ready
            second.status = 429
            assert (await client.post(CHAT, json=chat())).status_code in (429, 503)
            wire.cut = {"a", "b", "c"}
            refused = await client.post(CHAT, json=chat())
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert refused.json()["error"]["message"].startswith("no replica is ready")

    run(check())


def test_a_request_that_breaks_replicas_reaches_two_of_them():
    async def check():
        scripts = [Script("a"), Script("b"), Script("c")]
        for script in scripts:
            script.status = 500
        async with routed(*scripts) as (client, pool, _):
            assert (await client.post(CHAT, json=chat())).status_code == 500
            assert sum(len(s.seen) for s in scripts) == attempts.ATTEMPTS
            assert pool.counts["failures"] == 2

    run(check())


@pytest.mark.parametrize(
    ("breaks_after", "more", "reads"),
    [
        (0, {}, "one two three"),
        (1, {"seed": 3}, "one two three"),
        (2, {"temperature": 0}, "one two three"),
        (1, {}, "one "),
        (1, {"seed": 3, "logprobs": True}, "one "),
    ],
)
def test_a_stream_whose_replica_dies(breaks_after, more, reads):
    async def check():
        scripts = [Script("a"), Script("b")]
        body = chat(stream=True, **more)
        async with routed(*scripts) as (client, pool, _):
            first, second = owners(pool, scripts, body)
            first.breaks_after = breaks_after
            second.words = ("on", "e two", " three")
            found = text(await client.post(CHAT, json=body))
            whole = reads == "one two three"
            assert (found[0], found[2]) == (reads, whole)
            assert len(second.seen) == whole
            if whole:
                name = "resumed" if breaks_after else "restarted"
                assert pool.counts == {"failures": 1, name: 1}
            else:
                (error,) = found[1]
                assert error["code"] == "replica_lost"
                assert "send the request again" in error["message"]

    run(check())


def test_a_continuation_that_differs_or_dies_too_ends_with_an_error():
    async def check():
        scripts = [Script("a"), Script("b"), Script("c")]
        body = chat(stream=True, seed=1)
        async with routed(*scripts) as (client, pool, _):
            first, second, third = owners(pool, scripts, body)
            first.breaks_after, second.words = 2, ("one 2",)
            words, (error,), _ = text(await client.post(CHAT, json=body))
            assert words == "one two "
            assert "does not repeat what was sent" in error["message"]
            await pool.check_all()
            second.words, second.breaks_after = first.words, 1
            words, (error,), done = text(await client.post(CHAT, json=body))
            assert (words, error["code"], done) == ("one two ", "replica_lost", False)
            assert not third.seen

    run(check())


def test_a_client_that_leaves_frees_the_replica():
    async def check():
        script = Script("a")
        script.hold = asyncio.Event()
        async with routed(script) as (client, _, _):
            gone = asyncio.Event()

            async def receive():
                if not gone.is_set():
                    gone.set()
                    return {"type": "http.request", "body": json.dumps(chat()).encode()}
                await asyncio.sleep(0.02)
                return {"type": "http.disconnect"}

            sent = []

            async def send(message):
                sent.append(message)

            scope = {
                "type": "http",
                "method": "POST",
                "path": CHAT,
                "query_string": b"",
                "headers": [],
            }
            await client._transport.app(scope, receive, send)
            assert sent[0]["status"] == 499
            await asyncio.wait_for(script.left.wait(), 5)

    run(check())


def test_drained_replicas_get_nothing_new():
    async def check():
        scripts = [Script("a"), Script("b")]
        async with routed(*scripts, api_keys=("key",)) as (client, pool, _):
            first, second = owners(pool, scripts, chat())
            path, key = f"/replicas/{first.name}", {"authorization": "Bearer key"}
            assert (await client.post(f"{path}/drain")).status_code == 401
            told = await client.post(f"{path}/drain", headers=key)
            assert told.json() == {
                "name": first.name,
                "state": "drained",
                "in_flight": 0,
            }
            assert (await client.post(CHAT, json=chat())).json() == {
                "from": second.name
            }
            health = (await client.get("/health")).json()
            assert health["replicas"] == {first.name: "drained", second.name: "ready"}
            await client.post(f"{path}/resume", headers=key)
            assert (await client.post(CHAT, json=chat())).json() == {"from": first.name}
            wrong = await client.post("/replicas/z/drain", headers=key)
            assert wrong.json()["error"]["message"].startswith(
                "a replica must be one of"
            )
            assert (await client.post(f"{path}/x", headers=key)).status_code == 404

    run(check())


def test_health_metrics_caches_and_large_bodies():
    async def check():
        scripts = [Script("a"), Script("b")]
        async with routed(*scripts, max_body_bytes=100) as (client, pool, wire):
            scripts[1].down = True
            await pool.check_all()
            told = await client.get("/health")
            assert told.json() == {
                "status": "ok",
                "replicas": {"a": "ready", "b": "down"},
            }
            text = (await client.get("/metrics")).text
            assert text.count("# TYPE k3:x_total counter") == 1
            assert 'k3:x_total{replica="a"} 1\n' in text
            assert 'k3:x_total{replica="b",a="b"} 2\n' in text
            assert 'k3:router_requests_total{replica="a"} 0\n' in text
            assert (await client.post("/reset_prefix_cache")).status_code == 200
            assert [len(s.seen) for s in scripts] == [1, 0]
            assert (await client.post(CHAT, content=b"x" * 101)).status_code == 413
            wire.cut = {"a", "b"}
            await pool.check_all()
            assert (await client.get("/health")).status_code == 503
            assert (await client.post("/flush_cache")).status_code == 503

    run(check())


def test_what_was_lost_waits_for_a_replica_that_is_late():
    async def check():
        scripts = [Script("a"), Script("b")]
        async with routed(*scripts) as (client, pool, _):
            first, second = owners(pool, scripts, chat())
            first.breaks_after, pool.replicas[second.name].ready = 1, False

            async def later():
                await asyncio.sleep(0.15)
                pool.replicas[second.name].ready = True

            late = asyncio.create_task(later())
            body = chat(stream=True, temperature=0)
            told = await client.post(CHAT, json=body)
            assert text(told) == ("one two three", [], True)
            assert pool.counts["resumed"] == 1
            await late
            pool.replicas[second.name].ready = pool.replicas[first.name].ready = False
            late, first.breaks_after = asyncio.create_task(later()), None
            assert (await client.post(CHAT, json=chat())).status_code == 200
            await late

    run(check())
