package openai

import (
	"context"
	"crypto/md5" //nolint:gosec // OpenAI's field; it is compared with what the client sends, and protects nothing
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// An upload is a stored file that says what is to come, and a stored file for each part: they are there after a restart, count as what the project
// stores, and are gone when the upload's time is over. Lists of files leave them out.
const (
	uploadPrefix  = "upload_"
	partPrefix    = "part_"
	uploadPurpose = "openai.upload"
	partPurpose   = "openai.part." // and the upload's id
	uploadLife    = time.Hour
	largestPart   = 64 << 20
	mostParts     = 1000
	mostFinished  = 1000 // uploads whose completion is remembered for clients that ask twice
)

func inUpload(purpose string) bool {
	return purpose == uploadPurpose || strings.HasPrefix(purpose, partPurpose)
}

// uploadPlan is the content of the file that stands for an upload.
type uploadPlan struct {
	Filename string        `json:"filename"`
	Purpose  string        `json:"purpose"`
	MIME     string        `json:"mime_type"`
	Bytes    int64         `json:"bytes"`
	Life     time.Duration `json:"life,omitempty"` // of the file
}

type uploadObject struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt int64  `json:"expires_at"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`
	File      *file  `json:"file"`
}

type partObject struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	CreatedAt int64  `json:"created_at"`
	UploadID  string `json:"upload_id"`
}

func shownUpload(record hub.File, p uploadPlan, status string) uploadObject {
	return uploadObject{ID: uploadPrefix + ident.Body(record.ID), Object: "upload", Bytes: p.Bytes, CreatedAt: record.Created.Unix(),
		ExpiresAt: record.Expires.Unix(), Filename: p.Filename, Purpose: p.Purpose, Status: status}
}

// uploads are those that are being completed or cancelled, and the last ones that were completed.
type uploads struct {
	mu       sync.Mutex
	busy     map[string]bool
	finished map[string]uploadObject // by project and id
	order    []string
}

// begin has nobody else end the same upload; a completed one is returned.
func (u *uploads) begin(key string) (done *uploadObject, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if o, ok := u.finished[key]; ok {
		return &o, nil
	}
	if u.busy[key] {
		return nil, &fault{status: http.StatusConflict, kind: invalidRequest, code: "upload_in_progress", message: "The upload is being completed or cancelled."}
	}
	if u.busy == nil {
		u.busy = map[string]bool{}
	}
	u.busy[key] = true
	return nil, nil
}

func (u *uploads) end(key string, done *uploadObject) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.busy, key)
	if done == nil {
		return
	}
	if u.finished == nil {
		u.finished = map[string]uploadObject{}
	}
	u.finished[key] = *done
	if u.order = append(u.order, key); len(u.order) > mostFinished {
		delete(u.finished, u.order[0])
		u.order = u.order[1:]
	}
}

