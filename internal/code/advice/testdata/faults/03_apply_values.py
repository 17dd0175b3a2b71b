"""One column at a time."""
import pandas as pd

people = pd.read_csv("people.csv")
people["doubled"] = people["age"].apply(lambda x: x * 2)  # fault: slow-apply-values
people["adult"] = people["age"].apply(lambda x: x >= 18)  # fault: slow-apply-values
people["clean"] = people["name"].apply(lambda s: s.strip())  # fault: slow-apply-text
people["upper"] = people["name"].apply(lambda s: s.upper())  # fault: slow-apply-text
people["first"] = people["name"].apply(lambda s: s.split()[0] if s else "nobody")
people["length"] = people["name"].apply(len)
people["known"] = people["name"].apply(lambda s: s in {"Ann", "Bob"})
people["scaled"] = people.groupby("town")["age"].apply(lambda x: x / x.max())
people["rolling"] = people["age"].rolling(3).apply(lambda x: x * 1, raw=True)
print(people)
