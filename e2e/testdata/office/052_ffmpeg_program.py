# Frames to a film with ffmpeg, then its sound-less middle as GIF.
import subprocess
from PIL import Image

for i in range(10):
    Image.new("RGB", (64, 64), (25 * i, 0, 0)).save(f"f{i:03d}.png")
subprocess.run("ffmpeg -y -loglevel error -framerate 5 -i f%03d.png -pix_fmt yuv420p film.mp4", shell=True, check=True)
subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-ss", "1", "-t", "1", "-i", "film.mp4", "middle.gif"], check=True)
gif = Image.open("middle.gif")
print(open("film.mp4", "rb").read(8)[4:], gif.n_frames, gif.size)
length = subprocess.check_output("ffprobe -v error -show_entries format=duration -of default=noprint_wrappers=1:nokey=1 film.mp4", shell=True, text=True)
print(float(length))
