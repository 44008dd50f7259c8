package hdfs

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"stoa/store/remote"
)

const copySize = 1 << 20

// Put writes a file under another name in its directory and then renames it, so that it appears whole. With
// c.Absent the file is created under its own name, as a rename replaces other files: only small marks are written so.
func (c *client) Put(ctx context.Context, key string, data io.ReadSeeker, n int64, when remote.Condition) (
	o remote.Object, err error) {
	if when.Stamp != "" {
		return o, &remote.Error{Kind: errors.ErrUnsupported, Reason: "HDFS has no conditional replacement"}
	}
	if _, err := data.Seek(0, io.SeekStart); err != nil {
		return o, err
	}
	target := full(key)
	name := path.Join(path.Dir(target), uploading+rand.Text()[:16])
	if when.Absent {
		name = target
	}
	created := false
	err = c.pool.do(ctx, func(h *handle) error {
		if err := c.makeDir(h, path.Dir(target)); err != nil {
			return err
		}
		if info, err := h.api.Stat(target); err == nil && info.IsDir() {
			return &remote.Error{Kind: fs.ErrExist, Reason: "there is a directory of that name"}
		}
		f, err := h.api.Create(name)
		if err != nil {
			return err
		}
		created = true
		if err = fill(ctx, f, data, n); err == nil && name != target {
			err = h.api.Rename(name, target)
		}
		if err == nil {
			var info fs.FileInfo
			if info, err = h.api.Stat(target); err == nil {
				o = object(key, info)
			}
		}
		return err
	})
	if err != nil && created {
		err = errors.Join(err, c.undo(context.WithoutCancel(ctx), name))
	}
	return o, err
}

// undo removes what was written, with a connection of its own. What it fails to remove is invisible, and clean removes
// it.
func (c *client) undo(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_ = c.pool.do(ctx, func(h *handle) error { return h.api.Remove(name) })
	return nil
}

// fill writes n bytes into a new file and closes it.
func fill(ctx context.Context, f *hdfs.FileWriter, data io.Reader, n int64) error {
	buf := make([]byte, min(copySize, max(n, 1)))
	left := n
	for left > 0 {
		k, err := io.ReadFull(data, buf[:min(left, int64(len(buf)))])
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			_, err = f.Write(buf[:k])
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		left -= int64(k)
	}
	err := f.Close()
	for wait := 10 * time.Millisecond; hdfs.IsErrReplicating(err) && wait < 20*time.Second; wait *= 2 {
		select {
		case <-time.After(wait):
			err = f.Close()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// makeDir makes a directory and those above it, and remembers which ones it made.
func (c *client) makeDir(h *handle, dir string) error {
	var missing []string
	for d := dir; d != "/"; d = path.Dir(d) {
		if info, err := h.api.Stat(d); err == nil && info.IsDir() {
			break
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, d)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := h.api.MkdirAll(dir, 0o777&^0o022); err != nil {
		return err
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	for _, d := range missing {
		c.made[d] = true
	}
	return nil
}

// Delete removes a file, and the directories above it that this client made and that are empty now.
func (c *client) Delete(ctx context.Context, key string) error {
	return c.pool.do(ctx, func(h *handle) error {
		name := full(key)
		if err := h.api.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for d := path.Dir(name); c.isMine(d); d = path.Dir(d) {
			if h.api.Remove(d) != nil { // it is not empty
				return nil
			}
		}
		return nil
	})
}

func (c *client) isMine(dir string) bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.made[dir]
}

var errNoParts = &remote.Error{Kind: errors.ErrUnsupported, Reason: "files of HDFS are not written in parts"}

func (c *client) Begin(context.Context, string) (string, error) { return "", errNoParts }

func (c *client) Part(context.Context, remote.Upload, int, io.ReadSeeker, int64) (string, error) {
	return "", errNoParts
}

func (c *client) Complete(context.Context, remote.Upload, []string, remote.Condition) (remote.Object, error) {
	return remote.Object{}, errNoParts
}

// Discard removes a file that was not completed.
func (c *client) Discard(ctx context.Context, u remote.Upload) error {
	return c.pool.do(ctx, func(h *handle) error {
		if err := h.api.Remove(full(u.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Uploads lists files that were not completed.
func (c *client) Uploads(ctx context.Context, prefix string, _ remote.Upload) (all []remote.Upload, _ bool, err error) {
	err = c.pool.do(ctx, func(h *handle) error {
		all = nil
		return h.uploads(strings.TrimSuffix(prefix, "/"), &all)
	})
	return all, false, err
}

func (h *handle) uploads(dir string, all *[]remote.Upload) error {
	infos, err := h.api.ReadDir(full(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		if info, e := h.api.Stat(full(dir)); e == nil && !info.IsDir() {
			return nil
		}
		return err
	}
	for _, info := range infos {
		switch key := path.Join(dir, info.Name()); {
		case info.IsDir():
			if err := h.uploads(key, all); err != nil {
				return err
			}
		case strings.HasPrefix(info.Name(), uploading):
			*all = append(*all, remote.Upload{Key: key, ID: key, Begun: info.ModTime(), Ours: true})
		}
	}
	return nil
}
