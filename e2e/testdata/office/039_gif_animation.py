# An animated GIF, and its frames.
import imageio.v3 as iio
import numpy as np
from PIL import Image, ImageDraw, ImageSequence

frames = []
for i in range(6):
    frame = Image.new("RGB", (120, 80), "white")
    ImageDraw.Draw(frame).ellipse((i * 15, 20, i * 15 + 30, 50), fill="blue")
    frames.append(frame)
frames[0].save("ball.gif", save_all=True, append_images=frames[1:], duration=100, loop=0)
gif = Image.open("ball.gif")
print(gif.n_frames, gif.info["duration"], gif.info["loop"], gif.size)
xs = [int(np.argwhere(np.array(f.convert("RGB"))[:, :, 0] < 100)[:, 1].min()) for f in ImageSequence.Iterator(gif)]
print([b - a for a, b in zip(xs, xs[1:])])
print(iio.imread("ball.gif").shape)
