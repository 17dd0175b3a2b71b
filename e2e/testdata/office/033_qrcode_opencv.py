# A QR code made and read.
import cv2
import qrcode

qr = qrcode.QRCode(version=2, error_correction=qrcode.constants.ERROR_CORRECT_M, box_size=10, border=4)
qr.add_data("https://example.org/42")
qr.make(fit=True)
qr.make_image(fill_color="black", back_color="white").save("qr.png")
image = cv2.imread("qr.png")
text, points, _ = cv2.QRCodeDetector().detectAndDecode(image)
print(text, image.shape, qr.modules_count)
