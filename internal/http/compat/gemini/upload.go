package gemini

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/http/bodybudget"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// A file comes by the resumable protocol, as the SDKs send it: a request that says what is to come is answered with an address, to which the bytes are sent in one piece or in several. What is
// known of an upload is in that address, sealed, with the key: the Python SDK sends none there. Pieces but the last are stored files for an hour; lists leave them out.
const (
	uploads     = prefix + "upload/"
	uploadParam = "upload_id"
	uploadLife  = time.Hour
	fileLife    = 48 * time.Hour // as Google's
	partPurpose = "gemini.part "
	filePurpose = "gemini " // and the type
	mostPieces  = 512
	longestName = 200
	longestType = 50
)

// plan is an upload that was begun.
type plan struct {
	ID      string `json:"i"`
	Key     string `json:"k"`
	Name    string `json:"n"`
	Type    string `json:"t"`
	Size    int64  `json:"s"` // -1: not said
	Expires int64  `json:"e"` // seconds
}

// upload is POST /upload/v1beta/files: the beginning of an upload, or a piece of one.
func (s *server) upload(c *call) error {
	if c.URL.Query().Get(uploadParam) != "" {
		return s.piece(c)
	}
	if protocol := c.Header.Get("X-Goog-Upload-Protocol"); protocol != "resumable" || !slices.Contains(commands(c), "start") {
		return lacking("X-Goog-Upload-Protocol: "+short(protocol), "Files are uploaded with the protocol 'resumable' and the command 'start'.")
	}
	o, err := s.readBody(c)
	if err != nil {
		return err
	}
	o.only("file")
	p := plan{ID: rand.Text(), Key: c.key(), Size: -1, Expires: time.Now().Add(uploadLife).Unix(), Type: c.Header.Get("X-Goog-Upload-Header-Content-Type")}
	if o.has("file") {
		f := o.object("file")
		f.only("name", "displayName", "mimeType", "sizeBytes", "createTime", "updateTime", "expirationTime", "sha256Hash", "uri", "state", "source", "error", "videoMetadata", "downloadUri")
		if f.has("name") {
			f.fail(lacking(f.path("name"), "The server names files; leave it out."))
		}
		p.Name = f.text("displayName")
		if kind := f.text("mimeType"); kind != "" {
			p.Type = kind
		}
	}
	if o.err != nil {
		return o.err
	}
	if size := c.Header.Get("X-Goog-Upload-Header-Content-Length"); size != "" {
		if p.Size, err = strconv.ParseInt(size, 10, 64); err != nil || p.Size < 0 {
			return invalid("X-Goog-Upload-Header-Content-Length is not a number of bytes.")
		}
	}
	if p.Size > s.MaxFile {
		return s.tooLarge()
	}
	if p.Name == "" {
		p.Name = path.Base(c.Header.Get("X-Goog-Upload-File-Name"))
	}
	p.Name, p.Type = p.Name[:min(len(p.Name), longestName)], p.Type[:min(len(p.Type), longestType)]
	if p.Name = strings.ToValidUTF8(p.Name, ""); p.Name == "" || p.Name == "." || p.Name == "/" {
		p.Name = "file" + ending(p.Type, nil)
	}
	token, err := s.sealed.close(p)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("X-Goog-Upload-Url", base(c.Request)+c.URL.Path+"?"+url.Values{uploadParam: {token}, "upload_protocol": {"resumable"}}.Encode())
	h.Set("X-Goog-Upload-Status", "active")
	return c.reply(map[string]any{})
}

// commands are what a request of an upload wants.
func commands(c *call) []string {
	var all []string
	for _, one := range strings.Split(c.Header.Get("X-Goog-Upload-Command"), ",") {
		all = append(all, strings.TrimSpace(one))
	}
	return all
}

func (s *server) tooLarge() error {
	return &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("The file is larger than the %d bytes that this server takes.", s.MaxFile), "REQUEST_TOO_LARGE", 0}
}

// planOf is the upload that a request goes on with.
func (s *server) planOf(r *http.Request) (p plan, ok bool) {
	token := r.URL.Query().Get(uploadParam)
	return p, token != "" && strings.HasPrefix(r.URL.Path, uploads) && s.sealed.open(token, &p) == nil && time.Now().Unix() < p.Expires
}

