package toolbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/server/hub"
)

const (
	lspLabel      = "daytona lsp " // begins the label of a language server's process
	mostDocument  = 4 << 20        // bytes of a file that is opened
	mostDocuments = 200            // of a server, that are remembered
	mostServers   = 1000           // that are remembered here, of all sandboxes
)

// lspPaths makes Python's language server importable, as all that code imports, and tells where Python looks for it then.
const lspPaths = "import json, sys\nimport pylsp\nprint(json.dumps([p for p in sys.path if p]))\n"

// servers are what is known here of language servers, by the ids of their processes.
type servers struct {
	mu  sync.Mutex
	all map[string]*server
}

// server is a language server. Its messages are read when something is asked.
type server struct {
	process   string
	alone     chan struct{} // one request at a time
	read      int64         // how far its output was read
	next      int           // number of the next request
	documents []string      // the addresses of those that are open
}

func (s *servers) of(key, id string, from int64) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil || len(s.all) > mostServers {
		s.all = map[string]*server{}
	}
	if s.all[key] == nil {
		s.all[key] = &server{process: id, alone: make(chan struct{}, 1), read: from}
	}
	return s.all[key]
}

type lspRequest struct {
	Language string          `json:"languageId"`
	Project  string          `json:"pathToProject"`
	URI      string          `json:"uri"`
	Position json.RawMessage `json:"position"`
	Context  json.RawMessage `json:"context"`
}

// lsp reads a request for a language server, from the address or from the body.
func (c *call) lsp() (in lspRequest, err error) {
	if c.Method == http.MethodGet {
		q := c.URL.Query()
		in = lspRequest{Language: q.Get("languageId"), Project: q.Get("pathToProject"), URI: q.Get("uri")}
	} else if err = c.read(&in); err != nil {
		return in, err
	}
	switch in.Language {
	case "python", "typescript", "javascript":
	default:
		return in, invalid(fmt.Sprintf("languageId: there is no language server for %.40q; there is one for python", in.Language))
	}
	if in.Project == "" {
		return in, invalid("pathToProject: it is missing")
	}
	in.Project = c.s.absolute(in.Project)
	if in.URI != "" {
		in.URI = fileURI(c.s.absolute(filePath(in.URI)))
	}
	return in, nil
}

func fileURI(p string) string { return (&url.URL{Scheme: "file", Path: p}).String() }

// filePath is the path of an address, which clients make of a path by putting file:// before it.
func filePath(uri string) string {
	text, ok := strings.CutPrefix(uri, "file://")
	if !ok {
		return uri
	}
	if p, err := url.PathUnescape(text); err == nil {
		return p
	}
	return text
}

func (r lspRequest) label() string {
	sum := sha256.Sum256([]byte(r.Project))
	return lspLabel + r.Language + " " + hex.EncodeToString(sum[:12])
}

// server returns the language server of a project, which has been started.
func (t *Toolbox) server(c *call, r lspRequest) (*server, error) {
	all, err := t.o.Hub.Processes(c.Context(), c.who, c.id())
	if err != nil {
		return nil, err
	}
	for _, i := range slices.Backward(all) {
		if i.Label == r.label() && i.Exit == nil {
			return t.servers.of(c.id()+" "+i.ID, i.ID, i.Written), nil
		}
	}
	return nil, &fault{http.StatusBadRequest, "LSP_SERVER_NOT_INITIALIZED", "the language server has not been started"}
}

