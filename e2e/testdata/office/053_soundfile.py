# Write and read WAV and FLAC, and find the tone.
import numpy as np
import soundfile as sf

rate = 16000
t = np.arange(rate) / rate
sf.write("a.wav", 0.5 * np.sin(2 * np.pi * 1000 * t), rate)
data, sr = sf.read("a.wav")
sf.write("a.flac", data, sr)
info = sf.info("a.flac")
spectrum = np.abs(np.fft.rfft(data))
print(sr, len(data), info.format, info.duration, int(spectrum.argmax()))
