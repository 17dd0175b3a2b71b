package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"cove/internal/core/config"
	"cove/internal/core/problem"
)

const (
	// partSize is what is in memory of an archive on its way, in bytes. A bucket takes 10,000 parts: 312 GiB.
	partSize = 32 << 20
	// archiveType is what an archive is, for those who look at the bucket.
	archiveType = "application/gzip"
	amazon      = "s3.amazonaws.com"
	// attempts are made of each request, with growing pauses.
	attempts = 5
)

// bucket is a Place in an object storage.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

// newBucket connects to nothing yet.
func newBucket(name, prefix string, c config.Backup, getenv func(string) string) (*bucket, error) {
	endpoint := cmp.Or(c.S3Endpoint, getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"))
	host, secure := strings.CutPrefix(endpoint, "http://")
	secure = !secure
	host = strings.TrimRight(strings.TrimPrefix(host, "https://"), "/")
	o := &minio.Options{
		Creds: signer(c, getenv), Secure: secure, Region: cmp.Or(c.S3Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")), MaxRetries: attempts,
	}
	switch {
	case c.S3PathStyle:
		o.BucketLookup = minio.BucketLookupPath
	case host == "":
		o.BucketLookup = minio.BucketLookupDNS
	}
	client, err := minio.New(cmp.Or(host, amazon), o)
	if err != nil {
		return nil, problem.New(problem.ConfigInvalid, "the endpoint of the object storage is not one").WithCause(err).
			WithHint("backup.s3_endpoint is an address such as https://minio.example.com:9000, without a path")
	}
	return &bucket{client, name, prefix}, nil
}

// signer has the credentials: the settings', else those that AWS's variables name or have.
func signer(c config.Backup, getenv func(string) string) *credentials.Credentials {
	if c.S3AccessKey != "" || c.S3SecretKey != "" {
		return credentials.NewStaticV4(c.S3AccessKey, c.S3SecretKey, c.S3SessionToken)
	}
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: getenv("AWS_PROFILE")}}
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if getenv(name) != "" { // a role of a pod or container; nothing else is asked over the network
			providers = append(providers, &credentials.IAM{})
			break
		}
	}
	return credentials.NewChainCredentials(providers)
}

func (b *bucket) key(name string) string { return path.Join(b.prefix, name) }

func (b *bucket) Path(name string) string { return scheme + path.Join(b.name, b.prefix, name) }

// explain makes a problem of what a request failed with.
func (b *bucket) explain(ctx context.Context, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey:
		return absent(b, name)
	case minio.PreconditionFailed:
		return taken(b, name)
	}
	return unusable(b, err)
}

// Write implements Place. The object is there when its last part is: an upload that ends before that is none.
func (b *bucket) Write(ctx context.Context, name string, fill func(io.Writer) error) (int64, error) {
	_, err := b.client.StatObject(ctx, b.name, b.key(name), minio.StatObjectOptions{})
	if err == nil {
		return 0, taken(b, name)
	}
	if err = b.explain(ctx, name, err); !problem.Has(err, problem.BackupNotFound) {
		return 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	read, write := io.Pipe()
	to := &counted{to: write}
	filled := make(chan error, 1)
	go func() {
		err := fill(to)
		if err != nil {
			// The cause does not reach the client as the end of a file, which it would take for that of the archive.
			_ = write.CloseWithError(fmt.Errorf("make the backup: %w", err))
		} else {
			_ = write.Close()
		}
		filled <- err
	}()
	_, err = b.client.PutObject(ctx, b.name, b.key(name), read, -1, minio.PutObjectOptions{ContentType: archiveType, PartSize: partSize, AutoChecksum: minio.ChecksumCRC32C})
	_ = read.CloseWithError(errGone)
	failed := <-filled
	switch {
	case failed != nil && !errors.Is(failed, errGone):
		return 0, failed
	case err != nil:
		return 0, b.explain(ctx, name, err)
	}
	there, err := b.client.StatObject(ctx, b.name, b.key(name), minio.StatObjectOptions{})
	switch {
	case err != nil:
		return 0, b.explain(ctx, name, err)
	case there.Size != to.n:
		return 0, errors.Join(unusable(b, fmt.Errorf("it has %d bytes of %d", there.Size, to.n)), b.Remove(context.WithoutCancel(ctx), name))
	}
	return there.Size, nil
}

// errGone is what fill gets when nobody reads what it writes any more.
var errGone = errors.New("the upload has ended")

// Read implements Place.
func (b *bucket) Read(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := b.client.GetObject(ctx, b.name, b.key(name), minio.GetObjectOptions{})
	if err == nil {
		_, err = o.Stat()
	}
	if err != nil {
		return nil, b.explain(ctx, name, err)
	}
	return &object{ctx, b, name, o}, nil
}

// object is an archive that is read.
type object struct {
	ctx  context.Context
	from *bucket
	name string
	o    *minio.Object
}

func (o *object) Read(p []byte) (int, error) {
	n, err := o.o.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = o.from.explain(o.ctx, o.name, err)
	}
	return n, err
}

func (o *object) Close() error { return o.o.Close() }

// List implements Place.
func (b *bucket) List(ctx context.Context) ([]Entry, error) {
	below := b.prefix
	if below != "" {
		below += "/"
	}
	var out []Entry
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: below}) {
		if o.Err != nil {
			return nil, b.explain(ctx, "", o.Err)
		}
		if name := strings.TrimPrefix(o.Key, below); !strings.Contains(name, "/") && strings.HasSuffix(name, suffix) {
			out = append(out, Entry{name, o.Size, o.LastModified.UTC()})
		}
	}
	return sorted(out), ctx.Err()
}

// Remove implements Place.
func (b *bucket) Remove(ctx context.Context, name string) error {
	err := b.explain(ctx, name, b.client.RemoveObject(ctx, b.name, b.key(name), minio.RemoveObjectOptions{}))
	if problem.Has(err, problem.BackupNotFound) {
		return nil
	}
	return err
}

// Sweep implements Place. An upload that has ended meanwhile is none any more; some storages say so of a bucket without any, too.
func (b *bucket) Sweep(ctx context.Context, mine func(string) bool) error {
	for u := range b.client.ListIncompleteUploads(ctx, b.name, b.key("cove-"), true) {
		err := u.Err
		if name := path.Base(u.Key); err == nil && u.Key == b.key(name) && mine(name) {
			err = b.client.RemoveIncompleteUpload(ctx, b.name, u.Key)
		}
		if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchUpload {
			return b.explain(ctx, "", err)
		}
	}
	return ctx.Err()
}
