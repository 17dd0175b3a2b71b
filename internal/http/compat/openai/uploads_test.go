package openai_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"cove/internal/http/compat/openai"
)

func newUpload(name string, size int) sdk.UploadNewParams {
	return sdk.UploadNewParams{Bytes: int64(size), Filename: name, MimeType: "text/csv", Purpose: sdk.FilePurposeUserData}
}

// begun creates an upload and adds parts.
func begunUpload(t *testing.T, c *sdk.Client, size int, parts ...string) (id string, ids []string) {
	t.Helper()
	up, err := c.Uploads.New(t.Context(), newUpload("data.csv", size))
	if err != nil {
		t.Fatal(err)
	}
	if up.Status != sdk.UploadStatusPending || up.ExpiresAt != up.CreatedAt+3600 || up.Bytes != int64(size) || !strings.HasPrefix(up.ID, "upload_") {
		t.Errorf("%+v", up)
	}
	for _, text := range parts {
		part, err := c.Uploads.Parts.New(t.Context(), up.ID, sdk.UploadPartNewParams{Data: strings.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
		if part.UploadID != up.ID || part.Object != "upload.part" {
			t.Errorf("%+v", part)
		}
		ids = append(ids, part.ID)
	}
	return up.ID, ids
}

func refusal(err error) string {
	e, ok := errors.AsType[*sdk.Error](err)
	if !ok {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%d %s", e.StatusCode, e.Message)
}

func TestUploads(t *testing.T) {
	t.Parallel()
	f := newFake()
	c := client(t, f)
	id, ids := begunUpload(t, c, 9, "b,c\n", "a,", "x\n1")
	sum := md5.Sum([]byte("a,b,c\nx\n1"))
	done, err := c.Uploads.Complete(t.Context(), id, sdk.UploadCompleteParams{PartIDs: []string{ids[1], ids[0], ids[2]}, Md5: param.NewOpt(hex.EncodeToString(sum[:]))})
	if err != nil || done.Status != sdk.UploadStatusCompleted || done.File.Filename != "data.csv" || done.File.Purpose != "user_data" || done.File.Bytes != 9 {
		t.Fatalf("%v %+v", err, done)
	}
	res, err := c.Files.Content(t.Context(), done.File.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, err := io.ReadAll(res.Body); err != nil || string(text) != "a,b,c\nx\n1" {
		t.Errorf("%v %q", err, text)
	}
	// A client whose answer was lost asks again; nothing is left but the file.
	if again, err := c.Uploads.Complete(t.Context(), id, sdk.UploadCompleteParams{PartIDs: ids}); err != nil || again.File.ID != done.File.ID {
		t.Errorf("%v %+v", err, again)
	}
	if len(f.files) != 1 {
		t.Errorf("%d files are left", len(f.files))
	}
	if _, err := c.Uploads.Cancel(t.Context(), id); refusal(err) != "400 The upload is completed. Delete its file instead." {
		t.Errorf("%v", err)
	}
}

func TestUploadsThatAreNotWhole(t *testing.T) {
	t.Parallel()
	f := newFake()
	c := client(t, f)
	id, ids := begunUpload(t, c, 6, "abc", "de")
	other, foreign := begunUpload(t, c, 3, "xyz")
	for want, partIDs := range map[string][]string{
		"400 The parts have 5 bytes together, but the upload was created for 6.": ids,
		"400 The upload has no part '" + foreign[0] + "'.":                       {ids[0], foreign[0]},
		"400 The upload has no part 'part_x'.":                                   {"part_x"},
		"400 The parts have 0 bytes together":                                    {},
	} {
		if _, err := c.Uploads.Complete(t.Context(), id, sdk.UploadCompleteParams{PartIDs: partIDs}); !strings.HasPrefix(refusal(err), want) {
			t.Errorf("%v, want %s", refusal(err), want)
		}
	}
	if _, err := c.Uploads.Parts.New(t.Context(), id, sdk.UploadPartNewParams{Data: strings.NewReader("fgh")}); !strings.HasPrefix(refusal(err), "400 The parts have 8 bytes") {
		t.Errorf("%v", err)
	}
	if _, err := c.Uploads.Complete(t.Context(), other, sdk.UploadCompleteParams{PartIDs: foreign, Md5: param.NewOpt("00")}); !strings.HasPrefix(refusal(err), "400 The parts do not have the MD5") {
		t.Errorf("%v", err)
	}
	// Lists of files have none of it.
	if l, err := c.Files.List(t.Context(), sdk.FileListParams{}); err != nil || len(l.Data) != 0 {
		t.Errorf("%v %+v", err, l)
	}
	canceled, err := c.Uploads.Cancel(t.Context(), id)
	if err != nil || canceled.Status != sdk.UploadStatusCancelled || len(f.files) != 2 {
		t.Errorf("%v %+v, %d files", err, canceled, len(f.files))
	}
	if _, err := c.Uploads.Parts.New(t.Context(), id, sdk.UploadPartNewParams{Data: strings.NewReader("f")}); refusal(err) != "404 No such Upload object: "+id {
		t.Errorf("%v", err)
	}
}

func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFake()
	now := start
	s := serve(t, f, func(o *openai.Options) { o.MaxFile, o.Now = 100<<20, func() time.Time { return now } })
	for body, want := range map[string]string{
		`{"filename":"a","purpose":"user_data","mime_type":"x"}`:                                         "400 Missing required parameter: 'bytes'.",
		`{"filename":"a","purpose":"user_data","mime_type":"x","bytes":0}`:                               "400 Invalid 'bytes': integer below minimum value. Expected a value >= 1, but got 0 instead.",
		`{"filename":"..","purpose":"user_data","mime_type":"x","bytes":1}`:                              "400 Invalid 'filename': it is not the name of a file.",
		`{"filename":"a","purpose":"mine","mime_type":"x","bytes":1}`:                                    "400 Invalid value: 'mine'.",
		`{"filename":"a","purpose":"user_data","mime_type":"x","bytes":104857601}`:                       "413 The file is larger",
		`{"filename":"a","purpose":"user_data","mime_type":"x","bytes":1,"expires_after":{"seconds":9}}`: "400 Missing required parameter: 'expires_after.anchor'.",
	} {
		status, answer, _ := ask(t, s, http.MethodPost, "/v1/uploads", body)
		if got := fmt.Sprintf("%d %v", status, at(answer, "error", "message")); !strings.HasPrefix(got, want) {
			t.Errorf("%s\n got  %s\n want %s", body, got, want)
		}
	}
	_, up, _ := ask(t, s, http.MethodPost, "/v1/uploads", `{"filename":"a","purpose":"user_data","mime_type":"x","bytes":104857600}`)
	send := func(size int64) int {
		head := "--b\r\nContent-Disposition: form-data; name=\"data\"; filename=\"d\"\r\n\r\n"
		body := io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, size), strings.NewReader("\r\n--b--\r\n"))
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL+"/v1/uploads/"+up["id"].(string)+"/parts", body)
		r.Header.Set("Authorization", "Bearer owner")
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		res, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	if status := send(64<<20 + 1); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a part that is too large: %d", status)
	}
	if status := send(1 << 20); status != http.StatusOK {
		t.Errorf("a part: %d", status)
	}
	now = start.Add(time.Hour)
	if status := send(1); status != http.StatusBadRequest {
		t.Errorf("an upload whose time is over: %d", status)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{'0'}, len(p))), nil }

// TestNoBytesOfAFile asks for the last 0 bytes of a file: there are none, which is not the same as all.
func TestNoBytesOfAFile(t *testing.T) {
	t.Parallel()
	c := client(t, newFake())
	file, err := c.Files.New(t.Context(), sdk.FileNewParams{File: strings.NewReader("12345"), Purpose: sdk.FilePurposeUserData})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Files.Content(t.Context(), file.ID, option.WithHeader("Range", "bytes=-0"))
	if res != nil {
		defer func() { _ = res.Body.Close() }()
	}
	if refused, ok := errors.AsType[*sdk.Error](err); !ok || refused.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("it is answered with %v", err)
	}
}
