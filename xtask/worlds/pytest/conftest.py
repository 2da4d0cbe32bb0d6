"""A fixture that opens a world for each test: its own clock, chains, keys and limits, on one served reference."""

import json
import os
import urllib.error
import urllib.request

import pytest

SERVER = os.environ.get("CHARGEPROOF_URL", "http://127.0.0.1:8402")


def call(method, url, body=None, key=None):
    """The status and the JSON of an answer."""
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as answer:
        return answer.code, json.load(answer)


class World:
    """One world; `base_url`, `live_key` and `test_key` are what a client needs."""

    def __init__(self, answer):
        self.id = answer["world"]
        self.base_url = answer["base_url"]
        self.live_key = answer["live_key"]
        self.test_key = answer["test_key"]

    def api(self, method, path, body=None):
        return call(method, f"{self.base_url}/v1{path}", body, self.live_key)

    def sandbox(self, what, body):
        status, answer = call("POST", f"{self.base_url}/sandbox/{what}", body)
        assert status == 200, answer
        return answer


@pytest.fixture
def world(request):
    # Of one name, so the same codes and addresses each time the test runs. The ttl is for runs that are killed.
    wanted = {
        "name": request.node.nodeid,
        "clock": "frozen",
        "start": "2026-01-05T09:00:00Z",
        "ttl": "10m",
    }
    status, answer = call("POST", f"{SERVER}/sandbox/worlds", wanted)
    assert status == 201, answer
    opened = World(answer)
    yield opened
    call("DELETE", f"{SERVER}/sandbox/worlds/{opened.id}")
