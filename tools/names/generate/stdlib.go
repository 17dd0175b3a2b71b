package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// versions are those that the package names distinguishes; 2 stands for all of Python 2.
var versions = []string{"2", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"}

var quoted = regexp.MustCompile(`"([A-Za-z0-9_.]+)"`)

// writeStdlib writes "module<TAB>version version ..." lines from the lists of the project stdlibs (omnilib/stdlibs).
func writeStdlib(o options) error {
	in := map[string][]string{}
	for _, v := range versions {
		files, err := filepath.Glob(filepath.Join(o.cache, "stdlibs", "py"+strings.ReplaceAll(v, ".", "")+".py"))
		if err != nil || len(files) == 0 {
			fmt.Printf("the lists of the standard library stay as they are: nothing for %s\n", v)
			return err
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		for _, match := range quoted.FindAllSubmatch(text, -1) {
			in[string(match[1])] = append(in[string(match[1])], v)
		}
	}
	var lines []string
	for module, list := range in {
		lines = append(lines, module+"\t"+strings.Join(list, " "))
	}
	return writeLines(filepath.Join(o.out, "stdlib.txt"), lines)
}
