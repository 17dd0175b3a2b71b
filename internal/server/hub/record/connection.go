package record

import (
	"time"
)

// Connection is a service of models: how it is reached, and which of its models clients may ask.
type Connection struct {
	Provider string   // openai, anthropic or ollama
	Address  string   // "" is the provider's own
	Key      string   // is in no answer, log or error
	Models   []string // names as the service has them
	Default  string   // one of Models, which is asked when none is named; or ""
	Changed  time.Time
	Settings bool // it is the operator's settings'; what is set here for the same provider goes first
}

// KeyEnd are the last characters of a key that is long enough to tell it by them.
func (c Connection) KeyEnd() string {
	const shown, least = 4, 12
	if len(c.Key) < least {
		return ""
	}
	return c.Key[len(c.Key)-shown:]
}
