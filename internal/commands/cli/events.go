package cli

import (
	"fmt"
	"io"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/transcript"
)

// record is a line of --json output that is not an event of package transcript, or one beside them. Its fields are documented in
// docs/events.md and stable: fields may be added, never renamed or removed.
type record = transcript.Record

// savedRecord is the line for one file that was put into the out folder.
func savedRecord(s saved) record {
	return record{"type": "saved", "path": s.Path, "size": s.Size, "from": s.From}
}

// lines writes events, one a line.
type lines struct{ to io.Writer }

func (l lines) write(r record) error { return l.text(r.MarshalJSON()) }

func (l lines) text(text []byte, err error) error {
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	_, err = l.to.Write(append(text, '\n'))
	return err
}

func (l lines) event(e kernel.Event) error   { return l.text(transcript.Event(e)) }
func (l lines) turnEvent(e loop.Event) error { return l.text(transcript.TurnEvent(e)) }
func (l lines) saved(s saved) error          { return l.write(savedRecord(s)) }

// failure writes a failure of cove's own, in the words of standard error.
func (l lines) failure(err error) error {
	p := *problem.Of(err)
	p.Message = message(err)
	return l.text(transcript.Failure(&p))
}
