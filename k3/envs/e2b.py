"""Sandboxes of a fleet: the E2B protocol, which AgentENV's service and E2B speak.

Source: E2B's published API (sandboxes, snapshots) and its envd's process and file
services.
"""

import base64
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from k3.envs import connect
from k3.envs.sandbox import Checkpoint, Limits, Ran
from k3.errors import RequestError

if TYPE_CHECKING:
    import httpx


class E2BBackend:
    """Asks a service for sandboxes.

    `sandbox_url` holds `{id}` where a sandbox's name goes; E2B's own is
    https://49983-{id}.DOMAIN. What a sandbox may use is the template's: of `limits`
    only the time and the output of a command are held here.
    """

    def __init__(
        self, api_url: str, key: str, sandbox_url: str, template: str = "base"
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise RequestError(
                "the E2B backend needs httpx: got no such package; run pip install "
                "'k3[serve]'"
            ) from None
        self.template, self.sandbox_url = template, sandbox_url
        self.client = httpx.Client(
            base_url=api_url, headers={"X-API-Key": key}, timeout=60.0
        )

    def create(
        self,
        files: Mapping[str, bytes] | None = None,
        *,
        limits: Limits | None = None,
        start: Checkpoint | None = None,
    ) -> "E2BSandbox":
        """Return a new sandbox of the template or a snapshot, with files added."""
        if limits is None:
            limits = start.limits if start else Limits()
        template = start.tree if start else self.template
        asked = {"templateID": template, "timeout": 3600, "secure": True}
        made = self.ask("POST", "/sandboxes", asked | {"allow_internet_access": False})
        sandbox = E2BSandbox(self, made, limits, start.transcript if start else ())
        try:
            for path, data in (files or {}).items():
                sandbox.write(path, data)
        except BaseException:
            sandbox.destroy()
            raise
        return sandbox

    def close(self) -> None:
        """Drop the connections; sandboxes go on."""
        self.client.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One call of the service's own API.

        Raises: RequestError for a refusal, with the service's words.
        """
        import httpx

        try:
            answer = self.client.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise RequestError(
                f"a sandbox service must answer: got {error!r} for {method} {path}; "
                "look at the address and the service"
            ) from error
        check(answer, f"{method} {path}")
        return answer.json() if answer.content else None


class E2BSandbox:
    """One sandbox of a service."""

    def __init__(
        self,
        backend: E2BBackend,
        made: dict[str, Any],
        limits: Limits,
        transcript: tuple[Ran, ...],
    ) -> None:
        import httpx

        self.id, self.limits, self._backend = made["sandboxID"], limits, backend
        self._transcript, self._alive = list(transcript), True
        headers = {"Authorization": "Basic " + base64.b64encode(b"user:").decode()}
        if made.get("envdAccessToken"):
            headers["X-Access-Token"] = made["envdAccessToken"]
        url = backend.sandbox_url.replace("{id}", self.id)
        self._envd = httpx.Client(base_url=url, headers=headers, timeout=60.0)

    @property
    def transcript(self) -> tuple[Ran, ...]:
        """What was run, in order, from the first ancestor on."""
        return tuple(self._transcript)

    @property
    def alive(self) -> bool:
        """Whether it was not destroyed here."""
        return self._alive

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run a command in the home folder and wait for it."""
        most = self.limits.seconds if seconds is None else seconds
        process = {"cmd": argv[0], "args": list(argv[1:]), "envs": dict(env or {})}
        began, command = time.monotonic(), _Command(self.limits.output_bytes)
        body = connect.envelope({"process": process, "stdin": True})
        headers = {**connect.HEADERS, "Connect-Timeout-Ms": str(int(most * 1000))}
        path = "/process.Process/Start"
        with self._envd.stream("POST", path, content=body, headers=headers) as answer:
            check(answer, f"POST {path}")
            try:
                for message in connect.messages(answer.iter_bytes()):
                    self._take(command, message["event"], stdin)
            except connect.Refused as error:
                if error.code != "deadline_exceeded":
                    raise
                command.limit = command.limit or "seconds"
        ran = command.ran(tuple(argv), time.monotonic() - began)
        self._transcript.append(ran)
        return ran

    def read(self, path: str) -> bytes:
        """Return a file; a relative path is of the home folder."""
        answer = self._envd.get("/files", params=_file(path))
        check(answer, f"GET {path}")
        return answer.content

    def write(self, path: str, data: bytes) -> None:
        """Write a file, making the folders above it."""
        answer = self._envd.post(
            "/files", params=_file(path), files={"file": (path, data)}
        )
        check(answer, f"POST {path}")

    def pause(self) -> None:
        """Stop all processes where they are."""
        self._call("POST", "pause")

    def resume(self) -> None:
        """Let them go on."""
        self._call("POST", "connect", {"timeout": 3600})

    def checkpoint(self) -> Checkpoint:
        """Ask for a snapshot; the sandbox goes on."""
        made = self._call("POST", "snapshots", {})
        tree = made["snapshotID"]
        return Checkpoint(tree=tree, limits=self.limits, transcript=self.transcript)

    def fork(self) -> "E2BSandbox":
        """Return another sandbox with the same files and transcript."""
        return self._backend.create(start=self.checkpoint())

    def destroy(self) -> None:
        """End the sandbox; twice is as good as once."""
        if self._alive:
            self._alive = False
            self._envd.close()
            self._backend.ask("DELETE", f"/sandboxes/{self.id}")

    def _call(self, method: str, what: str, body: Any = None) -> Any:
        return self._backend.ask(method, f"/sandboxes/{self.id}/{what}", body)

    def _take(self, command: "_Command", event: dict[str, Any], stdin: bytes) -> None:
        """Note an event; feed a command that starts, kill one that writes too much."""
        command.take(event)
        if "start" in event:
            self._feed(command.pid, stdin)
        if command.limit and not command.killed:
            command.killed = True
            self._signal(command.pid)

    def _feed(self, pid: int, stdin: bytes) -> None:
        chosen = {"process": {"pid": pid}}
        if stdin:
            data = base64.b64encode(stdin).decode()
            self._rpc("SendInput", chosen | {"input": {"stdin": data}})
        self._rpc("CloseStdin", chosen)

    def _signal(self, pid: int) -> None:
        self._rpc("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})

    def _rpc(self, name: str, body: dict[str, Any]) -> None:
        headers = {"Connect-Protocol-Version": "1"}
        answer = self._envd.post(f"/process.Process/{name}", json=body, headers=headers)
        check(answer, name)


class _Command:
    """A command's events as they come."""

    def __init__(self, most: int) -> None:
        self.most, self.pid, self.code = most, 0, -9
        self.parts = {"stdout": bytearray(), "stderr": bytearray()}
        self.limit, self.killed = "", False

    def take(self, event: dict[str, Any]) -> None:
        """Note a start, data or the end."""
        self.pid = event.get("start", {}).get("pid", self.pid)
        for name, part in self.parts.items():
            data = base64.b64decode(event.get("data", {}).get(name, ""))
            part.extend(data[: self.most - len(part)])
            if len(part) >= self.most:
                self.limit = "output"
        if "end" in event:
            self.code = event["end"].get("exitCode", 0)

    def ran(self, argv: tuple[str, ...], seconds: float) -> Ran:
        """What it did."""
        return Ran(
            argv=argv,
            code=self.code,
            stdout=bytes(self.parts["stdout"]),
            stderr=bytes(self.parts["stderr"]),
            seconds=seconds,
            limit=self.limit,
        )


def check(answer: "httpx.Response", what: str) -> None:
    """Refuse an answer that is not a success, with the service's words."""
    if answer.is_success:
        return
    said = answer.read().decode(errors="replace")[:200]
    raise RequestError(
        f"a sandbox service did not do {what}: got {answer.status_code} {said!r}; look "
        "at the path, the key and the sandbox"
    )


def _file(path: str) -> dict[str, str]:
    return {"path": path, "username": "user"}
