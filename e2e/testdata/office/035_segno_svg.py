# QR codes as SVG and as a Wi-Fi card.
import xml.etree.ElementTree as ET
import segno
from segno import helpers

code = segno.make("HELLO WORLD", error="q", micro=False)
code.save("code.svg", scale=4)
print(code.designator, ET.parse("code.svg").getroot().get("width"))
wifi = helpers.make_wifi(ssid="Guests", password="s3cret", security="WPA")
wifi.save("wifi.png", scale=5)
import cv2
print(cv2.QRCodeDetector().detectAndDecode(cv2.imread("wifi.png"))[0])
