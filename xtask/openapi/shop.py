"""Opens, lists, gets and cancels a charge with the client that openapi-python-client generated."""

import os

from shop_client import AuthenticatedClient
from shop_client.api.charges import cancel_charge, create_charge, get_charge, list_charges
from shop_client.api.events import list_events
from shop_client.models import Asset, Currency, Error, NewCharge

client = AuthenticatedClient(
    base_url=os.environ["CHARGEPROOF_URL"],
    token=os.environ["CHARGEPROOF_TEST_KEY"],
    raise_on_unexpected_status=True,
)

draft = NewCharge(asset=Asset.BTC, amount="49.90", currency=Currency.EUR, description="order 4711")
opened = create_charge.sync(client=client, body=draft).data
assert opened.status == "pending", opened
assert opened.fiat_amount == "49.90", opened

page = list_charges.sync(client=client)
assert [charge.id for charge in page.data] == [opened.id], page
assert page.meta.total == 1, page.meta

shown = get_charge.sync(opened.id, client=client).data
assert shown == opened, (shown, opened)

canceled = cancel_charge.sync(opened.id, client=client).data
assert canceled.status == "canceled", canceled

newest = list_events.sync(client=client).data[0]
assert newest.charge.id == opened.id and newest.invoice is None, newest

# An unknown object is an error that the client declares.
missing = get_charge.sync("zzzzzzzzzzzz", client=client)
assert isinstance(missing, Error) and missing.message, missing

print("opened, listed, got and canceled a charge")
