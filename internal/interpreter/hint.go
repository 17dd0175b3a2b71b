package interpreter

import (
	"regexp"
	"strings"
)

var missingModule = regexp.MustCompile(`No module named ['"]([A-Za-z0-9_.]+)['"]`)

// networkMarks are words in the messages of exceptions that come of the missing network.
var networkMarks = []string{
	"Temporary failure in name resolution", "Name or service not known", "Network is unreachable",
	"nodename nor servname", "Failed to resolve", "Max retries exceeded", "Connection refused", "ENETUNREACH",
}

// networkNames are exceptions that come of the missing network, whatever they say.
var networkNames = map[string]bool{
	"gaierror": true, "URLError": true, "ConnectionError": true, "ConnectTimeout": true, "ConnectionRefusedError": true,
	"NewConnectionError": true, "MaxRetryError": true, "ProxyError": true, "NameResolutionError": true, "ConnectError": true,
}

// hint returns a line that helps to repair an exception, or "" when its own words are enough. Files are the names in
// the workspace.
func hint(name, value string, files func() []string) string {
	short := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case short == "ModuleNotFoundError" || (short == "ImportError" && missingModule.MatchString(value)):
		module := "that package"
		if m := missingModule.FindStringSubmatch(value); m != nil {
			module = m[1]
		}
		return "Hint: " + module + " is not installed and cannot be installed here: there is no network. Use an installed alternative."
	case short == "FileNotFoundError":
		names := files()
		if len(names) == 0 {
			return "Hint: the working directory holds no files."
		}
		return "Hint: the files in the working directory are: " + strings.Join(names, ", ") + "."
	case short == "UnicodeDecodeError":
		return "Hint: the file is not UTF-8; try encoding=\"gb18030\" for Chinese text, \"utf-16\", or \"latin-1\"."
	case short == "EOFError" && strings.Contains(value, "reading a line"), short == "StdinNotImplementedError":
		return "Hint: nobody answers input() here; put the values into the code."
	case networkNames[short] || mentionsNetwork(value):
		return "Hint: the sandbox has no network. Work with the files at hand, or say what is missing."
	}
	return ""
}

func mentionsNetwork(value string) bool {
	for _, mark := range networkMarks {
		if strings.Contains(value, mark) {
			return true
		}
	}
	return false
}
