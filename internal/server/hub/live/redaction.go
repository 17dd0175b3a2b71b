package live

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cove/internal/code/redact"
	"cove/internal/python/kernel"
	"cove/internal/server/hub/record"
)

// RedactionIn is redaction for what a session says: the credentials that the host adds to its requests are taken out in any case.
func (m *Manager) RedactionIn(ctx context.Context, project, key, session string) redact.Kinds {
	k := m.meter.RedactionKinds(ctx, project, key)
	m.mu.Lock()
	s := m.seats[session]
	m.mu.Unlock()
	if s != nil {
		k.Own = s.outbound.credentials()
	}
	return k
}

// redactor takes things out of the events of one execution. It is used by one goroutine.
type redactor struct {
	kinds   redact.Kinds
	emit    emitter
	streams map[string]*redact.Stream // by name
	counts  redact.Counts
}

// redacting returns an emitter in the place of emit, and what has to be called at the end: it emits what was held back, and returns the counts.
func (m *Manager) redacting(t *liveExecution, emit emitter) (emitter, func() redact.Counts) {
	kinds := m.RedactionIn(t.ctx, t.project, t.key, t.session)
	if kinds.None() {
		return emit, func() redact.Counts { return nil }
	}
	r := &redactor{kinds: kinds, emit: emit, streams: map[string]*redact.Stream{}, counts: redact.Counts{}}
	return r.event, func() redact.Counts {
		_ = r.flush(t.ctx, "") // who stopped listening knows that they did
		for _, s := range r.streams {
			r.counts.Add(s.Counts)
		}
		if len(r.counts) == 0 {
			return nil
		}
		return r.counts
	}
}

func (r *redactor) event(ctx context.Context, event record.Event) error {
	e, ok := event.(kernel.Stream)
	if !ok {
		if err := r.flush(ctx, ""); err != nil {
			return err
		}
		return r.emit(ctx, r.whole(event))
	}
	if err := r.flush(ctx, e.Name); err != nil {
		return err
	}
	s := r.streams[e.Name]
	if s == nil {
		s = &redact.Stream{Kinds: r.kinds}
		r.streams[e.Name] = s
	}
	e.Data = s.Write(e.Data)
	if len(e.Data) == 0 {
		return nil
	}
	return r.emit(ctx, e)
}

// flush emits what was held back of all streams but one: what comes next came after it.
func (r *redactor) flush(ctx context.Context, but string) error {
	for _, name := range slices.Sorted(maps.Keys(r.streams)) {
		if name == but {
			continue
		}
		if rest := r.streams[name].Flush(); len(rest) > 0 {
			if err := r.emit(ctx, kernel.Stream{Name: name, Data: rest}); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole takes things out of an event that is no piece of a stream.
func (r *redactor) whole(event record.Event) record.Event {
	switch e := event.(type) {
	case kernel.Display:
		e.Data, e.Metadata, e.Told = r.bundle(e.Data), r.metadata(e.Metadata), r.told(e.Told)
		return e
	case kernel.Result:
		e.Data, e.Metadata, e.Told = r.bundle(e.Data), r.metadata(e.Metadata), r.told(e.Told)
		return e
	case kernel.Widgets:
		e.Models = r.metadata(e.Models)
		return e
	case kernel.Error:
		e.Name, e.Value, e.Hint = r.text(e.Name), r.text(e.Value), r.text(e.Hint)
		// A private key is on several lines.
		e.Traceback = strings.Split(r.text(strings.Join(e.Traceback, "\n")), "\n")
		return e
	case kernel.CallAsks:
		e.Arguments = r.text(e.Arguments)
		return e
	case kernel.InputRequest:
		e.Prompt = r.text(e.Prompt)
		return e
	case kernel.InputReply:
		e.Text = r.text(e.Text)
		return e
	case kernel.ToolCall: // what is told of it; the tool gets what the code gave it
		e.Arguments, e.Error = r.text(e.Arguments), r.text(e.Error)
		return e
	}
	return event
}

func (r *redactor) text(s string) string {
	out, counts := r.kinds.String(s)
	r.counts.Add(counts)
	return out
}

func (r *redactor) metadata(m map[string]any) map[string]any {
	if out, counts := r.kinds.Any(m); counts != nil {
		r.counts.Add(counts)
		return out.(map[string]any)
	}
	return m
}

func (r *redactor) told(t kernel.Told) kernel.Told {
	t.Text = r.text(t.Text)
	if chart, counts := r.kinds.Text(t.Chart); counts != nil {
		r.counts.Add(counts)
		t.Chart = chart
	}
	return t
}

// bundle takes things out of all forms of an object but images, in which there is no text to be read. The counts are those of one form: all say the same.
func (r *redactor) bundle(data kernel.Bundle) kernel.Bundle {
	out := make(kernel.Bundle, len(data))
	most := redact.Counts{}
	for mime, value := range data {
		var counts redact.Counts
		switch v := value.(type) {
		case string:
			if !strings.HasPrefix(mime, "image/") || mime == "image/svg+xml" {
				value, counts = r.kinds.String(v)
			}
		case json.RawMessage:
			var text []byte
			if text, counts = r.kinds.Text(v); counts != nil {
				value = json.RawMessage(text)
				if !json.Valid(text) { // a find that reached over the end of a text
					value = json.RawMessage(`"[redacted]"`)
				}
			}
		}
		if shown, found := r.kinds.String(mime); found != nil {
			r.counts.Add(found)
			mime = shown
		}
		out[mime] = value
		for name, n := range counts {
			most[name] = max(most[name], n)
		}
	}
	r.counts.Add(most)
	return out
}

// RedactVariables takes things out of what is shown of variables.
func RedactVariables(k redact.Kinds, v kernel.Variables) kernel.Variables {
	for i := range v.Items {
		one := &v.Items[i]
		one.Preview, _ = k.String(one.Preview)
		one.Type, _ = k.String(one.Type)
	}
	return v
}

func redactTable(k redact.Kinds, t kernel.Table) kernel.Table {
	for i := range t.Columns {
		t.Columns[i].Name, _ = k.String(t.Columns[i].Name)
	}
	for i := range t.Index {
		t.Index[i], _ = k.String(t.Index[i])
	}
	t.IndexName, _ = k.String(t.IndexName)
	for _, row := range t.Rows {
		for i := range row {
			row[i], _ = k.Any(row[i])
		}
	}
	return t
}

func redactProfile(k redact.Kinds, p kernel.Profile) kernel.Profile {
	p.Name, _ = k.String(p.Name)
	p.Min, _ = k.Any(p.Min)
	p.Max, _ = k.Any(p.Max)
	for i := range p.Common {
		p.Common[i].Value, _ = k.String(p.Common[i].Value)
	}
	return p
}
