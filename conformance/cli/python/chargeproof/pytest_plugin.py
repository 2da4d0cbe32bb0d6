"""The pytest fixtures. pytest loads this module by itself where the package is installed."""

from __future__ import annotations

import os
from typing import Iterator

import pytest

from .server import URL_VARIABLE, Server, World
from .webhooks import Webhooks


@pytest.fixture(scope="session")
def chargeproof_server() -> Iterator[Server]:
    """A server for all tests: the one at `CHARGEPROOF_URL`, or the installed program on a free port."""
    url = os.environ.get(URL_VARIABLE)
    with Server(url) if url else Server.start() as server:
        yield server


@pytest.fixture
def chargeproof_world(chargeproof_server: Server, request: pytest.FixtureRequest) -> Iterator[World]:
    """A world for this test, with a frozen clock. Each run of a test sees the same codes and addresses."""
    world = chargeproof_server.open_world(request.node.nodeid)
    yield world
    world.close()


@pytest.fixture
def chargeproof_webhooks(chargeproof_world: World) -> Iterator[Webhooks]:
    """A receiver of the webhooks of this test's world."""
    webhooks = Webhooks(chargeproof_world)
    yield webhooks
    webhooks.close()
