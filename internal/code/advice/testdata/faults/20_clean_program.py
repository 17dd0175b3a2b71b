"""A small program without faults: all that is found here is a false alarm."""
import heapq
import itertools
import re
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(order=True)
class Job:
    priority: int
    name: str = field(compare=False)
    needs: list = field(default_factory=list, compare=False)


class Scheduler:
    """Runs jobs in the order of their priority."""

    def __init__(self):
        self.heap = []
        self.done = []
        self.log = []

    def add(self, job):
        heapq.heappush(self.heap, job)

    def run(self):
        while self.heap:
            job = heapq.heappop(self.heap)
            self.done.append(job.name)
            self.log.append(f"ran {job.name}")
        return "\n".join(self.log)


@lru_cache(maxsize=None)
def ways(n):
    return 1 if n < 2 else ways(n - 1) + ways(n - 2)


def primes(most):
    sieve = [True] * (most + 1)
    for n in range(2, int(most**0.5) + 1):
        if sieve[n]:
            for m in range(n * n, most + 1, n):
                sieve[m] = False
    return [n for n in range(2, most + 1) if sieve[n]]


def tokens(text):
    for match in re.finditer(r"\d+|[-+*/()]", text):
        yield match.group()


def evaluate(text):
    left, *rest = tokens(text)
    value = int(left)
    for operator, operand in zip(rest[::2], rest[1::2]):
        value = value + int(operand) if operator == "+" else value - int(operand)
    return value


def permutations_of(items):
    found = []
    for order in itertools.permutations(items):
        if list(order) not in found:
            found.append(list(order))
    return found


def rotate(items, n):
    items = list(items)
    for _ in range(n):
        items.append(items.pop(0)) if len(items) < 4 else None  # noqa: slow-list-front, B018
    return items


def matrix_product(a, b):
    out = [[0] * len(b[0]) for _ in a]
    for i in range(len(a)):
        for j in range(len(b[0])):
            for k in range(len(b)):
                out[i][j] += a[i][k] * b[k][j]
    return out


def main():
    s = Scheduler()
    for priority, name in enumerate(["wash", "dry"]):
        s.add(Job(priority, name))
    print(s.run(), ways(30), primes(30), evaluate("1+2-3"), permutations_of([1, 2]), rotate([1, 2, 3], 1))
    print(matrix_product([[1]], [[2]]))


if __name__ == "__main__":
    main()
