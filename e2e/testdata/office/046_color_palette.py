# The main colours of a picture.
import numpy as np
from PIL import Image
from sklearn.cluster import KMeans

image = np.zeros((60, 100, 3), np.uint8)
image[:, :50] = (200, 30, 30)
image[:, 50:80] = (30, 200, 30)
image[:, 80:] = (30, 30, 200)
Image.fromarray(image).save("flag.png")
pixels = np.asarray(Image.open("flag.png")).reshape(-1, 3)
model = KMeans(n_clusters=3, n_init=5, random_state=0).fit(pixels)
counts = np.bincount(model.labels_)
for i in counts.argsort()[::-1]:
    print(tuple(int(round(v)) for v in model.cluster_centers_[i]), counts[i] / len(pixels))
