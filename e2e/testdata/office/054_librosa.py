# The pitch class and the duration of a sound.
import librosa
import numpy as np
import soundfile as sf

sr = 22050
sf.write("a4.wav", np.sin(2 * np.pi * 440 * np.arange(2 * sr) / sr), sr)
y, rate = librosa.load("a4.wav", sr=None)
strength = np.abs(librosa.stft(y, n_fft=4096)).mean(axis=1)
peak = librosa.fft_frequencies(sr=rate, n_fft=4096)[strength.argmax()]
print(rate, librosa.get_duration(y=y, sr=rate), librosa.hz_to_note(peak))
