"""A loopback service that speaks the E2B protocol, over local sandboxes.

Written from the published API and not from k3.envs.e2b, whose client it judges.
"""

import base64
import email
import itertools
import json
import struct
import threading
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from k3.errors import RequestError

KEY = "e2b_secret"


class Service:
    """What the service holds: sandboxes, snapshots, inputs of running commands."""

    def __init__(self, backend):
        self.backend, self.boxes, self.snapshots = backend, {}, {}
        self.inputs, self.numbers = {}, itertools.count(1)

    def app(self):
        routes = [
            ("/sandboxes", "POST", self.create),
            ("/sandboxes/{id}", "DELETE", self.delete),
            ("/sandboxes/{id}/pause", "POST", self.pause),
            ("/sandboxes/{id}/connect", "POST", self.connect),
            ("/sandboxes/{id}/snapshots", "POST", self.snapshot),
            ("/envd/{id}/files", "GET", self.download),
            ("/envd/{id}/files", "POST", self.upload),
            ("/envd/{id}/process.Process/Start", "POST", self.start),
            ("/envd/{id}/process.Process/SendInput", "POST", self.send_input),
            ("/envd/{id}/process.Process/CloseStdin", "POST", self.close_stdin),
            ("/envd/{id}/process.Process/SendSignal", "POST", self.send_signal),
        ]
        return Starlette(
            routes=[Route(path, call, methods=[how]) for path, how, call in routes]
        )

    async def create(self, request):
        if request.headers.get("x-api-key") != KEY:
            return JSONResponse({"code": 401, "message": "no such key"}, 401)
        body = await request.json()
        name, start = f"box{next(self.numbers)}", self.snapshots.get(body["templateID"])
        if start is None and body["templateID"] != "base":
            return JSONResponse({"code": 404, "message": "no such template"}, 404)
        self.boxes[name] = await run_in_threadpool(self.backend.create, start=start)
        made = {"sandboxID": name, "templateID": body["templateID"]}
        made |= {"clientID": "c", "envdVersion": "0.2", "envdAccessToken": f"t-{name}"}
        return JSONResponse(made, 201)

    async def delete(self, request):
        self.boxes.pop(request.path_params["id"]).destroy()
        return Response(status_code=204)

    async def pause(self, request):
        await run_in_threadpool(self.box(request).pause)
        return Response(status_code=204)

    async def connect(self, request):
        await run_in_threadpool(self.box(request).resume)
        return JSONResponse({"sandboxID": request.path_params["id"]})

    async def snapshot(self, request):
        name = f"snap{next(self.numbers)}:default"
        self.snapshots[name] = await run_in_threadpool(self.box(request).checkpoint)
        return JSONResponse({"snapshotID": name, "names": []}, 201)

    async def download(self, request):
        try:
            data = await run_in_threadpool(
                self.box(request).read, request.query_params["path"]
            )
        except RequestError as error:
            return JSONResponse({"code": 404, "message": str(error)}, 404)
        return Response(data)

    async def upload(self, request):
        kind = request.headers["content-type"].encode()
        head = b"Content-Type: " + kind + b"\r\n\r\n"
        (part,) = email.message_from_bytes(head + await request.body()).get_payload()
        data = part.get_payload(decode=True)
        path = request.query_params["path"]
        await run_in_threadpool(self.box(request).write, path, data)
        return JSONResponse([{"path": path, "name": path, "type": "file"}])

    async def start(self, request):
        if request.headers["x-access-token"] != f"t-{request.path_params['id']}":
            return JSONResponse({"code": "unauthenticated"}, 401)
        raw = await request.body()
        assert request.headers["content-type"] == "application/connect+json"
        assert raw[0] == 0
        assert struct.unpack(">I", raw[1:5])[0] == len(raw) - 5
        asked = json.loads(raw[5:])
        seconds = int(request.headers["connect-timeout-ms"]) / 1000
        stream = self.events(self.box(request), asked["process"], seconds)
        return StreamingResponse(stream, media_type="application/connect+json")

    async def events(self, box, process, seconds):
        pid = next(self.numbers)
        self.inputs[pid] = bytearray(), threading.Event()
        yield frame({"event": {"start": {"pid": pid}}})
        await run_in_threadpool(self.inputs[pid][1].wait, 10)
        argv = [process["cmd"], *process["args"]]
        ran = await run_in_threadpool(
            box.run,
            argv,
            stdin=bytes(self.inputs[pid][0]),
            seconds=seconds,
            env=process["envs"],
        )
        for name, data in (("stdout", ran.stdout), ("stderr", ran.stderr)):
            if data:
                text = base64.b64encode(data).decode()
                yield frame({"event": {"data": {name: text}}})
        if ran.limit == "seconds":
            yield frame({"error": {"code": "deadline_exceeded"}}, 2)
            return
        # A field of value zero is left out in this encoding.
        code = {"exitCode": ran.code} if ran.code else {}
        yield frame({"event": {"end": {"exited": True, "status": "done"} | code}})
        yield frame({}, 2)

    async def send_input(self, request):
        body = await request.json()
        data = base64.b64decode(body["input"]["stdin"])
        self.inputs[body["process"]["pid"]][0].extend(data)
        return JSONResponse({})

    async def close_stdin(self, request):
        body = await request.json()
        self.inputs[body["process"]["pid"]][1].set()
        return JSONResponse({})

    async def send_signal(self, request):
        assert (await request.json())["signal"] == "SIGNAL_SIGKILL"
        return JSONResponse({})

    def box(self, request):
        return self.boxes[request.path_params["id"]]


def frame(message, flag=0):
    data = json.dumps(message).encode()
    return bytes([flag]) + struct.pack(">I", len(data)) + data


@contextmanager
def serving(backend):
    """The service on a free port: yields its address and what it holds."""
    service = Service(backend)
    config = uvicorn.Config(service.app(), port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", service
    finally:
        server.should_exit = True
        thread.join()
        for box in service.boxes.values():
            box.destroy()
