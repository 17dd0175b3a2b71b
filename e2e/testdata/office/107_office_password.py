# A workbook with a password.
import io
import msoffcrypto
import pandas as pd
from msoffcrypto.format.ooxml import OOXMLFile

pd.DataFrame({"x": [1, 2, 39]}).to_excel("open.xlsx", index=False)
with open("open.xlsx", "rb") as f, open("locked.xlsx", "wb") as out:
    OOXMLFile(f).encrypt("pass1", out)
plain = io.BytesIO()
with open("locked.xlsx", "rb") as f:
    office = msoffcrypto.OfficeFile(f)
    print(office.is_encrypted())
    office.load_key(password="pass1")
    office.decrypt(plain)
print(pd.read_excel(plain)["x"].sum())
