package image

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

// Bounds of what describes an image.
const (
	mostLayers      = 256
	mostDescription = 4 << 20 // bytes of a manifest, or of a configuration
	mostWindow      = 64 << 20
)

// described is an image with what describes it, of which the digests are right.
type described struct {
	digest string
	layers []v1.Layer
	parts  []v1.Descriptor // of the layers
	config *v1.ConfigFile
}

// describe reads what describes an image.
func describe(img v1.Image) (described, error) {
	raw, err := img.RawManifest()
	if err != nil {
		return described{}, err
	}
	d := described{digest: digestOf(raw)}
	if said, err := img.Digest(); err != nil || said.String() != d.digest || len(raw) > mostDescription {
		return d, damaged("its manifest is not what its digest says")
	}
	m, err := img.Manifest()
	if err != nil {
		return d, damaged("its manifest cannot be read").WithCause(err)
	}
	text, err := img.RawConfigFile()
	if err != nil {
		return d, err
	}
	if len(text) > mostDescription || digestOf(text) != m.Config.Digest.String() {
		return d, damaged("its configuration is not what its digest says")
	}
	if d.config, err = v1.ParseConfigFile(bytes.NewReader(text)); err != nil {
		return d, damaged("its configuration cannot be read").WithCause(err)
	}
	if d.layers, err = img.Layers(); err != nil {
		return d, damaged("its layers cannot be read").WithCause(err)
	}
	d.parts = m.Layers
	if len(d.layers) != len(d.parts) || len(d.parts) != len(d.config.RootFS.DiffIDs) {
		return d, damaged("its manifest and its configuration do not have the same layers")
	}
	if len(d.layers) > mostLayers {
		return d, tooLarge(fmt.Sprintf("the image has %d layers, and cove unpacks at most %d", len(d.layers), mostLayers))
	}
	for _, p := range d.parts {
		if len(p.URLs) > 0 {
			return d, damaged("a layer is to be fetched from elsewhere, which cove does not do")
		}
	}
	return d, nil
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// compressedSize is how many bytes the layers have as they come.
func (d described) compressedSize() (total int64) {
	for _, p := range d.parts {
		total += p.Size
	}
	return total
}

// unpackLayer unpacks one layer, and compares what it was with its digests. told gets how many bytes of it have come.
func (d described) unpackLayer(ctx context.Context, number int, u *unpacking, told func(bytes int64)) error {
	packed, err := d.layers[number].Compressed()
	if err != nil {
		return err
	}
	defer func() { _ = packed.Close() }()
	part := d.parts[number]
	in := &digesting{r: &canceling{ctx, packed}, sum: sha256.New(), left: part.Size, told: told}
	text, end, err := decompress(in)
	if err != nil {
		return err
	}
	defer end()
	// What follows the end of a tar file, and what is deleted later, takes time as well.
	out := &digesting{r: text, sum: sha256.New(), left: u.left + int64(u.most)*paddingPerEntry, exceeded: tooLarge("the image has more bytes than it may")}
	err = u.layer(out)
	if err == nil {
		_, err = io.Copy(io.Discard, out)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	switch {
	case in.fault != nil:
		return in.fault
	case out.fault != nil:
		return out.fault
	case err != nil && ctx.Err() == nil && isFormat(err):
		return damaged(fmt.Sprintf("layer %d cannot be unpacked", number+1)).WithCause(err)
	case err != nil:
		return err
	case in.digest() != part.Digest.String() || in.left != 0, out.digest() != d.config.RootFS.DiffIDs[number].String():
		return damaged(fmt.Sprintf("layer %d is not what its digest says", number+1))
	}
	return nil
}

// paddingPerEntry is what a tar file has of each entry beside its content, at the most in the mean, in bytes.
const paddingPerEntry = 4 << 10

// digesting reads no more than a number of bytes, and computes their digest.
type digesting struct {
	r        io.Reader
	sum      hash.Hash
	left     int64
	exceeded error // nil: damaged
	fault    error
	told     func(int64)
}

// Read implements io.Reader.
func (d *digesting) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if d.left -= int64(n); d.left < 0 {
		if d.fault = d.exceeded; d.fault == nil {
			d.fault = damaged("a layer is longer than its manifest says")
		}
		return 0, d.fault
	}
	d.sum.Write(p[:n])
	if d.told != nil {
		d.told(int64(n))
	}
	return n, err
}

func (d *digesting) digest() string { return digestPrefix + hex.EncodeToString(d.sum.Sum(nil)) }

// decompress returns the text of a layer, however it is packed. Neither format makes the reader take more memory than a window.
func decompress(r io.Reader) (text io.Reader, end func(), err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	first, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(first, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, damaged("a layer is no gzip file").WithCause(err)
		}
		return z, func() {}, nil
	case bytes.Equal(first, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow), zstd.WithDecoderMaxMemory(2*mostWindow))
		if err != nil {
			return nil, nil, damaged("a layer is no zstd file").WithCause(err)
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}
