# The same library as code before 2025 writes it.
from moviepy.editor import ColorClip

clip = ColorClip((32, 32), color=(0, 255, 0), duration=0.5)
clip.write_videofile("green.mp4", fps=10, logger=None)
print(clip.duration, clip.size)
