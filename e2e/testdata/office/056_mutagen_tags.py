# Tags of an mp3 file.
from mutagen.easyid3 import EasyID3
from mutagen.mp3 import MP3
from pydub.generators import Sine

Sine(300).to_audio_segment(duration=2000).export("song.mp3", format="mp3", bitrate="64k")
tags = EasyID3()
tags["title"] = "Café del Mar"
tags["artist"] = "邓丽君"
tags.save("song.mp3")
audio = MP3("song.mp3", ID3=EasyID3)
print(audio["title"], audio["artist"], round(audio.info.length), audio.info.sample_rate)
