package toolserver

// What tests look at.
var (
	Descendants = descendants
	ParentOf    = parentOf
)
