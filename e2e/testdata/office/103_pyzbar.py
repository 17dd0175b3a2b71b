# Read a QR code with pyzbar.
import qrcode
from PIL import Image
from pyzbar.pyzbar import decode

qrcode.make("ticket 77").save("t.png")
print([d.data.decode() for d in decode(Image.open("t.png"))])
