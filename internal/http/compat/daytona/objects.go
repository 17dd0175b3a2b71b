package daytona

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Clients upload archives of images with libraries for S3: obstore in Python, which sends parts, and AWS's own in JavaScript. Of S3 there is what these need to look for an archive and
// to send one. A request brings the caller's key as its session token, which is a header of its own; signatures prove nothing more and are not looked at.
const (
	objectsPath   = Prefix + "/object-storage/s3/"
	bucket        = "images"
	archiveName   = "context.tar"
	objectPattern = objectsPath + bucket + "/{project}/{hash}/" + archiveName
	keyHeader     = "X-Amz-Security-Token"
)

// Bounds of uploads in parts.
const (
	mostUploads  = 20 // of a user that are under way
	mostParts    = 1000
	longestParts = time.Hour // from the first to the last
	mostPartList = 1 << 20   // bytes of the list of parts
)

// uploads are archives of which parts come. Parts are stored files, which expire by themselves.
type uploads struct {
	mu  sync.Mutex
	all map[string]*upload
}

type upload struct {
	project, user, hash string
	began               time.Time
	parts               map[int]string // ids of files
}

// begin makes an upload. Of a user's that are too many the oldest is forgotten.
func (u *uploads) begin(who auth.Principal, hash string) (id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[string]*upload{}
	}
	maps.DeleteFunc(u.all, func(_ string, one *upload) bool { return time.Since(one.began) > longestParts })
	var own []string
	for id, one := range u.all {
		if one.project == who.Project && one.user == who.User {
			own = append(own, id)
		}
	}
	if len(own) >= mostUploads {
		slices.SortFunc(own, func(a, b string) int { return u.all[a].began.Compare(u.all[b].began) })
		delete(u.all, own[0])
	}
	id, _ = auth.RandomCode()
	u.all[id] = &upload{project: who.Project, user: who.User, hash: hash, began: time.Now(), parts: map[int]string{}}
	return id
}

// use has use work with a caller's upload.
func (u *uploads) use(who auth.Principal, id, hash string, use func(*upload) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.all[id]
	if one == nil || one.project != who.Project || one.user != who.User || one.hash != hash {
		return &objectFault{http.StatusNotFound, "NoSuchUpload", "there is no such upload, or it began more than an hour ago"}
	}
	return use(one)
}

func (u *uploads) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, id)
}

// objectFault is an error as clients of S3 read it.
type objectFault struct {
	status        int
	code, message string
}

func (f *objectFault) Error() string { return f.message }

// HTTPStatus implements protocol.Answer.
func (f *objectFault) HTTPStatus() int { return f.status }

// objects is the surface for them.
func (s *Server) objects() protocol.Surface {
	refused := func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { refuseObject(w, p) }
	mux := http.NewServeMux()
	out := protocol.Surface{
		About: "files for Daytona's images", Prefix: objectsPath, Handler: mux, Refuse: refused,
		Keys: func(r *http.Request) []string { return r.Header.Values(keyHeader) },
	}
	for _, one := range []struct {
		method, pattern string
		needs           []auth.Action
		large           bool
		handle          func(*Server, *call) error
	}{
		{"GET", objectsPath + bucket, []auth.Action{auth.FilesRead}, false, (*Server).listObjects},
		{"GET", objectsPath + bucket + "/{$}", []auth.Action{auth.FilesRead}, false, (*Server).listObjects},
		{"HEAD", objectPattern, []auth.Action{auth.FilesRead}, false, (*Server).headObject},
		{"PUT", objectPattern, fileRights, true, (*Server).putObject},
		{"POST", objectPattern, fileRights, false, (*Server).postObject},
		{"DELETE", objectPattern, fileRights, false, (*Server).abortUpload},
	} {
		out.Routes = append(out.Routes, protocol.Route{Method: one.method, Pattern: one.pattern, Actions: one.needs, Large: one.large})
		mux.HandleFunc(one.method+" "+one.pattern, protocol.Guard(one.needs, "the session token is the key of this server", s.Log, func(w http.ResponseWriter, r *http.Request, who auth.Principal) error {
			return one.handle(s, &call{Request: r, w: w, who: who})
		}, refuseObject))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuseObject(w, &objectFault{http.StatusNotImplemented, "NotImplemented", "of S3 there is what uploads files for images, and nothing more"})
	})
	return out
}

