"""Tests that run side by side, each in a world of its own: pytest -n auto."""

import pytest

from chargeproof import ApiError, Server, World, verify
from chargeproof.server import request

CHARGE = {"asset": "BTC", "amount": "49.90", "currency": "EUR"}


def open_charge(world: World) -> str:
    status, answer = world.api("POST", "/charges", CHARGE)
    assert status == 201, answer
    return answer["data"]["code"]


def status_of(world: World, code: str) -> str:
    return world.api("GET", f"/charges/{code}").body["data"]["status"]


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_charge_is_paid_after_one_block(chargeproof_world, blocks):
    code = open_charge(chargeproof_world)
    chargeproof_world.pay(code)
    if blocks:
        chargeproof_world.mine("BTC", blocks)
    assert (status_of(chargeproof_world, code) == "paid") == (blocks == 1)


@pytest.mark.parametrize("minutes", [29, 31])
def test_a_charge_expires_after_half_an_hour(chargeproof_world, minutes):
    code = open_charge(chargeproof_world)
    # The clocks of other worlds do not move, and no test waits.
    chargeproof_world.advance(f"{minutes}m")
    assert (status_of(chargeproof_world, code) == "expired") == (minutes == 31)


@pytest.mark.parametrize("nth", range(20))
def test_no_test_sees_the_charges_of_another(chargeproof_world, nth):
    open_charge(chargeproof_world)
    assert chargeproof_world.api("GET", "/charges").body["meta"]["total"] == 1


def test_a_client_with_a_fixed_address_reaches_its_world_by_the_key(chargeproof_server: Server, chargeproof_world):
    code = open_charge(chargeproof_world)
    url = f"{chargeproof_server.url}/v1/charges/{code}"
    status, answer = request("GET", url, key=chargeproof_world.test_key)
    assert (status, answer["data"]["code"]) == (200, code)


def test_a_delivery_fails_verification_with_another_secret_or_body(chargeproof_world, chargeproof_webhooks):
    open_charge(chargeproof_world)
    created = chargeproof_webhooks.wait_for("charge.created")
    signature = created.headers["x-service-signature"]
    secrets = chargeproof_webhooks.forward
    assert verify(created.body, signature, secrets.test_secret)
    assert not verify(created.body, signature, secrets.live_secret)
    assert not verify(created.body + b" ", signature, secrets.test_secret)
    assert not verify(created.body, signature, secrets.test_secret, now=0)


def test_a_refused_delivery_is_sent_again(chargeproof_world, chargeproof_webhooks):
    chargeproof_webhooks.status = 503
    open_charge(chargeproof_world)
    first = chargeproof_webhooks.wait_for("charge.created")
    chargeproof_webhooks.status = 200
    chargeproof_world.advance("1m")
    second = chargeproof_webhooks.wait_for("charge.created", count=2)
    assert first.body == second.body


def test_a_wrong_call_says_what_is_wrong(chargeproof_world, chargeproof_webhooks):
    with pytest.raises(ApiError, match="1h30m") as refused:
        chargeproof_world.advance("soon")
    assert refused.value.status == 422
    with pytest.raises(TimeoutError, match="`charge.paid` arrived 0 of 1 times in 0 s; deliveries so far: none"):
        chargeproof_webhooks.wait_for("charge.paid", timeout=0)