func (s *server) createUpload(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	f.only("bytes", "filename", "mime_type", "purpose", "expires_after")
	p := uploadPlan{Filename: fileName(f.needed("filename")), Purpose: f.needed("purpose"), MIME: f.needed("mime_type")}
	if !f.has("bytes") {
		f.fail(missing("bytes"))
	}
	n := f.integer("bytes", 1)
	if p.Filename == "" {
		f.fail(invalid("filename", "invalid_value", "Invalid 'filename': it is not the name of a file."))
	}
	if f.err == nil && !slices.Contains(purposes(), p.Purpose) {
		f.fail(notOneOf("purpose", p.Purpose, purposes()))
	}
	if f.has("expires_after") {
		inner := f.object("expires_after", f.raw["expires_after"])
		p.Life, err = lifeOf(inner.needed("anchor"), strconv.FormatInt(orZero(inner.integer("seconds", 0)), 10))
		f.take(inner)
		if err != nil {
			f.fail(err)
		}
	}
	if f.err != nil {
		return f.err
	}
	if p.Bytes = *n; p.Bytes > s.MaxFile {
		return s.tooLarge()
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	record, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: "upload", Purpose: uploadPurpose, Life: uploadLife}, strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	return c.reply(shownUpload(record, p, "pending"))
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func noUpload(id string) *fault { return absent("No such Upload object: " + short(id)) }

// upload finds the upload that the path names.
func (s *server) upload(c *call) (hub.File, uploadPlan, error) {
	var p uploadPlan
	id := c.PathValue("id")
	own, ok := own(ident.File, uploadPrefix, id)
	if !ok {
		return hub.File{}, p, noUpload(id)
	}
	record, content, err := s.Hub.OpenFile(c.Context(), c.who, own)
	if err != nil {
		return record, p, named(err, noUpload(id))
	}
	defer func() { _ = content.Close() }()
	text, err := io.ReadAll(io.LimitReader(content, 64<<10))
	switch {
	case err != nil:
		return record, p, err
	case record.Purpose != uploadPurpose || json.Unmarshal(text, &p) != nil || !slices.Contains(purposes(), p.Purpose):
		return record, p, noUpload(id)
	case !s.Now().Before(record.Expires):
		return record, p, invalid("", "upload_expired", "The upload has expired.")
	}
	return record, p, nil
}

// parts are those of an upload, the oldest first.
func (s *server) parts(ctx context.Context, who auth.Principal, upload hub.File) ([]hub.File, error) {
	var out []hub.File
	for page := (hub.Page{Limit: 100, Oldest: true}); ; {
		l, err := s.Hub.Files(ctx, who, partPurpose+ident.Body(upload.ID), page)
		if err != nil {
			return nil, err
		}
		out = append(out, l.Items...)
		if page.After = l.Next; page.After == "" || len(out) > mostParts {
			return out, nil
		}
	}
}

func (s *server) addPart(c *call) error {
	upload, plan, err := s.upload(c)
	if err != nil {
		return err
	}
	u, err := s.receivePartOf(c)
	defer u.close()
	switch {
	case err != nil:
		return err
	case u.file == nil:
		return missing("data")
	case u.size > largestPart:
		return &fault{status: http.StatusRequestEntityTooLarge, kind: invalidRequest, param: "data", code: "file_too_large", final: true,
			message: "A part of an upload has at most 64 MB."}
	}
	there, err := s.parts(c.Context(), c.who, upload)
	if err != nil {
		return err
	}
	sum := u.size
	for _, part := range there {
		sum += part.Size
	}
	switch {
	case len(there) >= mostParts:
		return invalid("", "too_many_parts", fmt.Sprintf("An upload has at most %d parts.", mostParts))
	case sum > plan.Bytes:
		return invalid("data", "invalid_value", fmt.Sprintf("The parts have %d bytes together, which is more than the %d that the upload was created for.", sum, plan.Bytes))
	}
	part, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: "part", Purpose: partPurpose + ident.Body(upload.ID), Life: upload.Expires.Sub(s.Now())}, u.file)
	if err != nil {
		return err
	}
	return c.reply(partObject{partPrefix + ident.Body(part.ID), "upload.part", part.Created.Unix(), c.PathValue("id")})
}

func (s *server) completeUpload(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	f.only("part_ids", "md5")
	ids, sum := f.texts("part_ids"), f.text("md5")
	if !f.has("part_ids") {
		f.fail(missing("part_ids"))
	}
	if len(ids) > mostParts {
		f.fail(tooMany("part_ids", mostParts, len(ids)))
	}
	if f.err != nil {
		return f.err
	}
	key := c.who.Project + " " + c.PathValue("id")
	done, err := s.uploads.begin(key)
	if err != nil || done != nil {
		return answered(c, done, err)
	}
	var made *uploadObject
	defer func() { s.uploads.end(key, made) }()
	upload, plan, err := s.upload(c)
	if err != nil {
		return err
	}
	parts, err := s.chosen(c, upload, plan, ids)
	if err != nil {
		return err
	}
	record, err := s.joined(c, plan, parts, sum)
	if err != nil {
		return err
	}
	o, shown := shownUpload(upload, plan, statusCompleted), shownFile(record)
	o.File, made = &shown, &o
	s.removeUpload(c, upload)
	return c.reply(o)
}

