# A barcode with its check digit, read back.
import zxingcpp
from barcode import EAN13
from barcode.writer import ImageWriter
from PIL import Image

code = EAN13("400638133393", writer=ImageWriter())
path = code.save("ean", options={"module_width": 0.4, "module_height": 20})
found = zxingcpp.read_barcodes(Image.open(path).convert("L"))
print(path, code.get_fullcode(), [(b.text, "EAN13" in str(b.format).replace("-", "").replace("_", "")) for b in found])
