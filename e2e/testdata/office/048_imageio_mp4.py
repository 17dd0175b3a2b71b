# Frames to mp4 with imageio and back.
import imageio
import numpy as np

with imageio.get_writer("out.mp4", fps=8) as writer:
    for i in range(16):
        frame = np.zeros((64, 96, 3), np.uint8)
        frame[:, : 6 * i] = (255, 0, 0)
        writer.append_data(frame)
reader = imageio.get_reader("out.mp4")
meta = reader.get_meta_data()
frames = [f for f in reader]
print(len(frames), meta["fps"], meta["size"], meta["duration"])
print(frames[15][32, 5, 0] > 200, frames[15][32, 93, 0] < 60)
