# Cut and join clips, with a sound, by moviepy.
import numpy as np
from moviepy import AudioClip, ColorClip, VideoFileClip, concatenate_videoclips

red = ColorClip((64, 48), color=(255, 0, 0), duration=1)
blue = ColorClip((64, 48), color=(0, 0, 255), duration=1)
clip = concatenate_videoclips([red, blue])
clip = clip.with_audio(AudioClip(lambda t: np.sin(2 * np.pi * 440 * t), duration=2, fps=44100))
clip.write_videofile("joined.mp4", fps=10, logger=None)
video = VideoFileClip("joined.mp4")
print(video.duration, video.size, video.fps, video.audio is not None)
print(video.get_frame(0.5)[20, 20].argmax(), video.get_frame(1.5)[20, 20].argmax())
video.close()
