# Contacts as vCard, and as CSV.
import csv
import vobject

people = [("Ada Lovelace", "ada@example.org", "+44 20 7946 0018"), ("王小明", "wang@example.cn", "+86 10 6552 9988")]
with open("contacts.vcf", "w", encoding="utf-8") as f:
    for name, mail, phone in people:
        card = vobject.vCard()
        card.add("fn").value = name
        card.add("n").value = vobject.vcard.Name(family=name.split()[-1])
        card.add("email").value = mail
        card.add("tel").value = phone
        f.write(card.serialize())
cards = list(vobject.readComponents(open("contacts.vcf", encoding="utf-8").read()))
with open("contacts.csv", "w", newline="", encoding="utf-8-sig") as f:
    writer = csv.writer(f)
    writer.writerow(["name", "email"])
    writer.writerows([c.fn.value, c.email.value] for c in cards)
print([c.fn.value for c in cards], cards[0].tel.value)
print(open("contacts.csv", "rb").read(7), list(csv.reader(open("contacts.csv", encoding="utf-8-sig")))[2])
