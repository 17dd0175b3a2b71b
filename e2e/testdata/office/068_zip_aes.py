# An AES zip, made and opened.
import pyzipper

with pyzipper.AESZipFile("safe.zip", "w", compression=pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES) as z:
    z.setpassword(b"key")
    z.writestr("pin.txt", "0815")
with pyzipper.AESZipFile("safe.zip") as z:
    try:
        z.read("pin.txt")
    except RuntimeError as error:
        print("encrypted" in str(error))
    z.setpassword(b"key")
    print(z.read("pin.txt").decode())
