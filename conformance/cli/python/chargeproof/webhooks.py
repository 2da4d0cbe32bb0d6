"""A receiver of webhooks on this machine."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Mapping, NamedTuple

from ._verify import verify
from .server import Forward, World


class Delivery(NamedTuple):
    """A delivery whose signature was verified. `headers` have lower-case names."""

    event: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The parsed body: `id`, `event_id`, `event`, `mode`, `created_at`, `data`."""
        return json.loads(self.body)


class Webhooks:
    """Receives the webhooks of one world, verifies them, and answers with `status` (200 at first)."""

    forward: Forward

    def __init__(self, world: World) -> None:
        self.status = 200
        self.refused: list[str] = []
        self._deliveries: list[Delivery] = []
        self._arrived = threading.Condition()
        webhooks = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status = webhooks._receive({k.lower(): v for k, v in self.headers.items()}, body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # `shutdown` takes as long as the interval.
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.forward = world.forward(f"http://127.0.0.1:{self._http.server_address[1]}/")

    def _receive(self, headers: dict[str, str], body: bytes) -> int:
        signature = headers.get("x-service-signature", "")
        secrets = (self.forward.test_secret, self.forward.live_secret)
        with self._arrived:
            if not any(verify(body, signature, secret) for secret in secrets):
                self.refused.append(signature)
                return 400
            self._deliveries.append(Delivery(json.loads(body)["event"], headers, body))
            self._arrived.notify_all()
            return self.status

    @property
    def deliveries(self) -> list[Delivery]:
        """The deliveries that arrived so far, repeated attempts included."""
        with self._arrived:
            return list(self._deliveries)

    def wait_for(self, event: str, *, count: int = 1, timeout: float = 10) -> Delivery:
        """Waits until deliveries of this event type have arrived `count` times, and returns the last of them."""
        end = time.monotonic() + timeout
        with self._arrived:
            while True:
                found = [it for it in self._deliveries if it.event == event]
                if len(found) >= count:
                    return found[count - 1]
                if not self._arrived.wait(end - time.monotonic()) and time.monotonic() >= end:
                    arrived = ", ".join(it.event for it in self._deliveries) or "none"
                    refused = f"; {len(self.refused)} with an invalid signature" if self.refused else ""
                    raise TimeoutError(
                        f"`{event}` arrived {len(found)} of {count} times in {timeout} s; "
                        f"deliveries so far: {arrived}{refused}"
                    )

    def close(self) -> None:
        """Stops receiving."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
