package record

// UploadBounds are how many uploads there may be at most that are no files yet.
type UploadBounds struct{ Key, Project, Server int }
