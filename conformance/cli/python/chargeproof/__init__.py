"""A crypto payment service for tests: the `chargeproof` program, its worlds, and its webhooks.

With pytest, the fixtures `chargeproof_server`, `chargeproof_world` and `chargeproof_webhooks` are there once the
package is installed.
"""

from ._verify import verify
from .server import ApiError, Forward, Response, Server, World, program
from .webhooks import Delivery, Webhooks

__all__ = [
    "ApiError",
    "Delivery",
    "Forward",
    "Response",
    "Server",
    "Webhooks",
    "World",
    "program",
    "verify",
]
