"""Arrays that grow in loops."""
import numpy as np

readings = np.array([])
for n in range(1000):
    readings = np.append(readings, n * 0.5)  # fault: slow-array-append

table = np.zeros((0, 3))
while len(table) < 50:
    table = np.vstack([table, np.ones(3)])  # fault: slow-array-append

joined = np.append(readings, [1.0, 2.0])
blocks = [np.zeros(3) for _ in range(4)]
stacked = np.vstack(blocks)
for block in blocks:
    padded = np.append(block, 0.0)
    print(padded)
print(joined, stacked)
