package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"
)

const (
	connections  = 2                      // at once: the index is a public good
	pace         = 200 * time.Millisecond // between two requests
	longestPage  = 64 << 20
	tries        = 4
	longestPause = 2 * time.Minute
)

// errNothing is the kind of error that asking again cannot help.
var errNothing = errors.New("nothing there")

// index is a package index that is read slowly.
type index struct {
	client *http.Client
	root   string // ends with a slash
	pace   <-chan time.Time
}

// release is a file that the index offers.
type release struct {
	Name     string
	URL      string
	Yanked   bool
	Metadata bool // its metadata can be had without the file (PEP 658)
}

// ask reads what the index knows of those projects that the evidence does not have yet.
func ask(ctx context.Context, o options, order []string, found *evidence) error {
	root := o.index
	if root == "" {
		var err error
		if root, err = pipIndex(ctx); err != nil {
			return err
		}
	}
	every := pace
	if o.pace > 0 {
		every = o.pace
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	x := &index{client: &http.Client{Timeout: 2 * time.Minute}, root: strings.TrimSuffix(root, "/") + "/", pace: ticker.C}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan string)
	var workers sync.WaitGroup
	for range connections {
		workers.Go(func() {
			for project := range queue {
				if err := askAbout(ctx, x, project, found); err != nil {
					cancel(fmt.Errorf("%s: %w", project, err))
				}
			}
		})
	}
	for i, project := range order {
		if found.has(project) || ctx.Err() != nil {
			continue
		}
		if i%500 == 0 {
			fmt.Printf("asking the index: %d of %d\n", i, len(order))
		}
		queue <- project
	}
	close(queue)
	workers.Wait()
	return context.Cause(ctx)
}

func askAbout(ctx context.Context, x *index, project string, found *evidence) error {
	one, err := x.look(ctx, project)
	if errors.Is(err, errNothing) {
		one, err = entry{None: err.Error()}, nil
	}
	if err != nil {
		return err
	}
	one.Project = project
	return found.add(one)
}

// look finds what the newest wheel of a project provides.
func (x *index) look(ctx context.Context, project string) (entry, error) {
	releases, err := x.releases(ctx, project)
	if err != nil {
		return entry{}, err
	}
	wheel, ok := newestWheel(releases)
	if !ok {
		return entry{}, fmt.Errorf("no wheel: %w", errNothing)
	}
	if wheel.Metadata {
		modules, err := x.declared(ctx, wheel)
		if err != nil && !errors.Is(err, errNothing) {
			return entry{}, err
		}
		if len(modules) > 0 {
			return entry{File: wheel.Name, Modules: modules, From: "metadata"}, nil
		}
	}
	modules, err := x.listed(ctx, wheel)
	return entry{File: wheel.Name, Modules: modules, From: "files"}, err
}

// pipIndex asks pip which index it uses.
func pipIndex(ctx context.Context) (string, error) {
	for _, name := range []string{"UV_DEFAULT_INDEX", "PIP_INDEX_URL"} {
		if value := os.Getenv(name); value != "" {
			return value, nil
		}
	}
	const program = `
from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
c = Configuration(isolated=False)
c.load()
print(dict(c.items()).get("global.index-url", PyPI.simple_url))`
	out, err := exec.CommandContext(ctx, "python3", "-c", program).Output()
	if err != nil {
		return "", fmt.Errorf("pip does not say which index it uses; name one with -index: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// releases reads a project's page, in JSON (PEP 691) or HTML (PEP 503), whichever the index has.
func (x *index) releases(ctx context.Context, project string) ([]release, error) {
	page := x.root + project + "/"
	response, err := x.get(ctx, page, http.Header{"Accept": {"application/vnd.pypi.simple.v1+json, text/html;q=0.5"}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	base := response.Request.URL
	body := io.LimitReader(response.Body, longestPage)
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		return fromJSON(body, base)
	}
	return fromHTML(body, base)
}

func fromJSON(body io.Reader, base *url.URL) ([]release, error) {
	var page struct {
		Files []struct {
			Filename     string `json:"filename"`
			URL          string `json:"url"`
			Yanked       any    `json:"yanked"`
			CoreMetadata any    `json:"core-metadata"`
		} `json:"files"`
	}
	if err := json.NewDecoder(body).Decode(&page); err != nil {
		return nil, fmt.Errorf("the page is not JSON: %w: %w", err, errNothing)
	}
	var out []release
	for _, f := range page.Files {
		link, err := base.Parse(f.URL)
		if err != nil {
			continue
		}
		out = append(out, release{Name: f.Filename, URL: link.String(), Yanked: said(f.Yanked), Metadata: said(f.CoreMetadata)})
	}
	return out, nil
}

// said reads a field that is true, or says why.
func said(value any) bool { return value != nil && value != false }

func fromHTML(body io.Reader, base *url.URL) ([]release, error) {
	var out []release
	var link *release
	for tokens := html.NewTokenizer(body); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			if err := tokens.Err(); !errors.Is(err, io.EOF) {
				return nil, err
			}
			return out, nil
		case html.StartTagToken:
			if token := tokens.Token(); token.Data == "a" {
				link = anchor(token, base)
			}
		case html.TextToken:
			if link != nil {
				link.Name = strings.TrimSpace(string(tokens.Text()))
				out = append(out, *link)
				link = nil
			}
		}
	}
}

func anchor(token html.Token, base *url.URL) *release {
	var r release
	for _, a := range token.Attr {
		switch a.Key {
		case "href":
			link, err := base.Parse(a.Val)
			if err != nil {
				return nil
			}
			link.Fragment = ""
			r.URL = link.String()
		case "data-yanked":
			r.Yanked = true
		case "data-core-metadata", "data-dist-info-metadata":
			r.Metadata = a.Val != "false"
		}
	}
	return &r
}

// get asks politely: at the pace, and later again when the index says that it is busy. An answer that is not of the 2xx kind is an error.
func (x *index) get(ctx context.Context, link string, header http.Header) (*http.Response, error) {
	var last error
	for try := range tries {
		select {
		case <-x.pace:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, errNothing)
		}
		for key, values := range header {
			request.Header[key] = values
		}
		request.Header.Set("User-Agent", "cove-names-generator")
		response, err := x.client.Do(request)
		switch {
		case err != nil:
			last = err
		case response.StatusCode < 300:
			return response, nil
		default:
			_ = response.Body.Close()
			last = fmt.Errorf("the index answers %s", response.Status)
			if response.StatusCode < 500 && response.StatusCode != http.StatusTooManyRequests {
				return nil, fmt.Errorf("%w: %w", last, errNothing)
			}
			if err := pause(ctx, response.Header.Get("Retry-After"), try); err != nil {
				return nil, err
			}
		}
	}
	return nil, last
}

func pause(ctx context.Context, after string, try int) error {
	wait := time.Second << try
	if seconds, err := strconv.Atoi(after); err == nil {
		wait = time.Duration(seconds) * time.Second
	}
	select {
	case <-time.After(min(wait, longestPause)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
