package deps

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/python/deps/require"
)

// inventory says which modules a folder of installed distributions brings. Below namespace packages, which several distributions share, modules are
// listed by their dotted path.
type inventory struct {
	Modules    map[string][]string `json:"modules"`    // to the distributions that bring it
	Namespaces map[string]bool     `json:"namespaces"` // dotted
}

// inventoryVersion is raised when inventories are made differently.
const inventoryVersion = "1"

// environmentInventory returns the inventory of the environment, from the file that an earlier process left or by reading the environment.
func (i *Installer) environmentInventory() (*inventory, error) {
	path := filepath.Join(i.dir, "environments", i.options.Env.Key+"."+inventoryVersion+".json")
	var v inventory
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &v) == nil && len(v.Modules) > 0 {
		return &v, nil
	}
	minor := strings.Join(strings.SplitN(i.options.Env.Version, ".", 3)[:2], ".")
	made, err := readInventory(filepath.Join(i.options.Env.Dir, "lib", "python"+minor, "site-packages"))
	if err != nil {
		return nil, fmt.Errorf("list the modules of the environment: %w", err)
	}
	text, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("list the modules of the environment: %w", err)
	}
	return made, writeWhole(path, text)
}

// readInventory reads the RECORD files of a folder of installed distributions.
func readInventory(dir string) (*inventory, error) {
	records, err := filepath.Glob(filepath.Join(dir, "*.dist-info", "RECORD"))
	if err != nil {
		return nil, err
	}
	files := map[string][]string{} // of a distribution, without their ends
	packages := map[string]bool{}  // dotted folders with an __init__
	for _, record := range records {
		name, _, _ := strings.Cut(filepath.Base(filepath.Dir(record)), "-")
		list, err := sourcesOf(record)
		if err != nil {
			return nil, err
		}
		files[require.Normalize(name)] = list
		for _, module := range list {
			if parent, ok := strings.CutSuffix(module, ".__init__"); ok {
				packages[parent] = true
			}
		}
	}
	v := &inventory{Modules: map[string][]string{}, Namespaces: map[string]bool{}}
	for name, list := range files {
		for _, module := range list {
			v.add(name, module, packages)
		}
	}
	for _, owners := range v.Modules {
		slices.Sort(owners)
	}
	return v, v.addLoose(dir)
}

// addLoose adds root modules that belong to no distribution, such as those that cove puts into an environment itself.
func (v *inventory) addLoose(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			name += "/__init__.py"
			if !exists(filepath.Join(dir, name)) {
				continue
			}
		}
		module, ok := moduleOf(name)
		module = strings.TrimSuffix(module, ".__init__")
		if ok && len(v.Modules[module]) == 0 {
			v.Modules[module] = []string{""}
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (v *inventory) add(name, module string, packages map[string]bool) {
	end := 0
	for end < len(module) {
		next := strings.IndexByte(module[end:], '.')
		if next < 0 {
			break
		}
		if packages[module[:end+next]] {
			module = module[:end+next]
			break
		}
		v.Namespaces[module[:end+next]] = true
		end += next + 1
	}
	if !slices.Contains(v.Modules[module], name) {
		v.Modules[module] = append(v.Modules[module], name)
	}
}

// sourcesOf returns the modules of a RECORD by their dotted paths, packages as package.__init__.
func sourcesOf(record string) ([]string, error) {
	f, err := os.Open(record)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord, r.ReuseRecord, r.LazyQuotes = -1, true, true
	var out []string
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", record, err)
		}
		if module, ok := moduleOf(row[0]); ok {
			out = append(out, module)
		}
	}
}

// moduleOf returns the dotted path of the module that a file of a distribution is.
func moduleOf(path string) (string, bool) {
	folder, base := "", path
	if at := strings.LastIndexByte(path, '/'); at >= 0 {
		folder, base = path[:at+1], path[at+1:]
	}
	stem, end, _ := strings.Cut(base, ".")
	if end != "py" && end != "so" && !strings.HasSuffix(end, ".so") {
		return "", false
	}
	parts := strings.Split(folder+stem, "/")
	for _, part := range parts {
		if !isIdentifier(part) {
			return "", false
		}
	}
	return strings.Join(parts, "."), true
}

func isIdentifier(s string) bool {
	for at, r := range s {
		letter := r == '_' || r >= 0x80 || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (at == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// provides says whether a dotted module is there: it, or a package that it belongs to. A namespace package alone provides nothing.
func (v *inventory) provides(module string) bool { return len(v.owners(module)) > 0 }

// owners returns the distributions that bring a dotted module.
func (v *inventory) owners(module string) []string {
	for end := 0; end <= len(module); end++ {
		if end < len(module) && module[end] != '.' {
			continue
		}
		if owners := v.Modules[module[:end]]; len(owners) > 0 {
			return owners
		}
		if !v.Namespaces[module[:end]] {
			return nil
		}
	}
	return nil
}
