# Count shapes and their areas with OpenCV.
import cv2
import numpy as np

canvas = np.zeros((300, 400, 3), np.uint8)
cv2.rectangle(canvas, (20, 20), (119, 79), (255, 255, 255), -1)
cv2.rectangle(canvas, (200, 100), (249, 149), (255, 255, 255), -1)
cv2.circle(canvas, (320, 230), 40, (255, 255, 255), -1)
cv2.imwrite("shapes.png", canvas)
gray = cv2.imread("shapes.png", cv2.IMREAD_GRAYSCALE)
_, binary = cv2.threshold(gray, 127, 255, cv2.THRESH_BINARY)
contours, _ = cv2.findContours(binary, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
corners = sorted(len(cv2.approxPolyDP(c, 0.02 * cv2.arcLength(c, True), True)) for c in contours)
print(len(contours), corners[:2], corners[2] > 4)
print(sorted(int((binary[y:y + h, x:x + w] > 0).sum()) for x, y, w, h in map(cv2.boundingRect, contours))[:1])
print(sorted(cv2.boundingRect(c)[2:] for c in contours))
