package protocol

import (
	"encoding/json"
	"maps"

	"cove/internal/core/problem"
)

// mostRecord bounds a Record's text, in bytes.
const mostRecord = 64 << 10

// Record says where a surface keeps what it has to remember of a session: in two entries of the session's metadata.
type Record struct {
	Kind, Text string // the names of the entries: what the session is to the surface, and the JSON of what it remembers
	Of         string // what of that comes from a client, as "the labels of the sandbox"
}

// Entries are a session's metadata with a record, beside what else is there.
func (r Record) Entries(kind string, record any, others map[string]string) (map[string]string, error) {
	text, err := json.Marshal(record)
	if err == nil && len(text) > mostRecord {
		err = problem.New(problem.SessionInvalid, r.Of+" are larger than 64 KiB together").WithHint("put them into a file in the sandbox")
	}
	if err != nil {
		return nil, err
	}
	all := maps.Clone(others)
	if all == nil {
		all = map[string]string{}
	}
	all[r.Kind], all[r.Text] = kind, string(text)
	return all, nil
}
