"""Calls the tools of a served reference with the Python SDK of the protocol, which validates every result against the
tool's output schema."""

import asyncio
import json
import os
import uuid

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['MCP_SERVER_KEY']}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(os.environ["MCP_SERVER_URL"], http_client=http)
        async with Client(transport) as client:
            await use(client)


async def use(client: Client) -> None:
    tools = (await client.list_tools()).tools

    async def succeed(name: str, arguments: dict) -> dict:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, f"{name}: {result}"
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content

    async def refuse(name: str, arguments: dict, text: str) -> None:
        result = await client.call_tool(name, arguments)
        assert result.is_error and result.content[0].text == text, result

    order = {"asset": "BTC", "amount": "49.90", "idempotency_key": str(uuid.uuid4())}
    charge = (await succeed("create_charge", order))["data"]
    await succeed("pay", {"charge": charge["id"]})
    await succeed("mine", {"asset": "BTC", "blocks": 1, "at_once": True})
    assert (await succeed("get_charge", {"id": charge["id"]}))["data"]["status"] == "paid"
    await refuse("get_charge", {"id": "aaaaaaaaaaaa"}, "HTTP 404: Not found.")
    await refuse(
        "create_charge",
        order | {"amount": "5"},
        "HTTP 409: This Idempotency-Key was used for another request.",
    )
    print(f"{len(tools)} tools listed, 4 calls answered, 2 refusals read")


asyncio.run(main())
