# Save an animation as mp4.
import cv2
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

fig, ax = plt.subplots(figsize=(4, 3), dpi=50)
line, = ax.plot([], [])
ax.set_xlim(0, 6.3)
ax.set_ylim(-1, 1)
x = np.linspace(0, 6.3, 50)
def update(i):
    line.set_data(x, np.sin(x + i / 2))
    return line,
anim = FuncAnimation(fig, update, frames=8)
anim.save("wave.mp4", fps=4)
plt.close(fig)
video = cv2.VideoCapture("wave.mp4")
print(int(video.get(cv2.CAP_PROP_FRAME_COUNT)), video.get(cv2.CAP_PROP_FPS), int(video.get(3)), int(video.get(4)))