func (t *Toolbox) startLSP(c *call) error {
	in, err := c.lsp()
	if err != nil {
		return err
	}
	if _, err := t.server(c, in); err == nil {
		return done(c)
	}
	start := process.Start{Dir: in.Project, Env: c.s.environment(nil), Label: in.label(), Input: true}
	if in.Language == "python" {
		paths, err := t.pythonServer(c)
		if err != nil {
			return err
		}
		start.Args = []string{"python3", "-m", "pylsp"}
		start.Env["PYTHONPATH"] = strings.Join(paths, ":")
	} else {
		start.Args = []string{"typescript-language-server", "--stdio"}
	}
	info, err := t.o.Hub.StartProcess(c.Context(), c.who, c.id(), start)
	if problem.Has(err, problem.ProgramMissing) {
		return &fault{http.StatusNotImplemented, "LSP_SERVER_NOT_INITIALIZED", "there is no " + start.Args[0] + " in the sandboxes of this server, which " + in.Language + " takes; its operator can install it on the host"}
	}
	if err != nil {
		return err
	}
	s := t.servers.of(c.id()+" "+info.ID, info.ID, 0)
	root := fileURI(in.Project)
	_, err = t.ask(c, s, "initialize", map[string]any{
		"processId": nil, "rootUri": root, "rootPath": in.Project, "workspaceFolders": []map[string]string{{"uri": root, "name": "project"}},
		"capabilities": map[string]any{"textDocument": map[string]any{"documentSymbol": map[string]any{"hierarchicalDocumentSymbolSupport": false}, "synchronization": map[string]any{"didSave": true}}},
	})
	if err == nil {
		err = t.tell(c, s, "initialized", map[string]any{})
	}
	if err != nil {
		t.kill(c, info.ID)
		return &fault{http.StatusInternalServerError, "LSP_SERVER_NOT_INITIALIZED", "the language server did not start: " + problemText(err)}
	}
	return done(c)
}

// pythonServer has Python's language server installed, and returns the folders in which Python finds it.
func (t *Toolbox) pythonServer(c *call) ([]string, error) {
	name, stop, err := t.ownKernel(c)
	if err != nil {
		return nil, err
	}
	defer stop()
	started, err := t.o.Hub.StartExecution(c.Context(), c.who, hub.NewExecution{Session: c.id(), Kernel: name, Code: lspPaths, Unheard: true, Program: "lsp.py", Unnumbered: true})
	if err != nil {
		return nil, err
	}
	run := &codeOutcome{}
	if err := t.follow(c, started.ID, run.event); err != nil {
		return nil, err
	}
	var paths []string
	lines := strings.Split(strings.TrimSpace(run.out.String()), "\n")
	if run.exitCode() != 0 || json.Unmarshal([]byte(lines[len(lines)-1]), &paths) != nil {
		return nil, &fault{http.StatusNotImplemented, "LSP_SERVER_NOT_INITIALIZED", "python-lsp-server could not be installed from the package index: " + lines[len(lines)-1]}
	}
	return paths, nil
}

func (t *Toolbox) stopLSP(c *call) error {
	in, err := c.lsp()
	if err != nil {
		return err
	}
	s, err := t.server(c, in)
	if err == nil {
		err = t.o.Hub.SignalProcess(c.Context(), c.who, c.id(), s.process, "KILL", true)
	}
	if err != nil && !problem.Has(err, problem.ProcessEnded) {
		return err
	}
	return done(c)
}

func (t *Toolbox) openDocument(c *call) error {
	in, s, err := t.document(c)
	if err != nil {
		return err
	}
	var text string
	err = t.opened(c, filePath(in.URI), func(size int64, r io.Reader) error {
		if size > mostDocument {
			return invalid("the file is larger than 4 MiB")
		}
		all, err := io.ReadAll(io.LimitReader(r, mostDocument))
		text = strings.ToValidUTF8(string(all), "\uFFFD")
		return err
	})
	if err == nil {
		err = t.tell(c, s, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": in.URI, "languageId": in.Language, "version": 1, "text": text}})
	}
	if err != nil {
		return err
	}
	t.servers.mu.Lock()
	if !slices.Contains(s.documents, in.URI) && len(s.documents) < mostDocuments {
		s.documents = append(s.documents, in.URI)
	}
	t.servers.mu.Unlock()
	return done(c)
}

func (t *Toolbox) closeDocument(c *call) error {
	in, s, err := t.document(c)
	if err == nil {
		err = t.tell(c, s, "textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": in.URI}})
	}
	if err != nil {
		return err
	}
	t.servers.mu.Lock()
	s.documents = slices.DeleteFunc(s.documents, func(uri string) bool { return uri == in.URI })
	t.servers.mu.Unlock()
	return done(c)
}

