package scan_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"cove/internal/python/deps/scan"
)

// TestNeeds goes through the tables of calls.py: each module there has a distribution, and each function, engine and driver is suspected.
func TestNeeds(t *testing.T) {
	t.Parallel()
	const dump = `import json
tables = {}
exec(open("calls.py").read(), tables)
print(json.dumps({name: tables[name] for name in ("NEEDS", "SHEETS", "ENGINES", "DRIVERS", "PROGRAMS", "STARTERS", "FILMS")}))`
	out, err := exec.Command(python(t).Path, "-I", "-c", dump).Output()
	if err != nil {
		t.Fatal(err)
	}
	var tables struct {
		Needs   map[string][2]string `json:"NEEDS"`
		Sheets  map[string]string    `json:"SHEETS"`
		Engines map[string]string    `json:"ENGINES"`
		Drivers map[string]string    `json:"DRIVERS"`

		Programs map[string]string `json:"PROGRAMS"`
		Starters map[string]string `json:"STARTERS"`
		Films    []string          `json:"FILMS"`
	}
	if err := json.Unmarshal(out, &tables); err != nil {
		t.Fatal(err)
	}
	_, s := startLocal(t)
	requireNeed := func(code, module string) {
		t.Helper()
		r := look(t, s, scan.Code{Text: code, Script: true})
		found := slices.ContainsFunc(r.Imports, func(i scan.Import) bool { return i.Module == module && i.Need != "" && i.Distribution != "" })
		if !found {
			t.Errorf("%q needs %s, but got %+v", code, module, r.Imports)
		}
		requireSuspect(t, code, r)
	}
	special := []string{"excel", "url", "soup", "graph"} // which depend on more than the function, see the corpus
	for function, need := range tables.Needs {
		if slices.Contains(special, need[1]) {
			continue
		}
		for module := range strings.FieldsSeq(need[1]) {
			requireNeed("import "+need[0]+"\n"+need[0]+"."+function+"(x)", module)
			requireNeed("import "+need[0]+"\ny = f()\ny."+function+"(x)", module)
		}
	}
	for tail, module := range tables.Sheets {
		requireNeed("import pandas as pd\npd.read_excel('a"+tail+"')", module)
	}
	for engine, module := range tables.Engines {
		requireNeed("import pandas as pd\npd.read_excel('a', engine='"+engine+"')", module)
	}
	for driver, module := range tables.Drivers {
		if !slices.Contains([]string{"postgres", "mysql", "mariadb", "oracle", "mssql", "duckdb"}, driver) {
			driver = "postgresql+" + driver
		}
		requireNeed("import sqlalchemy as sa\nsa.create_engine('"+driver+"://host/data')", module)
	}
	for program, module := range tables.Programs {
		requireNeed("import os\nos.system('"+program+" x')", module)
	}
	for library, program := range tables.Starters {
		requireNeed("import "+library, tables.Programs[program])
	}
	for _, end := range tables.Films {
		requireNeed("anim.save('a."+end+"')", tables.Programs["ffmpeg"])
	}
}
