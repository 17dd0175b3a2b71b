# A word cloud of Chinese text.
import jieba
import numpy as np
from collections import Counter
from wordcloud import WordCloud

text = "北京的春天很美，春天有花，花很香。上海的春天也很美。" * 3
words = [w for w in jieba.lcut(text) if len(w) > 1]
counts = Counter(words)
print(counts["春天"], counts["北京"], counts["上海"])
cloud = WordCloud(width=400, height=200, background_color="white", random_state=1).generate_from_frequencies(counts)
cloud.to_file("cloud.png")
image = np.asarray(cloud.to_image())
print(image.shape, max(cloud.words_, key=cloud.words_.get), bool((image < 250).any()))
# One stroke, drawn flat and wide: the font has the sign.
one = np.asarray(WordCloud(width=300, height=300, background_color="black", prefer_horizontal=1, max_font_size=150, color_func=lambda *a, **k: "white").generate_from_frequencies({"一": 1}).to_image().convert("L"))
ys, xs = np.nonzero(one > 60)
print((xs.max() - xs.min()) > 4 * (ys.max() - ys.min()))
