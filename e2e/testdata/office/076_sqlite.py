# A SQLite database with a join and a window function.
import sqlite3
import pandas as pd

db = sqlite3.connect("shop.db")
db.executescript("""CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE purchase(customer INTEGER REFERENCES customer, amount REAL, day TEXT);
INSERT INTO customer VALUES (1, 'Ann'), (2, 'Bob');
INSERT INTO purchase VALUES (1, 10, '2024-01-01'), (2, 5, '2024-01-02'), (1, 20, '2024-01-03');""")
df = pd.read_sql("SELECT name, SUM(amount) AS total FROM purchase JOIN customer ON customer.id = purchase.customer GROUP BY name ORDER BY total DESC", db)
print(df.to_dict("records"))
print(db.execute("SELECT day, SUM(amount) OVER (ORDER BY day) FROM purchase").fetchall())
db.close()