func refuseObject(w http.ResponseWriter, err error) {
	code, message, name := said(err)
	if f, ok := errors.AsType[*objectFault](err); ok {
		code, message, name = f.status, f.message, f.code
	}
	type fault struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}
	replyXML(w, code, fault{Code: name, Message: message})
}

func replyXML(w http.ResponseWriter, code int, body any) {
	text, _ := xml.Marshal(body) // texts and numbers alone
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(code)
	_, _ = w.Write(append([]byte(xml.Header), text...)) // nobody can be told
}

// objectHash is the hash in the path of an archive.
func (c *call) objectHash() (string, error) {
	hash := c.PathValue("hash")
	if c.PathValue("project") != c.who.Project || !contextHash().MatchString(hash) {
		return "", &objectFault{http.StatusForbidden, "AccessDenied", "an archive is at organizationId/MD5/" + archiveName}
	}
	return hash, nil
}

func (s *Server) headObject(c *call) error {
	hash, err := c.objectHash()
	if err != nil {
		return err
	}
	f, ok, err := s.storedContext(c.Context(), c.who, hash)
	if err != nil {
		return err
	}
	if !ok {
		c.w.WriteHeader(http.StatusNotFound)
		return nil
	}
	h := c.w.Header()
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	h.Set("Content-Type", "application/x-tar")
	h.Set("Etag", etag(f))
	h.Set("Last-Modified", f.Created.UTC().Format(http.TimeFormat))
	c.w.WriteHeader(http.StatusOK)
	return nil
}

func etag(f hub.File) string { return `"` + f.SHA256[:min(len(f.SHA256), 32)] + `"` }

// listObjects says whether there is an archive: prefix is all but the end of its path.
func (s *Server) listObjects(c *call) error {
	prefix := c.URL.Query().Get("prefix")
	type object struct {
		Key  string
		Size int64
	}
	out := struct {
		XMLName           xml.Name `xml:"ListBucketResult"`
		Name, Prefix      string
		KeyCount, MaxKeys int
		IsTruncated       bool
		Contents          []object
	}{Name: bucket, Prefix: prefix, MaxKeys: 1}
	project, rest, _ := strings.Cut(prefix, "/")
	hash, _, _ := strings.Cut(rest, "/")
	if project != c.who.Project || !contextHash().MatchString(hash) {
		return &objectFault{http.StatusForbidden, "AccessDenied", "a listing is of organizationId/MD5/"}
	}
	f, ok, err := s.storedContext(c.Context(), c.who, hash)
	if err != nil {
		return err
	}
	if ok {
		out.KeyCount, out.Contents = 1, []object{{project + "/" + hash + "/" + archiveName, f.Size}}
	}
	replyXML(c.w, http.StatusOK, out)
	return nil
}

