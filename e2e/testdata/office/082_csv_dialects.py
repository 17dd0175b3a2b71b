# CSV as it comes: semicolons, decimal commas, quotes, a BOM, GBK.
import csv
import pandas as pd

open("de.csv", "w", encoding="cp1252").write('Artikel;Preis;Notiz\nStuhl;1.249,50;"mit ""Lehne"""\nTisch;99,00;"zwei\nZeilen"\n')
df = pd.read_csv("de.csv", sep=";", decimal=",", thousands=".", encoding="cp1252")
print(df["Preis"].sum(), df["Notiz"].tolist())
open("cn.csv", "w", encoding="gb18030").write("日期,金额\n2024/1/5,10\n2024/1/6,20\n")
cn = pd.read_csv("cn.csv", encoding="gb18030", parse_dates=["日期"])
print(cn["金额"].sum(), str(cn["日期"].max().date()))
print(csv.Sniffer().sniff("a|b|c\n1|2|3\n4|5|6\n").delimiter)
class Pipe(csv.excel):
    delimiter, quoting, lineterminator = "|", csv.QUOTE_ALL, "\n"
with open("pipe.csv", "w", newline="") as f:
    csv.writer(f, dialect=Pipe).writerows([["x", 1], ["y|z", 2]])
print(open("pipe.csv").read().split())
