// Package displaysetup is what clients of other interfaces expect of an interpreter beyond a kernel, as a program that runs in one once, before the first code: tables and figures as
// data, in the form of E2B's clients, and variables of the environment that are one execution's alone. It is given the folder to work in.
package displaysetup

import _ "embed" // setup.py

// Setup is the program, in Python.
//
//go:embed setup.py
var Setup string

// Passing is the variable that has what variables of one execution become again after it: JSON, with null for those that are removed.
const Passing = "COVE_E2B_PASSING"

// MIME types of what it adds to a display.
const (
	ChartMIME = "application/vnd.e2b.chart+json"
	DataMIME  = "application/vnd.e2b.data+json"
)
