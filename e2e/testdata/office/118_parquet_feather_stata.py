# One table as Parquet, Feather, Stata, SPSS and HDF5.
import pandas as pd
import pyreadstat

df = pd.DataFrame({"id": [1, 2, 3], "group": ["a", "b", "a"], "value": [1.5, 2.5, 3.0]})
df.to_parquet("t.parquet")
df.to_feather("t.feather")
df.to_stata("t.dta", write_index=False)
pyreadstat.write_sav(df, "t.sav", column_labels={"value": "Measured value"})
df.to_hdf("t.h5", key="t")
sav, meta = pyreadstat.read_sav("t.sav")
frames = [pd.read_parquet("t.parquet"), pd.read_feather("t.feather"), pd.read_stata("t.dta"), sav, pd.read_hdf("t.h5")]
print([float(f["value"].sum()) for f in frames], [f["group"].tolist() == ["a", "b", "a"] for f in frames])
print(meta.column_names_to_labels["value"])