func answered(c *call, done *uploadObject, err error) error {
	if err != nil {
		return err
	}
	return c.reply(done)
}

// chosen are the parts that the client names, in its order.
func (s *server) chosen(c *call, upload hub.File, plan uploadPlan, ids []string) ([]hub.File, error) {
	there, err := s.parts(c.Context(), c.who, upload)
	if err != nil {
		return nil, err
	}
	var out []hub.File
	var sum int64
	for _, id := range ids {
		at := slices.IndexFunc(there, func(f hub.File) bool { return partPrefix+ident.Body(f.ID) == id })
		if at < 0 {
			return nil, invalid("part_ids", "invalid_value", "The upload has no part '"+short(id)+"'.")
		}
		out = append(out, there[at])
		sum += there[at].Size
	}
	if sum != plan.Bytes {
		return nil, invalid("part_ids", "invalid_value", fmt.Sprintf("The parts have %d bytes together, but the upload was created for %d.", sum, plan.Bytes))
	}
	return out, nil
}

// joined stores the parts as one file.
func (s *server) joined(c *call, plan uploadPlan, parts []hub.File, sum string) (hub.File, error) {
	digest := md5.New() //nolint:gosec // see the import
	all := &joint{open: func(f hub.File) (io.ReadCloser, error) {
		_, content, err := s.Hub.OpenFile(c.Context(), c.who, f.ID)
		return content, err
	}, parts: parts}
	defer all.close()
	record, err := s.Hub.AddFile(c.Context(), c.who, hub.NewFile{Name: plan.Filename, Purpose: plan.Purpose, Life: plan.Life}, io.TeeReader(all, digest))
	if err != nil || sum == "" || strings.EqualFold(hex.EncodeToString(digest.Sum(nil)), sum) {
		return record, err
	}
	if err := s.Hub.DeleteFile(c.Context(), c.who, record.ID); err != nil {
		return record, err
	}
	return record, invalid("md5", "invalid_value", "The parts do not have the MD5 sum that was sent.")
}

// joint reads files one after the other, and has one of them open at a time.
type joint struct {
	open  func(hub.File) (io.ReadCloser, error)
	parts []hub.File
	now   io.ReadCloser
}

func (j *joint) Read(p []byte) (int, error) {
	for {
		if j.now == nil {
			if len(j.parts) == 0 {
				return 0, io.EOF
			}
			var err error
			if j.now, err = j.open(j.parts[0]); err != nil {
				return 0, err
			}
			j.parts = j.parts[1:]
		}
		n, err := j.now.Read(p)
		if err == io.EOF {
			j.close()
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (j *joint) close() {
	if j.now != nil {
		_ = j.now.Close()
		j.now = nil
	}
}

func (s *server) cancelUpload(c *call) error {
	key := c.who.Project + " " + c.PathValue("id")
	done, err := s.uploads.begin(key)
	if done != nil {
		err = invalid("", "upload_completed", "The upload is completed. Delete its file instead.")
	}
	if err != nil {
		return err
	}
	defer s.uploads.end(key, nil)
	upload, plan, err := s.upload(c)
	if err != nil {
		return err
	}
	s.removeUpload(c, upload)
	return c.reply(shownUpload(upload, plan, statusCancelled))
}

// removeUpload removes an upload that is over, with its parts. What cannot be removed now is when its time is over.
func (s *server) removeUpload(c *call, upload hub.File) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), time.Minute)
	defer cancel()
	parts, err := s.parts(ctx, c.who, upload)
	for _, f := range append([]hub.File{upload}, parts...) {
		if e := s.Hub.DeleteFile(ctx, c.who, f.ID); e != nil && problem.Of(e).Kind != problem.NotFound {
			err = e
		}
	}
	if err != nil {
		s.Log.WarnContext(ctx, "what is left of an upload was not removed; it expires", "file", upload.ID, "error", err)
	}
}
