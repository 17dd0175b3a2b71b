package dify

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"cove/internal/machine/process"
)

// outcome is what came of a program. Dify takes a program for failed when Error is not empty, so it is empty when the exit code is 0, whatever Stderr has.
type outcome struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	Error    string `json:"error"`
	ExitCode int    `json:"exit_code"`
}

// stopped is the exit code of a program that did not end by itself.
const stopped = -1

// recorder keeps what a program prints.
type recorder struct {
	most           int64 // bytes of both streams together
	limit          time.Duration
	stdout, stderr bytes.Buffer
}

// take takes an event, and returns the outcome when that is known.
func (r *recorder) take(e process.Event) *outcome {
	switch e.Kind {
	case process.Stdout:
		return r.keep(&r.stdout, e.Data)
	case process.Stderr:
		return r.keep(&r.stderr, e.Data)
	case process.Gap:
		return r.outcome(stopped, "a part of the output was lost")
	case process.Ended:
		if e.Exit == nil {
			return r.outcome(stopped, "the sandbox does not say how the program ended")
		}
		return r.ended(*e.Exit)
	}
	return nil
}

// keep keeps what there is room for. A result of which a part is missing is none.
func (r *recorder) keep(to *bytes.Buffer, data []byte) *outcome {
	room := r.most - int64(r.stdout.Len()+r.stderr.Len())
	if int64(len(data)) <= room {
		to.Write(data)
		return nil
	}
	to.Write(data[:room])
	return r.outcome(stopped, fmt.Sprintf("the program has printed more than %d bytes, and was stopped", r.most))
}

func (r *recorder) late() *outcome {
	return r.outcome(stopped, fmt.Sprintf("timeout: the program ran for more than %v, and was stopped", r.limit))
}

func (r *recorder) ended(e process.Exit) *outcome {
	switch {
	case e.Reason == process.ForTime:
		return r.late()
	case e.Reason == process.ForMemory:
		return r.outcome(stopped, "out of memory: the program used more than its session may have")
	case e.Signal != "":
		return r.outcome(stopped, "the program was ended by "+e.Signal)
	case e.Code != 0:
		return r.outcome(e.Code, fmt.Sprintf("the program ended with exit code %d", e.Code))
	}
	return r.outcome(0, "")
}

// outcome says why a program failed, and what it wrote about that.
func (r *recorder) outcome(code int, why string) *outcome {
	out := &outcome{Stdout: r.stdout.String(), Stderr: r.stderr.String(), ExitCode: code}
	if code != 0 {
		out.Error = why
		if out.Stderr != "" {
			out.Error += "\n" + out.Stderr
		}
	}
	return out
}

// noteNetwork says of a program that asked for a network, which Dify always does, that it had none, where it seems to have failed for that.
func (o *outcome) noteNetwork() {
	if o.Error == "" {
		return
	}
	for _, sign := range []string{
		"name resolution", "Name or service not known", "getaddrinfo", "unreachable", "Connection refused", // Python, also through its libraries
		"ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED", "fetch failed", // Node.js
	} {
		if strings.Contains(o.Stderr, sign) {
			o.Error = strings.TrimSuffix(o.Error, "\n") + "\nPrograms have no network on this server: its operator can allow destinations."
			return
		}
	}
}
