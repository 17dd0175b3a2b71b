package toolbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
)

const (
	mostTransfers = 1000     // files of one request
	longestPath   = 4096     // bytes
	mostUnsized   = 16 << 20 // bytes of a file whose size the system does not say, as of those in /proc
)

// uploaded is a file that was put in, as clients are told: newer ones read name and type.
type uploaded struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// put writes a file, and makes the folders that lead to it.
func (t *Toolbox) put(c *call, p string, body io.Reader) (uploaded, error) {
	p = c.s.absolute(p)
	out := uploaded{Name: path.Base(p), Path: p, Type: "file"}
	err := t.change(c, "session.file.write", func(ctx context.Context, f guestlink.Files) error {
		if old, err := f.StatPath(ctx, p, false); err == nil && old.Kind == filesystem.Folder {
			return invalid("the path is a folder: " + p)
		}
		n, err := f.WritePath(ctx, p, body, filesystem.Set{}, false)
		out.Bytes = n.Size
		return err
	}, p)
	return out, err
}

// form returns the reader of a multipart body; nil where the body is none.
func (c *call) form() *multipart.Reader {
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil
	}
	return multipart.NewReader(c.Body, params["boundary"])
}

// uploadOne takes one file: as the field "file" of a form, or as the body.
func (t *Toolbox) uploadOne(c *call) error {
	p := c.URL.Query().Get("path")
	if p == "" {
		return invalid("path: the path is missing")
	}
	body := io.Reader(c.Body)
	if form := c.form(); form != nil {
		for {
			part, err := form.NextRawPart()
			if err != nil {
				return invalid("file: the form has no such field, or did not come whole")
			}
			if part.FormName() == "file" {
				body = part
				break
			}
		}
	}
	one, err := t.put(c, p, body)
	if err == nil {
		reply(c.w, http.StatusOK, one)
	}
	return err
}

var uploadField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^files\[(\d{1,6})\]\.(path|file)$`) })

// uploadMany takes files of a form: for each a field files[i].path, and then files[i].file.
func (t *Toolbox) uploadMany(c *call) error {
	form := c.form()
	if form == nil {
		return invalid("the body is not a multipart form")
	}
	done, failed, paths := []uploaded{}, []string{}, map[string]string{}
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return invalid("the form is broken, or did not come whole")
		}
		field := uploadField().FindStringSubmatch(part.FormName())
		switch {
		case field == nil:
			failed = append(failed, fmt.Sprintf("unexpected field %.100q", part.FormName()))
		case len(done)+len(failed) >= mostTransfers || len(paths) > mostTransfers:
			return invalid(fmt.Sprintf("a request has at most %d files", mostTransfers))
		case field[2] == "path":
			name, err := io.ReadAll(io.LimitReader(part, longestPath+1))
			if err != nil || len(name) > longestPath {
				return invalid("a path did not come whole, or is too long")
			}
			paths[field[1]] = string(name)
		case paths[field[1]] == "":
			failed = append(failed, fmt.Sprintf("file[%s]: its path did not come before it", field[1]))
		default:
			one, err := t.put(c, paths[field[1]], part)
			if err != nil && c.Context().Err() != nil {
				return err
			}
			if err != nil {
				failed = append(failed, paths[field[1]]+": "+problemText(err))
				continue
			}
			done = append(done, one)
		}
	}
	if len(failed) > 0 {
		_, body := errorBody(c.Request, invalid(strings.Join(failed, "; ")))
		body["errors"], body["files"] = failed, done
		reply(c.w, http.StatusBadRequest, body)
		return nil
	}
	reply(c.w, http.StatusOK, map[string]any{"files": done})
	return nil
}

// opened has use read a file, whose size is told: of those in /proc it is found by reading.
func (t *Toolbox) opened(c *call, p string, use func(size int64, r io.Reader) error) error {
	err := t.look(c, p, func(ctx context.Context, f guestlink.Files) error {
		n, err := f.StatPath(ctx, p, false)
		if err != nil {
			return err
		}
		if n.Kind == filesystem.Folder {
			return invalid("the path is a folder: " + p)
		}
		limit := int64(0)
		if n.Size == 0 {
			limit = mostUnsized
		}
		r, err := f.OpenPath(ctx, p, 0, limit)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		if n.Size > 0 {
			return use(r.Len(), r)
		}
		text, err := io.ReadAll(io.LimitReader(r, mostUnsized))
		if err != nil {
			return err
		}
		return use(int64(len(text)), strings.NewReader(string(text)))
	})
	return worded(err, p)
}

// errBroken says that an answer has begun that could not be written to its end.
var errBroken = errors.New("the answer broke off")

// download answers with the bytes of one file.
func (t *Toolbox) download(c *call) error {
	p, err := c.path("path")
	if err != nil {
		return err
	}
	err = t.opened(c, p, func(size int64, r io.Reader) error {
		h := c.w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Length", strconv.FormatInt(size, 10))
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(p)}))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'") // a sandbox's page shares the origin of the server's own
		if _, err := io.CopyN(c.w, r, size); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		return nil
	})
	if errors.Is(err, errBroken) {
		panic(http.ErrAbortHandler) // an answer that ended as if it were whole would be taken for one
	}
	return err
}

// downloadMany answers with files as parts of a form, and with what is wrong with those that cannot be had.
func (t *Toolbox) downloadMany(c *call) error {
	var in struct {
		Paths []string `json:"paths"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if len(in.Paths) == 0 || len(in.Paths) > mostTransfers {
		return invalid(fmt.Sprintf("paths: there are 1 to %d", mostTransfers))
	}
	boundary := "cove" + rand.Text()
	h := c.w.Header()
	h.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	h.Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
	form := multipart.NewWriter(c.w)
	if err := form.SetBoundary(boundary); err != nil {
		return err
	}
	for _, asked := range in.Paths {
		err := t.opened(c, c.s.absolute(asked), func(size int64, r io.Reader) error {
			part, err := form.CreatePart(partHeader("file", asked, "application/octet-stream", size))
			if err == nil {
				_, err = io.CopyN(part, r, size)
			}
			if err != nil {
				return fmt.Errorf("%w: %w", errBroken, err)
			}
			return nil
		})
		if errors.Is(err, errBroken) {
			panic(http.ErrAbortHandler) // its client looks for the last boundary
		}
		if err == nil {
			continue
		}
		_, body := errorBody(c.Request, err)
		text, _ := json.Marshal(body) // texts and a number
		part, err := form.CreatePart(partHeader("error", asked, "application/json", int64(len(text))))
		if err == nil {
			_, err = part.Write(text)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	_ = form.Close() // nobody can be told
	return nil
}

var quoteEscaper = strings.NewReplacer("\\", "\\\\", `"`, "\\\"")

// partHeader is the header of a part with a file. Clients compare its name with the one that they asked for; those of Python and JavaScript read header fields as Latin-1, and filename* as RFC 8187 has it.
func partHeader(name, file, kind string, size int64) textproto.MIMEHeader {
	plain := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '_'
		}
		return c
	}, file)
	said := fmt.Sprintf(`form-data; name="%s"; filename="%s"`, name, quoteEscaper.Replace(plain))
	if plain != file {
		said += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(file), "+", "%20")
	}
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", said)
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	return h
}
