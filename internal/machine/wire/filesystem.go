package wire

// The operations on the file system of a sandbox, as a program of the sandboxed user's would do them. Request.Files says what about. A relative path stays in the
// workspace: a symlink that leads out of it is not followed. An absolute path is anywhere, where the guest has a user for sandboxed code; else it must lead into the workspace.
const (
	// OpFilesStat: the guest answers with a Response whose body is the JSON of an Entry: of what Path names, a symlink itself where Link is set.
	OpFilesStat = "files.stat"
	// OpFilesList: the guest answers with a Response whose body is a JSON array of Entry: what is in the folder Path, down to Depth, a folder before what is in it and
	// by name. Size is how many entries have names that are no text, which are left out.
	OpFilesList = "files.list"
	// OpFilesRead: as OpFileRead, with Request.Offset and Request.Limit. Files of unknown size, as those of /proc, are read to their end, up to UnsizedLimit.
	OpFilesRead = "files.read"
	// OpFilesWrite: the file's bytes follow until EOF, and take the place of what was there, whole or not at all. The guest answers with a Response whose body is the JSON of its Entry.
	OpFilesWrite = "files.write"
	// OpFilesChange: changes what FileSpec.Set says of Path. The guest answers with a Response whose body is the JSON of its Entry.
	OpFilesChange = "files.change"
	// OpFilesMove and OpFilesCopy: give what is at Path the name To, or a copy of it. The guest answers with a Response whose body is the JSON of the Entry at To.
	OpFilesMove = "files.move"
	OpFilesCopy = "files.copy"
	// OpFilesRemove: removes Path, with All a folder with what is in it. The guest answers with a Response.
	OpFilesRemove = "files.remove"
	// OpFilesFolder: makes the folder Path and those on the way to it. OpFilesLink: makes a symlink at Path that leads to To, which need not be there. The guest
	// answers with a Response whose body is the JSON of the Entry.
	OpFilesFolder = "files.folder"
	OpFilesLink   = "files.link"
	// OpFilesSearch: the guest answers with a Response whose body is the JSON of a Found.
	OpFilesSearch = "files.search"
	// OpFilesReplace: replaces text in Paths. The guest answers with a Response whose body is a JSON array of Replaced, one for each.
	OpFilesReplace = "files.replace"
	// OpFilesWatch: the guest answers with a Response, and then sends a message for each change in the folder or of the file Path, with a FileEvent as header, until
	// the channel ends. The last may be of kind FileEventEnd.
	OpFilesWatch = "files.watch"
)

// Bounds of these operations.
const (
	UnsizedLimit   = 4 << 20 // bytes of a file that does not say its size
	AttributeLimit = 4 << 10 // bytes of the names and values of a file's attributes
	PathsLimit     = 1000    // paths of one OpFilesReplace
	MatchLimit     = 10_000  // matches of one search
	MatchText      = 500     // bytes of a line that matches
	WatchLimit     = 16      // OpFilesWatch of one sandbox at a time
	WatchFolders   = 20_000  // folders that one looks at
)

// FileSpec says what an operation on the file system is about.
type FileSpec struct {
	Path    string    `json:"path"`
	To      string    `json:"to,omitempty"`
	Paths   []string  `json:"paths,omitempty"`
	Link    bool      `json:"link,omitempty"`    // about a symlink itself
	Depth   int       `json:"depth,omitempty"`   // 1: the folder's own entries
	Replace bool      `json:"replace,omitempty"` // a file that is at To may be replaced
	New     bool      `json:"new,omitempty"`     // nothing may be there
	All     bool      `json:"all,omitempty"`     // with what is in a folder
	Set     *EntrySet `json:"set,omitempty"`
	Root    bool      `json:"root,omitempty"` // with the rights of the sandbox's root, where it has one, and not with those of its user; not for OpFilesWatch

	Name    string `json:"name,omitempty"`    // a pattern: of names, or with a slash of paths below Path
	Text    string `json:"text,omitempty"`    // to look for
	Regular bool   `json:"regular,omitempty"` // Text is a regular expression, as Go's package regexp has them
	Fold    bool   `json:"fold,omitempty"`    // without regard to case
	With    string `json:"with,omitempty"`
	Limit   int    `json:"limit,omitempty"` // matches
}

// EntrySet is what is to be changed of a file or folder. What is nil stays.
type EntrySet struct {
	Mode       *uint32            `json:"mode,omitempty"` // permission bits
	Owner      string             `json:"owner,omitempty"`
	Group      string             `json:"group,omitempty"`
	Modified   *int64             `json:"modified,omitempty"`   // microseconds since 1970
	Attributes map[string]*string `json:"attributes,omitempty"` // without "user."; nil removes one
}

// Entry is an entry of the file system.
type Entry struct {
	Path       string            `json:"path"` // as it was asked for
	Full       string            `json:"full"` // absolute
	Kind       string            `json:"kind"` // see the Entry constants
	Size       int64             `json:"size,omitempty"`
	Mode       uint32            `json:"mode"` // with the bits of set-user-id and its like
	UID        int               `json:"uid"`
	GID        int               `json:"gid"`
	Owner      string            `json:"owner,omitempty"`
	Group      string            `json:"group,omitempty"`
	Modified   int64             `json:"modified"` // microseconds since 1970
	Accessed   int64             `json:"accessed"`
	Changed    int64             `json:"changed"`
	Stamp      string            `json:"stamp"`
	Target     string            `json:"target,omitempty"`   // of a symlink, as it says
	Resolved   string            `json:"resolved,omitempty"` // where that leads in the end
	To         string            `json:"to,omitempty"`       // the kind of what is there; "" where nothing is
	Attributes map[string]string `json:"attributes,omitempty"`
}

// The kinds of Entry.
const (
	EntryFile   = "file"
	EntryFolder = "folder"
	EntryLink   = "link"
	EntryOther  = "other"
)

// Found is what a search has found.
type Found struct {
	Matches []Match `json:"matches"`
	More    bool    `json:"more"`    // there may be more
	Looked  int     `json:"looked"`  // files that it looked into
	Skipped int     `json:"skipped"` // files and folders that could not be read, are no text, or are too large
}

// Match is a place that a search has found. Line is 0 where names alone were looked for.
type Match struct {
	Path   string `json:"path"`
	Folder bool   `json:"folder,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"` // in characters, from 1
	Text   string `json:"text,omitempty"`   // of the line
}

// Replaced says what was replaced in a file.
type Replaced struct {
	Path  string `json:"path"`
	Times int    `json:"times"`
	Fault string `json:"fault,omitempty"`
	Why   string `json:"why,omitempty"`
}

// FileEvent is the header of a message about a change.
type FileEvent struct {
	Kind   string `json:"kind"`
	Path   string `json:"path,omitempty"` // from what is watched
	From   string `json:"from,omitempty"` // FileEventMove: the name before
	Folder bool   `json:"folder,omitempty"`
}

// The kinds of FileEvent.
const (
	FileEventCreate = "create"
	FileEventWrite  = "write"
	FileEventChange = "change" // of mode, owner, times or attributes
	FileEventMove   = "move"   // within what is watched; in from outside is a create, and out of it a remove
	FileEventRemove = "remove"
	FileEventLost   = "lost" // changes came faster than they could be told, or there are more folders than can be watched
	FileEventEnd    = "end"  // what is watched was removed or moved away
)
