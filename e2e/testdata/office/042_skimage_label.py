# Segment and measure with scikit-image.
import numpy as np
from skimage import filters, io, measure, transform

image = np.zeros((100, 100), np.uint8)
image[10:30, 10:50] = 200
image[60:90, 70:80] = 180
io.imsave("cells.png", image, check_contrast=False)
read = io.imread("cells.png")
mask = read > filters.threshold_otsu(read)
regions = measure.regionprops(measure.label(mask))
print([(int(r.area), tuple(int(v) for v in r.bbox)) for r in regions])
print(transform.resize(read, (50, 50)).shape, [tuple(float(v) for v in r.centroid) for r in regions][0])
