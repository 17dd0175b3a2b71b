package openai

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"cove/internal/server/hub"
)

// attached is a stored file that a request has put into the workspace.
type attached struct {
	id     string // cove's
	name   string // in the workspace; "": the file's own
	placed int    // how many executions the items before it tell of
	always bool   // the container's definition names it, not an item
}

// namedFile is a file that a request or one that it goes on from put into the workspace: two of one name are one file when they have one content.
type namedFile struct {
	Name   string `json:"name"`             // in the workspace
	Wanted string `json:"wanted,omitempty"` // what the client calls it, where that is another name
	Sum    string `json:"sum"`              // its SHA-256
}

// mostNamed bounds what is remembered of the files of a conversation.
const mostNamed = 500

// name gives a file its name in the workspace. One whose name another file has gets another one, as "data (2).csv".
func (in *input) name(record hub.File) string {
	wanted := record.Name
	for _, f := range in.named {
		if f.Sum == record.SHA256 && (f.Wanted == wanted || f.Wanted == "" && f.Name == wanted) {
			return f.Name
		}
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(in.named, func(f namedFile) bool { return f.Name == name })
	}
	f := namedFile{Name: wanted, Sum: record.SHA256}
	if taken(f.Name) {
		f.Wanted = wanted
		stem, suffix := splitName(wanted)
		for n := 2; taken(f.Name); n++ {
			f.Name = fmt.Sprintf("%s (%d)%s", stem, n, suffix)
		}
	}
	in.named = append(in.named, f)
	return f.Name
}

// splitName cuts a file's name so that a number fits in and the whole stays within what file systems take.
func splitName(name string) (stem, suffix string) {
	suffix = path.Ext(name)
	if stem = strings.TrimSuffix(name, suffix); stem == "" || len(suffix) > 16 {
		stem, suffix = name, ""
	}
	return strings.ToValidUTF8(stem[:min(len(stem), 230)], ""), suffix
}

// put has a stored file put into the workspace and returns what it is called there.
func (in *input) put(record hub.File, always bool) string {
	name := in.name(record)
	a := attached{id: record.ID, placed: len(in.placed), always: always}
	if name != record.Name {
		a.name = name
	}
	in.files = append(in.files, a)
	return name
}

// bring has the files put into the workspace that the definition of the container names.
func (in *input) bring(files []string) error {
	for _, id := range files {
		if !in.python {
			return nil
		}
		record, err := in.s.Hub.File(in.c.Context(), in.c.who, id)
		if err != nil {
			return named(err, invalid("tools", "", "No such File object: "+fileID(id)))
		}
		in.put(record, true)
	}
	return nil
}

// saidOf tells the model under which name it finds a file that could not have its own, or "".
func saidOf(wanted, name string) string {
	if wanted == name {
		return ""
	}
	return fmt.Sprintf("[The file that is attached here as %q has the name %q in the workspace, because another file has the first name.]", wanted, name)
}

// ranIn notes in which container an earlier response ran code.
func (in *input) ranIn(container string) {
	if container != "" {
		in.placed = append(in.placed, container)
	}
}

// alreadyIn leaves out the files that came before the last code that the items tell of in the container: they were put there then, and the code may
// have changed them.
func (in *input) alreadyIn(container string) {
	last := -1
	for n, c := range in.placed {
		if c == container {
			last = n
		}
	}
	in.files = slices.DeleteFunc(in.files, func(a attached) bool { return !a.always && a.placed <= last })
}

// filesOf are the files of a turn: their ids, each once, and the names of those that do not have their own.
func (in *input) filesOf() (ids []string, names map[string]string) {
	for _, a := range in.files {
		if !slices.Contains(ids, a.id) {
			ids = append(ids, a.id)
		}
		if a.name != "" {
			if names == nil {
				names = map[string]string{}
			}
			names[a.id] = a.name
		}
	}
	return ids, names
}
