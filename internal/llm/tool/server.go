package tool

import "cove/internal/core/problem"

// Server is a server whose tools code may call.
type Server struct {
	Name        string
	Description string
	Tools       []Tool         // each as SERVER.TOOL
	Without     []Without      // what it has and code is not offered
	Problem     *problem.Error // why nothing is known of its tools; nil: they are known
}

// Without is a tool that code is not offered, and why.
type Without struct{ Name, Why string }
