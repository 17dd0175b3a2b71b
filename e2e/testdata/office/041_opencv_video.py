# Write a video with OpenCV and read its frames.
import cv2
import numpy as np

writer = cv2.VideoWriter("clip.mp4", cv2.VideoWriter_fourcc(*"mp4v"), 10, (160, 120))
for i in range(20):
    frame = np.full((120, 160, 3), i * 12, np.uint8)
    writer.write(frame)
writer.release()
capture = cv2.VideoCapture("clip.mp4")
means = []
while True:
    ok, frame = capture.read()
    if not ok:
        break
    means.append(frame.mean())
print(len(means), capture.get(cv2.CAP_PROP_FPS), int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)))
print(all(abs(m - i * 12) < 6 for i, m in enumerate(means)))
