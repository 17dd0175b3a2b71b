package mcp

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/python/installation"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	// scheme begins the addresses of files: cove://SESSION/PATH.
	scheme = "cove://"
	// mostRead bounds what is read of a file for a model, in bytes.
	mostRead = 8 << 20
	// mostListed bounds how many entries of a folder and how many sessions are told.
	mostListed = 100
	// life is of sessions that are made here.
	life = 7 * 24 * time.Hour
)

// tool is one of the server's.
type tool struct {
	sdk.Tool
	perform func(c *call) (*sdk.CallToolResult, error)
}

// all are the tools. There are few, since a model reads all of them each time.
func (s *server) all() []tool {
	session := prop("string", `Of an earlier answer, as "ses_...".`)
	of := func(name, title, about string, hints sdk.ToolAnnotations, in map[string]any, required []string, perform func(*call) (*sdk.CallToolResult, error)) tool {
		return tool{sdk.Tool{Name: name, Title: title, Description: about, Annotations: &hints, InputSchema: object(in, required...)}, perform}
	}
	reads, no := sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}, false
	python := of("python", "Run Python", "Runs Python code in a sandbox and returns what it prints, the value of its last expression, errors, figures, and the files that it has written. "+
		"Variables, imports and files of a session stay. Packages are installed when code imports them.", sdk.ToolAnnotations{OpenWorldHint: &no, DestructiveHint: &no},
		map[string]any{
			"code":            prop("string", "The code, as a cell of a notebook."),
			"session":         prop("string", "The session to go on in. Leave it out for a new one; the answer names it."),
			"timeout_seconds": map[string]any{"type": "number", "exclusiveMinimum": 0, "description": fmt.Sprintf("When to interrupt the code; %.0f when left out, which is the most.", s.Timeout.Seconds())},
		}, []string{"code"}, s.python)
	return []tool{
		python,
		of("install_packages", "Install packages", "Installs packages from the package index into a session ahead of time.", sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no},
			map[string]any{"packages": map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1, "maxItems": 50, "description": `Requirements, such as "polars>=1".`}, "session": session}, []string{"packages", "session"}, s.install),
		of("list_files", "List files", "Lists a folder of a session's workspace.", reads, map[string]any{"session": session, "path": prop("string", "The folder; the workspace itself when left out.")}, []string{"session"}, s.listFiles),
		of("read_file", "Read a file", "Reads a file of a session's workspace: text, a picture, or other content.", reads, map[string]any{"session": session, "path": prop("string", "In the workspace.")}, []string{"session", "path"}, s.readFile),
		of("write_file", "Write a file", "Writes a file into a session's workspace, in the place of one that is there.", sdk.ToolAnnotations{IdempotentHint: true},
			map[string]any{"session": session, "path": prop("string", "In the workspace."), "text": prop("string", "The content."), "base64": prop("string", "In the place of text: bytes in base64.")}, []string{"session", "path"}, s.writeFile),
		of("list_sessions", "List sessions", "Lists the sessions that the last calls used, the newest first.", reads, map[string]any{}, nil, s.listSessions),
		of("delete_session", "Delete a session", "Deletes a session with its variables and files.", sdk.ToolAnnotations{IdempotentHint: true}, map[string]any{"session": session}, []string{"session"}, s.deleteSession),
	}
}

func prop(kind, about string) map[string]any {
	return map[string]any{"type": kind, "description": about}
}

func object(properties map[string]any, required ...string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": append([]string{}, required...), "additionalProperties": false}
}

func said(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func (s *server) install(c *call) (*sdk.CallToolResult, error) {
	var in struct {
		Packages []string `json:"packages"`
		Session  string   `json:"session"`
	}
	if err := c.into(&in); err != nil {
		return nil, err
	}
	p, err := s.Hub.Install(c, c.who, in.Session, in.Packages, func(now installation.Progress) { c.tell(now.Phase) })
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, one := range p.Installed {
		lines = append(lines, "installed "+one.Name+" "+one.Version)
	}
	for _, one := range p.Refused {
		lines = append(lines, fmt.Sprintf("not installed: %s, %s; %s", one.Name, one.Reason, one.Hint))
	}
	lines = append(lines, p.Notes...)
	if len(lines) == 0 {
		lines = []string{"everything was there already"}
	}
	out := said("%s", strings.Join(lines, "\n"))
	out.IsError = len(p.Refused) > 0
	return out, nil
}

func (s *server) listFiles(c *call) (*sdk.CallToolResult, error) {
	var in struct {
		Session string `json:"session"`
		Path    string `json:"path"`
	}
	if err := c.into(&in); err != nil {
		return nil, err
	}
	var entries []workspace.Entry
	more := false
	err := s.Hub.Tree(c, c.who, in.Session, false, func(ctx context.Context, t hub.Tree) (err error) {
		entries, more, err = t.List(ctx, in.Path)
		return err
	})
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, e := range entries[:min(len(entries), mostListed)] {
		if e.Folder {
			lines = append(lines, e.Path+"/")
		} else {
			lines = append(lines, fmt.Sprintf("%s (%d bytes)", e.Path, e.Size))
		}
	}
	if more || len(entries) > mostListed {
		lines = append(lines, "... and more")
	}
	if len(lines) == 0 {
		lines = []string{"the folder is empty"}
	}
	return said("%s", strings.Join(lines, "\n")), nil
}

func (s *server) readFile(c *call) (*sdk.CallToolResult, error) {
	var in struct {
		Session string `json:"session"`
		Path    string `json:"path"`
	}
	if err := c.into(&in); err != nil {
		return nil, err
	}
	r, err := s.resource(c, c.who, address(in.Session, in.Path))
	if err != nil {
		return nil, err
	}
	content := r.Contents[0]
	switch {
	case content.Blob == nil:
		return said("%s", content.Text), nil
	case strings.HasPrefix(content.MIMEType, "image/"):
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: content.Blob, MIMEType: content.MIMEType}}}, nil
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{Resource: content}}}, nil
}

