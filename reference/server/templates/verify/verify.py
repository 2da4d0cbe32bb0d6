from __future__ import annotations

import hashlib
import hmac
import re
import time


def verify(body: bytes, header: str, secret: str, tolerance: float = 300, now: float | None = None) -> bool:
    """Returns True if a delivery is genuine and at most `tolerance` seconds old. `body`: the bytes as received."""
    parts = [part.split("=", 1) for part in header.split(",") if "=" in part]
    times = [value for name, value in parts if name == "t"]
    if len(times) != 1 or not re.fullmatch(r"[0-9]{1,15}", times[0]):
        return False
    if abs((time.time() if now is None else now) - int(times[0])) > tolerance:
        return False
    signed = times[0].encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    given = [value for name, value in parts if name == "v1"]
    return any(hmac.compare_digest(expected.encode(), value.encode()) for value in given)