// piece takes bytes of an upload.
func (s *server) piece(c *call) error {
	p, ok := s.planOf(c.Request)
	if !ok {
		return &fault{http.StatusNotFound, "There is no such upload, or its time is over. Begin it again.", "NOT_FOUND", 0}
	}
	wanted := commands(c)
	last := slices.Contains(wanted, "finalize")
	offset, err := strconv.ParseInt(c.Header.Get("X-Goog-Upload-Offset"), 10, 64)
	switch {
	case !last && !slices.Contains(wanted, "upload"):
		return lacking("X-Goog-Upload-Command: "+short(c.Header.Get("X-Goog-Upload-Command")), "Commands are 'upload' and 'finalize'.")
	case err != nil || offset < 0 || offset > s.MaxFile:
		return invalid("X-Goog-Upload-Offset is not the number of a byte.")
	}
	body := bodybudget.Bounded(c.w, c.Body, s.MaxFile-offset)
	if !last {
		if _, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: strconv.FormatInt(offset, 10), Purpose: partPurpose + p.ID, Life: uploadLife}, body); err != nil {
			return err
		}
		c.w.Header().Set("X-Goog-Upload-Status", "active")
		return c.reply(map[string]any{})
	}
	pieces, err := s.pieces(c.Context(), c.who, p, offset)
	if err != nil {
		return err
	}
	readers := make([]io.Reader, 0, len(pieces)+1)
	for _, one := range pieces {
		readers = append(readers, &stored{ctx: c.Context(), s: s, who: c.who, id: one.ID})
	}
	sized := &counted{r: io.MultiReader(append(readers, body)...), want: p.Size}
	f, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: p.Name, Purpose: filePurpose + p.Type, Life: fileLife}, sized)
	if err != nil {
		return err
	}
	for _, one := range pieces {
		_ = s.Hub.DeleteFile(c.Context(), c.who, one.ID) // it goes with the time
	}
	c.w.Header().Set("X-Goog-Upload-Status", "final")
	return c.reply(map[string]any{"file": shownFile(c.Request, f)})
}

// pieces are the pieces before offset, in their order. A piece that came twice counts once.
func (s *server) pieces(ctx context.Context, who auth.Principal, p plan, offset int64) (all []hub.File, err error) {
	if offset == 0 {
		return nil, nil
	}
	if !who.May(auth.FilesRead) {
		return nil, who.Require(auth.FilesRead)
	}
	at := map[int64]hub.File{}
	for page := (hub.Page{Limit: 100}); ; {
		l, err := s.Hub.Files(ctx, who, partPurpose+p.ID, page)
		if err != nil {
			return nil, err
		}
		for _, f := range l.Items {
			if n, err := strconv.ParseInt(f.Name, 10, 64); err == nil {
				at[n] = f
			}
		}
		if page.After = l.Next; page.After == "" || len(at) > mostPieces {
			break
		}
	}
	for next := int64(0); next < offset; {
		f, ok := at[next]
		if !ok || f.Size == 0 || len(all) >= mostPieces {
			return nil, invalid("The upload has not all bytes before number %d, or came in more than %d pieces.", offset, mostPieces)
		}
		all = append(all, f)
		if next += f.Size; next > offset {
			return nil, invalid("The next byte of the upload is number %d, not %d.", next, offset)
		}
	}
	return all, nil
}

// stored reads a stored file, which it opens when it is read.
type stored struct {
	ctx context.Context
	s   *server
	who auth.Principal
	id  string
	in  io.ReadCloser
}

func (f *stored) Read(into []byte) (int, error) {
	if f.in == nil {
		_, in, err := f.s.Hub.OpenFile(f.ctx, f.who, f.id)
		if err != nil {
			return 0, err
		}
		f.in = in
	}
	n, err := f.in.Read(into)
	if err != nil {
		_ = f.in.Close()
	}
	return n, err
}

// counted says when a file has another size than was said.
type counted struct {
	r         io.Reader
	got, want int64
}

func (f *counted) Read(into []byte) (int, error) {
	n, err := f.r.Read(into)
	if f.got += int64(n); errors.Is(err, io.EOF) && f.want >= 0 && f.got != f.want {
		return n, invalid("The file has %d bytes, and %d were announced.", f.got, f.want)
	}
	return n, err
}

// base is the server's address as a client knows it.
func base(r *http.Request) string {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