func (s *server) writeFile(c *call) (*sdk.CallToolResult, error) {
	var in struct {
		Session string  `json:"session"`
		Path    string  `json:"path"`
		Text    *string `json:"text"`
		Base64  *string `json:"base64"`
	}
	if err := c.into(&in); err != nil {
		return nil, err
	}
	var content io.Reader
	switch {
	case (in.Text == nil) == (in.Base64 == nil):
		return nil, problem.New(problem.InvalidRequest, "write_file takes either text or base64")
	case in.Text != nil:
		content = strings.NewReader(*in.Text)
	default:
		bytes, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(*in.Base64), ""))
		if err != nil {
			return nil, problem.New(problem.InvalidRequest, "base64 is not in base64: "+err.Error())
		}
		content = strings.NewReader(string(bytes))
	}
	var made workspace.Entry
	err := s.Hub.Tree(c, c.who, in.Session, true, func(ctx context.Context, t hub.Tree) (err error) {
		made, err = t.Write(ctx, in.Path, content)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("wrote %s (%d bytes)", made.Path, made.Size)}, link(in.Session, made.Path, made.Size)}}, nil
}

func (s *server) listSessions(c *call) (*sdk.CallToolResult, error) {
	found, err := s.Hub.Sessions(c, c.who, hub.SessionFilter{Meta: map[string]string{mark: "yes"}}, hub.Page{Limit: mostListed})
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, one := range found.Items {
		if s.Home != "" && one.Home != s.Home {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s made %s, last used %s", one.ID, one.Created.UTC().Format(time.RFC3339), one.Used.UTC().Format(time.RFC3339)))
	}
	if len(lines) == 0 {
		lines = []string{"there are none"}
	}
	return said("%s", strings.Join(lines, "\n")), nil
}

func (s *server) deleteSession(c *call) (*sdk.CallToolResult, error) {
	var in struct {
		Session string `json:"session"`
	}
	if err := c.into(&in); err != nil {
		return nil, err
	}
	if err := s.Hub.DeleteSession(c, c.who, in.Session); err != nil {
		return nil, err
	}
	return said("deleted %s", in.Session), nil
}

// address is that of a file as a resource.
func address(session, file string) string {
	return scheme + session + "/" + (&url.URL{Path: strings.TrimPrefix(file, "/")}).EscapedPath()
}

func link(session, file string, size int64) *sdk.ResourceLink {
	return &sdk.ResourceLink{URI: address(session, file), Name: path.Base(file), MIMEType: mime.TypeByExtension(path.Ext(file)), Size: &size}
}

// resource reads a file.
func (s *server) resource(ctx context.Context, who auth.Principal, uri string) (*sdk.ReadResourceResult, error) {
	session, file, ok := strings.Cut(strings.TrimPrefix(uri, scheme), "/")
	name, err := url.PathUnescape(file)
	if !ok || err != nil || !ident.Valid(ident.Session, session) {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	var content strings.Builder
	err = s.Hub.Tree(ctx, who, session, false, func(ctx context.Context, t hub.Tree) error {
		e, err := t.Stat(ctx, name)
		if err == nil && e.Size > mostRead {
			return problem.New(problem.FileTooLarge, fmt.Sprintf("%s has %d bytes, and at most %d are read", name, e.Size, mostRead)).WithHint("read a part of it with python")
		}
		if err == nil {
			_, err = t.Read(ctx, name, 0, mostRead, &content)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &sdk.ResourceContents{URI: uri, MIMEType: mime.TypeByExtension(path.Ext(name))}
	if text := content.String(); utf8.ValidString(text) && !strings.HasPrefix(out.MIMEType, "image/") {
		out.Text = text
	} else {
		out.Blob = []byte(text)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{out}}, nil
}
