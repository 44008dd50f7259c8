package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"stoa"
	"stoa/internal/seal"
	"stoa/store"
	"stoa/store/remote"
)

// RemoteOptions limit the requests to stores. Tests use shorter times.
var RemoteOptions remote.Options

// RemoteFailure returns what a store failed to answer; nil: nothing.
func (a *App) RemoteFailure() error {
	if a.remote == nil {
		return nil
	}
	return a.remote.Failure()
}

// Answered returns a function that returns what a store has failed to answer since. A reader that tolerates damage may
// have taken it for some, so what it wrote must not become visible.
func (a *App) Answered() func() error {
	before, _ := a.Remote().Failures()
	return func() error {
		if n, last := a.Remote().Failures(); n > before {
			return last
		}
		return nil
	}
}

// Remote returns the tree through which addresses are read.
func (a *App) Remote() *remote.Tree {
	if a.remote == nil {
		a.remote = remote.New(nil, RemoteOptions)
	}
	return a.remote
}

// Enter enters the addresses among paths, and replaces them in place by their names, which contain no secrets.
func (a *App) Enter(ctx context.Context, paths []string) error {
	for i, p := range paths {
		if !remote.Is(p) || a.Within != nil {
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

// CheckWritable returns an error if path is an address that cannot be written to.
func CheckWritable(path string) error {
	if !remote.Is(path) {
		return nil
	}
	a, err := remote.Parse(path)
	if err != nil {
		return &UseError{Message: err.Error()}
	}
	if a.Scheme == "http" || a.Scheme == "https" {
		return &UseError{Message: "nothing is written to an address of a web server: " + ShownAddress(path),
			Hint: "write to a file, and copy that"}
	}
	return nil
}

// remoteSink returns a sink for an address, and the address's name.
func (a *App) remoteSink(ctx context.Context, path string) (store.Sink, string, error) {
	if err := CheckOutput(path, a.sources()); err != nil {
		return nil, path, err
	}
	sink, err := a.Remote().Sink(ctx, path, remote.SinkOptions{SingleWriter: a.SingleWriter})
	return sink, ShownAddress(path) + trailingSlash(path), err
}

func trailingSlash(path string) string {
	if strings.HasSuffix(path, "/") {
		return "/"
	}
	return ""
}

// checkRemoteOutput is CheckOutput for an address.
func checkRemoteOutput(out string, sources []stoa.SourceInfo) error {
	target := strings.TrimRight(ShownAddress(out), "/")
	for _, s := range sources {
		if !remote.Is(s.Name) {
			continue
		}
		source := strings.TrimRight(ShownAddress(remote.Shown(s.Name)), "/")
		place := WithoutTable(source)
		switch {
		case target == source || target == place || strings.HasPrefix(place, target+"/"):
			return &UseError{Message: "the output " + target + " is also a source: " + source,
				Hint: "stoa never writes in place; choose another name"}
		case strings.HasPrefix(target, place+"/"):
			return &UseError{Message: "the output " + target + " lies in the source " + source,
				Hint: "stoa writes nothing into what it reads; choose a place outside of it"}
		}
	}
	return nil
}

// ShownAddress returns an address without parts that may be secret.
func ShownAddress(path string) string {
	a, err := remote.Parse(path)
	if err != nil {
		return withSlashes(path)
	}
	return a.Name()
}

// reportUsage prints, with -v, how many requests were made to stores.
func (a *App) reportUsage() {
	if a.remote == nil || a.remote.Usage().All() == 0 {
		return
	}
	u := a.remote.Usage()
	if u.Cached > 0 {
		a.Detail("%d bytes came from the cache", u.Cached)
	}
	for _, k := range []remote.Kind{remote.Listing, remote.Head, remote.Get, remote.Put, remote.Delete} {
		if n := u.Requests[k]; n > 0 {
			a.Detail("%s: %d requests, %s waited in all", k, n, u.Waited[k].Round(time.Millisecond))
		}
	}
	a.Detail("%d requests, %d of them repeated; %d bytes received, %d sent", u.All(), u.Repeated, u.Bytes, u.Sent)
}

// Requests are the requests made to stores, for JSON.
type Requests struct {
	List     int64   `json:"list"`
	Head     int64   `json:"head"`
	Get      int64   `json:"get"`
	Repeated int64   `json:"repeated"`
	Bytes    int64   `json:"bytes"`
	Waited   float64 `json:"waited_seconds"` // concurrent requests each count
}

// Requests returns the requests made to stores so far, or nil.
func (a *App) Requests() *Requests {
	if a.remote == nil || a.remote.Usage().All() == 0 {
		return nil
	}
	u := a.remote.Usage()
	waited := u.Waited[remote.Listing] + u.Waited[remote.Head] + u.Waited[remote.Get]
	return &Requests{List: u.Requests[remote.Listing], Head: u.Requests[remote.Head], Get: u.Requests[remote.Get],
		Repeated: u.Repeated, Bytes: u.Bytes, Waited: waited.Seconds()}
}

// oneSlash matches an address as path.Clean leaves it.
var oneSlash = regexp.MustCompile(`\b(s3|https?|hdfs|gs|az):/([^/\s])`)

// Users with passwords: with slashes, if what follows the colon is no port; and in one part of a path.
const (
	slashed = `[^/\s:@]+:(?:[^0-9\s]|[0-9]+[^0-9/\s])[^\s@]*`
	onePart = `[^/\s:@]*:[^/\s]*`
)

// What may be secret in an address: user and password, of whatever scheme, and the query of a web server.
var (
	secretKeys = regexp.MustCompile(`\bs3://[^/\s:@]+:[^\s@]*@`) // of S3, which have slashes
	secretUser = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]+:)(?:(//)(?:[^/\s]*|` + slashed + `)|(/)` + onePart +
		`)@`)
	secretQuery = regexp.MustCompile(`(?i)(https?://[^\s?]*)\?[^\s:]*`)
)

// withSlashes restores the addresses in a message to their usual form, without parts that may be secret.
func withSlashes(s string) string {
	s = secretKeys.ReplaceAllString(oneSlash.ReplaceAllString(s, "$1://$2"), "s3://")
	s = secretUser.ReplaceAllString(s, "$1$2$3")
	return secretQuery.ReplaceAllString(s, "$1")
}

// Stat describes what is at a path, which may be an address.
func (a *App) Stat(ctx context.Context, name string) (store.Info, error) {
	if remote.Is(name) {
		if err := a.enter(ctx, name); err != nil {
			return store.Info{}, err
		}
	}
	return Tree{A: a}.Stat(ctx, name)
}

// enter makes the objects at an address readable.
func (a *App) enter(ctx context.Context, name string) error {
	if a.Remote().Knows(name) {
		return nil
	}
	_, err := a.Remote().Enter(ctx, remote.Shown(name))
	return err
}

// ReadFile reads a whole file, which may be an object at an address.
func (a *App) ReadFile(ctx context.Context, name string) ([]byte, error) {
	if !remote.Is(name) {
		return os.ReadFile(name)
	}
	if err := a.enter(ctx, name); err != nil {
		return nil, err
	}
	s, err := a.Remote().Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	b := make([]byte, s.Size())
	if _, err := s.ReadAt(ctx, b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

// Walk calls f with all files at and below a path, which may be an address.
func (a *App) Walk(ctx context.Context, name string, f func(store.Info) error) error {
	info, err := a.Stat(ctx, name)
	if err != nil {
		return err
	}
	if !info.Dir {
		return f(info)
	}
	return walk(ctx, Tree{A: a, All: true}, filepath.ToSlash(name), f)
}

func walk(ctx context.Context, t store.Tree, dir string, f func(store.Info) error) error {
	for info, err := range t.List(ctx, dir) {
		if err != nil {
			return err
		}
		if info.Dir {
			err = walk(ctx, t, info.Name, f)
		} else {
			err = f(info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sealed returns places, whose addresses are entered, as seals read them.
func (a *App) Sealed(roots []string) seal.Places {
	return seal.Places{Roots: roots, Address: remote.Is, Tree: Tree{A: a, All: true}}
}
