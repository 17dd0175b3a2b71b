# Candles of a share price with mplfinance.
import mplfinance as mpf
import pandas as pd
from PIL import Image

days = pd.date_range("2024-01-01", periods=10, freq="B")
df = pd.DataFrame({"Open": range(10, 20), "High": range(12, 22), "Low": range(9, 19), "Close": range(11, 21), "Volume": [100] * 10}, index=days)
mpf.plot(df, type="candle", volume=True, mav=3, savefig=dict(fname="candles.png", dpi=100), figsize=(8, 5))
print(Image.open("candles.png").format, round(df["Close"].rolling(3).mean().iloc[-1], 2), str(days[-1].date()))
