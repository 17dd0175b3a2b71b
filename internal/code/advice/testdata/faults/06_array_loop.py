"""Loops over arrays."""
import numpy as np

signal = np.linspace(0.0, 1.0, 100_000)
out = np.zeros_like(signal)
for i in range(len(signal)):  # fault: slow-array-loop
    out[i] = signal[i] * 2 + 1

energy = 0.0
for value in signal:  # fault: slow-array-loop
    energy += value * value

smooth = signal.copy()
for i in range(1, len(signal)):
    smooth[i] = 0.9 * smooth[i - 1] + 0.1 * signal[i]

state = 0.0
for value in signal:
    state = state * 0.5 + value

for value in signal[:3]:
    print(f"{value:.3f}")

names = ["a", "b"]
lengths = []
for i in range(len(names)):
    lengths.append(len(names[i]))
print(energy, smooth, state, out, lengths)
