"""No odd value in any place of any route gets a 5xx."""

from collections import Counter

import httpx

from tests.web.corpus import Place, places, values

EVERY_PLACE = list(places())


def test_the_corpus_is_large() -> None:
    assert len(set(values())) >= 60
    assert len(EVERY_PLACE) >= 40


async def test_every_odd_value_in_every_place_gets_no_5xx(client: httpx.AsyncClient) -> None:
    pairs = [(place, value) for place in EVERY_PLACE for value in values()]

    statuses = await _send_all(client, pairs)

    assert sum(statuses.values()) == len(pairs) >= 5_000
    assert set(statuses) == {200, 201, 400, 404, 422}


async def _send_all(client: httpx.AsyncClient, pairs: list[tuple[Place, bytes]]) -> Counter[int]:
    statuses: Counter[int] = Counter()
    for place, value in pairs:
        path, body = place.build(value)
        answer = await client.request(
            place.method,
            httpx.URL("http://test").copy_with(raw_path=path.encode()),
            headers=place.headers,
            content=body,
        )
        assert answer.status_code < 500, (place.name, value[:100], answer.text)
        assert "json" in answer.headers["content-type"]
        statuses[answer.status_code] += 1
    return statuses
