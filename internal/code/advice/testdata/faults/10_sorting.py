"""Sorting in loops."""
import random

scores = []
for _ in range(1000):
    scores.append(random.random())
    scores.sort()  # fault: slow-sort-in-loop

ranking = [3, 1, 2]
for n in range(100):
    ranking.append(n)
    ranking = sorted(ranking)  # fault: slow-sort-in-loop

groups = {"a": [3, 1], "b": [2, 9]}
for name, values in groups.items():
    values.sort()
    print(name, values)

for name in groups:
    values = sorted(groups[name])
    print(values)
scores.sort()
