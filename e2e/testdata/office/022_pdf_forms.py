# A PDF form: make it, fill it, read the values.
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen import canvas

c = canvas.Canvas("form.pdf")
c.drawString(50, 750, "Name:")
c.acroForm.textfield(name="name", x=110, y=740, width=200, height=24)
c.acroForm.textfield(name="city", x=110, y=700, width=200, height=24)
c.acroForm.checkbox(name="agree", x=110, y=660)
c.save()

writer = PdfWriter(clone_from="form.pdf")
writer.update_page_form_field_values(writer.pages[0], {"name": "Grace Hopper", "city": "New York"})
writer.write("filled.pdf")
fields = PdfReader("filled.pdf").get_fields()
print(sorted(fields), fields["name"].value, "/", fields["city"]["/V"])
