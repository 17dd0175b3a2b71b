# SQL over CSV, Parquet and a DataFrame with DuckDB.
import duckdb
import pandas as pd

pd.DataFrame({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"]}).to_csv("people.csv", index=False)
pd.DataFrame({"id": [1, 2, 3], "paid": [5.5, 7.0, 1.5]}).to_parquet("paid.parquet")
rates = pd.DataFrame({"city": ["Oslo", "Rome"], "rate": [2, 3]})
print(duckdb.sql("""SELECT city, SUM(paid * rate) AS total FROM 'people.csv' JOIN 'paid.parquet' USING (id) JOIN rates USING (city) GROUP BY city ORDER BY city""").fetchall())
duckdb.sql("COPY (SELECT * FROM range(5) t(n)) TO 'n.csv' (HEADER)")
print(open("n.csv").read().split())
