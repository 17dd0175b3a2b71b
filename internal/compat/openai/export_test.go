package openai

// FileIDOf is the id of a container file, for paths that the surface itself would never give one.
func FileIDOf(path string) string { return cfileID(path) }
