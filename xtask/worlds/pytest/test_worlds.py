"""Tests that run side by side, each in a world of its own: pytest -n auto."""

import pytest

from conftest import SERVER, call

CHARGE = {"asset": "BTC", "amount": "49.90", "currency": "EUR"}


def open_charge(world):
    status, answer = world.api("POST", "/charges", CHARGE)
    assert status == 201, answer
    return answer["data"]["code"]


def status_of(world, code):
    return world.api("GET", f"/charges/{code}")[1]["data"]["status"]


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_a_charge_is_paid_after_two_blocks(world, blocks):
    code = open_charge(world)
    world.sandbox("pay", {"charge": code})
    if blocks:
        world.sandbox("mine", {"asset": "BTC", "blocks": blocks})
    assert (status_of(world, code) == "paid") == (blocks == 2)


@pytest.mark.parametrize("minutes", [29, 31])
def test_a_charge_expires_after_half_an_hour(world, minutes):
    code = open_charge(world)
    # Nobody else's clock moves, and nobody waits.
    world.sandbox("advance", {"by": f"{minutes}m"})
    assert (status_of(world, code) == "expired") == (minutes == 31)


@pytest.mark.parametrize("nth", range(20))
def test_nobody_sees_the_charges_of_another_test(world, nth):
    open_charge(world)
    assert world.api("GET", "/charges")[1]["meta"]["total"] == 1


def test_a_client_with_a_fixed_address_reaches_its_world_by_the_key(world):
    code = open_charge(world)
    status, answer = call("GET", f"{SERVER}/v1/charges/{code}", key=world.live_key)
    assert (status, answer["data"]["code"]) == (200, code)
