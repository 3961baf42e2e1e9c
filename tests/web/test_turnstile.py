import asyncio

from inferwatch.web.turnstile import Turnstile


async def test_a_few_pass_at_once_and_the_rest_in_order() -> None:
    turnstile = Turnstile(per_pass=2)
    passed: list[int] = []

    async def visitor(number: int) -> None:
        await turnstile.wait()
        passed.append(number)

    tasks = [asyncio.create_task(visitor(number)) for number in range(7)]
    most = 0
    while len(passed) < 7:
        before = len(passed)
        await asyncio.sleep(0)
        most = max(most, len(passed) - before)
    await asyncio.gather(*tasks)

    assert passed == list(range(7))
    assert most <= 2


async def test_single_visitor_does_not_wait() -> None:
    turnstile = Turnstile(per_pass=1)
    for _ in range(3):
        coroutine = turnstile.wait()
        try:
            coroutine.send(None)
        except StopIteration:
            pass
        else:
            raise AssertionError("it waited")
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_visitor_that_leaves_takes_nobodys_turn() -> None:
    turnstile = Turnstile(per_pass=1)
    first, leaving, staying = (asyncio.create_task(turnstile.wait()) for _ in range(3))
    await asyncio.sleep(0)
    leaving.cancel()

    async with asyncio.timeout(1):
        await asyncio.gather(first, staying)
    assert leaving.cancelled()
