# A melody as WAV by the standard library and as MIDI by mido.
import math
import struct
import wave
import mido

notes = [60, 62, 64, 65]
with wave.open("tune.wav", "wb") as w:
    w.setnchannels(1)
    w.setsampwidth(2)
    w.setframerate(8000)
    for n in notes:
        f = 440 * 2 ** ((n - 69) / 12)
        w.writeframes(b"".join(struct.pack("<h", int(20000 * math.sin(2 * math.pi * f * i / 8000))) for i in range(2000)))
midi = mido.MidiFile()
track = mido.MidiTrack()
midi.tracks.append(track)
for n in notes:
    track.append(mido.Message("note_on", note=n, velocity=64, time=0))
    track.append(mido.Message("note_off", note=n, velocity=64, time=480))
midi.save("tune.mid")
with wave.open("tune.wav") as w:
    print(w.getnframes() / w.getframerate())
back = mido.MidiFile("tune.mid")
print([m.note for m in back.tracks[0] if m.type == "note_on"], back.length)