// putObject takes an archive, or a part of one. What is in it is looked at when it is unpacked.
func (s *Server) putObject(c *call) error {
	hash, err := c.objectHash()
	if err != nil {
		return err
	}
	if strings.HasPrefix(c.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") || strings.Contains(c.Header.Get("Content-Encoding"), "aws-chunked") || c.Header.Get("X-Amz-Copy-Source") != "" {
		return &objectFault{http.StatusNotImplemented, "NotImplemented", "a body is sent as it is, with neither signatures nor checksums in between"}
	}
	q := c.URL.Query()
	id, number := q.Get("uploadId"), 0
	n := hub.NewFile{Name: hash + ".tar", Purpose: contextPurpose(hash), Life: contextLife}
	if id != "" {
		if number, err = strconv.Atoi(q.Get("partNumber")); err != nil || number < 1 || number > mostParts {
			return &objectFault{http.StatusBadRequest, "InvalidArgument", fmt.Sprintf("partNumber is from 1 to %d", mostParts)}
		}
		if err := s.parts.use(c.who, id, hash, func(*upload) error { return nil }); err != nil {
			return err
		}
		n = hub.NewFile{Name: hash + "." + strconv.Itoa(number), Purpose: "daytona part", Life: 2 * longestParts}
	}
	f, err := s.Hub.AddFile(c.Context(), c.who, n, c.Body)
	if err == nil && id != "" {
		err = s.parts.use(c.who, id, hash, func(u *upload) error {
			u.parts[number] = f.ID
			return nil
		})
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Etag", etag(f))
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// postObject begins an upload in parts, or ends one.
func (s *Server) postObject(c *call) error {
	hash, err := c.objectHash()
	if err != nil {
		return err
	}
	q := c.URL.Query()
	if q.Has("uploads") {
		replyXML(c.w, http.StatusOK, struct {
			XMLName     xml.Name `xml:"InitiateMultipartUploadResult"`
			Bucket, Key string
			UploadID    string `xml:"UploadId"`
		}{Bucket: bucket, Key: c.who.Project + "/" + hash + "/" + archiveName, UploadID: s.parts.begin(c.who, hash)})
		return nil
	}
	ids, err := s.partsOf(c, q.Get("uploadId"), hash)
	if err != nil {
		return err
	}
	whole := &partsReader{ctx: c.Context(), ids: slices.Clone(ids), open: func(ctx context.Context, id string) (io.ReadCloser, error) {
		_, content, err := s.Hub.OpenFile(ctx, c.who, id)
		return content, err
	}}
	defer whole.close()
	f, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: hash + ".tar", Purpose: contextPurpose(hash), Life: contextLife}, whole)
	if err != nil {
		return err
	}
	s.parts.forget(q.Get("uploadId"))
	s.dropParts(c, ids)
	replyXML(c.w, http.StatusOK, struct {
		XMLName                     xml.Name `xml:"CompleteMultipartUploadResult"`
		Location, Bucket, Key, ETag string
	}{Location: c.URL.Path, Bucket: bucket, Key: c.who.Project + "/" + hash + "/" + archiveName, ETag: etag(f)})
	return nil
}

func (s *Server) dropParts(c *call, ids []string) {
	for _, id := range ids {
		if err := s.Hub.DeleteFile(c.Context(), c.who, id); err != nil {
			s.Log.DebugContext(c.Context(), "a part of an upload is kept until it expires", "file", id, "error", err)
		}
	}
}

// partsOf reads which parts an upload ends with, and returns their files.
func (s *Server) partsOf(c *call, id, hash string) (ids []string, err error) {
	var list struct {
		Part []struct{ PartNumber int }
	}
	if err := xml.NewDecoder(bodybudget.Bounded(c.w, c.Body, mostPartList)).Decode(&list); err != nil {
		return nil, &objectFault{http.StatusBadRequest, "MalformedXML", "the list of parts cannot be read"}
	}
	err = s.parts.use(c.who, id, hash, func(u *upload) error {
		last := 0
		for _, p := range list.Part {
			file := u.parts[p.PartNumber]
			if file == "" || p.PartNumber <= last {
				return &objectFault{http.StatusBadRequest, "InvalidPart", "a part of the list was not sent, or the list is not in order"}
			}
			last, ids = p.PartNumber, append(ids, file)
		}
		return nil
	})
	if err == nil && len(ids) == 0 {
		err = &objectFault{http.StatusBadRequest, "MalformedXML", "the list has no parts"}
	}
	return ids, err
}

func (s *Server) abortUpload(c *call) error {
	hash, err := c.objectHash()
	if err != nil {
		return err
	}
	id := c.URL.Query().Get("uploadId")
	var ids []string
	err = s.parts.use(c.who, id, hash, func(u *upload) error {
		ids = slices.Collect(maps.Values(u.parts))
		return nil
	})
	if err != nil {
		return err
	}
	s.parts.forget(id)
	s.dropParts(c, ids)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// partsReader reads files one after the other.
type partsReader struct {
	ctx  context.Context //nolint:containedctx // of one request
	ids  []string
	open func(ctx context.Context, id string) (io.ReadCloser, error)
	now  io.ReadCloser
}

// Read implements io.Reader.
func (p *partsReader) Read(to []byte) (int, error) {
	for {
		if p.now == nil {
			if len(p.ids) == 0 {
				return 0, io.EOF
			}
			var err error
			if p.now, err = p.open(p.ctx, p.ids[0]); err != nil {
				return 0, err
			}
			p.ids = p.ids[1:]
		}
		n, err := p.now.Read(to)
		if errors.Is(err, io.EOF) {
			p.close()
			if n == 0 {
				continue
			}
			err = nil
		}
		return n, err
	}
}

func (p *partsReader) close() {
	if p.now != nil {
		_ = p.now.Close()
		p.now = nil
	}
}
