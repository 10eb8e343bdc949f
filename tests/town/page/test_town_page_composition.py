"""The whole town opens with everything a SOUL needs, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from openai import AsyncOpenAI

from common.errors import ConfigError
from soul.commands.demo import HomeControls
from town.model.service import GatewayMind
from town.town import open_town

NOBODY = HomeControls({})


async def test_the_town_opens_with_accounts_a_model_and_a_page(tmp_path: Path) -> None:
    async with open_town(homes=tmp_path, controls=NOBODY) as town, httpx.AsyncClient() as http:
        assert [resident.name for resident in town.residents] == ["maren", "tobias", "odile"]
        for resident in town.residents:
            account = town.accounts[resident.name]
            login = {"identifier": resident.handle, "password": account.password}
            answer = await http.post(f"{town.atproto_url}/xrpc/com.atproto.server.createSession", json=login)
            assert answer.json()["did"] == account.did
        assert (await http.get(town.page_url)).status_code == 200
        assert (await http.get(f"{town.gallery_url}/v2/channels/unsorted")).json()["length"] == 2
        async with AsyncOpenAI(base_url=town.model_url, api_key=town.model_key, max_retries=0) as model:
            said = await model.chat.completions.create(
                model=town.model, messages=[{"role": "user", "content": "Are you an AI?"}]
            )
        assert "AI agent" in (said.choices[0].message.content or "")
    with pytest.raises(httpx.ConnectError):
        async with httpx.AsyncClient() as http:
            await http.get(town.page_url)


async def test_a_town_whose_residents_live_fast_takes_so_much_more_from_them(tmp_path: Path) -> None:
    async with open_town(homes=tmp_path, controls=NOBODY, speed=40) as town, httpx.AsyncClient() as http:
        answer = await http.get(f"{town.atproto_url}/xrpc/com.atproto.server.describeServer")
    assert answer.headers["ratelimit-policy"] == f"{40 * 3000};w=300"


async def test_another_model_can_think_for_the_town_and_the_page_says_so(tmp_path: Path) -> None:
    mind = GatewayMind(base_url="http://127.0.0.1:9/v1", api_key="k", model="some/model")
    async with open_town(homes=tmp_path, controls=NOBODY, mind=mind) as town, httpx.AsyncClient() as http:
        assert town.model == "some/model"
        assert "some/model" in (await http.get(f"{town.page_url}/api/town")).json()["about"]


async def test_a_taken_port_is_said_before_anything_else(tmp_path: Path) -> None:
    async with open_town(homes=tmp_path, controls=NOBODY) as town:
        port = httpx.URL(town.page_url).port or 0
        with pytest.raises(ConfigError, match="in use"):
            async with open_town(homes=tmp_path, controls=NOBODY, port=port):
                raise AssertionError("opened twice")
