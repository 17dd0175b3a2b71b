package names

import (
	"strconv"
	"strings"
)

const (
	oldestMinor = 10 // of the lists of the standard library
	newestMinor = 15
	usualMinor  = 13 // stands for a Python whose version is not given
	python2     = "2"
)

// IsStandard says whether the root module is part of that Python's standard library.
func IsStandard(root, python string) bool {
	row, ok := stdlibText.get(root)
	return root == "__main__" || ok && has(row, listed(python))
}

func has(row, version string) bool {
	for word := range strings.FieldsSeq(row) {
		if word == version {
			return true
		}
	}
	return false
}

// listed returns the version whose list serves for a Python: the nearest one.
func listed(python string) string {
	minor := usualMinor
	if rest, ok := strings.CutPrefix(python, "3."); ok {
		number, _, _ := strings.Cut(rest, ".")
		for i, c := range number {
			if c < '0' || c > '9' {
				number = number[:i]
				break
			}
		}
		if n, err := strconv.Atoi(number); err == nil {
			minor = n
		}
	}
	return "3." + strconv.Itoa(min(max(minor, oldestMinor), newestMinor))
}

// refused finds the longest dotted prefix that must not be installed.
func refused(module string, parts []string) (Answer, bool) {
	for n := min(len(parts), deepestKey); n > 0; n-- {
		key := strings.Join(parts[:n], ".")
		if hint, ok := never()[key]; ok {
			return Answer{Module: module, Key: key, Status: Refused, Reason: ByNever, Explanation: key + " does not come from a package index", Hint: hint}, true
		}
	}
	return Answer{}, false
}

// fromOtherPython refuses the modules that only another Python has.
func fromOtherPython(module, root string) (Answer, bool) {
	row, ok := stdlibText.get(root)
	if !ok {
		return Answer{}, false
	}
	a := Answer{
		Module: module, Key: root, Status: Refused, Reason: ByNever,
		Explanation: root + " was part of Python 2 and is gone",
		Hint:        "this is code for Python 2; use what took the place of " + root + " in Python 3",
	}
	if row != python2 {
		a.Explanation = root + " is part of the standard library of other versions of Python, not of this one"
		a.Hint = "do without it, or use a Python of the versions " + strings.TrimPrefix(row, python2+" ")
	}
	return a, true
}
