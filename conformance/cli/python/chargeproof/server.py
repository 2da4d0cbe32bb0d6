"""The server as a separate process, and the worlds that it opens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Sequence

#: The program to start, instead of the one that is installed with this package.
PROGRAM_VARIABLE = "CHARGEPROOF_PROGRAM"
#: The address of a running server, which is then used instead of a new one.
URL_VARIABLE = "CHARGEPROOF_URL"


class ApiError(Exception):
    """An error response: `status`, and the JSON `body`."""

    def __init__(self, call: str, status: int, body: Any) -> None:
        super().__init__(f"{call} was answered with {status}: {json.dumps(body)}")
        self.status = status
        self.body = body


class Response(NamedTuple):
    """The status and the JSON body of a response."""

    status: int
    body: Any


class Forward(NamedTuple):
    """A handler that webhooks are forwarded to, with the secrets that sign its deliveries."""

    url: str
    test_secret: str
    live_secret: str


def program() -> str:
    """The path of the installed program."""
    name = "chargeproof" + (".exe" if os.name == "nt" else "")
    schemes = [sysconfig.get_path("scripts")]
    user = "nt_user" if os.name == "nt" else "posix_user"
    if user in sysconfig.get_scheme_names():
        schemes.append(sysconfig.get_path("scripts", user))
    # `pip install --target DIR` puts programs into DIR/bin.
    schemes.append(str(Path(__file__).parent.parent / "bin"))
    candidates = [os.environ.get(PROGRAM_VARIABLE), *(os.path.join(it, name) for it in schemes)]
    for candidate in candidates:
        if candidate and os.path.isfile(candidate):
            return candidate
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"`{name}` is not installed; set {PROGRAM_VARIABLE} to its path")
    return found


def request(method: str, url: str, body: Any = None, key: str | None = None) -> Response:
    """Sends JSON and returns the response, whatever its status is."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    call = urllib.request.Request(url, data, headers, method=method)
    # The server is on this machine, so a proxy of the environment does not apply.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(call) as answer:
            text = answer.read()
            return Response(answer.status, json.loads(text) if text else None)
    except urllib.error.HTTPError as answer:
        with answer:
            text = answer.read()
        try:
            return Response(answer.code, json.loads(text) if text else None)
        except ValueError:
            return Response(answer.code, text.decode("utf-8", "replace"))


def request_ok(method: str, url: str, body: Any = None) -> Any:
    """Sends JSON and returns the body of the response; a status other than 2xx is an `ApiError`."""
    status, answer = request(method, url, body)
    if not 200 <= status < 300:
        raise ApiError(f"{method} {url}", status, answer)
    return answer


class Server:
    """A running server. `Server.start()` starts one on a free port; leaving its `with` block stops it."""

    def __init__(self, url: str, process: subprocess.Popen[str] | None = None) -> None:
        self.url = url
        self._process = process

    @classmethod
    def start(cls, options: Sequence[str] = ()) -> Server:
        """Starts the installed program on a free port, with further options of `chargeproof serve`."""
        command = [program(), "serve", "--port", "0", "--format", "json", "--log", "off", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        # Ends with the line, or with the process.
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command)} ended with {process.wait()}")
        return cls(json.loads(line)["url"], process)

    def stop(self) -> None:
        """Stops the process, if this object started it."""
        if self._process is None:
            return
        # The worlds are in memory, or in crash-safe storage, so nothing has to be flushed.
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def open_world(self, name: str, **options: Any) -> World:
        """Opens a world with a frozen clock; `options` are those of `POST /sandbox/worlds`.

        Worlds of one name have the same codes and addresses. A world that is not closed ends after ten idle
        minutes.
        """
        wanted = {"name": name, "clock": "frozen", "start": "2026-01-05T09:00:00Z", "ttl": "10m"}
        return World(self, request_ok("POST", f"{self.url}/sandbox/worlds", {**wanted, **options}))


class World:
    """A complete service with its own clock, chains, keys and webhooks. `base_url` and a key are what a client needs."""

    def __init__(self, server: Server, opened: Any) -> None:
        self._server = server
        self.id: str = opened["world"]
        self.base_url: str = opened["base_url"]
        self.dashboard_url: str = opened["dashboard_url"]
        self.live_key: str = opened["live_key"]
        self.test_key: str = opened["test_key"]

    def api(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Response:
        """Calls the API below `/v1` with the test key, or with `key`."""
        return request(method, f"{self.base_url}/v1{path}", body, key or self.test_key)

    def sandbox(self, call: str, **fields: Any) -> Any:
        """Calls `POST /sandbox/CALL` with these fields and returns its body; an error is an `ApiError`."""
        return request_ok("POST", f"{self.base_url}/sandbox/{call}", fields)

    def pay(self, charge: str, **fields: Any) -> Any:
        """Pays a charge in full, or the `share` or `amount` that is given."""
        return self.sandbox("pay", charge=charge, **fields)

    def mine(self, asset: str, blocks: int, *, mode: str = "test") -> Any:
        """Advances the clock until the chain of a coin has this many more blocks."""
        return self.sandbox("mine", asset=asset, blocks=blocks, mode=mode)

    def advance(self, by: str) -> Any:
        """Moves the clock by a span such as `31m`; everything due happens."""
        return self.sandbox("advance", by=by)

    def forward(self, to: str) -> Forward:
        """Forwards the world's webhooks to a handler on this machine."""
        made = self.sandbox("forwards", to=to)["forward"]
        return Forward(to, made["test_secret"], made["live_secret"])

    def close(self) -> None:
        """Ends the world."""
        request("DELETE", f"{self._server.url}/sandbox/worlds/{self.id}")
