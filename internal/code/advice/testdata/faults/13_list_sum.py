"""Sums of lists and numbers, and complicated functions."""
from itertools import chain

lists = [[1, 2], [3]]
flat = sum(lists, [])  # fault: slow-list-sum
better = list(chain.from_iterable(lists))
total = sum([1, 2, 3], 10)


def classify(n):  # fault: C901
    if n < 0:
        return "negative"
    elif n == 0:
        return "zero"
    elif n == 1:
        return "one"
    elif n < 10:
        if n % 2:
            return "small odd"
        return "small even"
    elif n < 100:
        for d in range(2, n):
            if n % d == 0 and n > d:
                return "composite"
        return "prime"
    elif n < 1000:
        return "large"
    elif n % 1000 == 0:
        return "round"
    return "other"


print(flat, better, total, classify(3))
