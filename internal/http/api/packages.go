package api

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/transcript"
)

// PackageList is what a session's Python can import.
type PackageList struct {
	Python   string            `json:"python" example:"3.12.7"`
	Packages map[string]string `json:"packages" doc:"Version by name"`
}

// NewPackages says what to install.
type NewPackages struct {
	Requirements []string `json:"requirements" minItems:"1" maxItems:"200" doc:"PEP 508, such as \"polars>=1\"" example:"[\"polars\"]"`
}

type installPackages struct {
	SessionPath
	Stream bool `query:"stream" doc:"Answer with server-sent events. 'Accept: text/event-stream' does the same"`
	Wait   bool `query:"wait" doc:"Answer when it is over, with one JSON object, whatever Accept says; this is the default"`
	Body   NewPackages
}

func (s *server) addPackages() {
	const tag = "packages"
	add(s, operation{id: "package.list", method: http.MethodGet, path: "/sessions/{session}/packages", tag: tag, action: auth.SessionsRead, summary: "List a session's packages",
		errors: []problem.Code{problem.SessionNotFound}, example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/packages`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) (PackageList, error) {
			python, packages, err := s.o.Hub.Packages(ctx, who, in.Session)
			return PackageList{Python: python, Packages: notNil(packages)}, err
		})
	addRaw(s, operation{id: "package.install", method: http.MethodPost, path: "/sessions/{session}/packages", tag: tag, action: auth.PackagesInstall, summary: "Install packages",
		about:  "What code imports is installed by itself; this does it ahead of time. Events: `install_progress`, then `install`, or `failure`. It ends when you leave. Asking again for what is there does nothing. What cannot be installed is in `refused` of `install`, each with a `code` (`package_unknown`, `package_refused`, ...), a `reason` and a `hint`; the rest is installed.",
		errors: []problem.Code{problem.SessionNotFound, problem.PackageName, problem.ResolveFailed},
		example: `curl -N -H "Authorization: Bearer $KEY" -H "Accept: text/event-stream" $COVE/sessions/$SESSION/packages \
  -d '{"requirements":["polars","httpx>=0.27"]}'
curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/packages -d '{"requirements":["polars"]}'`}, s.installPackages)
}

func (s *server) installPackages(w http.ResponseWriter, r *http.Request, who auth.Principal, in *installPackages) error {
	how, err := Manner{Stream: in.Stream, Wait: in.Wait}.of(r)
	if err != nil {
		return err
	}
	if how == asWhole {
		p, err := s.o.Hub.Install(r.Context(), who, in.Session, in.Body.Requirements, func(installation.Progress) {})
		if err != nil {
			return err
		}
		body, err := transcript.Event(kernel.Install{Provision: p})
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, json.RawMessage(body))
		return nil
	}
	// A problem of the session should be the answer's status, not an event.
	if _, err := s.o.Hub.Session(r.Context(), who, in.Session); err != nil {
		return err
	}
	return s.stream(w, r, sse.Event{}, func(ctx context.Context) (iter.Seq2[sse.Event, error], error) {
		return s.installing(ctx, who, in), nil
	})
}

// installing turns an installation's progress into messages. Only the newest progress is sent, so nothing waits for a slow client.
func (s *server) installing(ctx context.Context, who auth.Principal, in *installPackages) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		progress := make(chan installation.Progress, 64)
		ended := make(chan error, 1)
		var p installation.Provision
		running.Go(func() {
			var err error
			p, err = s.o.Hub.Install(ctx, who, in.Session, in.Body.Requirements, func(now installation.Progress) {
				select {
				case progress <- now:
				default:
				}
			})
			ended <- err
		})
		told := func(e kernel.Install) bool {
			body, err := transcript.Event(e)
			return yield(typed(0, body), err) && err == nil
		}
		for {
			select {
			case now := <-progress:
				if !told(kernel.Install{Progress: &now}) {
					return
				}
			case err := <-ended:
				if err != nil {
					yield(sse.Event{}, err)
					return
				}
				told(kernel.Install{Provision: p})
				return
			}
		}
	}
}
