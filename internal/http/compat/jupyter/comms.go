package jupyter

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// Comms carry what widgets and their code say to each other. What code says comes as a display of a type of its own, and what a client says is handed over by code: so it is in order with all
// other code, has the same limits, and what it prints is shown.

// ownCode begins the code that is the surface's. It is no input of a client's.
const ownCode = "get_ipython().kernel.comms."

// Bounds of comms.
const (
	mostComms   = 2000
	longestComm = 128 // bytes of a comm's id, and of its target's name
)

// isComm says whether messages of a type belong to comms.
func isComm(kind string) bool {
	return kind == "comm_open" || kind == "comm_msg" || kind == "comm_close"
}

// commMessage is a message of a comm, as code and the surface tell it each other.
type commMessage struct {
	Kind     string          `json:"kind"`
	Content  json.RawMessage `json:"content"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Buffers  json.RawMessage `json:"buffers,omitempty"` // a list of base64
}

type commContent struct {
	ID     string `json:"comm_id"`
	Target string `json:"target_name"`
}

// commOf is the message of a comm that a display is, or nil. Code makes what it likes of it.
func commOf(b kernel.Bundle) *commMessage {
	raw, there := b[kernel.MIMEComm]
	if !there {
		return nil
	}
	text, err := json.Marshal(raw)
	m := &commMessage{}
	if err != nil || json.Unmarshal(text, m) != nil {
		return &commMessage{}
	}
	return m
}

// said tells clients what code says in a comm.
func (x *execution) said(m *commMessage) {
	if m.Kind == "state" {
		var in struct {
			Comms map[string]commContent `json:"comms"`
			Count int                    `json:"count"`
		}
		_ = json.Unmarshal(m.Content, &in)
		x.k.mu.Lock()
		defer x.k.mu.Unlock()
		x.k.comms, x.k.count = map[string]string{}, max(in.Count, 0)
		for id, one := range in.Comms {
			x.k.noteComm("comm_open", commContent{id, one.Target})
		}
		return
	}
	var content commContent
	if !isComm(m.Kind) || json.Unmarshal(m.Content, &content) != nil || content.ID == "" {
		return
	}
	x.k.mu.Lock()
	x.k.noteComm(m.Kind, content)
	x.k.mu.Unlock()
	out := &message{channel: iopubChannel, header: header{Type: m.Kind}, parent: x.r.header, content: m.Content}
	if len(m.Metadata) > 0 {
		out.metadata = m.Metadata
	}
	var buffers []string
	_ = json.Unmarshal(m.Buffers, &buffers)
	if len(buffers) > mostParts {
		x.note(fmt.Sprintf("a message of a widget has more than %d buffers, and is not passed on", mostParts))
		return
	}
	for _, text := range buffers {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return
		}
		out.buffers = append(out.buffers, data)
	}
	x.k.deliver(out, "")
}

// noteComm notes which comms are open. The caller holds mu.
func (k *shared) noteComm(kind string, c commContent) {
	if len(c.ID) > longestComm || len(c.Target) > longestComm {
		return
	}
	switch {
	case kind == "comm_close":
		delete(k.comms, c.ID)
	case kind == "comm_open" && len(k.comms) < mostComms:
		k.comms[c.ID] = c.Target
	}
}

// own runs code of the surface's for a request: a call of the kernel's object for comms.
func (k *shared) own(r *request, call string, argument any) error {
	code := ownCode + call + "("
	if argument != nil {
		text, err := json.Marshal(argument) // a string of JSON is one of Python
		if err != nil {
			return err
		}
		code += string(text)
	}
	x := &execution{k: k, r: r, count: k.number(), part: call == "begin"} // an interpreter of an older cove does not know it
	x.asks.Silent = true
	k.mu.Lock()
	x.restarts = k.restarts
	k.mu.Unlock()
	defer k.run()()
	return x.run(hub.NewExecution{Session: k.place.session.ID, Kernel: k.place.kernel, Code: code + ")", Unnumbered: true, Payloads: true, Parent: r.id})
}

// comm hands a client's message to code.
func (k *shared) comm(r *request) {
	var content commContent
	r.into(&content)
	k.mu.Lock()
	k.noteComm(r.kind, content)
	k.mu.Unlock()
	text, err := json.Marshal(commMessage{r.kind, r.content, r.metadata, r.buffers})
	if err == nil && content.ID != "" {
		err = k.own(r, "take", string(text))
	}
	if err != nil {
		k.fail(r, err)
	}
}

// commInfo says which comms are open.
func (k *shared) commInfo(r *request) {
	var in struct {
		Target string `json:"target_name"`
	}
	r.into(&in)
	if err := k.enter(r); err != nil {
		k.fail(r, err)
		return
	}
	all := map[string]any{}
	k.mu.Lock()
	for id, target := range k.comms {
		if in.Target == "" || in.Target == target {
			all[id] = map[string]string{"target_name": target}
		}
	}
	k.mu.Unlock()
	k.reply(r, map[string]any{"status": "ok", "comms": all})
}

// enter has an interpreter go to the folder of its document, and asks it for what is not known of it since the server was started, or nobody was connected: the number of its last code, and
// its comms.
func (k *shared) enter(r *request) error {
	k.mu.Lock()
	ready := k.ready
	k.mu.Unlock()
	if ready {
		return nil
	}
	err := k.own(r, "begin", k.place.entry.Dir)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready = err == nil
	return err
}
