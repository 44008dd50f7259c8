package hdfs

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/colinmarc/hdfs/v2"
)

// Lock opens a file for appending, as CarbonData's HdfsFileLock does: the namenode then refuses to open it for others.
// The connection belongs to the lock, because its library renews the lease of what was opened through it. The namenode
// gives a lease that nobody has renewed for a minute to the next one who asks.
func (c *client) Lock(ctx context.Context, key string) (unlock func() error, err error) {
	h, err := c.pool.take(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, h.hangUp)
	f, err := c.openLock(h, full(key))
	stop()
	if err != nil {
		return nil, c.pool.give(ctx, h, err)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
		defer cancel()
		return c.pool.give(ctx, h, f.Close())
	}, nil
}

func (c *client) openLock(h *handle, name string) (*hdfs.FileWriter, error) {
	if err := c.makeDir(h, path.Dir(name)); err != nil {
		return nil, err
	}
	if _, err := h.api.Stat(name); errors.Is(err, fs.ErrNotExist) {
		err = h.api.CreateEmptyFile(name)
		if err == nil {
			err = h.api.Chmod(name, 0o777) // as CarbonData does, so that other users can lock it
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return h.api.Append(name)
}

// Prune removes empty directories.
func (c *client) Prune(ctx context.Context, key string) error {
	return c.pool.do(ctx, func(h *handle) error {
		_, err := h.prune(full(key))
		return err
	})
}

// prune reports whether it removed a directory.
func (h *handle) prune(dir string) (gone bool, err error) {
	infos, err := h.api.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, err
	}
	left := 0
	for _, info := range infos {
		if !info.IsDir() {
			left++
			continue
		}
		gone, err := h.prune(path.Join(dir, info.Name()))
		if err != nil {
			return false, err
		}
		if !gone {
			left++
		}
	}
	if left > 0 {
		return false, nil
	}
	return true, h.api.Remove(dir)
}
