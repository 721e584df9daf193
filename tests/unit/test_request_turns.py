"""Requests begin in turns of their clients, and the event loop goes round between them."""

import asyncio

from server.http.pipeline import Client, RequestTurns

FLOOD, READER = Client("10.0.0.1"), Client("10.0.0.2")


class Begun:
    """Who has begun, in which iteration of the loop."""

    def __init__(self) -> None:
        self.turns = RequestTurns()
        self.turns.longest_slice = 0.0  # there is time for one request in an iteration
        self.clients: list[Client] = []
        self.iterations: list[int] = []
        self.iteration = 0

    async def ask(self, client: Client) -> None:
        await self.turns.take(client)
        self.clients.append(client)
        self.iterations.append(self.iteration)

    def send(self, *clients: Client) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.ask(client)) for client in clients]

    async def wait(self, *tasks: asyncio.Task[None]) -> None:
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            self.iteration += 1


async def test_one_request_begins_in_an_iteration_of_the_loop() -> None:
    """If there is no time for more."""
    begun = Begun()
    await begun.wait(*begun.send(*[FLOOD] * 100))
    assert len(begun.iterations) == len(set(begun.iterations)) == 100


async def test_another_clients_request_begins_after_one_of_a_flood() -> None:
    """Though it came as the last."""
    begun = Begun()
    await begun.wait(*begun.send(*[FLOOD] * 100, READER, READER))
    assert begun.clients.index(READER) <= 2
    assert begun.clients[:6].count(READER) == 2


async def test_a_new_connection_is_not_behind_the_others_of_its_address() -> None:
    """Two hundred that pipeline, and /livez or a reader behind the same proxy."""
    begun = Begun()
    await begun.wait(*begun.send(*[FLOOD] * 100, FLOOD._replace(is_first=True)))
    assert begun.clients.index(FLOOD._replace(is_first=True)) <= 2


async def test_requests_of_a_client_begin_in_their_order() -> None:
    """However many others take turns with them."""
    begun, order = Begun(), list[int]()

    async def ask(number: int) -> None:
        await begun.turns.take(FLOOD)
        order.append(number)

    tasks = [asyncio.create_task(ask(number)) for number in range(200)]
    await begun.wait(*tasks, *begun.send(*[READER] * 20))
    assert order == sorted(order)


async def test_a_cancelled_request_leaves_its_turn_to_the_next() -> None:
    """Before it is called, and when it has just been."""
    begun = Begun()
    tasks = begun.send(*[FLOOD] * 10, *[READER] * 10)
    for task in tasks[::3]:
        await asyncio.sleep(0)
        task.cancel()
    await begun.wait(*tasks)
    assert sum(task.cancelled() for task in tasks) + len(begun.clients) == 20
    await begun.wait(*begun.send(FLOOD))
    assert begun.clients[-1] is FLOOD
