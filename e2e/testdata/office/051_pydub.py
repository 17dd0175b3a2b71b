# Cut a sound, change its volume, and export it as mp3.
from pydub import AudioSegment
from pydub.generators import Sine

tone = Sine(440).to_audio_segment(duration=1000)
silence = AudioSegment.silent(duration=500)
song = (tone - 6) + silence + tone[:250]
song.export("song.wav", format="wav")
song.fade_in(100).export("song.mp3", format="mp3", bitrate="128k", tags={"title": "Test"})
back = AudioSegment.from_wav("song.wav")
mp3 = AudioSegment.from_mp3("song.mp3")
print(len(song), len(back), back.frame_rate, back.channels, abs(len(mp3) - 1750) < 60, mp3.frame_rate)
print(round(tone.dBFS - (tone - 6).dBFS, 1), back[1100:1400].rms)
print(open("song.mp3", "rb").read(3))
