# A mailbox as a table of senders.
import mailbox
from email.message import EmailMessage
from email.utils import format_datetime, parsedate_to_datetime
import datetime
import pandas as pd

box = mailbox.mbox("in.mbox")
for i, sender in enumerate(["a@x.org", "b@x.org", "a@x.org"]):
    m = EmailMessage()
    m["From"], m["Subject"] = sender, f"mail {i}"
    m["Date"] = format_datetime(datetime.datetime(2024, 3, 1 + i, 9, tzinfo=datetime.timezone.utc))
    m.set_content("text")
    box.add(m)
box.flush()
df = pd.DataFrame([{"from": m["from"], "date": parsedate_to_datetime(m["date"])} for m in mailbox.mbox("in.mbox")])
print(df["from"].value_counts().to_dict(), str(df["date"].max().date()))
