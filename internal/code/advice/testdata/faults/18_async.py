"""Waiting in coroutines."""
import asyncio
import time


async def slow():
    time.sleep(1)  # fault: ASYNC251
    return 1


async def fine():
    await asyncio.sleep(1)
    return 2


async def main():
    asyncio.create_task(slow())  # fault: RUF006
    task = asyncio.create_task(fine())
    print(await task)


def format_it(n):
    text = "%d of %d" % (n,)  # fault: F507
    return "{} {}".format(n), text  # fault: F524


print(format_it(1))
asyncio.run(main())
