package unpack

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"sync"

	"stoa/fault"
)

// SnappySize returns the raw size in bytes from the header of a Snappy block; -1 if the header is malformed.
func SnappySize(b []byte) int {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > 1<<31-1 {
		return -1
	}
	return int(v)
}

type gunzipper struct {
	in bytes.Reader
	z  *gzip.Reader
}

var gunzippers = sync.Pool{New: func() any { return new(gunzipper) }}

// Gunzip fills dst from a gzip stream (RFC 1952) as written by Hadoop's GzipCodec.
func Gunzip(dst, src []byte) error {
	g := gunzippers.Get().(*gunzipper)
	defer gunzippers.Put(g)
	g.in.Reset(src)
	defer g.in.Reset(nil)
	var err error
	if g.z == nil {
		g.z, err = gzip.NewReader(&g.in)
	} else {
		err = g.z.Reset(&g.in)
	}
	if err != nil {
		g.z = nil
		return fault.Rel(0, len(src), "gzip", "no stream: %v", err)
	}
	if n, err := io.ReadFull(g.z, dst); err != nil {
		return fault.Rel(0, len(src), "gzip", "after %d of %d raw bytes: %v", n, len(dst), err)
	}
	var one [1]byte // gzip compares the checksum only when it reads the end
	if n, err := g.z.Read(one[:]); n != 0 || err != io.EOF {
		if n != 0 {
			return fault.Rel(0, len(src), "gzip", "more than the %d raw bytes in the page header", len(dst))
		}
		return fault.Rel(0, len(src), "gzip", "at the end: %v", err)
	}
	if g.in.Len() != 0 {
		return fault.Rel(len(src)-g.in.Len(), g.in.Len(), "gzip", "%d bytes after the end of the stream", g.in.Len())
	}
	return nil
}

var gzippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Gzip appends src to dst as a gzip stream.
func Gzip(dst, src []byte) []byte {
	w := gzippers.Get().(*gzip.Writer)
	out := bytes.NewBuffer(dst)
	w.Reset(out)
	w.Write(src) // a bytes.Buffer does not fail
	w.Close()
	gzippers.Put(w)
	return out.Bytes()
}
