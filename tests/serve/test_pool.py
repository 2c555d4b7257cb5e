"""Replicas: late is not dead, until it is late every time."""

import asyncio

import httpx
from scripted import Script, Wire

from k3.serve.pool import Pool


def test_a_late_health_check_is_no_death_until_it_is_the_fifth():
    async def check():
        pool = Pool({"a": "http://a"}, transport=Wire([Script("a")]))
        replica, get, found = pool.replicas["a"], pool.client.get, []

        async def late(*args, **kwargs):
            raise httpx.ReadTimeout("late")

        assert not replica.comes_back
        await pool.check_all()
        pool.client.get = late
        for _ in range(5):
            await pool.check_all()
            found.append(replica.state)
        assert found == ["ready"] * 4 + ["down"]
        assert replica.comes_back
        pool.client.get = get
        await pool.check_all()
        assert (replica.state, replica.misses) == ("ready", 0)
        await pool.close()

    asyncio.run(check())
