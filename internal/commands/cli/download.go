package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/machine/egress"
)

// What fetching one file for -f may take.
const (
	downloadTime = 15 * time.Minute
	mostHops     = 5 // redirects
)

// isAddress says whether -f names something to fetch.
func isAddress(given string) bool {
	lower := strings.ToLower(given)
	return strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://")
}

// downloads fetches what -f names by its address, here on the host, and returns the paths with the files in the place of the addresses. They are removed
// when the command ends.
func (p *Program) downloads(ctx context.Context, given []string, network networkFlags) ([]string, error) {
	var paths []string
	for _, one := range given {
		if isAddress(one) {
			file, err := p.download(ctx, one, network)
			if err != nil {
				return nil, err
			}
			one = file
		}
		paths = append(paths, one)
	}
	return paths, nil
}

// addressName divides an address into that and the name that its file gets, which may stand after a colon: https://example.com/a.csv:b.csv.
func addressName(given string) (address, name string, err error) {
	last := given[strings.LastIndexByte(given, '/')+1:]
	if before, after, found := strings.Cut(last, ":"); found && strings.Contains(before, ".") && path.Ext(after) != "" {
		given, name = strings.TrimSuffix(given, ":"+after), after
	}
	u, err := url.Parse(given)
	if err != nil || u.Hostname() == "" {
		return "", "", problem.New(problem.InputRefused, oneLine(given)+" is no address").WithHint("write https://HOST/PATH")
	}
	if name == "" {
		name = path.Base(u.Path)
	}
	if name, err = safePath(name); err != nil || name == "/" {
		name = "download"
	}
	return given, name, nil
}

// download fetches a file. It connects where --allow-net lets code connect, and to the public internet, and never to other addresses.
func (p *Program) download(ctx context.Context, given string, network networkFlags) (file string, err error) {
	address, name, err := addressName(given)
	if err != nil {
		return "", err
	}
	client, err := downloader(address, network)
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	p.live.Await(lang.Text("fetching " + oneLine(name)))
	defer p.live.Over()
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	failed := func(err error) error {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return problem.New(problem.GivenUp, "stopped before "+oneLine(name)+" was fetched")
		}
		if refused := (*problem.Error)(nil); errors.As(err, &refused) {
			return refused
		}
		return problem.New(problem.InputUnreadable, "cannot fetch "+oneLine(address)).WithCause(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", failed(err)
	}
	req.Header.Set("User-Agent", "cove/"+p.Build.String())
	resp, err := client.Do(req)
	if err != nil {
		return "", failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", problem.New(problem.InputUnreadable, "cannot fetch "+oneLine(address)+": the server says "+oneLine(resp.Status))
	}
	dir, err := os.MkdirTemp("", "cove-fetched-")
	if err != nil {
		return "", problem.New(problem.TempUnusable, "cannot keep what is fetched in a temporary file").WithCause(err)
	}
	p.atEnd = append(p.atEnd, func() { _ = os.RemoveAll(dir) })
	file = filepath.Join(dir, path.Base(name))
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", problem.New(problem.TempUnusable, "cannot keep what is fetched in a temporary file").WithCause(err)
	}
	limit := workspaceLimit()
	n, err := io.Copy(f, io.LimitReader(&counting{from: resp.Body, told: func(n int64) {
		text := "fetching " + oneLine(name) + "  " + humanSize(n)
		if resp.ContentLength > 0 {
			text += " of " + humanSize(resp.ContentLength)
		}
		p.live.Progress(text)
	}}, limit+1))
	if closed := f.Close(); err == nil {
		err = closed
	}
	switch {
	case err != nil:
		return "", failed(err)
	case n > limit:
		return "", problem.New(problem.InputsTooBig, fmt.Sprintf("%s is larger than %s, which the workspace holds", oneLine(address), humanSize(limit)))
	}
	return file, nil
}

// downloader connects by the rules of the network, and to the public internet at the ports of web servers and that of the address.
func downloader(address string, network networkFlags) (*http.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	allow := append([]string{"*"}, network.AllowNet...)
	if u.Port() != "" {
		allow = append(allow, "*:"+u.Port())
	}
	rules, err := egress.ParseRules(allow, network.DenyNet)
	if err != nil {
		return nil, err
	}
	d := egress.New(egress.Options{Operator: rules})
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, to string) (net.Conn, error) {
				host, port, err := net.SplitHostPort(to)
				if err != nil {
					return nil, err
				}
				number, err := strconv.Atoi(port)
				if err != nil {
					return nil, err
				}
				return d.Dial(ctx, host, number)
			},
			TLSHandshakeTimeout: time.Minute, ResponseHeaderTimeout: 2 * time.Minute, MaxResponseHeaderBytes: 1 << 20, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > mostHops {
				return fmt.Errorf("it leads to another address more than %d times", mostHops)
			}
			if s := req.URL.Scheme; s != "https" && s != via[0].URL.Scheme {
				return errors.New("it leads to an address without HTTPS")
			}
			return nil
		},
	}, nil
}
