package cli

import (
	"context"
	"regexp"
	"time"

	"stoa/store"
	"stoa/store/remote"
)

// RemoteOptions are how stores are asked. Tests have less patience.
var RemoteOptions remote.Options

// Remote is where addresses are read.
func (a *App) Remote() *remote.Tree {
	if a.remote == nil {
		a.remote = remote.New(nil, RemoteOptions)
	}
	return a.remote
}

// Enter replaces, in place, addresses among paths by their names: without what is secret in them.
func (a *App) Enter(ctx context.Context, paths []string) error {
	for i, p := range paths {
		if !remote.Is(p) {
			continue
		}
		name, err := a.Remote().Enter(ctx, p)
		if err != nil {
			return err
		}
		paths[i] = name
	}
	return nil
}

// CheckWritable refuses an address as an output.
func CheckWritable(path string) error {
	if !remote.Is(path) {
		return nil
	}
	return &UseError{Message: "nothing is written to an address: " + shownAddress(path),
		Hint: "write to a file, and copy that"}
}

// shownAddress is an address without what may be secret in it.
func shownAddress(path string) string {
	a, err := remote.Parse(path)
	if err != nil {
		return remote.Shown(path)
	}
	return a.Name()
}

// tellUsage says with -v what was asked of stores.
func (a *App) tellUsage() {
	if a.remote == nil || a.remote.Usage().All() == 0 {
		return
	}
	u := a.remote.Usage()
	for _, k := range []remote.Kind{remote.Listing, remote.Head, remote.Get} {
		if n := u.Requests[k]; n > 0 {
			a.Detail("%s: %d requests, %s waited in all", k, n, u.Waited[k].Round(time.Millisecond))
		}
	}
	a.Detail("%d requests, %d of them repeated; %d bytes received", u.All(), u.Repeated, u.Bytes)
}

// oneSlash is an address as path.Clean has it.
var oneSlash = regexp.MustCompile(`\b(s3|https?|hdfs|gs|az):/([^/\s])`)

// secretParts are what of an address may be secret: user and password, and what follows the question mark.
var secretParts = regexp.MustCompile(`(https?://)(?:[^/\s@]*@)?([^\s?]*)(?:\?[^\s:]*)?`)

// withSlashes writes the addresses in a message as they are given, without what may be secret.
func withSlashes(s string) string {
	return secretParts.ReplaceAllString(oneSlash.ReplaceAllString(s, "$1://$2"), "$1$2")
}

// sizeBelow is how many bytes the objects below a directory have.
func sizeBelow(ctx context.Context, t store.Tree, dir string) (sum int64, err error) {
	for info, err := range t.List(ctx, dir) {
		if err != nil {
			return 0, err
		}
		if sum += info.Size; info.Dir {
			below, err := sizeBelow(ctx, t, info.Name)
			if err != nil {
				return 0, err
			}
			sum += below
		}
	}
	return sum, nil
}