// document reads a request about a document.
func (t *Toolbox) document(c *call) (lspRequest, *server, error) {
	in, err := c.lsp()
	if err == nil && in.URI == "" {
		err = invalid("uri: it is missing")
	}
	if err != nil {
		return in, nil, err
	}
	s, err := t.server(c, in)
	return in, s, err
}

func (t *Toolbox) completions(c *call) error {
	in, s, err := t.document(c)
	if err != nil {
		return err
	}
	params := map[string]any{"textDocument": map[string]any{"uri": in.URI}, "position": in.Position}
	if len(in.Context) > 0 && string(in.Context) != "null" {
		params["context"] = in.Context
	}
	result, err := t.ask(c, s, "textDocument/completion", params)
	if err != nil {
		return err
	}
	list := struct {
		Incomplete bool             `json:"isIncomplete"`
		Items      []map[string]any `json:"items"`
	}{Items: []map[string]any{}}
	if json.Unmarshal(result, &list.Items) != nil && json.Unmarshal(result, &list) != nil {
		return errLSP("completions")
	}
	for _, item := range list.Items {
		if text, ok := item["documentation"].(string); ok {
			item["documentation"] = map[string]string{"kind": "plaintext", "value": text} // clients take an object alone
		}
	}
	reply(c.w, http.StatusOK, list)
	return nil
}

func errLSP(what string) error {
	return &fault{http.StatusBadGateway, "", "the language server does not answer with " + what}
}

// symbol is a symbol as clients see it.
type symbol struct {
	Kind     int    `json:"kind"`
	Name     string `json:"name"`
	Location struct {
		URI   string          `json:"uri"`
		Range json.RawMessage `json:"range"`
	} `json:"location"`
	Range    json.RawMessage `json:"range,omitempty"` // of one that has children, in the place of the location
	Children []symbol        `json:"children,omitempty"`
}

func (t *Toolbox) documentSymbols(c *call) error {
	in, s, err := t.document(c)
	if err != nil {
		return err
	}
	out, err := t.symbolsOf(c, s, in.URI)
	if err == nil {
		reply(c.w, http.StatusOK, out)
	}
	return err
}

func (t *Toolbox) symbolsOf(c *call, s *server, uri string) ([]symbol, error) {
	result, err := t.ask(c, s, "textDocument/documentSymbol", map[string]any{"textDocument": map[string]any{"uri": uri}})
	if err != nil {
		return nil, err
	}
	var all []symbol
	if json.Unmarshal(result, &all) != nil {
		return nil, errLSP("symbols")
	}
	return flat([]symbol{}, all, uri, 0), nil
}

// flat is symbols without those within, which follow them.
func flat(out, all []symbol, uri string, depth int) []symbol {
	for _, one := range all {
		children := one.Children
		if one.Location.URI == "" {
			one.Location.URI, one.Location.Range = uri, one.Range
		}
		one.Range, one.Children = nil, nil
		out = append(out, one)
		if depth < 20 {
			out = flat(out, children, uri, depth+1)
		}
	}
	return out
}

// workspaceSymbols looks for symbols: where a server cannot, as Python's, in the documents that are open.
func (t *Toolbox) workspaceSymbols(c *call) error {
	in, err := c.lsp()
	if err != nil {
		return err
	}
	s, err := t.server(c, in)
	if err != nil {
		return err
	}
	query := c.URL.Query().Get("query")
	result, err := t.ask(c, s, "workspace/symbol", map[string]any{"query": query})
	out := []symbol{}
	if err == nil {
		if json.Unmarshal(result, &out) != nil {
			return errLSP("symbols")
		}
		reply(c.w, http.StatusOK, flat([]symbol{}, out, "", 0))
		return nil
	}
	if code, word, _ := said(err); code != http.StatusNotImplemented || word != "" {
		return err
	}
	t.servers.mu.Lock()
	documents := slices.Clone(s.documents)
	t.servers.mu.Unlock()
	for _, uri := range documents {
		all, err := t.symbolsOf(c, s, uri)
		if err != nil {
			return err
		}
		for _, one := range all {
			if strings.Contains(strings.ToLower(one.Name), strings.ToLower(query)) {
				out = append(out, one)
			}
		}
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// enter waits until nobody else asks a server.
func (s *server) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.alone <- struct{}{}:
		return func() { <-s.alone }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
