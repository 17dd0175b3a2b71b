"""Queues."""
from collections import deque

graph = {1: [2, 3], 2: [4], 3: [4], 4: []}
queue = [1]
seen = set()
while queue:
    node = queue.pop(0)  # fault: slow-list-front
    if node not in seen:
        seen.add(node)
        queue.extend(graph[node])

history = []
for n in range(1000):
    history.insert(0, n)  # fault: slow-list-front

better = deque([1])
while better:
    better.popleft()

stack = [1, 2, 3]
while stack:
    stack.pop()

for pair in [[1, 2], [3, 4]]:
    pair.pop(0)
arguments = ["a", "b"]
command = arguments.pop(0)
print(seen, history, command)
