ORDER = {"asset": "BTC", "amount": "49.90", "currency": "EUR"}


def test_a_paid_charge_is_announced(chargeproof_world, chargeproof_webhooks):
    # Use your client here, with chargeproof_world.base_url and .test_key.
    opened = chargeproof_world.api("POST", "/charges", ORDER)
    charge = opened.body["data"]["id"]

    chargeproof_world.pay(charge)
    chargeproof_world.mine("BTC", blocks=1)

    paid = chargeproof_webhooks.wait_for("charge.paid").json()
    assert paid["data"]["charge"]["code"] == charge
    assert paid["mode"] == "test"
