# An e-mail with an attachment and an HTML part, read back with the standard library.
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

msg = EmailMessage()
msg["From"], msg["To"], msg["Subject"] = "Ana <ana@example.org>", "bo@example.org", "Größe & 报告"
msg.set_content("Hello Bo,\nsee the file.\n")
msg.add_alternative("<p>Hello <b>Bo</b></p>", subtype="html")
msg.add_attachment("a,b\n1,2\n", filename="数据.csv", subtype="csv")
open("mail.eml", "wb").write(bytes(msg))

read = BytesParser(policy=policy.default).parse(open("mail.eml", "rb"))
print(read["subject"], read["from"].addresses[0].addr_spec)
print(read.get_body(("plain",)).get_content().splitlines(), read.get_body(("html",)).get_content().strip())
for part in read.iter_attachments():
    print(part.get_filename(), part.get_content_type(), part.get_content().split())
