// Package hdfs is the client for Hadoop's file system. Importing it makes hdfs://HOST:PORT/path a place for stoa, and
// hdfs://NAMESERVICE/path and hdfs:///path if Hadoop's configuration files say what these are.
//
// The files core-site.xml and hdfs-site.xml are those of HADOOP_CONF_DIR, else of HADOOP_HOME, else of
// /etc/hadoop/conf. The user is the one in the address (hdfs://USER@HOST/path), else HADOOP_USER_NAME, else the user of
// the process. If the configuration demands Kerberos, the ticket is that of KRB5CCNAME, or made from the keytab in
// KRB5_CLIENT_KTNAME.
package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/colinmarc/hdfs/v2"

	"stoa/internal/sorted"
	"stoa/store"
	"stoa/store/remote"
)

func init() {
	remote.Register("hdfs", Open)
	remote.RegisterDefaultHost("hdfs", defaultHost)
}

// Open returns the client for the file system of an address.
func Open(_ context.Context, a remote.Address) (remote.Client, error) {
	o, err := settings(a)
	if err != nil {
		return nil, err
	}
	return &client{pool: newPool(o), made: map[string]bool{}}, nil
}

type client struct {
	pool *pool
	made map[string]bool // directories that this client made; guarded by pool.mu
}

// Traits: a file is written in one go, as a stream that broke cannot be continued.
func (c *client) Traits() remote.Traits { return remote.Traits{Lists: true, Flat: true, Whole: true} }

// uploading is how the names of files begin that are being written.
const uploading = "._stoa-upload-"

// full returns the path of a key.
func full(key string) string { return path.Join("/", key) }

// object describes a file. Its stamp changes whenever the file is replaced, appended to or truncated.
func object(key string, info fs.FileInfo) remote.Object {
	o := remote.Object{Key: key, Size: info.Size(), Changed: info.ModTime()}
	id := uint64(0)
	if st, ok := info.Sys().(*hdfs.FileStatus); ok {
		id = st.GetFileId()
	}
	o.Stamp = fmt.Sprintf("%d-%d-%d", id, info.ModTime().UnixMilli(), info.Size())
	return o
}

// List lists one directory.
func (c *client) List(ctx context.Context, prefix, _ string, _ bool) (all []remote.Object, _ bool, err error) {
	err = c.pool.do(ctx, func(h *handle) error {
		all = nil
		dir, err := h.api.Open(full(prefix))
		if err != nil {
			return err
		}
		defer dir.Close()
		if !dir.Stat().IsDir() {
			return fs.ErrNotExist
		}
		infos, err := dir.Readdir(0)
		if err != nil {
			return err
		}
		for _, info := range infos {
			switch key := prefix + info.Name(); {
			case info.IsDir():
				all = append(all, remote.Object{Key: key + "/", Dir: true})
			case !strings.HasPrefix(info.Name(), uploading):
				all = append(all, object(key, info))
			}
		}
		return nil
	})
	sorted.By(all, func(a, b remote.Object) int { return strings.Compare(a.Key, b.Key) })
	return all, false, err
}

// Head returns a file's size and stamp.
func (c *client) Head(ctx context.Context, key, _ string) (o remote.Object, err error) {
	err = c.pool.do(ctx, func(h *handle) error {
		info, err := h.api.Stat(full(key))
		if err == nil && info.IsDir() {
			return &remote.Error{Kind: fs.ErrNotExist, Reason: "a directory"}
		}
		if err == nil {
			o = object(key, info)
		}
		return err
	})
	return o, err
}

// Get reads a range of the file with the stamp of o. The file is looked up again after its blocks are known, as another
// file may have taken its name in between.
func (c *client) Get(ctx context.Context, o remote.Object, _ string, off, n int64) (remote.Body, error) {
	h, err := c.pool.take(ctx)
	if err != nil {
		return remote.Body{}, err
	}
	stop := context.AfterFunc(ctx, h.hangUp)
	b, err := h.open(o, off, n)
	if err != nil {
		stop()
		return remote.Body{}, c.pool.give(ctx, h, err)
	}
	b.end = func(err error) error { stop(); return c.pool.give(ctx, h, err) }
	return remote.Body{ReadCloser: b, Off: off, Object: b.object}, nil
}

// body is a range of a file.
type body struct {
	f      *hdfs.FileReader
	short  int    // reads in a row that returned less than safeRead
	first  []byte // of the range, read already
	left   int64  // bytes after these
	object remote.Object
	err    error
	end    func(error) error
}

// open opens a range of a file; n < 0: all of it.
func (h *handle) open(o remote.Object, off, n int64) (*body, error) {
	f, err := h.api.Open(full(o.Key))
	if err != nil {
		return nil, err
	}
	b := &body{f: f, object: object(o.Key, f.Stat())}
	if f.Stat().IsDir() {
		return nil, errors.Join(&remote.Error{Kind: fs.ErrNotExist, Reason: "a directory"}, f.Close())
	}
	if b.left = max(b.object.Size-off, 0); n >= 0 {
		b.left = min(n, b.left)
	}
	if o.Stamp != "" && o.Stamp != b.object.Stamp {
		return nil, errors.Join(errChanged, f.Close())
	}
	if b.left == 0 {
		return b, nil
	}
	if _, err = f.Seek(off, io.SeekStart); err == nil {
		b.first = make([]byte, min(b.left, safeRead))
		var k int
		k, err = b.readFile(b.first)
		b.first = b.first[:k]
	}
	if err == nil || err == io.EOF {
		var now fs.FileInfo
		if now, err = h.api.Stat(full(o.Key)); err == nil && object(o.Key, now).Stamp != b.object.Stamp {
			err = errChanged
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b.left -= int64(len(b.first))
	return b, nil
}

var errChanged = &remote.Error{Kind: store.ErrChanged, Reason: "the file changed"}

func (b *body) Read(p []byte) (n int, err error) {
	switch {
	case len(b.first) > 0:
		n = copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	case b.left == 0:
		return 0, io.EOF
	}
	for want := p[:min(int64(len(p)), b.left)]; n < len(want) && err == nil; {
		var k int
		k, err = b.readFile(want[n:])
		n += k
	}
	if b.left -= int64(n); err == io.EOF && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		b.err = err
		err = reason(err)
	}
	return n, err
}

// safeRead is the maximum number of bytes per read of the library. It returns data that fail their checksum without an
// error if a read spans whole chunks, which have 512 bytes or more. Otherwise it verifies a chunk before it returns
// any of it, and asks another datanode if that fails.
const safeRead = 509

// maxShort is how many reads in a row may return less than safeRead, as those of small blocks do. More of them mean
// that the chunks are smaller.
const maxShort = 64

// readFile reads at most safeRead bytes.
func (b *body) readFile(p []byte) (int, error) {
	p = p[:min(len(p), safeRead)]
	n, err := b.f.Read(p)
	if b.short++; n == len(p) {
		b.short = 0
	}
	if b.short > maxShort {
		return n, &remote.Error{Reason: "the chunks that have checksums are smaller than expected: " +
			"dfs.bytes-per-checksum should be 512 or more"}
	}
	return n, err
}

func (b *body) Close() error {
	_ = b.f.Close()
	_ = b.end(b.err)
	return nil
}
